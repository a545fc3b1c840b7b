// What the agents of a workflow may do, by its safety tier: lists of tools over those that an agent has already. A tier only narrows.
import type { SubagentOptions } from '../sessions/agent.ts'

/** They would start agents that are not narrowed. */
const STARTERS = [
  'subagent',
  'spawn_subagent',
  'spawn_parallel_agents',
  'continue_subagent',
  'delegate',
  'council',
  'run_workflow',
]
const FILE_WRITERS = ['write', 'edit']

export type SafetyTier = 'read_only' | 'standard' | 'edit_capable'

/** Only tools that change nothing. */
export const READS_ONLY = { profile: 'read', deny: STARTERS } as const

/** The same agent with the tools of a tier. */
export function tiered(agent: SubagentOptions, tier: SafetyTier): SubagentOptions {
  const { deny = [], alsoAllow, ...rest } = agent
  // `alsoAllow` would let in what the profile leaves out.
  if (tier === 'read_only') {
    const allow = alsoAllow && rest.allow ? { allow: [...rest.allow, ...alsoAllow] } : {}
    return { ...rest, ...allow, profile: rest.profile === 'none' ? 'none' : 'read', deny: [...deny, ...STARTERS] }
  }
  const writers = tier === 'standard' ? FILE_WRITERS : []
  return { ...agent, deny: [...deny, ...STARTERS, ...writers] }
}
