// The channels of a graph's state: each has an initial value and a rule for updates. Pure; it knows nothing of nodes.
import type { Json } from '../kernel/content.ts'
import { GraphError, errorText } from './error.ts'
import { plainJson } from './plain-json.ts'

/** The whole state of a graph: a JSON value for each channel. */
export type GraphState = { readonly [channel: string]: Json }

/** A named value that the nodes of a graph share, with the rule that joins what they write to it. */
export interface Channel<Value, Update = Value> {
  /** The rule by which writes are joined. */
  readonly type: 'last' | 'append' | 'reduce' | 'ephemeral'
  /** The value before the first write. */
  readonly initial: Value
  /** Must be pure: it runs again after a worker was lost. */
  reduce(value: Value, update: Update): Value
}
export type Channels = Readonly<Record<string, Channel<unknown, unknown>>>

export type StateOf<C extends Channels> = {
  readonly [K in keyof C]: C[K] extends Channel<infer Value, infer _Update> ? Value : never
}
/** The update that a node may write: any of the channels. */
export type UpdateOf<C extends Channels> = {
  readonly [K in keyof C]?: (C[K] extends Channel<infer _Value, infer Update> ? Update : never) | undefined
}

/** Keeps the last write. Two writes in one superstep are refused, since neither of them is the last. */
export function last<T = Json>(): Channel<T | null, T>
export function last<T>(initial: T): Channel<T>
export function last(initial: unknown = null): Channel<unknown> {
  return { type: 'last', initial, reduce: (_value, update) => update }
}

/** A list. An update is added at its end. */
export function append<T = Json>(): Channel<readonly T[]> {
  return { type: 'append', initial: [], reduce: (value, update) => [...value, ...update] }
}

/**
 * Combines value and update with your own function. Writes of one superstep are applied in the order of its calls,
 * whichever finished first.
 */
export function reduce<Value, Update = Value>(
  by: (value: Value, update: Update) => Value,
  initial: Value,
): Channel<Value, Update> {
  return { type: 'reduce', initial, reduce: by }
}

/** Holds its value for the next superstep only, unless it is written again. */
export function ephemeral<T = Json>(): Channel<T | null, T> {
  return { type: 'ephemeral', initial: null, reduce: (_value, update) => update }
}

/** The update that one node wrote. `task` is the position of the node in the superstep. */
export type NodeWrite = { readonly node: string; readonly task: number; readonly update: GraphState }

export function initialState(channels: Channels): GraphState {
  return Object.fromEntries(Object.entries(channels).map(([name, { initial }]) => [name, initial as Json]))
}

/** The state after one superstep. A GraphError discards all of its writes. */
export function applyWrites(channels: Channels, state: GraphState, writes: readonly NodeWrite[]): GraphState {
  const next: Record<string, Json> = { ...state }
  for (const [name, channel] of Object.entries(channels)) {
    if (channel.type === 'ephemeral') next[name] = channel.initial as Json
  }
  const writers = new Map<string, NodeWrite>()
  for (const write of writes) {
    for (const [name, value] of Object.entries(write.update)) {
      const channel = channelOf(channels, name, write)
      const before = writers.get(name)
      if (before && (channel.type === 'last' || channel.type === 'ephemeral'))
        throw doubleWriteError(name, before, write)
      writers.set(name, write)
      next[name] = reduceChannel({ channel, name, tasks: [write.task] }, next[name] ?? null, value)
    }
  }
  return next
}

/** Applies an input from outside with the reducers. Nothing else writes at that moment, so no write can conflict. */
export function mergeInput(channels: Channels, state: GraphState, update: GraphState): GraphState {
  const next: Record<string, Json> = { ...state }
  for (const [name, value] of Object.entries(update)) {
    const channel = channelOf(channels, name)
    next[name] = reduceChannel({ channel, name, tasks: [] }, next[name] ?? null, value)
  }
  return next
}

function channelOf(channels: Channels, name: string, by?: NodeWrite): Channel<unknown, unknown> {
  const channel = Object.hasOwn(channels, name) ? channels[name] : undefined
  if (channel) return channel
  const who = by ? `Node "${by.node}" wrote` : 'The input has'
  const text = `UnknownChannel: ${who} "${name}"; the channels are ${Object.keys(channels).join(', ')}.`
  throw new GraphError(text, by ? [by.task] : [])
}

type ChannelTarget = {
  readonly channel: Channel<unknown, unknown>
  readonly name: string
  readonly tasks: readonly number[]
}

function reduceChannel({ channel, name, tasks }: ChannelTarget, value: Json, update: Json): Json {
  // Spreading a text instead of a list would add its letters one by one.
  if (channel.type === 'append' && !Array.isArray(update))
    throw new GraphError(`InvalidUpdate: what is written to "${name}" must be a list of what to add.`, tasks)
  try {
    return plainJson(channel.reduce(value, update) ?? null, `state.${name}`)
  } catch (error) {
    throw new GraphError(`The reducer of "${name}" failed: ${errorText(error)}`, tasks)
  }
}

function doubleWriteError(channel: string, first: NodeWrite, second: NodeWrite): GraphError {
  const both = first.node === second.node ? `"${first.node}" twice` : `"${first.node}" and "${second.node}"`
  const text = `InvalidConcurrentUpdate: "${channel}" was written by ${both} in one superstep. Give it a reducer (append, reduce), or let one node write it.`
  return new GraphError(text, [first.task, second.task])
}
