// The words events are made of: parts, gates, proposals, verdicts, limits, outcomes. Types only; what happens to them is event.ts.
import type { Failure } from './failure.ts'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Every field read-only, member by member of a union. */
export type Frozen<T> = { readonly [K in keyof T]: T[K] }

/** Every field writable, for the one owner that builds or changes it in place. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** Large payloads live outside the log, by hash. */
export type BlobRef = Frozen<{ type: 'blob'; hash: string; bytes: number; media: string; name?: string }>

export type Part =
  | Frozen<{ type: 'text'; text: string }>
  /** `opaque` is the provider's own signed or encrypted form. It is replayed byte for byte or not at all. */
  | Frozen<{ type: 'reasoning'; text: string; opaque?: Json }>
  | BlobRef
  /** A picture or a file, in base64. Only in requests: the log holds a reference. */
  | Frozen<{ type: 'data'; media: string; data: string; name?: string }>

/** How often may a call run? `once` is the default: at most once, and `unknown` after a crash in the window. */
export type EffectClass = 'read' | 'idempotent' | 'once'

/** `<seq of the proposing agent.message>.<index>`: it never moves, so it is also the idempotency key. */
export type CallKey = string

/** Why a call does not simply run. */
export type Gate = Frozen<
  | { type: 'ask'; class: string; n: number; roles: readonly string[]; expiresAt: number | null }
  | { type: 'refuse'; failure: Failure; retryKind?: string; metadata?: Json }
  /** Answered from outside: a host tool, a person, a child session. */
  | { type: 'outside' }
>

/** One call as admitted: what is stored, shown, approved and executed are these same bytes. */
// biome-ignore format: related fields share a line
export type Proposal = Frozen<{
  /** Without a gate it runs as soon as there is room. */
  id: string; tool: string; args: Json; gate?: Gate; digest?: string
  effect: EffectClass; timeoutMs: number; sequential?: true; reconcile?: true; retries?: number
}>

/** What a reply means, computed outside with user code and recorded here. */
export type Verdict = Frozen<
  | { type: 'final'; output?: Json }
  | { type: 'continue' }
  | { type: 'retry_tool_output'; call: number; text: string }
  | { type: 'retry_user_message'; text: string }
  | { type: 'stop'; reason: string }
  | { type: 'unexpected'; reason: string }
  | { type: 'empty'; boost?: true }
>

type Details = { cachedTokens?: number; cacheWriteTokens?: number; reasoningTokens?: number }
/** Input counts what was read from and written to a cache, output what was spent on reasoning. */
export type Usage = Frozen<{ inputTokens: number; outputTokens: number } & Details>

/** Counted by fold, enforced by next. `hold` is in millionths of a dollar: money is counted in integers. */
// biome-ignore format: related fields share a line
export type Limits = Frozen<{
  modelRequests: number; modelAttempts: number; modelMs: number
  activeMs: number; lossesMax: number; hold: number
  toolCalls: number | null; toolRetries: number; outputRetries: number; parallel: number
}>

export type ProviderFailureClass =
  | ('rate_limit' | 'auth' | 'overflow' | 'bad_request')
  | ('server' | 'network' | 'timeout' | 'other')
export type ModelFailureClass = ProviderFailureClass | 'lost' | 'superseded' | 'interrupted'

export type CallStatus = 'ok' | 'error' | 'denied' | 'aborted' | 'timeout' | 'unknown'

export type FailedReason =
  | ('provider_error' | 'output_validation_failed' | 'tool_retries_exceeded' | 'unexpected_model_behavior')
  | ('empty_answer' | 'crashed_too_often' | 'prepare_failed')

export type Outcome = Frozen<
  | { type: 'completed' }
  | { type: 'interrupted' }
  | { type: 'limit'; limit: 'model_requests' | 'tool_calls' | 'active_ms' | 'usd' }
  | { type: 'halted'; reason: string }
  | { type: 'failed'; reason: FailedReason; failure: Failure }
>

/** Which tools a request may use: the list itself never changes within a run. */
export type Allow = 'all' | 'writers' | 'none'
