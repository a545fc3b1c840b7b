// How a fork begins: it reads the log it comes from, and takes along only the reply whose calls are open there. Each of these is asked
// about again (review.ts): what was allowed in the one session is not allowed in the other.
import type { CallKey } from '../kernel/content.ts'
import { callKey, type Description, type Event, type OwnerBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { fold } from '../kernel/fold.ts'
import { type Call, outsideOf, type Turn } from '../kernel/ledger.ts'
import type { Store } from '../ports/store.ts'
import { resultOf, unknown } from '../kernel/result.ts'
import { EMPTY, type Run, type Session } from '../kernel/session.ts'
import { readLog } from '../archive/replay.ts'
import type { Beginning } from '../engine/owner.ts'
import type { Services } from '../engine/wiring.ts'
import { given, shown } from '../options.ts'
import { headOf } from '../riders/children/tree.ts'
import { descriptionIn, readOrigin } from './origin.ts'
import type { ForkOptions } from './verb-options.ts'

type Result = Extract<OwnerBody, { type: 'agent.tool_result' }>

/** Where the fork leaves the other log, and what it begins with after `session.created`. */
export type Forked = { readonly seq: number; readonly events: readonly OwnerBody[] }

/** seq of the reply in the fork: after what makes the session, begins the run and asks the model. */
const REPLY = 4

/** How the fork of a session begins, at the event that is asked for or at its end. */
export async function beginningOf(services: Services, id: string, options: ForkOptions): Promise<Beginning> {
  const { store } = services
  const { seq, agent, folder, metadata, labels } = await headOf(store, id)
  const at = options.at ?? seq
  if (!(Number.isInteger(at) && at >= 1 && at <= seq))
    throw new Fault('invalid_input', `Session ${id} has events 1 to ${seq}; it cannot be forked at ${shown(at)}.`)
  const said = descriptionIn(given({ folder: options.folder ?? folder, metadata, labels }) as Description)
  const origin = { ...(await readOrigin(store, { id })), ...said }
  // A workflow plans again what it has no result of.
  const planned = services.agent(agent).planner !== null
  const taken = planned ? { seq: at, events: [] } : await forkedAt(store, id, at)
  return { agent, ...origin, fork: { session: id, seq: taken.seq }, events: taken.events }
}

export async function forkedAt(store: Store, id: string, at: number): Promise<Forked> {
  const log = (await readLog(store, id)).slice(0, at)
  const { run }: Session = log.reduce(fold, EMPTY)
  const reply = run?.turn ? log[run.turn.seq - 1] : undefined
  if (!run?.turn || reply?.type !== 'agent.message') return { seq: at, events: [] }
  if (run.turn.open.length === 0 || run.turn.verdict.type !== 'continue') return { seq: at, events: [] }
  const { parts, calls, verdict } = reply
  return {
    seq: reply.seq - 1,
    events: [
      begun(run, log[run.seq - 1]),
      { type: 'model.started', shows: [] },
      { type: 'agent.message', parts, calls, verdict },
      ...calls.flatMap((_, index) => takenAlong(id, log, run.turn, index)),
    ],
  }
}

/** With the options of the run, unless they come from an import that was not reviewed yet. */
function begun({ limits, toolset, instructions, options, foreign }: Run, start: Event | undefined): OwnerBody {
  const { policy, code } = start?.type === 'run.started' ? start : {}
  const chosen = options === undefined || foreign ? {} : { options }
  const more = { ...(policy === undefined ? {} : { policy }), ...(code === undefined ? {} : { code }), ...chosen }
  return { type: 'run.started', inputs: [], wakes: [], limits, toolset, instructions, ...more, foreign: true }
}

/** What is known of a call there. What waits for a yes, or has not begun, is open here too. */
function takenAlong(id: string, log: readonly Event[], turn: Turn | null, index: number): readonly OwnerBody[] {
  const key = callKey(REPLY, index)
  const seq = turn?.results[index] ?? 0
  const settled = seq > 0 ? log[seq - 1] : undefined
  if (settled?.type === 'agent.tool_result') return [told(settled, key, log)]
  const call = turn?.open.find((each) => each.index === index)
  if (!turn || !call) return []
  if (call.state.type === 'running') return [unknown(key, `This ran in session ${id} when it was forked.`)]
  if (isWithPerson(call)) return [{ type: 'agent.custom_tool_use', call: key }]
  const result = call.state.type === 'denied' || call.state.type === 'answered' ? resultOf(EMPTY, turn, call, 0) : null
  return result ? [told(result, key, log)] : []
}

/** A question that was already handed out; a child is another matter: it works for the other session. */
function isWithPerson({ state, proposal }: Call): boolean {
  return state.type === 'outside' && proposal.gate?.type === 'outside' && outsideOf(proposal)?.child === undefined
}

/** As a model reads it. What it cost, and what an undo would need, stays with the session that did it. */
function told({ status, content, parts, failure, from }: Result, call: CallKey, log: readonly Event[]): Result {
  const answer = from === undefined ? undefined : log[from - 1]
  const said = answer?.type === 'user.custom_tool_result' ? answer.content : content
  const shown = parts ? { content: said, parts } : { content: said }
  return { type: 'agent.tool_result', call, status, ...shown, ...(failure ? { failure } : {}) }
}
