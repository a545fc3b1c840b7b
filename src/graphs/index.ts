// The public names of terret/graphs: graphs as planners, how to draw them, and the workflows that come with the
// package. The runtime runs them like every agent.
export { append, type Channel, ephemeral, last, reduce } from './channel.ts'
export { toJson, toMermaid } from './draw.ts'
export type { Graph } from './graph-definition.ts'
export { withState } from './with-state.ts'
export { mapReduce, type MapReduceOptions } from './map-reduce.ts'
export type { Mapped, MissingItem, Node } from './node.ts'
export { councilAgents, councilGraph, type CouncilOptions, type CouncilState } from '../workflows/council/council.ts'
export type { WorkflowPhase, PhasesDefinition } from '../workflows/phases/phases-definition.ts'
export { phasesAgents, phasesGraph, type PhasesOptions, type PhasesState } from '../workflows/phases/phases-graph.ts'
export type { SafetyTier } from '../workflows/safety-tiers.ts'
export { councilTool, runWorkflowTool } from '../workflows/workflow-tools.ts'
export { type GraphCommand, command, END, type MapPolicy, type Send, send, START } from './planner-node.ts'
export { graphTool, type GraphToolOptions } from './graph-tool.ts'
export {
  type DelegateState,
  delegateAgents,
  delegateGraph,
  delegateTool,
} from '../workflows/delegate/delegate-graph.ts'
