// The public names of terret/consumers: consumers to use as they are, and what became of runs that no try could tell.
export {
  type DeadLetter,
  deadLetters,
  decideDeadLetter,
  type LetterChoice,
  type LetterFilter,
  type LetterSessions,
} from '../queues/dead-letters.ts'
export { costLog, type CostLogOptions } from './cost-log.ts'
export { sessionTitles, type SessionTitlesOptions } from './session-titles.ts'
export {
  commandNotice,
  type CommandNoticeOptions,
  commandSender,
  type CommandSenderOptions,
  type NoticeSender,
  stdoutNotice,
  type StdoutNoticeOptions,
  stdoutSender,
  webhookNotice,
  type WebhookNoticeOptions,
  webhookSender,
  type WebhookSenderOptions,
} from './notices.ts'
