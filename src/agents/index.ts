// `terret/agents`: agent definitions as files, made into the subagents of a harness.
export { type LoadedAgents, loadAgents, type LoadOptions } from './load.ts'
export type { AgentDefinition, Layer } from './definition.ts'
export { type AgentPins, chosenModel, type MadeSubagents, subagentsOf, type SubagentsOptions } from './subagents.ts'
export { type PromptSections, promptOf } from './prompt.ts'
export { type RankedTool, rankTools } from '../tools/agents/rank.ts'
export type { Tier } from '../sessions/tiers.ts'
