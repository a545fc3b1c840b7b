// What a graph is when it was checked: data, and the user's functions. It is made in graph.ts and run by plan.ts.
import type { Limits } from '../kernel/content.ts'
import type { Check } from '../options.ts'
import type { Channels } from './channel.ts'
import type { Step, Target } from './step.ts'

export type Edge =
  | { readonly type: 'edge'; readonly from: string; readonly to: string }
  /** Waits until all have arrived. */
  | { readonly type: 'join'; readonly from: readonly string[]; readonly to: string }
  | { readonly type: 'route'; readonly from: string; readonly to: readonly string[]; readonly by: Choose }
/** Where to go, by the state. Must be pure. */
type Choose = (state: never) => Target | readonly Target[]

/** A graph that was checked. It has no state of its own: any number of sessions may run it. */
export type Graph = {
  readonly name: string
  readonly description: string
  readonly channels: Channels
  readonly nodes: ReadonlyMap<string, Step>
  readonly edges: readonly Edge[]
  readonly limits: Partial<Limits>
  readonly visitsMax: number | null
  readonly input: ((text: string) => unknown) | null
}

export const graphCheck: Check = (value) => {
  const { name, nodes } = (value ?? {}) as Partial<Graph>
  return typeof name === 'string' && nodes instanceof Map ? null : 'is no graph: make it with withState(…).graph(…)'
}
