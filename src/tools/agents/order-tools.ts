// The tools with which a model leads subagents that work in parallel with it. They only describe the request:
// runtime/turn/child-orders.ts turns it into orders, and the harness carries these out in the commit that starts the
// call.
import {
  choiceField,
  flagField,
  integerField,
  listField,
  objectField,
  optionalField,
  textField,
} from '../core/argument-schema.ts'
import { defineTool, type Tool } from '../core/tool.ts'
import type { ChildAgent } from './subagent.ts'

export const SPAWN = 'spawn_subagent'
export const SPAWN_MANY = 'spawn_parallel_agents'
export const WAIT = 'wait_subagent'
export const STEER = 'steer_subagent'
export const LIST = 'list_subagents'
export const CONTINUE = 'continue_subagent'
export const CLOSE = 'close_subagent'
/**
 * Sends a message to a session that is not a child. Only planners of this package have it, such as the planner of a
 * board.
 */
export const TELL = 'tell_session'
/** The tools with which an agent starts and leads other agents. */
export const LEADING = ['subagent', SPAWN, SPAWN_MANY, WAIT, STEER, LIST, CONTINUE, CLOSE] as const

/** The name of the agent that continues from the conversation of its parent. */
export const FORK = 'fork'
export const WAIT_SECS = 120
const WAIT_SECS_MAX = 600
/** The limit of tasks in one call. */
const TASKS_MAX = 16

const TASK = {
  agent_id: optionalField(textField('Which agent; leave it out for one like yourself.', { min: 1 })),
  prompt: textField('The whole task, complete in itself: the subagent sees nothing of this conversation.', { min: 1 }),
  context: optionalField(textField('What it must know beside the task: facts, paths, decisions.')),
  toolkit: optionalField(
    textField('Only the tools of this toolkit, and of those the ones that fit the task.', { min: 1 }),
  ),
  isolation: optionalField(
    choiceField('worktree: it works in a git worktree of its own, on a branch of its own. Default none.', [
      'none',
      'worktree',
    ]),
  ),
  base_ref: optionalField(
    choiceField(
      'What the worktree begins with: head, what is checked out (default), or fresh, the default branch of origin.',
      ['head', 'fresh'],
    ),
  ),
}
const ID = textField('The subagent: its subagent_session_id, or its task_id.', { min: 1 })

export function orderTools(children: readonly ChildAgent[]): readonly Tool[] {
  sharedTools ??= makeSharedTools()
  return [spawnTool(children), ...sharedTools]
}

/** These tools are the same for every agent, so they are made once. */
let sharedTools: readonly Tool[] | null = null

function spawnTool(children: readonly ChildAgent[]): Tool {
  const agents = children.map(({ name, description }) => `\n- ${name}: ${description}`).join('')
  return makeOrderTool(
    SPAWN,
    `Starts a subagent on one task and returns at once, while it works on its own. Its report comes to you as a message when it has ended: you need not wait or ask. Tell the user what you started, or go on with other work.${agents === '' ? '' : `\nAgents:${agents}`}`,
    {
      ...TASK,
      model: optionalField(textField('Another model for this task.', { min: 1 })),
      blocking: optionalField(flagField('Wait for its answer here, as the result of this call. Default false.')),
      task_key: optionalField(
        textField('A name for the task. The same agent with the same name is found again, with its history.', {
          min: 1,
        }),
      ),
      fresh: optionalField(flagField('A new subagent, even if one with this task_key is there.')),
    },
  )
}

function makeSharedTools(): readonly Tool[] {
  return [
    makeOrderTool(
      SPAWN_MANY,
      `Starts several subagents at once, each on its own task, and returns at once: one row a task. A task that cannot start is a failed row. Their reports come as messages.`,
      {
        tasks: listField(
          'The tasks, independent of each other.',
          objectField({
            ...TASK,
            ownership: optionalField(
              listField(
                'The paths that only this task may write, relative to the workspace.',
                textField('A path.', { min: 1 }),
              ),
            ),
          }),
          { min: 2, max: TASKS_MAX },
        ),
      },
    ),
    makeOrderTool(WAIT, 'Waits until a subagent has reported, or says that it still works.', {
      id: ID,
      timeout_secs: optionalField(
        integerField(`How long to wait at most. Default ${WAIT_SECS}.`, { min: 1, max: WAIT_SECS_MAX }),
      ),
    }),
    makeOrderTool(STEER, 'Tells a subagent something while it works. It reads it before its next step.', {
      id: ID,
      message: textField('What it must know or do otherwise.', { min: 1 }),
    }),
    makeOrderTool(LIST, 'Lists your subagents: what each is, how it stands and what it cost.', {}),
    makeOrderTool(
      CONTINUE,
      'Answers the question of a subagent, or gives one that has ended more to do. It keeps its history.',
      {
        id: ID,
        answer: textField('The answer, or what to do next.', { min: 1 }),
      },
    ),
    makeOrderTool(CLOSE, 'Ends a subagent for good: it stops if it works, and is not used again.', { id: ID }),
  ]
}

/** The tool is for planners whose agent sets `leads`. */
export function tellTool(): Tool {
  return makeOrderTool(TELL, 'Tells another session something.', {
    session: textField('Its id.'),
    message: textField('What it is told.'),
  })
}

function makeOrderTool(name: string, description: string, fields: Parameters<typeof objectField>[0]): Tool {
  return {
    ...defineTool({ name, description, input: objectField(fields), effect: 'once' }),
    orders: true,
    kind: 'subagent',
  }
}
