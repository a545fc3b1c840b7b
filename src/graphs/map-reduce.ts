// Map and reduce as one graph: the same work on every item of the input, then one function over what came of it. Nothing here that
// `mapNode` does not do: it is the short way to write it.
import type { Json, Limits } from '../kernel/content.ts'
import { callable, count, filled, needed, optionsOf, text, wait } from '../options.ts'
import { effectCheck, type Tool, type ToolContext } from '../tools/core/tool.ts'
import { last } from './channel.ts'
import type { Graph } from './definition.ts'
import { withState } from './graph.ts'
import { type Mapped, type MissingItem, policyCheck } from './node.ts'
import { END, type MapPolicy, START } from './step.ts'

export type MapReduceOptions<Of, Value> = {
  /** Also the name of its agent. It is given `{ items: [...] }`, and its output has `items`, `value`, and `missing`. */
  readonly name: string
  /** When to use it: with one, models that may start subagents may start it. */
  readonly description?: string
  readonly map: (item: Of, context: ToolContext) => Value | Promise<Value>
  /**
   * What the results come to, in the order of the input. With `best-effort` and `quorum` only those that succeeded. `missing` names
   * the items that have no result; they are in the output too.
   */
  readonly reduce: (results: readonly Mapped<Value>[], missing: readonly MissingItem[]) => Json | Promise<Json>
  /** Default `collect-all`. */
  readonly policy?: MapPolicy
  /** Of `map`. Default `once`: give `read` to what changes nothing, and it simply runs again after a crash. */
  readonly effect?: Tool['effect']
  /** How often one item is tried again. Default 0. */
  readonly retries?: number
  /** The time for one item, and for all together. */
  readonly itemMs?: number
  readonly totalMs?: number
  /** How many run at once. Default 16. */
  readonly concurrency?: number
}

const checkOptions = optionsOf<MapReduceOptions<unknown, unknown>>('mapReduce', {
  name: needed(filled),
  description: text,
  map: needed(callable),
  reduce: needed(callable),
  policy: policyCheck,
  effect: effectCheck,
  retries: count(),
  itemMs: wait,
  totalMs: wait,
  concurrency: count(1),
})

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
        // Kept once, as the value: the state is in every reply.
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
