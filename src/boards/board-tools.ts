// All tools of a session's own board: the board, the goal, and the plan that a person approves.
import type { Tool } from '../tools/core/tool.ts'
import { goalTool } from './goal.ts'
import { planExitTool } from './plan-exit-tool.ts'
import type { BoardStore } from './read-board.ts'
import { todoTool } from './todo-tool.ts'

/** Give it the store of the harness. For the goal to keep runs going, add `goalHook` to the hooks. */
export function boardTools(options: { readonly store: BoardStore }): readonly Tool[] {
  return [todoTool(options), goalTool(options), planExitTool(options)]
}
