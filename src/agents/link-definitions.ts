// Checks definitions against each other: every listed id exists, the tiers allow it, and no two have the same tool
// name.
import type { Fault } from '../kernel/failure.ts'
import { nearest } from '../options.ts'
import { tierAllows, tierRule } from '../runtime/state/model-tiers.ts'
import { type AgentDefinition, definitionFault, INTEGRATIONS } from './agent-definition.ts'

/** Throws for a tier violation. Returns the definitions without unknown ids, and an error for each of those. */
export function linkDefinitions(definitions: readonly AgentDefinition[]): {
  readonly definitions: readonly AgentDefinition[]
  readonly troubles: readonly Fault[]
} {
  const known = new Map(definitions.map((each) => [each.id, each]))
  const troubles: Fault[] = []
  for (const each of definitions) {
    for (const id of each.subagents) checkTier(each, id, known)
    // Only other agents have the exemption: an integrations agent that starts itself would never end.
    if (each.id === INTEGRATIONS && each.integrations)
      throw definitionFault(each, 'subagents', `"${INTEGRATIONS}" lists {skills: "*"}, which is itself. Remove it`)
  }
  checkDelegateNames(definitions)
  const whole = definitions.map((each) => {
    const missing = each.subagents.filter((id) => !known.has(id))
    for (const id of missing) {
      const near = nearest(id, [...known.keys()])
      const hint = near === null ? 'It is left out' : `Did you mean "${near}"? It is left out`
      troubles.push(definitionFault(each, 'subagents', `there is no agent "${id}". ${hint}`))
    }
    return missing.length === 0 ? each : { ...each, subagents: each.subagents.filter((id) => known.has(id)) }
  })
  return { definitions: whole, troubles }
}

/** In a cycle some agent starts one of its own tier or above, so this rules out cycles too. */
function checkTier(parent: AgentDefinition, id: string, known: ReadonlyMap<string, AgentDefinition>): void {
  const child = known.get(id)
  if (child === undefined || tierAllows(parent.tier, child.tier)) return
  const what = `"${parent.id}" (${parent.tier}) lists "${id}" (${child.tier}), and ${tierRule(parent.tier)}. `
  // A built-in definition cannot be changed, so the error points to the file that replaced its child.
  if (parent.layer === 'built-in') throw definitionFault(child, 'agent_tier', `${what}Change "agent_tier"`)
  throw definitionFault(parent, 'subagents', `${what}Remove it, or change "agent_tier"`)
}

function checkDelegateNames(definitions: readonly AgentDefinition[]): void {
  const taken = new Map<string, AgentDefinition>()
  for (const each of definitions) {
    const other = taken.get(each.delegateName)
    if (other) {
      const key = 'delegate_name' in each.lines ? 'delegate_name' : 'id'
      throw definitionFault(
        each,
        key,
        `its tool "${each.delegateName}" is also that of "${other.id}". Give it another "delegate_name"`,
      )
    }
    taken.set(each.delegateName, each)
  }
}
