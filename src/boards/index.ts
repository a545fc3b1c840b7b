// The public names of terret/boards: the board and the goal of a session, shared boards, teams, and tasks.
export {
  type Board,
  type BoardCard,
  type BoardStatus,
  boardOf,
  boardText,
  type Goal,
  type GoalStatus,
  goalText,
  type BoardState,
} from './board.ts'
export { type GoalHookOptions, goalHook, goalTool } from './goal.ts'
export { type MemberToolOptions, memberTool } from './member-tool.ts'
export { planExitTool } from './plan-exit-tool.ts'
export { boardPlanner, boardReplyIn } from './board-planner.ts'
export { newestFirst, readBoard } from './read-board.ts'
export type { BoardOutcome, ClaimOutcome, Member, NewTask, BoardRefusal, SharedBoard } from './shared-board.ts'
export { startTeam, type Team, type TeamAgents, teamAgents, type TeamMember, type TeamOptions } from './teams.ts'
export { teamTool, type TeamToolOptions } from './team-tool.ts'
export { todoTool } from './todo-tool.ts'
export { boardTools } from './board-tools.ts'
export { BoardHandle, type BoardOptions, type BoardSessions, openBoard } from './board-handle.ts'
export {
  type TaskEnd,
  type TaskKind,
  type TaskReads,
  type TaskRow,
  type TaskSessions,
  type TaskStatus,
  tasks,
  tasksIn,
} from './tasks.ts'
