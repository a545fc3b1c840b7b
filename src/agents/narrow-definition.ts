// Checks that a workspace's definition only narrows: it may have less than the definition it replaces, or, if it
// replaces none, less than the harness. A trusted folder changes with every pull, so its files never give an agent more
// than its user did.
import type { Fault } from '../kernel/failure.ts'
import { TIERS } from '../runtime/state/model-tiers.ts'
import { type AgentDefinition, definitionFault, type OmittedSections, SANDBOXES } from './agent-definition.ts'

export type WorkspaceBounds = {
  /** Providers whose models a workspace may name. */
  readonly providers: readonly string[]
  /** The most requests in a run of the harness. */
  readonly maxIterations: number
  /** The time limit for a run of the harness, if no definition sets one. */
  readonly timeoutMs: number
}

const OMIT_KEYS: Readonly<Record<keyof OmittedSections, string>> = {
  identity: 'omit_identity',
  profile: 'omit_profile',
  memoryContext: 'omit_memory_context',
  memoryMd: 'omit_memory_md',
  skillsCatalog: 'omit_skills_catalog',
  safetyPreamble: 'omit_safety_preamble',
}

/** Throws for the first field that allows more. Denied tools of both definitions add up. */
export function narrowDefinition(
  own: AgentDefinition,
  base: AgentDefinition | null,
  bounds: WorkspaceBounds,
): AgentDefinition {
  const most = base?.maxIterations ?? bounds.maxIterations
  if (own.maxIterations > most)
    throw tooMuchFault(own, 'max_iterations', `is ${own.maxIterations}, and ${most} is the most here`)
  if ((own.timeoutMs ?? 0) > (base?.timeoutMs ?? bounds.timeoutMs))
    throw tooMuchFault(own, 'timeout_secs', 'is more than the agent has')
  checkModel(own, base, bounds)
  checkOmitted(own, base)
  if (base === null) return own
  checkLists(own, base)
  if (SANDBOXES.indexOf(own.sandbox) < SANDBOXES.indexOf(base.sandbox))
    throw tooMuchFault(own, 'sandbox', `is ${own.sandbox}, which is looser than ${base.sandbox}`)
  if (TIERS.indexOf(own.tier) < TIERS.indexOf(base.tier))
    throw tooMuchFault(own, 'agent_tier', `is ${own.tier}, which is above ${base.tier}`)
  if (own.delegateName !== base.delegateName) throw tooMuchFault(own, 'delegate_name', `is not "${base.delegateName}"`)
  checkMost(own, 'max_result_chars', own.maxResultChars, base.maxResultChars)
  return { ...own, disallowedTools: [...new Set([...base.disallowedTools, ...own.disallowedTools])] }
}

function checkModel(own: AgentDefinition, base: AgentDefinition | null, { providers }: WorkspaceBounds): void {
  const { model } = own
  if (model === base?.model || model === 'inherit' || model.startsWith('hint:')) return
  const provider = model.split(':')[0] ?? ''
  const known = base !== null && base.model.startsWith(`${provider}:`)
  if (known || providers.includes(provider)) return
  throw tooMuchFault(own, 'model', `names the provider "${provider}", which your own configuration does not use`)
}

/** A workspace may not show a section that is left out, such as the user's profile. */
function checkOmitted(own: AgentDefinition, base: AgentDefinition | null): void {
  for (const [section, key] of Object.entries(OMIT_KEYS)) {
    const name = section as keyof OmittedSections
    const shownByBase = base === null ? name === 'safetyPreamble' || name === 'identity' : !base.omit[name]
    if (!own.omit[name] && !shownByBase) throw tooMuchFault(own, key, 'is false, which shows the agent more')
  }
}

function checkLists(own: AgentDefinition, base: AgentDefinition): void {
  const has = (tool: string): boolean =>
    base.tools === 'all' || base.tools.includes(tool) || base.extraTools.includes(tool)
  if (own.tools === 'all' && base.tools !== 'all') throw tooMuchFault(own, 'tools', 'is all, and the agent has a list')
  if (own.tools !== 'all')
    checkWithin(
      own,
      'tools',
      own.tools.filter((tool) => !has(tool)),
    )
  checkWithin(
    own,
    'extra_tools',
    own.extraTools.filter((tool) => !has(tool)),
  )
  checkWithin(
    own,
    'subagents',
    own.subagents.filter((id) => !base.subagents.includes(id)),
  )
  if (own.integrations && !base.integrations) throw tooMuchFault(own, 'subagents', 'adds {skills: "*"}')
  const { skillFilter: filter } = base
  if (filter === 'all' || own.skillFilter === null) return
  if (own.skillFilter === 'all') throw tooMuchFault(own, 'skill_filter', 'is all, and the agent has fewer')
  checkWithin(
    own,
    'skill_filter',
    own.skillFilter.filter((name) => !filter?.includes(name)),
  )
}

function checkWithin(own: AgentDefinition, key: string, added: readonly string[]): void {
  if (added.length > 0)
    throw tooMuchFault(
      own,
      key,
      `adds ${added
        .slice(0, 5)
        .map((name) => `"${name}"`)
        .join(', ')}`,
    )
}

function checkMost(own: AgentDefinition, key: string, given: number | null, most: number | null): void {
  if (most !== null && (given === null || given > most)) throw tooMuchFault(own, key, 'is more than the agent has')
}

function tooMuchFault(own: AgentDefinition, key: string, what: string): Fault {
  return definitionFault(own, key, `"${key}" ${what}. A workspace may only narrow`)
}
