// The planner of a graph. From the last checkpoint, the results of its calls and the messages since, it computes the
// next calls or the end. It runs nothing and keeps nothing: the same input gives the same answer in any process.
import type { Json, Mutable } from '../kernel/content.ts'
import type { Message } from '../kernel/transcript.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { UNFINISHED } from '../runtime/turn/parent-messages.ts'
import { initialState, applyWrites, type GraphState, type NodeWrite } from './channel.ts'
import type { Graph } from './graph-definition.ts'
import { GraphError, errorText } from './error.ts'
import { plainJson } from './plain-json.ts'
import { type ToolOutcome, type Checkpoint, type PlannerInput, readPlannerInput, type NodeTask } from './checkpoint.ts'
import { checkGoto, type FinishedNode, routeSuperstep } from './route.ts'
import { nodeStatus } from './node-status.ts'
import {
  encodeOutput,
  isCommand,
  type NodeItem,
  lateError,
  nodeErrorIn,
  type PlannerNode,
  type NodeOutput,
  nodeOutputOf,
} from './planner-node.ts'
import { applyGraphInput, type GraphInput, readGraphInput } from './graph-input.ts'
import { startUndo, continueUndo, addDoneCall } from './undo-graph.ts'
import { isObject } from '../view/untrusted-json.ts'

export type PlannedCall = { readonly tool: string; readonly args: { readonly [name: string]: Json } }
export type PlannerReply = { readonly point: Checkpoint; readonly calls: readonly PlannedCall[] }

export type PlannerSetup = {
  readonly graph: Graph
  /** How many calls run at once. */
  readonly width: number
}

/** With the current time, which only nodes with a total time limit need. */
type PlannerContext = PlannerSetup & { readonly now: number }

/** The most supersteps in a row without a call. More of them mean an endless loop. */
const SILENT_MAX = 1_000
const REASON_CHARS_MAX = 2_000
const GO_ON = 'Send {"retry": true} or {"edit": {…}} to go on.'

export function planNextCalls(machine: PlannerContext, messages: readonly Message[]): PlannerReply {
  const { graph } = machine
  // The checkpoint to fall back on when the rest cannot be used.
  let point: Checkpoint = { state: initialState(graph.channels), step: 0, tasks: [] }
  // After a message that cannot be used, nothing is undone.
  let heardAll = false
  try {
    const reading = readPlannerInput(messages)
    if (reading.point?.undo)
      return continueUndo(graph, adaptToChannels(graph, reading.point), reading.point.undo, reading)
    if (reading.point) point = applyResults(machine, adaptToChannels(graph, reading.point), reading)
    const words = readGraphInput(graph, reading.said)
    const begun = point.tasks.length > 0
    if (begun) point = resumeSuperstep(machine, point, words, reading.point?.failed ?? null)
    else {
      // Only a wake begins a run without a message. A graph that has ended then begins again.
      const woken = reading.point !== null && reading.said.length === 0
      if (words.inputs.length === 0 && !woken) throw new GraphError(nothingOpenText(graph, words))
      point = routeSuperstep(
        graph,
        { step: point.step, state: point.state, tasks: [] },
        applyGraphInput(graph, point.state, words),
        null,
      )
    }
    heardAll = true
    return advanceToCalls(machine, point, (whole) => {
      point = whole
    })
  } catch (error) {
    const ended = failCheckpoint(point, error)
    return heardAll ? startUndo(graph, ended) : { point: ended, calls: [] }
  }
}

/** Completes supersteps until one needs calls, or none is left. `whole` is called after each. */
function advanceToCalls(machine: PlannerContext, from: Checkpoint, whole: (point: Checkpoint) => void): PlannerReply {
  let point = from
  for (let silent = 0; point.tasks.length > 0; silent++) {
    if (silent > SILENT_MAX) throw new GraphError(`RecursionLimit: ${SILENT_MAX} supersteps in a row called nothing.`)
    const wanted = planCalls(machine, point)
    if (wanted.calls.length > 0) return wanted
    point = completeSuperstep(machine.graph, wanted.point)
    whole(point)
  }
  return { point, calls: [] }
}

/** The calls this superstep still needs. Throws if one of its nodes has failed. */
function planCalls({ graph, width, now }: PlannerContext, point: Checkpoint): PlannerReply {
  const { state, calls: _before, ...rest } = point
  const calls: PlannedCall[] = []
  const which: [number, number][] = []
  const tasks = point.tasks.map((task, t): NodeTask => {
    const step = findNode(graph, task)
    const all =
      task.items.length > 0 ? [...task.items] : readArgs(task, step, state).map((): NodeItem => ({ tries: 0 }))
    const until = task.until ?? (step.totalMs === undefined ? null : now + step.totalMs)
    const items = until !== null && now >= until ? all.map((item) => expireItem(item, step)) : all
    const need = until === null ? null : successesNeeded(step, items)
    // With a total time limit all items are called at once, so that one that hangs does not keep the others from being
    // tried.
    const stands = nodeStatus(step.policy, items, need === null ? width : items.length)
    if (stands.type === 'failed') throw new GraphError(`Node "${task.node}" failed: ${stands.error}`)
    // A finished node is not asked for its arguments again: after an edit it may have none.
    const args = stands.type === 'wants' ? readArgs(task, step, state) : []
    for (const i of stands.type === 'wants' ? stands.items : []) {
      const given = args[i]
      if (given === undefined) throw new GraphError(`GraphChanged: node "${task.node}" has no item ${i} any more.`)
      if ('said' in given) items[i] = { tries: 0, value: given.said }
      else {
        const timed = until === null ? given.args : { ...given.args, until }
        calls.push({ tool: task.node, args: need === null ? timed : { ...timed, need } })
        which.push([t, i])
      }
    }
    return until === null ? { ...task, items } : { ...task, items, until }
  })
  return { point: { ...rest, state, tasks, ...(which.length > 0 ? { calls: which } : {}) }, calls }
}

/** How many more items must succeed; null without a quorum. */
function successesNeeded({ policy }: PlannerNode, items: readonly NodeItem[]): number | null {
  if (policy === null || typeof policy === 'string') return null
  return policy.quorum - items.filter(({ value }) => value !== undefined).length
}

/** An item with neither a value nor an error fails when the time is over. */
function expireItem(item: NodeItem, { totalMs }: PlannerNode): NodeItem {
  return item.value !== undefined || item.error !== undefined ? item : { ...item, error: errorText(lateError(totalMs)) }
}

/** The arguments of a call, or the output that a node gave without one. */
type ArgsOrOutput = Pick<PlannedCall, 'args'> | { readonly said: Json }

function readArgs({ node, sent }: NodeTask, step: PlannerNode, state: GraphState): readonly ArgsOrOutput[] {
  if (sent !== undefined) return [{ args: sent }]
  try {
    return step.args(state).map((args) => {
      if (isCommand(args)) return { said: encodeOutput(nodeOutputOf(args)) }
      const plain = plainJson(args ?? {}, 'the arguments')
      if (!isObject(plain)) throw new TypeError('they must be an object')
      return { args: plain }
    })
  } catch (error) {
    throw new GraphError(`The arguments of node "${node}" could not be read from the state: ${errorText(error)}`)
  }
}

/** Completes one superstep: applies the updates of its nodes and finds the next ones. All of it counts or nothing. */
function completeSuperstep(graph: Graph, point: Checkpoint): Checkpoint {
  const left = point.tasks.map(
    (task, t): FinishedNode => ({ node: task.node, written: takeNodeOutput(graph, task, point.state, t) }),
  )
  const writes = left.map(({ node, written }, task): NodeWrite => ({ node, task, update: written.update }))
  return routeSuperstep(graph, point, applyWrites(graph.channels, point.state, writes), left)
}

function takeNodeOutput(graph: Graph, task: NodeTask, state: GraphState, t: number): NodeOutput {
  const step = findNode(graph, task)
  let written: NodeOutput
  try {
    written = step.take(task.items, state)
  } catch (error) {
    throw new GraphError(`Node "${task.node}" failed: ${errorText(error)}`, [t])
  }
  if (written.goto !== null) checkGoto(graph, task.node, written.goto, t)
  return written
}

/** The checkpoint with the results of its calls. A call without a result stays open. */
function applyResults(machine: PlannerSetup, point: Checkpoint, { results, args }: PlannerInput): Checkpoint {
  if (!point.calls || results.size === 0) return point
  const tasks = point.tasks.map((task) => ({ ...task, items: [...task.items] }))
  let done = point.done ?? []
  point.calls.forEach(([t, i], call) => {
    const task = tasks[t]
    const result = results.get(call)
    if (!task || !result) return
    task.items[i] = itemAfterCall(machine, task.node, task.items[i] ?? { tries: 0 }, result)
    done = addDoneCall(done, machine.graph, { node: task.node, args: args[call] ?? null }, result)
  })
  const { calls: _landed, ...rest } = point
  return { ...rest, tasks, ...(done.length > 0 ? { done } : {}) }
}

/**
 * Only errors and timeouts of a node or its child are tried again. People decide about calls that were denied, stopped
 * or lost.
 */
function itemAfterCall(
  { graph }: PlannerSetup,
  node: string,
  item: NodeItem,
  { ok, status, kind, content }: ToolOutcome,
): NodeItem {
  const step = graph.nodes.get(node)
  const tries = item.tries + 1
  if (ok && step) {
    try {
      return { tries, value: step.read(content) }
    } catch (error) {
      return { tries, error: `its result cannot be read: ${errorText(error)}` }
    }
  }
  const own = nodeErrorIn(content)
  const ended = step?.type === 'agent' && kind === UNFINISHED
  const again = own !== null || ended || status === 'timeout'
  return again && tries <= (step?.retries ?? 0) ? { tries } : { tries, error: own ?? content }
}

/**
 * Messages that arrive while a superstep is open, or after it failed, change the state at once. The updates of its
 * nodes are applied later, on top.
 */
function resumeSuperstep(
  { graph }: PlannerSetup,
  point: Checkpoint,
  words: GraphInput,
  failed: string | null,
): Checkpoint {
  if (failed !== null && !words.retry) {
    const lost = words.inputs.length > 0 ? ' What was sent now was not taken in.' : ''
    throw new GraphError(`${failed}${lost} ${GO_ON}`)
  }
  if (!words.retry && words.inputs.length === 0) return point
  const state = applyGraphInput(graph, point.state, words)
  const tasks = point.tasks.map((task) =>
    reopenTask(graph, task, { before: point.state, after: state, retry: words.retry }),
  )
  const { failed: _failed, visits: _visits, ...rest } = point
  return { ...rest, state, tasks }
}

type StateChange = { readonly before: GraphState; readonly after: GraphState; readonly retry: boolean }

/** Opens failed items again. In a map, items whose arguments have changed are opened too. */
function reopenTask(graph: Graph, open: NodeTask, { before, after, retry }: StateChange): NodeTask {
  const step = findNode(graph, open)
  const { until, ...fresh } = open
  // A new try has its own time limit.
  const task: NodeTask = retry || until === undefined ? fresh : open
  const items = task.items.map((item): NodeItem => (item.error === undefined || !retry ? item : { tries: 0 }))
  if (step.type !== 'map') return { ...task, items }
  const old = readArgs(task, step, before).map(canonicalJson)
  const now = readArgs(task, step, after).map(canonicalJson)
  return { ...task, items: now.map((args, i) => (old[i] === args ? (items[i] ?? { tries: 0 }) : { tries: 0 })) }
}

/** Discards unusable results: the state is that of the last complete superstep, and finished calls stay finished. */
function failCheckpoint(point: Checkpoint, error: unknown): Checkpoint {
  const misstep = error instanceof GraphError ? error : new GraphError(errorText(error))
  const failed = misstep.message.slice(0, REASON_CHARS_MAX)
  const tasks = point.tasks.map((task, t): NodeTask => {
    if (!misstep.tasks.includes(t)) return task
    return { ...task, items: task.items.map(({ tries }) => ({ tries, error: failed })) }
  })
  const { calls: _calls, ...rest } = point
  return { ...rest, tasks, failed }
}

/**
 * The channels may have changed since this checkpoint was written: new channels get their initial value, and removed
 * ones are dropped.
 */
function adaptToChannels({ channels }: Graph, point: Checkpoint): Checkpoint {
  const state: Mutable<GraphState> = initialState(channels)
  for (const [name, value] of Object.entries(point.state)) if (Object.hasOwn(channels, name)) state[name] = value
  return { ...point, state }
}

function findNode({ nodes, name }: Graph, { node }: NodeTask): PlannerNode {
  const step = nodes.get(node)
  if (step) return step
  throw new GraphError(`GraphChanged: graph "${name}" has no node "${node}" any more.`)
}

function nothingOpenText({ name }: Graph, { retry }: GraphInput): string {
  if (!retry) return `Graph "${name}" was given nothing to begin with.`
  return `NothingToRetry: graph "${name}" has nothing open. Send an input to begin, or fork the session at an earlier event.`
}
