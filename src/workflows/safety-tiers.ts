// The rights of a workflow's agents by its safety tier, as lists of tools. A tier only narrows the tools that an agent
// already has.
import type { SubagentOptions } from '../sessions/agent.ts'

/** These tools would start agents that are not narrowed. */
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

/** What the agents of a workflow may do: read, use most tools, or edit as well. */
export type SafetyTier = 'read_only' | 'standard' | 'edit_capable'

/** Only tools that change nothing. */
export const READS_ONLY = { toolAccess: { profile: 'read', deny: STARTERS } } as const

/** The same agent with the tools of a tier. */
export function applySafetyTier(agent: SubagentOptions, tier: SafetyTier): SubagentOptions {
  const { deny = [], alsoAllow, ...access } = agent.toolAccess ?? {}
  // `alsoAllow` would add tools that the profile leaves out.
  if (tier === 'read_only') {
    const allow = alsoAllow && access.allow ? { allow: [...access.allow, ...alsoAllow] } : {}
    const profile = access.profile === 'none' ? 'none' : 'read'
    return { ...agent, toolAccess: { ...access, ...allow, profile, deny: [...deny, ...STARTERS] } }
  }
  const writers = tier === 'standard' ? FILE_WRITERS : []
  return { ...agent, toolAccess: { ...agent.toolAccess, deny: [...deny, ...STARTERS, ...writers] } }
}
