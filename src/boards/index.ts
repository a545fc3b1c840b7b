// The public names of terret/boards: the board and the goal of a session, boards that several share, teams, and tasks.
export {
  type Board,
  type BoardCard,
  type BoardStatus,
  boardOf,
  boardText,
  type Goal,
  type GoalStatus,
  goalText,
  type Standing,
} from './board.ts'
export { type GoalHookOptions, goalHook, goalTool } from './goal.ts'
export { type MemberToolOptions, memberTool } from './member.ts'
export { planExitTool } from './plan.ts'
export { boardPlanner, boardReplyIn } from './planner.ts'
export { newestFirst, readBoard } from './read.ts'
export type { BoardOutcome, ClaimOutcome, Member, NewTask, Refusal, SharedBoard } from './shared.ts'
export { startTeam, type Team, type TeamAgents, teamAgents, type TeamMember, type TeamOptions } from './teams.ts'
export { teamTool, type TeamToolOptions } from './team-tool.ts'
export { todoTool } from './todo.ts'
export { boardTools } from './tools.ts'
export { BoardHandle, type BoardOptions, type BoardSessions, openBoard } from './verbs.ts'
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
