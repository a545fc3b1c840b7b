// `subagent`: gives a task to a child session. It only says what is asked for; the harness makes the child in the commit that hands
// the call over, and the child's own end is the result.
import type { Json } from '../../kernel/content.ts'
import { object, optional, text } from '../core/schema.ts'
import { defineTool, type TypedTool } from '../core/tool.ts'

/** The child that is like the harness itself. */
export const LIKE_PARENT = 'subagent'
/** What the model calls a child like itself. */
const LIKE_ME = 'default'

export type Child = { readonly name: string; readonly description: string }

export type SubagentTool = TypedTool<
  'subagent',
  { readonly task: string; readonly agent?: string; readonly session?: string }
>

/** `like` is the agent that is used when none is named. */
export function subagentTool(children: readonly Child[], like: string): SubagentTool {
  const list = children.map(({ name, description }) => `\n- ${name}: ${description}`).join('')
  const tool = defineTool({
    name: 'subagent',
    description: `Gives one task to a subagent, which works on its own and returns its answer. It sees nothing of this conversation.${list === '' ? '' : `\nAgents:${list}`}`,
    input: object({
      task: text('The whole task, complete in itself; or the answer to a question of a subagent.', { min: 1 }),
      agent: optional(text('Which agent; leave it out for one like yourself.', { min: 1 })),
      session: optional(text('Only to answer a subagent that asked: the session it named.', { min: 1 })),
    }),
    effect: 'once',
  })
  const child = (args: Json): string => {
    const { agent = LIKE_ME } = args as { readonly agent?: string }
    return agent === LIKE_ME ? like : agent
  }
  return { ...tool, child, kind: 'subagent' }
}
