// The channels of a graph's state: what a value is at first, and what becomes of it when nodes write. Pure; it knows no node.
import type { Json } from '../kernel/content.ts'
import { GraphError, errorText } from './error.ts'
import { plainJson } from './plain.ts'

/** Everything a graph knows: JSON by channel. */
export type State = { readonly [channel: string]: Json }

export interface Channel<Value, Update = Value> {
  readonly type: 'last' | 'append' | 'reduce' | 'ephemeral'
  readonly initial: Value
  /** Must be pure: it is asked again when a worker was lost. */
  reduce(value: Value, update: Update): Value
}
export type Channels = Readonly<Record<string, Channel<unknown, unknown>>>

export type StateOf<C extends Channels> = {
  readonly [K in keyof C]: C[K] extends Channel<infer Value, infer _Update> ? Value : never
}
/** What a node may write: any of the channels. */
export type UpdateOf<C extends Channels> = {
  readonly [K in keyof C]?: (C[K] extends Channel<infer _Value, infer Update> ? Update : never) | undefined
}

/** The last write stands. Two writes in one superstep have no last one, and are refused. */
export function last<T = Json>(): Channel<T | null, T>
export function last<T>(initial: T): Channel<T>
export function last(initial: unknown = null): Channel<unknown> {
  return { type: 'last', initial, reduce: (_value, update) => update }
}

/** A list. What is written is added at its end. */
export function append<T = Json>(): Channel<readonly T[]> {
  return { type: 'append', initial: [], reduce: (value, update) => [...value, ...update] }
}

/** Your own way to put two together. Writes of one superstep come in the order of its calls, whichever finished first. */
export function reduce<Value, Update = Value>(
  by: (value: Value, update: Update) => Value,
  initial: Value,
): Channel<Value, Update> {
  return { type: 'reduce', initial, reduce: by }
}

/** For the next superstep only: gone after it, unless it was written again. */
export function ephemeral<T = Json>(): Channel<T | null, T> {
  return { type: 'ephemeral', initial: null, reduce: (_value, update) => update }
}

/** What one node wrote. `task` is its place in the superstep. */
export type Write = { readonly node: string; readonly task: number; readonly update: State }

export function initialState(channels: Channels): State {
  return Object.fromEntries(Object.entries(channels).map(([name, { initial }]) => [name, initial as Json]))
}

/** The state after one superstep. All of it is taken or, by a Misstep, nothing. */
export function reduced(channels: Channels, state: State, writes: readonly Write[]): State {
  const next: Record<string, Json> = { ...state }
  for (const [name, channel] of Object.entries(channels)) {
    if (channel.type === 'ephemeral') next[name] = channel.initial as Json
  }
  const writers = new Map<string, Write>()
  for (const write of writes) {
    for (const [name, value] of Object.entries(write.update)) {
      const channel = channelOf(channels, name, write)
      const before = writers.get(name)
      if (before && (channel.type === 'last' || channel.type === 'ephemeral')) throw twice(name, before, write)
      writers.set(name, write)
      next[name] = put({ channel, name, tasks: [write.task] }, next[name] ?? null, value)
    }
  }
  return next
}

/** What came from outside, with the reducers, one after the other: there is no second writer beside it. */
export function merged(channels: Channels, state: State, update: State): State {
  const next: Record<string, Json> = { ...state }
  for (const [name, value] of Object.entries(update)) {
    const channel = channelOf(channels, name)
    next[name] = put({ channel, name, tasks: [] }, next[name] ?? null, value)
  }
  return next
}

function channelOf(channels: Channels, name: string, by?: Write): Channel<unknown, unknown> {
  const channel = Object.hasOwn(channels, name) ? channels[name] : undefined
  if (channel) return channel
  const who = by ? `Node "${by.node}" wrote` : 'The input has'
  const text = `UnknownChannel: ${who} "${name}"; the channels are ${Object.keys(channels).join(', ')}.`
  throw new GraphError(text, by ? [by.task] : [])
}

type Place = {
  readonly channel: Channel<unknown, unknown>
  readonly name: string
  readonly tasks: readonly number[]
}

function put({ channel, name, tasks }: Place, value: Json, update: Json): Json {
  // A list that is no list would be taken apart letter by letter.
  if (channel.type === 'append' && !Array.isArray(update))
    throw new GraphError(`InvalidUpdate: what is written to "${name}" must be a list of what to add.`, tasks)
  try {
    return plainJson(channel.reduce(value, update) ?? null, `state.${name}`)
  } catch (error) {
    throw new GraphError(`The reducer of "${name}" failed: ${errorText(error)}`, tasks)
  }
}

function twice(channel: string, first: Write, second: Write): GraphError {
  const both = first.node === second.node ? `"${first.node}" twice` : `"${first.node}" and "${second.node}"`
  const text = `InvalidConcurrentUpdate: "${channel}" was written by ${both} in one superstep. Give it a reducer (append, reduce), or let one node write it.`
  return new GraphError(text, [first.task, second.task])
}
