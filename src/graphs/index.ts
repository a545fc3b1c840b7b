// The public names of terret/graphs: graphs as planners, how to draw them, and the workflows that come with the
// package. How they run is the runtime's, as for every agent.
export { append, type Channel, ephemeral, last, reduce } from './channel.ts'
export { toJson, toMermaid } from './draw.ts'
export type { Graph } from './definition.ts'
export { withState } from './graph.ts'
export { mapReduce, type MapReduceOptions } from './map-reduce.ts'
export type { Mapped, MissingItem, Node } from './node.ts'
export { councilAgents, councilGraph, type CouncilOptions, type CouncilState } from '../workflows/council/council.ts'
export type { Phase, PhasesDefinition } from '../workflows/phases/definition.ts'
export { phasesAgents, phasesGraph, type PhasesOptions, type PhasesState } from '../workflows/phases/phases.ts'
export type { SafetyTier } from '../workflows/tiers.ts'
export { councilTool, runWorkflowTool } from '../workflows/tools.ts'
export {
  type ReportOptions,
  type ReportState,
  reportAgents,
  reportFound,
  reportGraph,
  reportWithModelGraph,
} from '../workflows/report/report.ts'
export { type Command, command, END, type MapPolicy, type Send, send, START } from './step.ts'
export { graphTool, type GraphToolOptions } from './tool.ts'
export { type DelegateState, delegateAgents, delegateGraph, delegateTool } from '../workflows/delegate/delegate.ts'
