// The last word of a planner whose run was stopped, as a rider: it joins the commit that settles the run, so that the run has ended
// with its output or has not ended. Lost with its process it is asked again, and it only reads.
import type { Json } from '../kernel/content.ts'
import type { Event, OwnerEvent } from '../kernel/event.ts'
import type { Message } from '../kernel/transcript.ts'
import type { CommitPlan, Rider } from '../engine/commit.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import type { Finalizer, Services } from '../engine/wiring.ts'
import { ToolRunContext } from '../effects/contexts.ts'
import { messagesOf } from '../sessions/messages.ts'
import { incompleteText, reportWith } from './children/children.ts'

const FINALIZE_MS = 10_000
const PAGE = 200

type Settled = Extract<OwnerEvent, { type: 'run.settled' }>

export function finalizeRider(services: Services, cache: SessionCache, by: Finalizer): Rider {
  return {
    complete(plan) {
      const settled = plan.events.find(isStopped)
      return settled ? withOutput(services, cache, by, plan, settled) : null
    },
  }
}

function isStopped(event: OwnerEvent): event is Settled {
  return event.type === 'run.settled' && event.outcome.type === 'interrupted' && event.output === undefined
}

/** A finalizer that fails or is too slow leaves an interrupted run without output, and its owner is told. */
async function withOutput(
  services: Services,
  cache: SessionCache,
  by: Finalizer,
  plan: CommitPlan,
  settled: Settled,
): Promise<CommitPlan> {
  const over = new AbortController()
  const flight = { signal: over.signal, reason: null, clear: () => !over.signal.aborted }
  const context = new ToolRunContext(services, cache.id, { key: `${settled.seq}.0` }, flight, by.secrets)
  let cancel = (): void => {}
  const late = new Promise<never>((_, reject) => {
    cancel = services.clock.timer(FINALIZE_MS, () => {
      over.abort()
      reject(new Error(`The finalizer took longer than ${FINALIZE_MS} ms.`))
    })
  })
  try {
    const messages = await said(services, cache, plan)
    const output = await Promise.race([by.run(messages, context), late])
    return recorded(
      plan,
      services.redactor.idle ? { ...settled, output } : redacted(services, settled, output),
      context,
    )
  } catch (error) {
    services.report?.('finalizer', error)
    return plan
  } finally {
    cancel()
  }
}

function redacted({ redactor }: Services, settled: Settled, output: Json): Settled {
  return { ...settled, ...(redactor.body({ type: 'run.settled', outcome: settled.outcome, output }) as Settled) }
}

function recorded(plan: CommitPlan, settled: Settled, { kept }: ToolRunContext): CommitPlan {
  const events = plan.events.map((event) => (event.seq === settled.seq ? settled : event))
  const [, ...births] = plan.writes
  const { sends, blobs = [] } = plan.write
  const write = {
    ...plan.write,
    events,
    ...(sends ? { sends: sends.map((send) => toldParent(send, plan.write.session, settled)) } : {}),
    ...(kept.length > 0 ? { blobs: [...blobs, ...kept] } : {}),
  }
  return { ...plan, events, write, writes: [write, ...births] }
}

type Send = NonNullable<CommitPlan['write']['sends']>[number]

/** A parent reads what the finalizer came to, in place of what was said last: as the result of its call, or as a report. */
function toldParent(send: Send, id: string, { output }: Settled): Send {
  const { event } = send
  const said = incompleteText(id, 'it was interrupted', JSON.stringify(output))
  if (event.type === 'user.custom_tool_result' && event.by === `session:${id}` && !event.ok)
    return { ...send, event: { ...event, content: said } }
  if (event.type !== 'user.message' || event.by !== `session:${id}` || event.report === undefined) return send
  const parts = event.parts.map((part) => (part.type === 'text' ? { ...part, text: retold(part.text, said) } : part))
  return { ...send, event: { ...event, parts } }
}

/** What was added after its last words, such as its worktree, stays. */
function retold(report: string, said: string): string {
  const end = said.slice(said.lastIndexOf('\n'))
  const [, tail = ''] = report.split(end)
  const more = tail.slice(0, Math.max(0, tail.lastIndexOf('\n')))
  return reportWith(report, said + more)
}

/** What a planner would read if it were asked now, with what only this commit has. */
async function said({ store }: Services, cache: SessionCache, plan: CommitPlan): Promise<readonly Message[]> {
  const shown = cache.shown
  const before = shown?.messages ?? []
  const reply = before.findLast((message) => message.role === 'assistant' && (shown?.placeOf(message) ?? 0) > 0)
  const end = plan.write.expectedSeq
  const events: Event[] = []
  for (let after = reply ? reply.seq - 1 : 0; after < end; ) {
    const page = (await store.read(cache.id, after, Math.min(PAGE, end - after))).events
    if (page.length === 0) break
    events.push(...page)
    after += page.length
  }
  const own = messagesOf([...events, ...plan.events])
  return reply ? own : [...before.filter((message) => shown?.placeOf(message) === 0), ...own]
}
