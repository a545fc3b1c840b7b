// The handler of each route, by route name. A route without a handler does not compile.
import type { RouteHandlers } from '../server-host.ts'
import {
  handleClose,
  handleCommands,
  handleFork,
  handleInterrupt,
  handleOpen,
  handlePin,
  handlePursue,
  handleRemove,
  handleRename,
  handleSchedule,
  handleSend,
  handleUndo,
  handleUnpin,
  handleUnschedule,
  handleWake,
} from './session-actions.ts'
import { handleAnswer, handleDecide } from './session-decisions.ts'
import { handleBlob, handleExport, handleImport } from './session-downloads.ts'
import {
  handleAgents,
  handleDue,
  handleHealth,
  handleMe,
  handleMetrics,
  handleOpenApi,
  handlePending,
  handleSession,
  handleSessions,
} from './server-overview.ts'
import { handleEvents, handleMessages, handlePins, handleResult, handleState } from './session-reads.ts'
import { handleFollow, handleStreams } from './event-streams.ts'
import { handleDropToken, handleMakeToken, handleTokens } from './token-list.ts'
import { handleChangeCron, handleCron } from './cron-jobs.ts'
import { handleDecideLetter, handleLetters } from './letters.ts'
import { handleDropTrigger, handleRetryTrigger, handleTrigger, handleTriggers } from './triggers.ts'
import { handleWhatIf } from './what-ifs.ts'
import { handleCase, handleEvalRun, handleEvals } from './evals.ts'
import { handleUsage } from './usage-report.ts'

export const ROUTE_HANDLERS: RouteHandlers = {
  health: handleHealth,
  metrics: handleMetrics,
  me: handleMe,
  openapi: handleOpenApi,
  sessions: handleSessions,
  open: handleOpen,
  session: handleSession,
  result: handleResult,
  messages: handleMessages,
  events: handleEvents,
  state: handleState,
  follow: handleFollow,
  streams: handleStreams,
  blob: handleBlob,
  export: handleExport,
  send: handleSend,
  commands: handleCommands,
  answer: handleAnswer,
  interrupt: handleInterrupt,
  schedule: handleSchedule,
  unschedule: handleUnschedule,
  rename: handleRename,
  pursue: handlePursue,
  wake: handleWake,
  fork: handleFork,
  whatIf: handleWhatIf,
  undo: handleUndo,
  pins: handlePins,
  pin: handlePin,
  unpin: handleUnpin,
  close: handleClose,
  decide: handleDecide,
  remove: handleRemove,
  import: handleImport,
  tokens: handleTokens,
  makeToken: handleMakeToken,
  dropToken: handleDropToken,
  pending: handlePending,
  agents: handleAgents,
  trigger: handleTrigger,
  triggers: handleTriggers,
  retryTrigger: handleRetryTrigger,
  dropTrigger: handleDropTrigger,
  letters: handleLetters,
  decideLetter: handleDecideLetter,
  evals: handleEvals,
  evalRun: handleEvalRun,
  case: handleCase,
  usage: handleUsage,
  cron: handleCron,
  changeCron: handleChangeCron,
  due: handleDue,
}
