// The tools of a session's own board together: the board, the goal, and the plan that a person approves.
import type { Tool } from '../tools/core/tool.ts'
import { goalTool } from './goal.ts'
import { planExitTool } from './plan.ts'
import type { Reads } from './read.ts'
import { todoTool } from './todo.ts'

/** Give it the store of the harness. For the goal to keep runs going, add `goalHook` to the hooks. */
export function boardTools(options: { readonly store: Reads }): readonly Tool[] {
  return [todoTool(options), goalTool(options), planExitTool(options)]
}
