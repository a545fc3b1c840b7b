// The tools `delegate_<id>` (gives a task to one fixed agent) and `handoff_to_<id>` (gives it the whole conversation).
// Each is `subagent` with the agent already chosen: a model with few specialists reads the purpose of each in its list
// of tools.
import { objectField, optionalField, textField } from '../core/argument-schema.ts'
import { defineTool, type Tool } from '../core/tool.ts'
import type { ChildAgent } from './subagent.ts'

export function agentDelegateTool(name: string, { name: agent, description }: ChildAgent): Tool {
  const tool = defineTool({
    name,
    description: `Gives one task to the agent "${agent}", which works on its own and returns its answer. It sees nothing of this conversation. Use it for: ${description}`,
    input: objectField({
      task: textField('The whole task, complete in itself; or the answer to a question of this agent.', { min: 1 }),
      session: optionalField(textField('Only to answer this agent when it asked: the session it named.', { min: 1 })),
    }),
    effect: 'once',
  })
  return { ...tool, child: () => agent, kind: 'subagent' }
}

/** The agent of `handoff_to_<id>` reads this conversation and answers the user in place of the calling agent. */
export function handoffTool(name: string, { name: agent, description }: ChildAgent): Tool {
  const tool = defineTool({
    name,
    description: `Hands this conversation over to the agent "${agent}", which reads it and answers the user itself. Call it alone, and say nothing more. Use it for: ${description}`,
    input: objectField({ task: textField('What the user wants of that agent, in a sentence.', { min: 1 }) }),
    effect: 'once',
  })
  return { ...tool, child: () => agent, kind: 'subagent', handoff: true }
}
