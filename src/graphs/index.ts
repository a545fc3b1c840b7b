// The public names of terret/graphs: graphs as planners, how to draw them, and the report workflow. How they run is the runtime's, as
// for every agent.
export { append, type Channel, ephemeral, last, reduce } from './channel.ts'
export { toJson, toMermaid } from './draw.ts'
export type { Graph } from './definition.ts'
export { withState } from './graph.ts'
export type { Mapped, Node } from './node.ts'
export {
  type ReportOptions,
  type ReportState,
  reportAgents,
  reportFound,
  reportGraph,
  reportWithModelGraph,
} from '../workflows/report/report.ts'
export { type Command, command, END, type MapPolicy, type Send, send, START } from './step.ts'
