// The public names of terret/cron: jobs that begin sessions at the times of a line.
export {
  cron,
  type CronListOptions,
  type CronName,
  type CronOptions,
  type CronRow,
  type CronRun,
  type CronVerbs,
} from './cron.ts'
export type { CronJob, CronTick, MissedRule, OverlapRule } from './cron-job.ts'
export { cronPlanner } from './cron-planner.ts'
export { type CronToolOptions, cronTool, scheduleTool } from './model-tools.ts'
export type { CronJobOptions } from './read-job.ts'
