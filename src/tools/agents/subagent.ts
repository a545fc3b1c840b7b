// The tool `subagent`: gives a task to a child session. It only describes the request: the harness creates the child in
// the commit that starts the call, and the child's end is the result.
import type { Json } from '../../kernel/content.ts'
import { objectField, optionalField, textField } from '../core/argument-schema.ts'
import { defineTool, type TypedTool } from '../core/tool.ts'

/** The name of the child agent that has the harness's own settings. */
export const LIKE_PARENT = 'subagent'
/** The model's name for a child like itself. */
const LIKE_ME = 'default'

export type ChildAgent = { readonly name: string; readonly description: string }

export type SubagentTool = TypedTool<
  'subagent',
  { readonly task: string; readonly agent?: string; readonly session?: string }
>

/** `like` is the agent to use when the model names none. */
export function subagentTool(children: readonly ChildAgent[], like: string): SubagentTool {
  const list = children.map(({ name, description }) => `\n- ${name}: ${description}`).join('')
  const tool = defineTool({
    name: 'subagent',
    description: `Gives one task to a subagent, which works on its own and returns its answer. It sees nothing of this conversation.${list === '' ? '' : `\nAgents:${list}`}`,
    input: objectField({
      task: textField('The whole task, complete in itself; or the answer to a question of a subagent.', { min: 1 }),
      agent: optionalField(textField('Which agent; leave it out for one like yourself.', { min: 1 })),
      session: optionalField(textField('Only to answer a subagent that asked: the session it named.', { min: 1 })),
    }),
    effect: 'once',
  })
  const child = (args: Json): string => {
    const { agent = LIKE_ME } = args as { readonly agent?: string }
    return agent === LIKE_ME ? like : agent
  }
  return { ...tool, child, kind: 'subagent' }
}
