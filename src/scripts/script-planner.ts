// The planner `script`. A cell is a session: its task is a program, its calls are what the program asks for, and its
// answer is what the program made. The program runs until nothing moves; what it asked for by then is one reply, and the
// results are given to it a whole batch at once, in the order of its calls, so that it goes the same way each time.
import type { Json, Outcome } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { plannerGraph, type Graph } from '../graphs/graph-definition.ts'
import type { CallContext, Model, ModelFailure, Reply, Request, Workload } from '../ports/model.ts'
import type { CompleteStore } from '../ports/store.ts'
import type { Agent } from '../runtime/state/agent.ts'
import { completeLimits } from '../runtime/state/limits.ts'
import { isTemporaryError } from '../runtime/state/outages.ts'
import { DEFAULT_AGENT, type SharedAgentOptions } from '../sessions/agent.ts'
import { isObject, parseJson } from '../view/untrusted-json.ts'
import { idsDownTo } from '../view/ids.ts'
import { SCRIPT } from '../view/script-cell.ts'
import { textOf } from '../view/shown-text.ts'
import { isCallable, queryTools } from './capabilities.ts'
import {
  callHash,
  type CellBegun,
  type CellEnd,
  type CellLog,
  type CellRecord,
  type CellTask,
  codeHash,
  readCellLog,
  readCellTask,
} from './cell-log.ts'
import type { CellFailure, CellRest, CellSegment, WantedCall } from './cell.ts'
import { type CellPlaces, type CellStep, LiveCells } from './live-cells.ts'
import { openCell, readLogOf, scriptSessionOf } from './open-cell.ts'
import { type CompleteScriptOptions, currentMode } from './script-options.ts'

/** One reply may hold so many children, and not many more calls that wait for people. */
const CALLS_MAX = 50
const TURNS_MAX = 100_000
const RESULT_CHARS_MAX = 256 * 1024
const CALLS_SHOWN_MAX = 200

export function scriptPlanner(options: CompleteScriptOptions, places: CellPlaces): Graph {
  return plannerGraph(SCRIPT, (shared, others) => {
    const main = others?.get(DEFAULT_AGENT)
    if (main) return scriptAgent({ options, places }, shared, main)
    throw new Fault('invalid_config', 'The planner of scripts needs the agent that writes them.')
  })
}

type ScriptSetup = { readonly options: CompleteScriptOptions; readonly places: CellPlaces }
type ScriptPlace = { readonly options: CompleteScriptOptions; readonly live: LiveCells; readonly store: CompleteStore }

/** The agent that writes scripts, with a planner for its model, and only the tools that a script may call. */
function scriptAgent({ options, places }: ScriptSetup, shared: SharedAgentOptions, main: Agent): Agent {
  const place: ScriptPlace = { options, live: new LiveCells(places), store: shared.store }
  const { limits } = options
  const { approvalMs, policy, environment, budget, children } = main
  const own = main.limits
  const modelFor = (hint: string | undefined): Model =>
    shared.table?.modelFor(hint?.replace(/^hint:/, '') as Workload) ?? main.model
  return {
    name: SCRIPT,
    model: { name: SCRIPT, call: (request, context) => answerRequest(place, request, context) },
    asks: [main.model, ...(main.asks ?? [])],
    tools: main.tools.derived({ keeps: isCallable, own: queryTools(modelFor) }),
    instructions: '',
    limits: completeLimits({
      ...own,
      // A part of a cell is a turn and costs nothing. A cell catches the failures of its calls itself.
      modelRequests: TURNS_MAX,
      toolRetries: TURNS_MAX,
      parallel: limits.concurrency,
      depth: Math.min(own.depth ?? limits.depth, limits.depth),
    }),
    approvalMs,
    policy,
    environment,
    budget,
    output: null,
    children,
    planner: { name: SCRIPT, verdict: judgeCellReply, bounded: true, describeUnfinished },
  }
}

/** Trouble of the store passes: the request is made again. */
async function answerRequest(
  place: ScriptPlace,
  request: Request,
  context: CallContext,
): Promise<Reply | ModelFailure> {
  try {
    return await planReply(place, request, context)
  } catch (error) {
    if (!isTemporaryError(error)) throw error
    const message = error instanceof Error ? error.message : String(error)
    return { type: 'failure', class: 'other', message, retryable: true }
  }
}

async function planReply(place: ScriptPlace, request: Request, context: CallContext): Promise<Reply> {
  const { session, messages } = request
  const log = readCellLog(messages)
  const task = readCellTask(log.task)
  const now = context.now?.() ?? context.clock.now()
  const blank = { part: log.parts.length, now, seed: seedOf(session, log), ms: 0, from: 0, total: 0, calls: [] }
  if (log.isAskedAgain) {
    const refused = { kind: 'script_error', message: 'A cell is one program, and this one has ended.', at: null }
    return replyOf({ ...blank, end: endOf({ session, task, log, begun: null, now }, { error: refused }) }, [], request)
  }
  // A cell that has ended answers the same again.
  if (log.end !== null) return replyOf({ ...blank, end: log.end }, [], request)
  const opened = log.begun ?? (await openCell({ ...place, session, tools: request.tools }, task))
  if ('refused' in opened) {
    const end = endOf({ session, task, log, begun: null, now }, { error: opened.refused, lost: true })
    return replyOf({ ...blank, end }, [], request)
  }
  const begun = log.begun === null ? { begun: opened } : {}
  const cell = { session, task, log: { ...log, begun: opened }, begun: opened, now }
  if (currentMode(place.options) === 'off') {
    const refused = { kind: 'denied', message: 'Scripts are turned off here.', at: null }
    return replyOf({ ...blank, ...begun, end: endOf(cell, { error: refused, lost: true }) }, [], request)
  }
  // Calls of a part that did not fit into its first reply.
  const last = log.parts.at(-1)
  const isOpen = last !== undefined && last.calls.length < last.total
  const part = isOpen ? log.parts.length - 1 : log.parts.length
  const fresh: CellSegment = { now, seed: blank.seed, computeMs: computeLeft(opened, log) }
  const step = await stepCell(place, cell, part, fresh, context)
  if (step.type === 'rest' && step.done === null) {
    const from = isOpen ? last.calls.length : 0
    const calls = step.calls.slice(from, from + CALLS_MAX)
    const hashed = codeHash(task.script)
    const recorded = calls.map(({ at, ...call }) => {
      return { n: call.n, of: call.of, hash: callHash(hashed, call), ...(at ? { at } : {}) }
    })
    const setup = isOpen ? { now: last.now, seed: last.seed } : { now: fresh.now, seed: fresh.seed }
    const record = { part, ...setup, ms: step.ms, from, total: step.calls.length, calls: recorded, ...begun }
    return replyOf(record, calls, request)
  }
  const end = endOf(cell, step.type === 'rest' ? step : { error: step.error, lost: true })
  return replyOf({ ...blank, ...('ms' in step ? { ms: step.ms } : {}), ...begun, end }, [], request)
}

type Cell = {
  readonly session: string
  readonly task: CellTask
  readonly log: CellLog
  readonly begun: CellBegun | null
  readonly now: number
}

async function stepCell(
  { live, store }: ScriptPlace,
  { session, task, log, begun }: Cell,
  part: number,
  fresh: CellSegment,
  { clock, signal }: CallContext,
): Promise<CellStep> {
  const key = scriptSessionOf(session, task)
  const chain = begun?.chain ?? []
  const readLog = (id: string): Promise<CellLog> => readLogOf(store, id)
  const step = await live.step({ key, session, log, chain, readLog }, part, fresh, clock, signal)
  const isOver = step.type !== 'rest' || (step.done !== null && isLastCell(session, task))
  if (isOver) live.drop(key)
  return step
}

/** No later cell will have its variables. */
function isLastCell(session: string, { close_session: closes = false }: CellTask): boolean {
  return closes || idsDownTo(session).length === 1
}

function computeLeft({ limits }: CellBegun, { parts }: CellLog): number {
  return Math.max(1, limits.computeMs - parts.reduce((all, { ms }) => all + ms, 0))
}

/** Any number does: it is recorded with the part. */
function seedOf(session: string, { parts }: CellLog): number {
  return Number.parseInt(codeHash(`${session}/${parts.length}`).slice(0, 8), 16) | 0
}

type CellOutcomeParts = {
  readonly error?: CellFailure
  readonly lost?: true
  readonly done?: CellRest['done']
  readonly left?: CellRest['left']
}

function endOf(cell: Cell, { error: failed, lost, done, left }: CellOutcomeParts): CellEnd {
  const { task, log, begun, now, session } = cell
  const error = failed ?? done?.error
  const calls = log.parts.flatMap((part) => part.calls)
  const shown = calls.slice(0, CALLS_SHOWN_MAX).map(({ n, tool, at, result }) => {
    return { n, tool, line: at?.line ?? null, ok: result?.[1] ?? false }
  })
  const key = idsDownTo(session).at(-2)
  const result = {
    ...(key === undefined ? {} : { session_id: task.session_id ?? session.slice(key.length + 1) }),
    ...(error ? { error: errorShown(error) } : {}),
    stdout: done?.stdout ?? '',
    value: (done?.value ?? null) as Json,
    final_answer: (done?.final ?? null) as Json,
    variables_changed: done?.changed ?? [],
    calls: shown,
    ...(calls.length > shown.length ? { calls_left_out: calls.length - shown.length } : {}),
    ...(begun ? { limits_remaining: remaining(begun, left) } : {}),
    elapsed_ms: Math.max(0, now - (log.parts[0]?.now ?? now)),
  }
  const chars = JSON.stringify(result).length
  const known = { ...(lost ? { lost } : {}), ...(left ? { left } : {}) }
  if (chars <= RESULT_CHARS_MAX) return { result, ...(error ? { error } : {}), ...known }
  const message = `The result has ${chars} characters, and at most ${RESULT_CHARS_MAX} can be given back. Return less, and keep the rest in variables.`
  const large = { kind: 'limit_exceeded', message, at: null }
  const rest = { value: null, final_answer: null, variables_changed: [], error: errorShown(large) }
  return { result: { ...result, ...rest }, error: large, ...known }
}

function errorShown({ kind, message, at }: CellFailure): Json {
  return { kind, message, ...(at ? { line: at.line, column: at.column, cell: at.cell } : {}) }
}

function remaining({ cell, limits, left: before }: CellBegun, left: CellRest['left'] = before): Json {
  return { cells: Math.max(0, limits.cells - cell), model_calls: left.model, tool_calls: left.tool }
}

function replyOf(record: CellRecord, calls: readonly WantedCall[], { seq }: Request): Reply {
  return {
    type: 'reply',
    parts: [{ type: 'text', text: JSON.stringify(record) }],
    calls: calls.map(({ tool, args }, i) => ({ id: `call_${seq}_${i}`, tool, args: JSON.stringify(args) })),
    finish: calls.length > 0 ? 'calls' : 'stop',
    usage: null,
  }
}

/** The result of a cell that failed. One that was ended from outside has none, and says why. */
function describeUnfinished(reply: string, outcome: Outcome): string {
  const record = parseJson(reply)
  const { end, calls = [] } = isObject(record) ? (record as unknown as CellRecord) : {}
  if (end) return JSON.stringify(end.result)
  const { line = null } = calls[0]?.at ?? {}
  return JSON.stringify({ error: { ...whyEnded(outcome), line } })
}

function whyEnded(outcome: Outcome): Pick<CellFailure, 'kind' | 'message'> {
  if (outcome.type === 'failed') return { kind: 'script_error', message: outcome.failure.message }
  if (outcome.type !== 'limit') return { kind: 'cancelled', message: 'The cell was ended before it had a result.' }
  if (outcome.limit === 'active_ms')
    return { kind: 'timeout', message: 'The time of the cell was over before it had a result.' }
  return { kind: 'limit_exceeded', message: `The cell reached the limit ${outcome.limit} of its run.` }
}

function judgeCellReply({ parts, calls }: Reply): ReturnType<NonNullable<Agent['planner']>['verdict']> {
  if (calls.length > 0) return { type: 'continue' }
  const record = parseJson(textOf(parts))
  const { end } = isObject(record) ? (record as unknown as CellRecord) : {}
  if (end === undefined) return { type: 'final', output: null }
  if (end.error === undefined) return { type: 'final', output: end.result }
  const { kind, message, at } = end.error
  const place = at ? ` (cell ${at.cell}, line ${at.line})` : ''
  const reason = kind === 'ScriptDiverged' ? message : `${kind}${place}: ${message}`
  const outcome: Outcome = { type: 'failed', reason: 'planner_failed', failure: { kind: 'Failed', message: reason } }
  return { type: 'stop', reason, as: outcome }
}
