// Finds the agents that each agent of a harness may start, and the tools that start them. Checked when the harness is
// made.
import { Fault } from '../kernel/failure.ts'
import { nearest } from '../options.ts'
import { agentDelegateTool, handoffTool } from '../tools/agents/delegate-tool.ts'
import { orderTools } from '../tools/agents/order-tools.ts'
import { type ChildAgent, subagentTool } from '../tools/agents/subagent.ts'
import type { Tool } from '../tools/core/tool.ts'
import { tierAllows, type Tier, tierRule } from '../runtime/state/model-tiers.ts'

/** The options of an agent that matter here. */
type ChildRules = {
  readonly tier?: Tier
  /** The agents it may start. Absent: all that its tier allows, and without a tier also one like itself. */
  readonly subagents?: readonly string[]
  readonly delegateName?: string
  readonly handoff?: boolean
}
export type ChildAgents = { readonly own: readonly Tool[]; readonly children: readonly string[] }
type KnownAgents = {
  readonly described: readonly ChildAgent[]
  readonly named: ReadonlyMap<string, ChildRules>
  /** Children work in the background while their parent continues. */
  readonly detached: boolean
  /** The tools that start one agent, by its name. All agents that list it share the tool, so each is made once. */
  readonly delegates: Map<string, Tool>
}

/** `like` is the agent itself, or the agent that stands for it as a child. */
export function planChildAgents(like: string, asked: ChildRules, known: KnownAgents): ChildAgents {
  const { described, named, detached } = known
  const { tier, subagents } = asked
  const names = described.map(({ name }) => name)
  const children =
    subagents ??
    (tier === undefined
      ? [...new Set([like, ...names])]
      : names.filter((name) => tierAllows(tier, named.get(name)?.tier)))
  if (subagents) checkListedAgents(like, asked, known)
  if (children.length === 0) return { own: [], children }
  const startable = described.filter(({ name }) => children.includes(name))
  const [handed, offered] = [true, false].map((is) => startable.filter(({ name }) => isHandoff(name, known) === is))
  const handoffs = (handed ?? []).map((child) => handoffToolFor(child, known))
  // If all startable agents are for handoffs, there is no tool that starts a task.
  if (handoffs.length > 0 && offered?.length === 0)
    return { own: handoffs, children: startable.map(({ name }) => name) }
  const tasked = offered ?? []
  const delegates = subagents ? tasked.flatMap((child) => delegateToolsFor(child, known)) : []
  const own = [...(detached ? orderTools(tasked) : [subagentTool(tasked, like)]), ...delegates, ...handoffs]
  const twice = own.find(({ name }, i) => own.findIndex((other) => other.name === name) !== i)
  if (twice)
    throw new Fault(
      'invalid_config',
      `"${like}" would have two tools "${twice.name}": it is the delegateName of a subagent. Rename that one.`,
    )
  return { own, children }
}

function isHandoff(name: string, { named }: KnownAgents): boolean {
  return named.get(name)?.handoff === true
}

function handoffToolFor(child: ChildAgent, { named, delegates }: KnownAgents): Tool {
  const { delegateName = `handoff_to_${child.name}` } = named.get(child.name) ?? {}
  const tool = delegates.get(child.name) ?? handoffTool(delegateName, child)
  delegates.set(child.name, tool)
  return tool
}

function delegateToolsFor(child: ChildAgent, { named, delegates }: KnownAgents): readonly Tool[] {
  const name = named.get(child.name)?.delegateName
  if (name === undefined) return []
  const tool = delegates.get(child.name) ?? agentDelegateTool(name, child)
  delegates.set(child.name, tool)
  return [tool]
}

function checkListedAgents(
  name: string,
  { tier, subagents = [] }: ChildRules,
  { described, named }: KnownAgents,
): void {
  const names = described.map((child) => child.name)
  for (const child of subagents) {
    if (!names.includes(child)) {
      const near = nearest(child, names)
      const hint = near === null ? `Known are: ${names.join(', ')}.` : `Did you mean "${near}"?`
      throw new Fault('invalid_config', `The subagent "${name}" lists "${child}", which is not there. ${hint}`)
    }
    const other = named.get(child)?.tier
    if (tier !== undefined && !tierAllows(tier, other))
      throw new Fault(
        'invalid_config',
        `The subagent "${name}" (${tier}) lists "${child}" (${other}), and ${tierRule(tier)}. Remove it from "subagents", or change a tier.`,
      )
  }
}
