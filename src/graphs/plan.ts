// The planner of a graph: from the last checkpoint, the results of its calls and what was said since, to the next calls or the end.
// It runs nothing and keeps nothing: asked the same again, also by another process, it says the same.
import type { Json, Mutable } from '../kernel/content.ts'
import type { Message } from '../kernel/transcript.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { UNFINISHED } from '../riders/children/children.ts'
import { initialState, reduced, type State, type Write } from './channel.ts'
import type { Graph } from './definition.ts'
import { GraphError, errorText } from './error.ts'
import { plainJson } from './plain.ts'
import { type Outcome, type Point, type Reading, readMessages, type Task } from './checkpoint.ts'
import { checkGoto, type Left, routed } from './route.ts'
import { standing } from './node-status.ts'
import { encoded, isCommand, type Item, lateError, ownError, type Step, type Written, writtenOf } from './step.ts'
import { heard, type Words, wordsOf } from './input.ts'
import { compensated, undone, withDone } from './undo.ts'
import { isObject } from '../view/json.ts'

export type Wanted = { readonly tool: string; readonly args: { readonly [name: string]: Json } }
export type Planned = { readonly point: Point; readonly calls: readonly Wanted[] }

export type Machine = {
  readonly graph: Graph
  /** How many calls run at once. */
  readonly width: number
}

/** With what the clock says: only nodes with a total time look at it. */
type Timed = Machine & { readonly now: number }

/** Supersteps of a row that call nothing: further than this it goes round in circles. */
const SILENT_MAX = 1_000
const REASON_CHARS_MAX = 2_000
const GO_ON = 'Send {"retry": true} or {"edit": {…}} to go on.'

export function plan(machine: Timed, messages: readonly Message[]): Planned {
  const { graph } = machine
  // What stands when the rest cannot be used.
  let point: Point = { state: initialState(graph.channels), step: 0, tasks: [] }
  // A message that cannot be used undoes nothing.
  let heardAll = false
  try {
    const reading = readMessages(messages)
    if (reading.point?.undo) return undone(graph, known(graph, reading.point), reading.point.undo, reading)
    if (reading.point) point = landed(machine, known(graph, reading.point), reading)
    const words = wordsOf(graph, reading.said)
    const begun = point.tasks.length > 0
    if (begun) point = resumed(machine, point, words, reading.point?.failed ?? null)
    else {
      if (words.inputs.length === 0) throw new GraphError(nothingOpen(graph, words))
      point = routed(graph, { step: point.step, state: point.state, tasks: [] }, heard(graph, point.state, words), null)
    }
    heardAll = true
    return advanced(machine, point, (whole) => {
      point = whole
    })
  } catch (error) {
    const ended = stopped(point, error)
    return heardAll ? compensated(graph, ended) : { point: ended, calls: [] }
  }
}

/** Superstep after superstep until one wants calls, or there is none left. `whole` is told of each that is done. */
function advanced(machine: Timed, from: Point, whole: (point: Point) => void): Planned {
  let point = from
  for (let silent = 0; point.tasks.length > 0; silent++) {
    if (silent > SILENT_MAX) throw new GraphError(`RecursionLimit: ${SILENT_MAX} supersteps in a row called nothing.`)
    const wanted = wants(machine, point)
    if (wanted.calls.length > 0) return wanted
    point = completed(machine.graph, wanted.point)
    whole(point)
  }
  return { point, calls: [] }
}

/** The calls this superstep still needs. Throws if one of its nodes has failed. */
function wants({ graph, width, now }: Timed, point: Point): Planned {
  const { state, calls: _before, ...rest } = point
  const calls: Wanted[] = []
  const which: [number, number][] = []
  const tasks = point.tasks.map((task, t): Task => {
    const step = stepOf(graph, task)
    const all = task.items.length > 0 ? [...task.items] : argsOf(task, step, state).map((): Item => ({ tries: 0 }))
    const until = task.until ?? (step.totalMs === undefined ? null : now + step.totalMs)
    const items = until !== null && now >= until ? all.map((item) => outOfTime(item, step)) : all
    const need = until === null ? null : needOf(step, items)
    // With a total time all are called: what hangs must not keep the others from being tried.
    const stands = standing(step.policy, items, need === null ? width : items.length)
    if (stands.type === 'failed') throw new GraphError(`Node "${task.node}" failed: ${stands.error}`)
    // What is done is not asked for its arguments again: an edit may have left none.
    const args = stands.type === 'wants' ? argsOf(task, step, state) : []
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

/** How many more must succeed; null where no number is set. */
function needOf({ policy }: Step, items: readonly Item[]): number | null {
  if (policy === null || typeof policy === 'string') return null
  return policy.quorum - items.filter(({ value }) => value !== undefined).length
}

/** What has neither a value nor an error when the time is over has failed. */
function outOfTime(item: Item, { totalMs }: Step): Item {
  return item.value !== undefined || item.error !== undefined ? item : { ...item, error: errorText(lateError(totalMs)) }
}

/** What a call is made with, or what its node said without one. */
type Given = Pick<Wanted, 'args'> | { readonly said: Json }

function argsOf({ node, sent }: Task, step: Step, state: State): readonly Given[] {
  if (sent !== undefined) return [{ args: sent }]
  try {
    return step.args(state).map((args) => {
      if (isCommand(args)) return { said: encoded(writtenOf(args)) }
      const plain = plainJson(args ?? {}, 'the arguments')
      if (!isObject(plain)) throw new TypeError('they must be an object')
      return { args: plain }
    })
  } catch (error) {
    throw new GraphError(`The arguments of node "${node}" could not be read from the state: ${errorText(error)}`)
  }
}

/** One whole superstep: what its nodes wrote, and where it goes. All of it counts or nothing. */
function completed(graph: Graph, point: Point): Point {
  const left = point.tasks.map(
    (task, t): Left => ({ node: task.node, written: writtenBy(graph, task, point.state, t) }),
  )
  const writes = left.map(({ node, written }, task): Write => ({ node, task, update: written.update }))
  return routed(graph, point, reduced(graph.channels, point.state, writes), left)
}

function writtenBy(graph: Graph, task: Task, state: State, t: number): Written {
  const step = stepOf(graph, task)
  let written: Written
  try {
    written = step.take(task.items, state)
  } catch (error) {
    throw new GraphError(`Node "${task.node}" failed: ${errorText(error)}`, [t])
  }
  if (written.goto !== null) checkGoto(graph, task.node, written.goto, t)
  return written
}

/** The checkpoint with what its calls came to. A call that has no result yet stays open. */
function landed(machine: Machine, point: Point, { results, args }: Reading): Point {
  if (!point.calls || results.size === 0) return point
  const tasks = point.tasks.map((task) => ({ ...task, items: [...task.items] }))
  let done = point.done ?? []
  point.calls.forEach(([t, i], call) => {
    const task = tasks[t]
    const result = results.get(call)
    if (!task || !result) return
    task.items[i] = itemOf(machine, task.node, task.items[i] ?? { tries: 0 }, result)
    done = withDone(done, machine.graph, { node: task.node, args: args[call] ?? null }, result)
  })
  const { calls: _landed, ...rest } = point
  return { ...rest, tasks, ...(done.length > 0 ? { done } : {}) }
}

/** Only what failed by itself is tried again, in a node or in its child: what was denied, stopped or lost is for people. */
function itemOf({ graph }: Machine, node: string, item: Item, { ok, status, kind, content }: Outcome): Item {
  const step = graph.nodes.get(node)
  const tries = item.tries + 1
  if (ok && step) {
    try {
      return { tries, value: step.read(content) }
    } catch (error) {
      return { tries, error: `its result cannot be read: ${errorText(error)}` }
    }
  }
  const own = ownError(content)
  const ended = step?.type === 'agent' && kind === UNFINISHED
  const again = own !== null || ended || status === 'timeout'
  return again && tries <= (step?.retries ?? 0) ? { tries } : { tries, error: own ?? content }
}

/** What was said while a superstep was open, or after it failed, changes the state at once: what its nodes write comes on top. */
function resumed({ graph }: Machine, point: Point, words: Words, failed: string | null): Point {
  if (failed !== null && !words.retry) {
    const lost = words.inputs.length > 0 ? ' What was sent now was not taken in.' : ''
    throw new GraphError(`${failed}${lost} ${GO_ON}`)
  }
  if (!words.retry && words.inputs.length === 0) return point
  const state = heard(graph, point.state, words)
  const tasks = point.tasks.map((task) =>
    reopened(graph, task, { before: point.state, after: state, retry: words.retry }),
  )
  const { failed: _failed, visits: _visits, ...rest } = point
  return { ...rest, state, tasks }
}

type Change = { readonly before: State; readonly after: State; readonly retry: boolean }

/** What failed is open again. Of many items also those that are others now. */
function reopened(graph: Graph, open: Task, { before, after, retry }: Change): Task {
  const step = stepOf(graph, open)
  const { until, ...fresh } = open
  // A new try has its own time limit.
  const task: Task = retry || until === undefined ? fresh : open
  const items = task.items.map((item): Item => (item.error === undefined || !retry ? item : { tries: 0 }))
  if (step.type !== 'map') return { ...task, items }
  const old = argsOf(task, step, before).map(canonicalJson)
  const now = argsOf(task, step, after).map(canonicalJson)
  return { ...task, items: now.map((args, i) => (old[i] === args ? (items[i] ?? { tries: 0 }) : { tries: 0 })) }
}

/** Nothing of what cannot be used is kept: the state is that of the last whole superstep, and what was done stays done. */
function stopped(point: Point, error: unknown): Point {
  const misstep = error instanceof GraphError ? error : new GraphError(errorText(error))
  const failed = misstep.message.slice(0, REASON_CHARS_MAX)
  const tasks = point.tasks.map((task, t): Task => {
    if (!misstep.tasks.includes(t)) return task
    return { ...task, items: task.items.map(({ tries }) => ({ tries, error: failed })) }
  })
  const { calls: _calls, ...rest } = point
  return { ...rest, tasks, failed }
}

/** The channels may have changed since this was written: what is new begins as it is, what is gone is left out. */
function known({ channels }: Graph, point: Point): Point {
  const state: Mutable<State> = initialState(channels)
  for (const [name, value] of Object.entries(point.state)) if (Object.hasOwn(channels, name)) state[name] = value
  return { ...point, state }
}

function stepOf({ nodes, name }: Graph, { node }: Task): Step {
  const step = nodes.get(node)
  if (step) return step
  throw new GraphError(`GraphChanged: graph "${name}" has no node "${node}" any more.`)
}

function nothingOpen({ name }: Graph, { retry }: Words): string {
  if (!retry) return `Graph "${name}" was given nothing to begin with.`
  return `NothingToRetry: graph "${name}" has nothing open. Send an input to begin, or fork the session at an earlier event.`
}
