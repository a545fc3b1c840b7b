// The tools with which a model leads subagents that work on while it goes on. They only say what is asked for: effects/orders.ts makes
// orders of it, which the harness carries out in the commit that hands the call over.
import { choice, flag, integer, list, object, optional, text } from '../core/schema.ts'
import { defineTool, type Tool } from '../core/tool.ts'
import type { Child } from './subagent.ts'

export const SPAWN = 'spawn_subagent'
export const SPAWN_MANY = 'spawn_parallel_agents'
export const WAIT = 'wait_subagent'
export const STEER = 'steer_subagent'
export const LIST = 'list_subagents'
export const CONTINUE = 'continue_subagent'
export const CLOSE = 'close_subagent'
/** Says something to a session that is no child. Only planners of the package have it, such as that of a board. */
export const TELL = 'tell_session'
/** With these an agent starts and leads others. */
export const LEADING = ['subagent', SPAWN, SPAWN_MANY, WAIT, STEER, LIST, CONTINUE, CLOSE] as const

/** The agent that goes on from the conversation of its parent. */
export const FORK = 'fork'
export const WAIT_SECS = 120
const WAIT_SECS_MAX = 600
/** Tasks of one call. */
const TASKS_MAX = 16

const TASK = {
  agent_id: optional(text('Which agent; leave it out for one like yourself.', { min: 1 })),
  prompt: text('The whole task, complete in itself: the subagent sees nothing of this conversation.', { min: 1 }),
  context: optional(text('What it must know beside the task: facts, paths, decisions.')),
  toolkit: optional(text('Only the tools of this toolkit, and of those the ones that fit the task.', { min: 1 })),
  isolation: optional(
    choice('worktree: it works in a git worktree of its own, on a branch of its own. Default none.', [
      'none',
      'worktree',
    ]),
  ),
  base_ref: optional(
    choice(
      'What the worktree begins with: head, what is checked out (default), or fresh, the default branch of origin.',
      ['head', 'fresh'],
    ),
  ),
}
const ID = text('The subagent: its subagent_session_id, or its task_id.', { min: 1 })

export function orderTools(children: readonly Child[]): readonly Tool[] {
  others ??= otherTools()
  return [spawnTool(children), ...others]
}

/** The same for every agent, so they are made once. */
let others: readonly Tool[] | null = null

function spawnTool(children: readonly Child[]): Tool {
  const agents = children.map(({ name, description }) => `\n- ${name}: ${description}`).join('')
  return order(
    SPAWN,
    `Starts a subagent on one task and returns at once, while it works on its own. Its report comes to you as a message when it has ended: you need not wait or ask. Tell the user what you started, or go on with other work.${agents === '' ? '' : `\nAgents:${agents}`}`,
    {
      ...TASK,
      model: optional(text('Another model for this task.', { min: 1 })),
      blocking: optional(flag('Wait for its answer here, as the result of this call. Default false.')),
      task_key: optional(
        text('A name for the task. The same agent with the same name is found again, with its history.', { min: 1 }),
      ),
      fresh: optional(flag('A new subagent, even if one with this task_key is there.')),
    },
  )
}

function otherTools(): readonly Tool[] {
  return [
    order(
      SPAWN_MANY,
      `Starts several subagents at once, each on its own task, and returns at once: one row a task. A task that cannot start is a failed row. Their reports come as messages.`,
      {
        tasks: list(
          'The tasks, independent of each other.',
          object({
            ...TASK,
            ownership: optional(
              list('The paths that only this task may write, relative to the workspace.', text('A path.', { min: 1 })),
            ),
          }),
          { min: 2, max: TASKS_MAX },
        ),
      },
    ),
    order(WAIT, 'Waits until a subagent has reported, or says that it still works.', {
      id: ID,
      timeout_secs: optional(
        integer(`How long to wait at most. Default ${WAIT_SECS}.`, { min: 1, max: WAIT_SECS_MAX }),
      ),
    }),
    order(STEER, 'Tells a subagent something while it works. It reads it before its next step.', {
      id: ID,
      message: text('What it must know or do otherwise.', { min: 1 }),
    }),
    order(LIST, 'Lists your subagents: what each is, how it stands and what it cost.', {}),
    order(
      CONTINUE,
      'Answers the question of a subagent, or gives one that has ended more to do. It keeps its history.',
      {
        id: ID,
        answer: text('The answer, or what to do next.', { min: 1 }),
      },
    ),
    order(CLOSE, 'Ends a subagent for good: it stops if it works, and is not used again.', { id: ID }),
  ]
}

/** For the toolbox of a planner, whose agent says that it `leads`. */
export function tellTool(): Tool {
  return order(TELL, 'Tells another session something.', {
    session: text('Its id.'),
    message: text('What it is told.'),
  })
}

function order(name: string, description: string, fields: Parameters<typeof object>[0]): Tool {
  return { ...defineTool({ name, description, input: object(fields), effect: 'once' }), orders: true, kind: 'subagent' }
}
