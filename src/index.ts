// The public names of terret, and nothing else.
export { Harness, type HarnessOptions, type TypedHarness } from './harness.ts'
export type {
  BlobRef,
  EffectClass,
  Failure,
  FailureKind,
  Json,
  Labels,
  Limits,
  Metadata,
  Outcome,
  Part,
  Source,
  Usage,
} from './kernel/content.ts'
export type { Event, EventBody } from './kernel/event.ts'
export { Bug, Fault, type FaultCode } from './kernel/failure.ts'
export type { AnswerSettings, Delta, Hint, Model, ModelFailure, Reply, Request, Workload } from './ports/model.ts'
export type { Clock, Random } from './ports/system.ts'
export type { CardFilter, CompleteStore, Page, Removal, Store, StoreHealth } from './ports/store.ts'
export type { Live, LiveDelta } from './live/local-live.ts'
export type { Message } from './kernel/transcript.ts'
export { type Endpoint, endpoints } from './models/http/endpoints.ts'
export type { HostedOptions, Priced } from './models/http/hosted-model.ts'
export type { Offer, OfferedModel } from './models/http/catalog.ts'
export { type Counted, type CountInput, countTokens, listModels } from './sessions/hosts.ts'
export {
  type Compressed,
  type CompressOptions,
  compressContent,
  type ContentHint,
  type ContentKind,
} from './context/compress-content.ts'
export { cacheReplies } from './models/cache-replies.ts'
export type { CacheRepliesOptions, ResponseStore } from './models/response-cache.ts'
export { offline } from './models/local/offline.ts'
export { model } from './models/resolve-model.ts'
export {
  codeExecution,
  type FileSearchUse,
  fileSearch,
  type ProviderTool,
  type WebFetchUse,
  type WebSearchUse,
  webFetch,
  webSearch,
} from './models/protocols/provider-tools.ts'
export { fallback, route, type Routes } from './models/router.ts'
export { type TextDialect, textTools, type TextToolsOptions } from './models/text-tools.ts'
export { type RoutedWorkload, type RouteProfile, routeProfiles } from './models/route-profiles.ts'
export type { OutputMode } from './models/structured-output.ts'
export type { Price, PriceTable, Profile } from './models/price.ts'
export { type Script, type ScriptedCall, scripted, type Step } from './models/local/scripted.ts'
export type { HarnessOutput } from './runtime/state/agent-output.ts'
export type { AgentOptions, SubagentOptions, Subagents } from './sessions/agent.ts'
export {
  type ClassifiedFailure,
  classify,
  type FailureCategory,
  type FailureClass,
} from './runtime/guard/classify-failure.ts'
export type { StreamEvent } from './sessions/follow/stream.ts'
export type { CardChange, Followed, FollowOptions, WatchOptions } from './sessions/follow/open.ts'
export type { BreakerOptions } from './runtime/guard/guard.ts'
export { stopAtRequests, stopAtUsd } from './runtime/hooks/hooks.ts'
export { type Hook, type HookEvents, type RequestHookAnswer } from './runtime/state/hook-events.ts'
export type { CallRecord, Completed, Result } from './runtime/state/run-result.ts'
export { orThrow, RunFailed, type Strictness } from './sessions/run-failed.ts'
export type { MoneyAccount } from './sessions/look/accounts.ts'
export type { AgentRow, AgentTool } from './sessions/look/describe.ts'
export type { FoldedState } from './sessions/look/folded.ts'
export type { Health } from './sessions/look/health.ts'
export type { PendingCall } from './sessions/look/pending.ts'
export type { SessionState } from './sessions/look/session-state.ts'
export type { Phase } from './view/session-phase.ts'
export type { RunCard } from './sessions/reading.ts'
export type { EventPage, EventsFilter } from './sessions/event-page.ts'
export type { ListedCard } from './sessions/meter.ts'
export type { RunPhase } from './view/session-phase.ts'
export type { ListedPage, ListOptions } from './sessions/list-page.ts'
export type { Amounts, AnyCall, Pending } from './view/pending-calls.ts'
export type { FileChange, Preview } from './tools/files/preview-call.ts'
export type { Attachment } from './sessions/origin.ts'
export type { BroughtMessage } from './sessions/bring/shapes.ts'
export type { Consumer, ConsumerContext } from './runtime/hooks/consumers.ts'
export type { SettledRun } from './runtime/hooks/settled-run.ts'
export type { Plugin } from './sessions/plugins.ts'
export type { WorkResult, WorkOptions } from './runtime/loop/due-loop.ts'
export type { RestReport, WorkerOptions } from './runtime/loop/worker.ts'
export type {
  AgentChoice,
  BeginOptions,
  OpenOptions,
  Removed,
  PursuitReceipt,
  RunStream,
  SentReceipt,
  Session,
  Session as SessionHandle,
  SessionStatus,
  Sessions,
} from './sessions/verbs.ts'
export type { TriggerEnvelope, TriggerReceipt } from './sessions/trigger-envelope.ts'
export { awaitPursuit, type AwaitPursuitOptions } from './sessions/await-pursuit.ts'
export type {
  PursueOptions,
  PursuitEnd,
  PursuitState,
  PursuitStatus,
  PursuitTrend,
  RoundGrade,
} from './sessions/pursuit.ts'
export type {
  PinReceipt,
  RenamedSession,
  RenameOptions,
  ScheduledWake,
  ScheduleOptions,
  UnscheduleOptions,
} from './sessions/verb-options.ts'
export type { PinnedMessage } from './sessions/verb-options.ts'
export type { PinOptions, StatusOptions, StatusParts } from './sessions/verb-options.ts'
export type { Cost } from './runtime/state/run-usage.ts'
export type { ContextFill } from './context/request-tokens.ts'
export type { ContextReport, ContextSource } from './context/context-report.ts'
export type { CacheMiss, CompactionRecord } from './view/request-context.ts'
export type { TypedSession, TypedSessions } from './sessions/typed.ts'
export type { AsJson, CallsOf } from './tools/core/tool-types.ts'
export type { ApprovalDecision } from './sessions/approval-decision.ts'
export type { Command, LaterOptions, RunChoices, SendOptions } from './sessions/command.ts'
export type {
  Answer,
  ForkOptions,
  CloseOptions,
  CommandOptions,
  InterruptOptions,
  PendingFilter,
  RemoveOptions,
  ResultOptions,
  RunOptions,
  SessionChoice,
  StreamOptions,
} from './sessions/verb-options.ts'
export type { TreeCard } from './stores/plan/tree-cost.ts'
export { memory, type MemoryOptions } from './stores/memory/memory-store.ts'
export { type Mark, sqlite, type SqliteFile } from './stores/sqlite/sqlite.ts'

export {
  type Approval,
  defineTool,
  type StandardSchema,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolSource,
  type TypedTool,
  type Undone,
} from './tools/core/tool.ts'
export type { JsonSchema } from './tools/core/json-schema.ts'
export { environmentSecrets, type Secrets } from './runtime/redact/redactor.ts'
export type { FilePart, Input, RemotePart } from './sessions/input.ts'
export type { OutputPart } from './tools/core/file-part.ts'
export type { Budget } from './runtime/state/agent.ts'
export type { UndoneCall } from './sessions/undo.ts'
export { workspaceInstructions } from './agents/workspace-instructions.ts'
export { VERSION } from './version.ts'
export { ModelRetry, type Output, output, ToolFailure } from './tools/core/tool-output.ts'
export { loadPolicy } from './tools/policy/load-policy.ts'
export {
  describeRule,
  judge,
  judgeCall,
  parsePolicy,
  type Policy,
  rememberedRule,
  type Rule,
} from './tools/policy/policy.ts'
