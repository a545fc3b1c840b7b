// The public names of terret, and nothing else.
export { Harness, type HarnessOptions } from './harness.ts'
export type { BlobRef, EffectClass, Json, Limits, Outcome, Part, Usage } from './kernel/content.ts'
export type { Event, EventBody } from './kernel/event.ts'
export { Bug, type Failure, type FailureKind, Fault, type FaultCode } from './kernel/failure.ts'
export type { Clock, Delta, Model, ModelFailure, Random, Reply, Request, Store } from './kernel/ports.ts'
export type { Live, LiveDelta } from './runtime/live.ts'
export type { Message } from './kernel/transcript.ts'
export { type Script, type ScriptedCall, scripted, type Step } from './models/scripted.ts'
export type { Pending, Result } from './runtime/result.ts'
export { Worker, type WorkerOptions } from './runtime/worker.ts'
export type {
  Decision,
  Input,
  RunStream,
  SendOptions,
  SentReceipt,
  SessionHandle,
  StreamEvent,
  StreamOptions,
} from './session-handle.ts'
export { memory } from './stores/memory.ts'
export { sqlite } from './stores/sqlite.ts'

export { defineTool, type StandardSchema, type Tool, type ToolContext, type ToolDefinition } from './tools/tool.ts'
export { VERSION } from './version.ts'
export { ModelRetry, type Output, output, ToolFailure } from './tools/output.ts'
export { describeRule, judge, parsePolicy, type Policy, rememberedRule, type Rule } from './tools/policy.ts'
