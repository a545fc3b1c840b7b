// Undo: takes back the changes of one run's calls, newest first, by asking the tools that made them. It reads from the
// log which changes there are; the tools decide how to take them back.
import type { CallKey, Frozen } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { outsideOf } from '../kernel/ledger.ts'
import type { Session } from '../kernel/session.ts'
import { childId } from '../view/ids.ts'
import type { CompleteStore } from '../ports/store.ts'
import { isMetadata, type OutputMetadata } from '../tools/core/tool-output.ts'
import type { Tool, Undone } from '../tools/core/tool.ts'
import { ToolRunContext } from '../runtime/turn/call-context.ts'
import type { OwnerChanges } from '../runtime/loop/act-as-owner.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { agentOfSession } from '../runtime/state/agent.ts'
import { checkOwnSession } from '../runtime/state/program.ts'
import { readSessionHead } from '../runtime/state/session-tree.ts'
import { CallLog } from '../view/call-log.ts'

const PAGE = 1_000

/**
 * The part of a session to undo: one run, by the seq of its `run.started`, or a child's work from a time on. Events up
 * to `after` are excluded: changes in an imported history were made elsewhere, if at all.
 */
type UndoSpan = Frozen<{ session: string; agent: string; run: number | null; since: number; after: number }>

type MadeChange = {
  readonly span: UndoSpan
  readonly call: CallKey
  readonly tool: string
  readonly metadata: OutputMetadata
  readonly at: number
}

/**
 * What became of one file or call that was to be undone. `changed_since`: somebody else wrote to it, so it was left
 * alone.
 */
export type UndoneCall = Undone & {
  /** The call that had made the change. */
  readonly call: CallKey
}

/**
 * The owner's action. The calls are taken back once, even if the session grows meanwhile and the action is repeated.
 */
export function undoAction(
  services: Services,
  id: string,
  run: number | undefined,
): (session: Session) => Promise<OwnerChanges<readonly UndoneCall[]>> {
  let undone: readonly UndoneCall[] | null = null
  return async (session) => {
    checkOwnSession(services, id, session)
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
async function checkRun(store: CompleteStore, session: string, run: number): Promise<void> {
  const { events } = Number.isSafeInteger(run) && run > 0 ? await store.read(session, run - 1, 1) : { events: [] }
  if (events[0]?.type !== 'run.started')
    throw new Fault('invalid_input', `No run of session ${session} began with event ${run}. Its history names them.`)
}

/** Changes by the run's subagents are taken back too. */
async function undoRun(
  services: Services,
  of: { readonly session: string; readonly agent: string; readonly run: number },
  imported: number,
  signal: AbortSignal,
): Promise<readonly UndoneCall[]> {
  const flight = { signal, reason: null, clear: () => !signal.aborted }
  const undone = new Map<MadeChange, readonly Undone[]>()
  const made = await findChanges(services, { ...of, since: 0, after: imported })
  const tools = new Map<string, ReadonlyMap<string, Tool>>()
  for (const session of new Set(made.map(({ span }) => span.session)))
    tools.set(
      session,
      await agentOfSession(services, await readSessionHead(services.store, session)).tools.open({ signal }),
    )
  const undoOf = ({ span, tool }: MadeChange): Tool['undo'] => tools.get(span.session)?.get(tool)?.undo ?? null
  let left = made.toReversed().filter(undoOf)
  left.sort((a, b) => b.at - a.at)
  // Calls of one turn may have changed one file in any order: an undo that does not fit yet may fit after another.
  for (let before = left.length + 1; left.length > 0 && left.length < before; ) {
    before = left.length
    for (const each of left) {
      const context = new ToolRunContext(services, each.span.session, { key: each.call }, flight, [])
      undone.set(each, (await undoOf(each)?.(each.metadata, context)) ?? [])
    }
    left = left.filter((each) => undone.get(each)?.some(({ result }) => result === 'changed_since'))
  }
  return markRestored([...undone].flatMap(([{ call }, results]) => results.map((each) => ({ ...each, call }))))
}

/**
 * Puts the newest first. A file that is already as it was before its oldest change counts as restored, whichever undo
 * did it.
 */
function markRestored(undone: readonly UndoneCall[]): readonly UndoneCall[] {
  const back = new Map<string, Undone['result']>()
  const told = undone.toReversed().map((each): UndoneCall => {
    const result = each.result === 'changed_since' ? (back.get(each.what) ?? each.result) : each.result
    if (result === 'restored' || result === 'removed') back.set(each.what, result)
    return { ...each, result }
  })
  return told.reverse()
}

/** The results with undo data, in the order of the log, and those of the children after them. */
async function findChanges(services: Services, span: UndoSpan): Promise<readonly MadeChange[]> {
  const { session, run } = span
  const calls = new CallLog()
  const children = new Map<string, UndoSpan>()
  const made: MadeChange[] = []
  let { since } = span
  for (const event of await readSpanEvents(services, session, run)) {
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
  for (const child of children.values()) made.push(...(await findChanges(services, child)))
  return made
}

/** The events of a whole session, or of one of its runs. */
async function readSpanEvents({ store }: Services, session: string, run: number | null): Promise<readonly Event[]> {
  const found: Event[] = []
  for (let after = run === null ? 0 : run - 1; ; ) {
    const { events } = await store.read(session, after, PAGE)
    const end = run === null ? -1 : events.findIndex(({ type }) => type === 'run.settled')
    found.push(...(end < 0 ? events : events.slice(0, end)))
    if (end >= 0 || events.length < PAGE) return found
    after += PAGE
  }
}

/** The text for the model at its next request: files that it expects may be gone. */
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
