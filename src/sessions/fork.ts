// How a fork begins: it reads the log it comes from, and takes along only the reply whose calls are open there. Each of these is asked
// about again (review.ts): what was allowed in the one session is not allowed in the other.
import { hash } from 'node:crypto'
import type { CallKey } from '../kernel/content.ts'
import { callKey, type Description, type Event, type OwnerBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { fold } from '../kernel/fold.ts'
import { type Call, outsideOf, type Turn } from '../kernel/ledger.ts'
import type { Blob, Store } from '../ports/store.ts'
import { resultOf, unknown } from '../kernel/result.ts'
import { EMPTY, type Run, type Session } from '../kernel/session.ts'
import { readLog } from '../archive/replay.ts'
import type { Beginning } from '../engine/owner.ts'
import { checkOwn } from '../engine/program.ts'
import { findText, plannerName, type Services, textBlob } from '../engine/wiring.ts'
import { given, shown } from '../options.ts'
import { headOf } from '../riders/children/tree.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { checkSame, made } from './drive/made.ts'
import { descriptionIn, readOrigin } from './origin.ts'
import { checkFork, type ForkOptions } from './verb-options.ts'

type Result = Extract<OwnerBody, { type: 'agent.tool_result' }>

/** Where the fork leaves the other log, and what it begins with after `session.created`. */
export type Forked = { readonly seq: number; readonly events: readonly OwnerBody[] }

/** seq of the reply in the fork: after what makes the session, begins the run and asks the model. */
const REPLY = 4

/** Makes the fork, or finds the one that was made by the same call before. Resolves with its id. */
export async function forked(services: Services, id: string, options: ForkOptions): Promise<string> {
  const { store, random } = services
  const { id: name = random.id() } = options
  const isSame = (created: Event | undefined): boolean => isForkOf(created, id, options)
  // Before anything else: the session may have grown since, and its agent may not be here any more.
  if (options.id !== undefined && (await store.card(name)) !== null) await checkSame(services, name, isSame)
  else await made(services, name, await beginningOf(services, id, options), isSame)
  return name
}

/** How the fork of a session begins, at the event that is asked for or at its end. */
async function beginningOf(services: Services, id: string, options: ForkOptions): Promise<Beginning> {
  const { store } = services
  const session = await headOf(store, id)
  // Only a caller that names an agent wants one of this program to go on with the session of another.
  if (options.agent === undefined) checkOwn(services, id, session)
  const { seq, agent: own, folder, metadata, labels, imported, within } = session
  const at = options.at ?? seq
  if (!(Number.isInteger(at) && at >= 1 && at <= seq))
    throw new Fault('invalid_input', `Session ${id} has events 1 to ${seq}; it cannot be forked at ${shown(at)}.`)
  const { planner, fork: origin } = await createdOf(store, id)
  // What is in a file chooses no model.
  const kept = options.agent === undefined && imported === undefined ? origin?.model : undefined
  const { agent = own, model = kept } = options
  await checkSuccessor(services, { id, planner, agent }, options)
  const named = given({ metadata: over(metadata, options.metadata), labels: over(labels, options.labels) })
  checkFork(named, `the fork of ${id}`)
  const said = descriptionIn(given({ folder: options.folder ?? folder, ...named }) as Description)
  // A workflow plans again what it has no result of.
  const { planner: plans, environment: here } = services.agent(agent)
  const planned = plans !== null
  const taken = planned ? { seq: at, events: [] } : await forkedAt(store, id, at)
  const { events, blobs } =
    model === undefined ? { events: taken.events, blobs: [] } : await withModel(store, taken, model)
  const asked = options.id === undefined ? {} : { asked: askedFor(options) }
  const fork = { session: id, seq: taken.seq, ...(model === undefined ? {} : { model }), ...asked }
  // A fork of a child that was narrowed is narrowed too: it goes on with the same conversation.
  const bounds = within === undefined ? {} : { within }
  return { agent, ...(await readOrigin(store, { id, imported, here })), ...said, ...bounds, fork, events, blobs }
}

/** What the session has, but where the fork has its own. */
function over<T extends object>(inherited: T | undefined, own: T | undefined): T | undefined {
  return own === undefined ? inherited : { ...inherited, ...own }
}

/** Whether this session was made by the same call of `fork`: of this session, with the same options. */
function isForkOf(created: Event | undefined, id: string, options: ForkOptions): boolean {
  const { fork } = created?.type === 'session.created' ? created : {}
  return fork?.session === id && fork.asked === askedFor(options)
}

function askedFor({ at, folder, agent, model, labels, metadata }: ForkOptions): string {
  return hash('sha256', canonicalJson(given({ at, folder, agent, model, labels, metadata })))
}

type Created = Extract<Event, { type: 'session.created' }>

async function createdOf(store: Store, id: string): Promise<Created> {
  const [created] = (await store.read(id, 0, 1)).events
  if (created?.type === 'session.created') return created
  throw new Fault('session_damaged', `The log of session ${id} does not begin with its creation. Fork another session.`)
}

type Successor = { readonly id: string; readonly planner: string; readonly agent: string }

/** What a workflow planned, only the same workflow can go on with. What this harness does not have is said before anything is written. */
async function checkSuccessor(
  services: Services,
  { id, planner, agent }: Successor,
  options: ForkOptions,
): Promise<void> {
  if (options.agent !== undefined && plannerOf(services, agent) !== planner) {
    const what = planner === 'model' ? 'a language model' : `the workflow ${planner}`
    const text = `Session ${id} is driven by ${what}, and agent "${agent}" is not. Fork it with an agent that is driven likewise.`
    throw new Fault('invalid_input', text)
  }
  if (options.model === undefined) return
  const { checkChoice } = await import('./run-choice.ts')
  checkChoice(services, agent, { model: options.model }, [])
}

function plannerOf(services: Services, agent: string): string {
  try {
    return plannerName(services, agent)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new Fault('invalid_config', `This harness has no agent "${agent}". Name one of those that agents() has.`)
  }
}

/** A run that is taken along goes on with the other model, too. */
async function withModel(
  store: Store,
  { events: [begins, ...events] }: Forked,
  model: string,
): Promise<{ readonly events: readonly OwnerBody[]; readonly blobs: readonly Blob[] }> {
  if (begins?.type !== 'run.started') return { events: [], blobs: [] }
  const chosen = begins.options === undefined ? null : await findText(store, begins.options)
  const choice = { message: '', ...(chosen === null ? {} : (JSON.parse(chosen) as object)), model }
  const blob = textBlob(JSON.stringify(choice), 'application/json')
  return { events: [{ ...begins, options: blob.hash }, ...events], blobs: [blob] }
}

export async function forkedAt(store: Store, id: string, at: number): Promise<Forked> {
  const whole = await readLog(store, id)
  const imported = whole.findLast(({ type }) => type === 'session.imported')?.seq ?? 0
  const log = whole.slice(0, at)
  const { run }: Session = log.reduce(fold, EMPTY)
  const reply = run?.turn ? log[run.turn.seq - 1] : undefined
  if (!run?.turn || reply?.type !== 'agent.message') return { seq: at, events: [] }
  if (run.turn.open.length === 0 || run.turn.verdict.type !== 'continue') return { seq: at, events: [] }
  const { parts, calls, verdict } = reply
  return {
    seq: reply.seq - 1,
    events: [
      begun(run, log[run.seq - 1], run.seq <= imported),
      { type: 'model.started', shows: [] },
      { type: 'agent.message', parts, calls, verdict },
      ...calls.flatMap((_, index) => takenAlong(id, log, run.turn, index)),
    ],
  }
}

/** With the options of the run, unless they came out of a file, or from another session and were not reviewed yet. */
function begun(
  { limits, toolset, instructions, options, foreign }: Run,
  start: Event | undefined,
  isFromFile: boolean,
): OwnerBody {
  const { policy, code } = start?.type === 'run.started' ? start : {}
  const chosen = options === undefined || foreign || isFromFile ? {} : { options }
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
