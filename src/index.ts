// The public names of terret, and nothing else.
export { Harness, type HarnessOptions, type OpenOptions } from './harness.ts'
export type { BlobRef, EffectClass, Json, Limits, Outcome, Part, Usage } from './kernel/content.ts'
export type { Event, EventBody } from './kernel/event.ts'
export { Bug, type Failure, type FailureKind, Fault, type FaultCode } from './kernel/failure.ts'
export type { Clock, Delta, Model, ModelFailure, Random, Removal, Reply, Request, Store } from './kernel/ports.ts'
export type { Live, LiveDelta } from './runtime/live.ts'
export type { Message } from './kernel/transcript.ts'
export { type Examination, examine, examineLog, type Finding } from './models/doctor.ts'
export { type Endpoint, endpoints } from './models/endpoints.ts'
export type { HostedOptions, Priced } from './models/hosted.ts'
export { offline } from './models/offline.ts'
export { model } from './models/resolve.ts'
export { fallback, route, type Workload } from './models/router.ts'
export type { OutputMode } from './models/output.ts'
export type { Price, PriceTable, Profile } from './models/price.ts'
export { type Script, type ScriptedCall, scripted, type Step } from './models/scripted.ts'
export type { AgentOptions, HarnessOutput, SubagentOptions } from './runtime/agent.ts'
export { type ClassifiedFailure, classify, type FailureCategory, type FailureClass } from './runtime/classify.ts'
export type { StreamEvent } from './runtime/feed.ts'
export type { BreakerOptions } from './runtime/guard.ts'
export { type Hook, type HookEvents, stopAtRequests, stopAtUsd } from './runtime/hooks.ts'
export { type CallRecord, type Completed, orThrow, type Pending, type Result, RunFailed } from './runtime/result.ts'
export type { Attachment } from './runtime/origin.ts'
export { Patrol, type PatrolOptions, type Seen, type Worked, type WorkOptions } from './runtime/patrol.ts'
export { Worker, type WorkerOptions } from './runtime/worker.ts'
export type {
  Command,
  Decision,
  RunStream,
  SendOptions,
  SentReceipt,
  SessionHandle,
} from './session-handle.ts'
export type { RunOptions, StreamOptions } from './runtime/verb-options.ts'
export type { TreeCard } from './stores/tree-cost.ts'
export { memory, type MemoryOptions } from './stores/memory.ts'
export { type Mark, sqlite, type SqliteFile } from './stores/sqlite.ts'

export {
  type Approval,
  defineTool,
  type StandardSchema,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolSource,
  type Undone,
} from './tools/tool.ts'
export type { JsonSchema } from './tools/json-schema.ts'
export { environmentSecrets, type Secrets } from './runtime/redact.ts'
export type { FilePart, Input } from './runtime/input.ts'
export type { Budget } from './runtime/purse.ts'
export type { UndoneCall } from './runtime/undo.ts'
export { workspaceInstructions } from './agents/prompts.ts'
export { VERSION } from './version.ts'
export { ModelRetry, type Output, output, ToolFailure } from './tools/output.ts'
export { loadPolicy } from './tools/policy-file.ts'
export { describeRule, judge, parsePolicy, type Policy, rememberedRule, type Rule } from './tools/policy.ts'
