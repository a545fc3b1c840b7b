// `terret/agents`: agent definitions in files, as the subagents of a harness.
export { type LoadedAgents, loadAgents, type LoadOptions } from './load-agents.ts'
export type { AgentDefinition, Layer } from './agent-definition.ts'
export { type AgentPins, chosenModel, type MadeSubagents, subagentsOf, type SubagentsOptions } from './subagents.ts'
export { type PromptSections, promptOf } from './agent-prompt.ts'
export { type RankedTool, rankTools } from '../tools/agents/rank-tools.ts'
export type { Tier } from '../runtime/state/model-tiers.ts'
