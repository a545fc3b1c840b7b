// `delegate_<id>`: gives a task to one agent that is fixed, and `handoff_to_<id>` the whole conversation. It is `subagent` with the choice made, so that a model with few specialists
// reads what each is for where it decides.
import { object, optional, text } from '../core/schema.ts'
import { defineTool, type Tool } from '../core/tool.ts'
import type { Child } from './subagent.ts'

export function delegateTool(name: string, { name: agent, description }: Child): Tool {
  const tool = defineTool({
    name,
    description: `Gives one task to the agent "${agent}", which works on its own and returns its answer. It sees nothing of this conversation. Use it for: ${description}`,
    input: object({
      task: text('The whole task, complete in itself; or the answer to a question of this agent.', { min: 1 }),
      session: optional(text('Only to answer this agent when it asked: the session it named.', { min: 1 })),
    }),
    effect: 'once',
  })
  return { ...tool, child: () => agent, kind: 'subagent' }
}

/** `handoff_to_<id>`: the agent reads this conversation and answers the user in place of the one that calls it. */
export function handoffTool(name: string, { name: agent, description }: Child): Tool {
  const tool = defineTool({
    name,
    description: `Hands this conversation over to the agent "${agent}", which reads it and answers the user itself. Call it alone, and say nothing more. Use it for: ${description}`,
    input: object({ task: text('What the user wants of that agent, in a sentence.', { min: 1 }) }),
    effect: 'once',
  })
  return { ...tool, child: () => agent, kind: 'subagent', handoff: true }
}
