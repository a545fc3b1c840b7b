// Undo: takes back what the calls of one run changed, newest first, by asking the tools that made them. It finds out what there
// is to take back from the log; it does not decide how.
import type { CallKey, Frozen } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { outsideOf } from '../kernel/ledger.ts'
import type { Session } from '../kernel/session.ts'
import { childId } from '../stores/plan/id.ts'
import type { Store } from '../ports/store.ts'
import { isMetadata, type Metadata } from '../tools/core/output.ts'
import type { Tool, Undone } from '../tools/core/tool.ts'
import { ToolRunContext } from '../effects/contexts.ts'
import type { Owned } from '../engine/owner.ts'
import { agentIn, type Services } from '../engine/wiring.ts'
import { checkOwn } from '../engine/program.ts'
import { headOf } from '../riders/children/tree.ts'
import { CallLog } from '../view/calls.ts'

const PAGE = 1_000

/**
 * A session, and what of it: one run, by the seq of its `run.started`, or all that a child did from a time on. Nothing up to the
 * event `after`: what a file says was changed was changed elsewhere, if at all.
 */
type Span = Frozen<{ session: string; agent: string; run: number | null; since: number; after: number }>

type Made = {
  readonly span: Span
  readonly call: CallKey
  readonly tool: string
  readonly metadata: Metadata
  readonly at: number
}

export type UndoneCall = Undone & { readonly call: CallKey }

/** What its owner does: the calls are taken back once, however often the session has grown meanwhile. */
export function undoing(
  services: Services,
  id: string,
  run: number | undefined,
): (session: Session) => Promise<Owned<readonly UndoneCall[]>> {
  let undone: readonly UndoneCall[] | null = null
  return async (session) => {
    checkOwn(services, id, session)
    if (session.run !== null)
      throw new Fault('session_busy', `Session ${id} has an open run. Interrupt it before you undo one.`)
    if (run === undefined && session.began === 0)
      throw new Fault('invalid_input', `Session ${id} has had no run yet: there is nothing to take back.`)
    const what = { session: id, agent: session.agent, run: run ?? session.began }
    if (run !== undefined) await checkRun(services.store, id, run)
    undone ??= await undoRun(services, what, session.imported ?? 0, new AbortController().signal)
    const event = { type: 'note.added', kind: 'undo', text: services.redactor.text(undoText(undone)) } as const
    return { value: undone, events: undone.length > 0 ? [event] : [] }
  }
}

/** Throws unless a run of the session began with this event. */
async function checkRun(store: Store, session: string, run: number): Promise<void> {
  const { events } = Number.isSafeInteger(run) && run > 0 ? await store.read(session, run - 1, 1) : { events: [] }
  if (events[0]?.type !== 'run.started')
    throw new Fault('invalid_input', `No run of session ${session} began with event ${run}. Its history names them.`)
}

/** What the subagents of the run changed is taken back too. */
async function undoRun(
  services: Services,
  of: { readonly session: string; readonly agent: string; readonly run: number },
  imported: number,
  signal: AbortSignal,
): Promise<readonly UndoneCall[]> {
  const flight = { signal, reason: null, clear: () => !signal.aborted }
  const undone = new Map<Made, readonly Undone[]>()
  const made = await madeIn(services, { ...of, since: 0, after: imported })
  const tools = new Map<string, ReadonlyMap<string, Tool>>()
  for (const session of new Set(made.map(({ span }) => span.session)))
    tools.set(session, await agentIn(services, await headOf(services.store, session)).tools.open({ signal }))
  const undoOf = ({ span, tool }: Made): Tool['undo'] => tools.get(span.session)?.get(tool)?.undo ?? null
  let left = made.toReversed().filter(undoOf)
  left.sort((a, b) => b.at - a.at)
  // Calls of one turn may have worked on one file in any order: what does not fit yet may fit after another.
  for (let before = left.length + 1; left.length > 0 && left.length < before; ) {
    before = left.length
    for (const each of left) {
      const context = new ToolRunContext(services, each.span.session, { key: each.call }, flight, [])
      undone.set(each, (await undoOf(each)?.(each.metadata, context)) ?? [])
    }
    left = left.filter((each) => undone.get(each)?.some(({ result }) => result === 'changed_since'))
  }
  return asBefore([...undone].flatMap(([{ call }, results]) => results.map((each) => ({ ...each, call }))))
}

/** The newest comes first. What is again as it was before its oldest change was taken back, in whatever way. */
function asBefore(undone: readonly UndoneCall[]): readonly UndoneCall[] {
  const back = new Map<string, Undone['result']>()
  const told = undone.toReversed().map((each): UndoneCall => {
    const result = each.result === 'changed_since' ? (back.get(each.what) ?? each.result) : each.result
    if (result === 'restored' || result === 'removed') back.set(each.what, result)
    return { ...each, result }
  })
  return told.reverse()
}

/** The results that say what they did, in the order they came, and those of the children after them. */
async function madeIn(services: Services, span: Span): Promise<readonly Made[]> {
  const { session, run } = span
  const calls = new CallLog()
  const children = new Map<string, Span>()
  const made: Made[] = []
  let { since } = span
  for (const event of await eventsOf(services, session, run)) {
    if (event.seq === run) since = event.at
    const [call] = calls.take(event)
    if (!call || event.seq <= span.after) continue
    if (event.type === 'agent.custom_tool_use') {
      const { child, answers } = outsideOf(call.terms) ?? {}
      const id = answers?.session ?? childId(session, event.call)
      if (child !== undefined) children.set(id, { session: id, agent: child, run: null, since, after: 0 })
    }
    if (event.type === 'agent.tool_result' && event.at >= since && isMetadata(event.metadata))
      made.push({ span, call: call.key, tool: call.proposal.tool, metadata: event.metadata, at: event.at })
  }
  for (const child of children.values()) made.push(...(await madeIn(services, child)))
  return made
}

/** All of a session, or what belongs to one run of it. */
async function eventsOf({ store }: Services, session: string, run: number | null): Promise<readonly Event[]> {
  const found: Event[] = []
  for (let after = run === null ? 0 : run - 1; ; ) {
    const { events } = await store.read(session, after, PAGE)
    const end = run === null ? -1 : events.findIndex(({ type }) => type === 'run.settled')
    found.push(...(end < 0 ? events : events.slice(0, end)))
    if (end >= 0 || events.length < PAGE) return found
    after += PAGE
  }
}

/** What the model is told at its next request: what it believed to be there may be gone. */
function undoText(undone: readonly UndoneCall[]): string {
  const lines = undone.map(({ what, result }) => `- ${what}: ${SAID[result]}`)
  return ['The user took back file changes of an earlier run:', ...lines].join('\n')
}

const SAID: Readonly<Record<Undone['result'], string>> = {
  restored: 'put back as it was before',
  removed: 'removed, as it was new',
  changed_since: 'left alone, because it was changed since',
  not_kept: 'left alone, because the old content was not kept',
}
