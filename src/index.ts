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
export type { CardFilter, Page, Removal, Store, StoreHealth } from './ports/store.ts'
export type { Live, LiveDelta } from './live/live.ts'
export type { Message } from './kernel/transcript.ts'
export { type Endpoint, endpoints } from './models/http/endpoints.ts'
export type { HostedOptions, Priced } from './models/http/hosted.ts'
export type { Offer, OfferedModel } from './models/http/catalog.ts'
export { type Counted, type CountInput, countTokens, listModels } from './sessions/hosts.ts'
export {
  type Compressed,
  type CompressOptions,
  compressContent,
  type ContentHint,
  type ContentKind,
} from './context/compress-content.ts'
export { cached } from './models/cached.ts'
export type { CachedOptions, ResponseStore } from './models/response-cache.ts'
export { offline } from './models/local/offline.ts'
export { model } from './models/resolve.ts'
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
export { type RoutedWorkload, type RouteProfile, routeProfiles } from './models/route-profiles.ts'
export type { OutputMode } from './models/output.ts'
export type { Price, PriceTable, Profile } from './models/price.ts'
export { type Script, type ScriptedCall, scripted, type Step } from './models/local/scripted.ts'
export type { AgentOptions, HarnessOutput, SubagentOptions, Subagents } from './sessions/agent.ts'
export { type ClassifiedFailure, classify, type FailureCategory, type FailureClass } from './sessions/classify.ts'
export type { StreamEvent } from './sessions/follow/stream.ts'
export type { CardChange, Followed, FollowOptions, WatchOptions } from './sessions/follow/open.ts'
export type { BreakerOptions } from './riders/guard/guard.ts'
export { type Hook, type HookEvents, type RequestWord, stopAtRequests, stopAtUsd } from './riders/hooks/hooks.ts'
export type { CallRecord, Completed, Result } from './sessions/result.ts'
export { orThrow, RunFailed, type Strictness } from './sessions/run-failed.ts'
export type { MoneyAccount } from './sessions/look/accounts.ts'
export type { AgentRow, AgentTool } from './sessions/look/describe.ts'
export type { FoldedState } from './sessions/look/folded.ts'
export type { Health } from './sessions/look/health.ts'
export type { PendingCall } from './sessions/look/pending.ts'
export type { Phase, SessionState } from './sessions/look/state.ts'
export type { ActiveFilter, EventPage, EventsFilter, RunCard } from './sessions/reading.ts'
export type { ListedCard, ListOptions, RunPhase } from './sessions/meter.ts'
export type { ListedPage, PageOptions } from './sessions/paging/page.ts'
export type { Amounts, AnyCall, Pending } from './view/pending.ts'
export type { FileChange, Preview } from './tools/files/preview.ts'
export type { Attachment } from './sessions/origin.ts'
export type { BroughtMessage } from './sessions/bring/shapes.ts'
export type { Consumer } from './riders/hooks/consumers.ts'
export type { Plugin } from './sessions/plugins.ts'
export { DueLoop, type DueLoopOptions, type LookResult, type Worked, type WorkOptions } from './engine/due-loop.ts'
export type { Looked, WorkerOptions } from './engine/worker.ts'
export type {
  AgentChoice,
  BeginOptions,
  OpenOptions,
  Removed,
  RunStream,
  SentReceipt,
  Session,
  Session as SessionHandle,
  Sessions,
} from './sessions/verbs.ts'
export type { ContextFill } from './context/meter.ts'
export type { ContextReport, ContextSource } from './context/report.ts'
export type { CacheMiss, CompactionRecord } from './view/context.ts'
export type { TypedSession, TypedSessions } from './sessions/typed.ts'
export type { AsJson, CallsOf } from './tools/core/typed.ts'
export type { ApprovalDecision } from './sessions/approval-decision.ts'
export type { Command, RunChoices, SendOptions } from './sessions/command.ts'
export type {
  Answer,
  ForkOptions,
  CloseOptions,
  InterruptOptions,
  PendingFilter,
  RemoveOptions,
  ResultOptions,
  RunOptions,
  SessionChoice,
  SteerOptions,
  StreamOptions,
} from './sessions/verb-options.ts'
export type { TreeCard } from './stores/plan/tree-cost.ts'
export { memory, type MemoryOptions } from './stores/memory/memory.ts'
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
export { environmentSecrets, type Secrets } from './riders/redact/redact.ts'
export type { FilePart, Input, RemotePart } from './sessions/input.ts'
export type { OutputPart } from './tools/core/file-part.ts'
export type { Budget } from './riders/money/spending-limits.ts'
export type { UndoneCall } from './sessions/undo.ts'
export { workspaceInstructions } from './agents/prompts.ts'
export { VERSION } from './version.ts'
export { ModelRetry, type Output, output, ToolFailure } from './tools/core/output.ts'
export { loadPolicy } from './tools/policy/file.ts'
export {
  describeRule,
  judge,
  judgeCall,
  parsePolicy,
  type Policy,
  rememberedRule,
  type Rule,
} from './tools/policy/policy.ts'
