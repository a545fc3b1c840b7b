// Map and reduce as one graph: the same work on every item of the input, then one function over the results. It does
// nothing that `mapNode` cannot do; it is a shorter way to write it.
import type { Json, Limits } from '../kernel/content.ts'
import {
  functionCheck,
  countCheck,
  nonEmptyCheck,
  requiredCheck,
  optionsChecker,
  textCheck,
  waitCheck,
} from '../options.ts'
import { effectCheck, type Tool, type ToolContext } from '../tools/core/tool.ts'
import { last } from './channel.ts'
import type { Graph } from './graph-definition.ts'
import { withState } from './with-state.ts'
import { type Mapped, type MissingItem, policyCheck } from './node.ts'
import { END, type MapPolicy, START } from './planner-node.ts'

/** Options of `mapReduce`: the items, what is done with each, and how the results are joined. */
export type MapReduceOptions<Of, Value> = {
  /**
   * Also the name of its agent. Its input is `{ items: [...] }`, and its output has `items`, `value`, and `missing`.
   */
  readonly name: string
  /** When to use it. Only with a description may models that start subagents start this graph. */
  readonly description?: string
  /** Makes the value of one item. */
  readonly map: (item: Of, context: ToolContext) => Value | Promise<Value>
  /**
   * Combines the results, in the order of the input. With `best-effort` and `quorum` they hold successes only.
   * `missing` names the items without a result; it is part of the output too.
   */
  readonly reduce: (results: readonly Mapped<Value>[], missing: readonly MissingItem[]) => Json | Promise<Json>
  /** Default `collect-all`. */
  readonly policy?: MapPolicy
  /**
   * The effect of `map`. Default `once`. With `read`, for work that changes nothing, an item simply runs again after a
   * crash.
   */
  readonly effect?: Tool['effect']
  /** How often one item is tried again. Default 0. */
  readonly retries?: number
  /** The time limits for one item, and for all items together. */
  readonly itemMs?: number
  /** How long all items together may take, in ms, from the first call on. */
  readonly totalMs?: number
  /** How many run at once. Default 16. */
  readonly concurrency?: number
}

const checkOptions = optionsChecker<MapReduceOptions<unknown, unknown>>('mapReduce', {
  name: requiredCheck(nonEmptyCheck),
  description: textCheck,
  map: requiredCheck(functionCheck),
  reduce: requiredCheck(functionCheck),
  policy: policyCheck,
  effect: effectCheck,
  retries: countCheck(),
  itemMs: waitCheck,
  totalMs: waitCheck,
  concurrency: countCheck(1),
})

/** A graph that does something with each item, several at once, and joins what comes of them. */
export function mapReduce<Of, Value>(options: MapReduceOptions<Of, Value>): Graph {
  checkOptions(options)
  const { name, description, map, reduce, policy, effect, retries, itemMs, totalMs, concurrency } = options
  const { node, mapNode, graph } = withState({
    items: last<readonly Of[]>([]),
    results: last<readonly Mapped<Value>[]>([]),
    value: last<Json>(null),
    missing: last<readonly MissingItem[]>([]),
  })
  const limits: Partial<Limits> = concurrency === undefined ? {} : { parallel: concurrency }
  return graph({
    name,
    ...(description === undefined ? {} : { description }),
    limits,
    nodes: {
      map: mapNode<Of, Value>({
        over: ({ items }) => items,
        run: map,
        take: (results, _state, missing) => ({ results, missing }),
        ...(policy === undefined ? {} : { policy }),
        ...(effect === undefined ? {} : { effect }),
        ...(retries === undefined ? {} : { retries }),
        ...(itemMs === undefined ? {} : { timeoutMs: itemMs }),
        ...(totalMs === undefined ? {} : { totalMs }),
      }),
      reduce: node({
        effect: 'read',
        reads: ({ results, missing }) => ({ results, missing }),
        // The results are emptied, since the state is in every reply: the value is enough.
        run: async ({ results, missing }) => ({ value: await reduce(results, missing), results: [] }),
      }),
    },
    edges: [
      [START, 'map'],
      ['map', 'reduce'],
      ['reduce', END],
    ],
  })
}
