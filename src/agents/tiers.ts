// Checks definitions against each other: every listed id is there, the tiers allow it, and no two have one tool name.
import type { Fault } from '../kernel/failure.ts'
import { nearest } from '../options.ts'
import { tierAllows, tierRule } from '../sessions/tiers.ts'
import { type AgentDefinition, fault, INTEGRATIONS } from './definition.ts'

/** Throws for a tier violation. Returns the definitions without the ids that are not there, and names those. */
export function linked(definitions: readonly AgentDefinition[]): {
  readonly definitions: readonly AgentDefinition[]
  readonly troubles: readonly Fault[]
} {
  const known = new Map(definitions.map((each) => [each.id, each]))
  const troubles: Fault[] = []
  for (const each of definitions) {
    for (const id of each.subagents) checkTier(each, id, known)
    // The exemption is for others: an integrations agent that starts itself would have no end.
    if (each.id === INTEGRATIONS && each.integrations)
      throw fault(each, 'subagents', `"${INTEGRATIONS}" lists {skills: "*"}, which is itself. Remove it`)
  }
  checkTools(definitions)
  const whole = definitions.map((each) => {
    const missing = each.subagents.filter((id) => !known.has(id))
    for (const id of missing) {
      const near = nearest(id, [...known.keys()])
      const hint = near === null ? 'It is left out' : `Did you mean "${near}"? It is left out`
      troubles.push(fault(each, 'subagents', `there is no agent "${id}". ${hint}`))
    }
    return missing.length === 0 ? each : { ...each, subagents: each.subagents.filter((id) => known.has(id)) }
  })
  return { definitions: whole, troubles }
}

/** A cycle needs one that starts an agent of its own tier or above, so this refuses every cycle too. */
function checkTier(parent: AgentDefinition, id: string, known: ReadonlyMap<string, AgentDefinition>): void {
  const child = known.get(id)
  if (child === undefined || tierAllows(parent.tier, child.tier)) return
  const what = `"${parent.id}" (${parent.tier}) lists "${id}" (${child.tier}), and ${tierRule(parent.tier)}. `
  // What ships cannot be changed: the file that replaced the one it lists is at fault.
  if (parent.layer === 'built-in') throw fault(child, 'agent_tier', `${what}Change "agent_tier"`)
  throw fault(parent, 'subagents', `${what}Remove it, or change "agent_tier"`)
}

function checkTools(definitions: readonly AgentDefinition[]): void {
  const taken = new Map<string, AgentDefinition>()
  for (const each of definitions) {
    const other = taken.get(each.delegateName)
    if (other) {
      const key = 'delegate_name' in each.lines ? 'delegate_name' : 'id'
      throw fault(
        each,
        key,
        `its tool "${each.delegateName}" is also that of "${other.id}". Give it another "delegate_name"`,
      )
    }
    taken.set(each.delegateName, each)
  }
}
