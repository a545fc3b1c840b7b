// The effect `end`: the work before a run settles or a session closes. The finalizer of a planner gives a stopped run
// its output, and the worktrees of children are described and swept. A lost attempt does it again: a finalizer only
// reads, and a sweep removes what nobody needs.
import type { Json } from '../../kernel/content.ts'
import type { Event, OwnerBody } from '../../kernel/event.ts'
import type { Effect } from '../../kernel/next.ts'
import type { Session } from '../../kernel/session.ts'
import type { Message } from '../../kernel/transcript.ts'
import type { Blob } from '../../ports/store.ts'
import type { Finalizer } from '../state/agent.ts'
import type { FlightContext, Landing } from '../state/effect.ts'
import { conversationOf } from '../state/run-messages.ts'
import type { Services } from '../state/runtime-ports.ts'
import type { SessionCache } from '../state/session-cache.ts'
import { ToolRunContext } from './call-context.ts'
import { landEnd } from './landings.ts'

const FINALIZE_MS = 10_000
const PAGE = 200

type EndEffect = Extract<Effect, { type: 'end' }>
/** The value that the finalizer returned, and the content it stored. */
type FinalOutput = { readonly output: Json; readonly kept: readonly Blob[] }

export async function endRun(
  services: Services,
  cache: SessionCache,
  effect: EndEffect,
  flight: FlightContext,
): Promise<Landing> {
  const { session } = cache
  const finalizer = session.agent === '' ? undefined : services.agent(session.agent).planner?.finalizer
  const isStopped = effect.outcome?.type === 'interrupted'
  const final = isStopped && finalizer ? await runFinalizer(services, cache, finalizer, flight) : null
  // The worktrees must not be touched by an attempt that may have lost the session.
  const workspace =
    flight.clear() && session.folder !== undefined ? await settleWorktrees(services, cache.id, session) : null
  const [end] = landEnd(effect).events
  if (end?.type !== 'run.settled') return landEnd(effect)
  const settled: OwnerBody = {
    ...end,
    ...(final ? { output: final.output } : {}),
    ...(workspace ? { workspace } : {}),
  }
  return { events: [settled], ...(final && final.kept.length > 0 ? { blobs: final.kept } : {}) }
}

/** A finalizer that fails or is too slow leaves an interrupted run without output, and the host gets a report. */
async function runFinalizer(
  services: Services,
  cache: SessionCache,
  finalizer: Finalizer,
  flight: FlightContext,
): Promise<FinalOutput | null> {
  const over = new AbortController()
  const context = new ToolRunContext(
    services,
    cache.id,
    { key: `${cache.session.run?.seq ?? 0}.0` },
    { signal: over.signal, reason: null, clear: () => !over.signal.aborted && flight.clear() },
    finalizer.secrets,
  )
  let cancel = (): void => {}
  const late = new Promise<never>((_, reject) => {
    cancel = services.clock.timer(FINALIZE_MS, () => {
      over.abort()
      reject(new Error(`The finalizer took longer than ${FINALIZE_MS} ms.`))
    })
  })
  flight.signal.addEventListener('abort', () => over.abort(), { once: true })
  try {
    const messages = await plannerMessages(services, cache)
    const output = await Promise.race([finalizer.run(messages, context), late])
    return { output, kept: context.kept }
  } catch (error) {
    services.report?.('finalizer', error)
    return null
  } finally {
    cancel()
  }
}

/** The messages that a planner would read if it were asked now. */
async function plannerMessages({ store }: Services, cache: SessionCache): Promise<readonly Message[]> {
  const shown = await cache.transcript()
  const before = shown.messages
  const reply = before.findLast((message) => message.role === 'assistant' && shown.placeOf(message) > 0)
  const end = cache.session.seq
  const events: Event[] = []
  for (let after = reply ? reply.seq - 1 : 0; after < end; ) {
    const page = (await store.read(cache.id, after, Math.min(PAGE, end - after))).events
    if (page.length === 0) break
    events.push(...page)
    after += page.length
  }
  const own = conversationOf(events)
  return reply ? own : [...before.filter((message) => shown.placeOf(message) === 0), ...own]
}

async function settleWorktrees({ store, worktrees }: Services, id: string, session: Session) {
  const settle = worktrees?.settle ?? (await import('./child-worktrees.ts')).settleWorktrees
  return settle(store, id, session)
}
