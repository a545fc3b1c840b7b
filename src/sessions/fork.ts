// How a fork begins: it reads the original log, and copies only the reply whose calls are open at that point. Each of
// these calls is asked about again (review-run.ts): an approval in one session does not count in the other.
import { hash } from 'node:crypto'
import type { CallKey, Metadata } from '../kernel/content.ts'
import { callKey, type SessionDescription, type Event, type OwnerBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { fold } from '../kernel/fold.ts'
import { type Call, outsideOf, type Turn } from '../kernel/ledger.ts'
import type { Blob, CompleteStore } from '../ports/store.ts'
import { resultWithoutEffect, unknownResult } from '../kernel/result.ts'
import { EMPTY, type Run, type Session } from '../kernel/session.ts'
import { readLog } from '../view/session-log.ts'
import { titleFromText } from '../view/title.ts'
import type { SessionBeginning } from '../runtime/loop/act-as-owner.ts'
import { checkOwnSession } from '../runtime/state/program.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { plannerName } from '../runtime/state/agent.ts'
import { readTextBlob, textBlob } from '../runtime/state/content-blobs.ts'
import { withoutUndefined, describeValue } from '../options.ts'
import { readSessionHead } from '../runtime/state/session-tree.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { checkSameRequest, createOnce } from './drive/made.ts'
import { sessionDescription } from './origin.ts'
import { readOrigin } from '../runtime/state/session-origin.ts'
import { checkFork, type ForkOptions } from './verb-options.ts'

type ToolResultBody = Extract<OwnerBody, { type: 'agent.tool_result' }>

/** The event of the original log at which the fork begins, and the events that follow `session.created`. */
export type ForkPoint = { readonly seq: number; readonly events: readonly OwnerBody[] }

/** The seq of the reply in the fork: after the events that create the session, begin the run and ask the model. */
const REPLY = 4

/** Creates the fork, or finds the one that an earlier identical call created. Resolves with its id. */
export async function createFork(services: Services, id: string, options: ForkOptions): Promise<string> {
  const { store, random } = services
  const { id: name = random.id() } = options
  const isSame = (created: Event | undefined): boolean => isForkOf(created, id, options)
  // Checked before anything else: the session may have grown since, and its agent may not exist here any more.
  if (options.id !== undefined && (await store.card(name)) !== null) await checkSameRequest(services, name, isSame)
  else await createOnce(services, name, await buildForkBeginning(services, id, options), isSame)
  return name
}

/** The beginning of a fork, at the requested event or at the session's end. */
async function buildForkBeginning(services: Services, id: string, options: ForkOptions): Promise<SessionBeginning> {
  const { store } = services
  const session = await readSessionHead(store, id)
  // Naming an agent is the explicit choice to continue another program's session with an agent of this one.
  if (options.agent === undefined) checkOwnSession(services, id, session)
  const { seq, agent: own, folder, metadata, labels, imported, within } = session
  const at = options.at ?? seq
  if (!(Number.isInteger(at) && at >= 1 && at <= seq))
    throw new Fault(
      'invalid_input',
      `Session ${id} has events 1 to ${seq}; it cannot be forked at ${describeValue(at)}.`,
    )
  const { planner, fork: origin } = await readCreated(store, id)
  refuseTwin(id, planner, labels)
  // An imported file chooses no model.
  const kept = options.agent === undefined && imported === undefined ? origin?.model : undefined
  const { agent = own, model = kept } = options
  await checkSuccessor(services, { id, planner, agent }, options)
  const named = withoutUndefined({
    metadata: overrideFields(withTitle(metadata, (await store.card(id))?.title), options.metadata),
    labels: overrideFields(labels, options.labels),
  })
  checkFork(named, `the fork of ${id}`)
  const said = sessionDescription(
    withoutUndefined({ folder: options.folder ?? folder, ...named }) as SessionDescription,
  )
  // A workflow plans everything again for which it has no result.
  const { planner: plans, environment: here } = services.agent(agent)
  const planned = plans !== null
  const taken = planned ? { seq: at, events: [] } : await findForkPoint(store, id, at)
  const { events, blobs } =
    model === undefined ? { events: taken.events, blobs: [] } : await setForkModel(store, taken, model)
  const asked = options.id === undefined ? {} : { asked: forkOptionsHash(options) }
  const fork = { session: id, seq: taken.seq, ...(model === undefined ? {} : { model }), ...asked }
  // A fork of a narrowed child is narrowed too: it continues the same conversation.
  const bounds = within === undefined ? {} : { within }
  return { agent, ...(await readOrigin(store, { id, imported, here })), ...said, ...bounds, fork, events, blobs }
}

/** The data of the host with the title that the session was given since, which the fork takes as its own. */
function withTitle(metadata: Metadata | undefined, title: string | undefined): Metadata | undefined {
  const set = metadata?.['title']
  return typeof set !== 'string' || title === undefined || titleFromText(set) === title
    ? metadata
    : { ...metadata, title }
}

/** The session's fields, replaced by the fork's own where it has them. */
function overrideFields<T extends object>(inherited: T | undefined, own: T | undefined): T | undefined {
  return own === undefined ? inherited : { ...inherited, ...own }
}

/** Whether this session was created by the same call of `fork`: from this session, with the same options. */
function isForkOf(created: Event | undefined, id: string, options: ForkOptions): boolean {
  const { fork } = created?.type === 'session.created' ? created : {}
  return fork?.session === id && fork.asked === forkOptionsHash(options)
}

function forkOptionsHash({ at, folder, agent, model, labels, metadata }: ForkOptions): string {
  return hash('sha256', canonicalJson(withoutUndefined({ at, folder, agent, model, labels, metadata })))
}

/** A job and a delivery act on their own account, with whatever message comes. A second one would do all of it twice. */
function refuseTwin(id: string, planner: string, labels: Readonly<Record<string, string>> = {}): void {
  if (planner === 'cron')
    throw new Fault(
      'invalid_input',
      `Session ${id} is a cron job, and a fork of it would begin its runs a second time. Add a job of another name.`,
    )
  if (planner.startsWith('graph:trigger_') && 'trigger' in labels)
    throw new Fault(
      'invalid_input',
      `Session ${id} is a delivery of an event, and a fork of it would have its effects a second time. Retry it if it is dead, fork the session of its agent, or send the event again under another key.`,
    )
}

type CreatedEvent = Extract<Event, { type: 'session.created' }>

async function readCreated(store: CompleteStore, id: string): Promise<CreatedEvent> {
  const [created] = (await store.read(id, 0, 1)).events
  if (created?.type === 'session.created') return created
  throw new Fault('session_damaged', `The log of session ${id} does not begin with its creation. Fork another session.`)
}

type Successor = { readonly id: string; readonly planner: string; readonly agent: string }

/**
 * Only the same workflow can continue a workflow's plan. Unknown agents and models are refused before anything is
 * written.
 */
async function checkSuccessor(
  services: Services,
  { id, planner, agent }: Successor,
  options: ForkOptions,
): Promise<void> {
  if (options.agent !== undefined && findPlannerName(services, agent) !== planner) {
    const what = planner === 'model' ? 'a language model' : `the workflow ${planner}`
    const text = `Session ${id} is driven by ${what}, and agent "${agent}" is not. Fork it with an agent that is driven likewise.`
    throw new Fault('invalid_input', text)
  }
  if (options.model === undefined) return
  const { checkRunChoice } = await import('./run-choice.ts')
  checkRunChoice(services, agent, { model: options.model }, [])
}

function findPlannerName(services: Services, agent: string): string {
  try {
    return plannerName(services, agent)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new Fault('invalid_config', `This harness has no agent "${agent}". Name one of those that agents() has.`)
  }
}

/** A copied run continues with the other model, too. */
async function setForkModel(
  store: CompleteStore,
  { events: [begins, ...events] }: ForkPoint,
  model: string,
): Promise<{ readonly events: readonly OwnerBody[]; readonly blobs: readonly Blob[] }> {
  if (begins?.type !== 'run.started') return { events: [], blobs: [] }
  const chosen = begins.options === undefined ? null : await readTextBlob(store, begins.options)
  const choice = { message: '', ...(chosen === null ? {} : (JSON.parse(chosen) as object)), model }
  const blob = textBlob(JSON.stringify(choice), 'application/json')
  return { events: [{ ...begins, options: blob.hash }, ...events], blobs: [blob] }
}

export async function findForkPoint(store: CompleteStore, id: string, at: number): Promise<ForkPoint> {
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
      foreignRunStart(run, log[run.seq - 1], run.seq <= imported),
      { type: 'model.started', shows: [] },
      { type: 'agent.message', parts, calls, verdict },
      ...calls.flatMap((_, index) => carryCall(id, log, run.turn, index)),
    ],
  }
}

/** Keeps the run's options, unless they came from a file, or from another session and were not reviewed yet. */
function foreignRunStart(
  { limits, toolset, instructions, options, foreign }: Run,
  start: Event | undefined,
  isFromFile: boolean,
): OwnerBody {
  const { policy, code } = start?.type === 'run.started' ? start : {}
  const chosen = options === undefined || foreign || isFromFile ? {} : { options }
  const more = { ...(policy === undefined ? {} : { policy }), ...(code === undefined ? {} : { code }), ...chosen }
  return { type: 'run.started', inputs: [], wakes: [], limits, toolset, instructions, ...more, foreign: true }
}

/**
 * The events of one call that the fork copies. A call that waits for approval, or has not begun, is open in the fork
 * too.
 */
function carryCall(id: string, log: readonly Event[], turn: Turn | null, index: number): readonly OwnerBody[] {
  const key = callKey(REPLY, index)
  const seq = turn?.results[index] ?? 0
  const settled = seq > 0 ? log[seq - 1] : undefined
  if (settled?.type === 'agent.tool_result') return [carryResult(settled, key, log)]
  const call = turn?.open.find((each) => each.index === index)
  if (!turn || !call) return []
  if (call.state.type === 'running') return [unknownResult(key, `This ran in session ${id} when it was forked.`)]
  if (isWithPerson(call)) return [{ type: 'agent.custom_tool_use', call: key }]
  const result =
    call.state.type === 'denied' || call.state.type === 'answered' ? resultWithoutEffect(EMPTY, turn, call, 0) : null
  return result ? [carryResult(result, key, log)] : []
}

/** A question that was already handed out to a person. A child is different: it works for the other session. */
function isWithPerson({ state, proposal }: Call): boolean {
  return state.type === 'outside' && proposal.gate?.type === 'outside' && outsideOf(proposal)?.child === undefined
}

/** The result as a model reads it. Its cost and its undo data stay with the original session. */
function carryResult(
  { status, content, parts, failure, from }: ToolResultBody,
  call: CallKey,
  log: readonly Event[],
): ToolResultBody {
  const answer = from === undefined ? undefined : log[from - 1]
  const said = answer?.type === 'user.custom_tool_result' ? answer.content : content
  const shown = parts ? { content: said, parts } : { content: said }
  return { type: 'agent.tool_result', call, status, ...shown, ...(failure ? { failure } : {}) }
}
