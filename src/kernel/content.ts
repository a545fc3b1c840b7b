// The words events are made of: parts, gates, proposals, verdicts, limits, outcomes. Types only; what happens to them is event.ts.
// The schema that files are checked by is made of these types and those of event.ts: `npm run events`, after a change.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Every field read-only, member by member of a union. */
export type Frozen<T> = { readonly [K in keyof T]: T[K] }

/** Every field writable, for the one owner that builds or changes it in place. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** A text that is not empty. @minLength 1 */
export type Name = string
/** A SHA-256 in hexadecimal. @pattern ^[0-9a-f]{64}$ */
export type Hash = string
/** A whole number. @asType integer @maximum 9007199254740991 */
export type Whole = number
/** A moment in time. In ms since 1970, up to where calendars end: a later one would stop the session's clock. @maximum 8.64e15 */
export type Moment = number
/** The key of a call. `<seq of its agent.message>.<index>` never moves, so it is its idempotency key. @pattern ^[1-9]\d*\.\d+$ */
export type CallKey = string

/** Large payloads live outside the log, by hash. */
export type BlobRef = Frozen<{ type: 'blob'; hash: Hash; bytes: Whole; media: string; name?: string }>

export type Part =
  | Frozen<{ type: 'text'; text: string }>
  /** `opaque` is the provider's own signed or encrypted form. It is replayed byte for byte or not at all. */
  | Frozen<{ type: 'reasoning'; text: string; opaque?: Json }>
  | BlobRef
  /** A picture or a file, in base64. Only in requests: the log holds a reference. */
  | Frozen<{ type: 'data'; media: string; data: string; name?: string }>
  /** What the provider reads itself: at an address, or uploaded to it before; `provider` is the name of the host that has it. */
  | Frozen<{ type: 'url'; media: string; url: string; name?: string }>
  | Frozen<{ type: 'file_id'; media: string; provider: string; id: string; name?: string }>
  /** A call or a result of a tool that the provider ran, in its own form: sent back unchanged to that provider, and to no other. */
  | Frozen<{ type: 'provider'; tool: string; opaque: Json }>
  | Source
/** A page that a reply cites. It is for readers, and is not sent back. */
export type Source = Frozen<{ type: 'source'; url: string; title?: string }>

/** How often may a call run? `once` is the default: at most once, and `unknown` after a crash in the window. */
export type EffectClass = 'read' | 'idempotent' | 'once'

/** Why a call does not simply run. */
export type Gate = Frozen<
  | ({ type: 'ask'; class: string; n: Whole; roles: readonly string[]; expiresAt: Moment | null } & Frozen<Asked>)
  /** `status`: a rule said no. Without it the call itself is wrong. */
  | { type: 'refuse'; failure: Failure; status?: 'denied'; retryKind?: string; metadata?: Json; ends?: string }
  | Outside
>
/** `each`: no decision about another call counts for this one. */
type Asked = { outside?: Outside; each?: true }
/** Answered from outside: a host tool, a person, or a child: a new one of this agent, or one whose question this answers; or a report that it `awaits`. */
export type Outside = Frozen<Place & { type: 'outside'; child?: Name; orders?: readonly Order[] } & Frozen<Elsewhere>>
type Elsewhere = Answering & { awaits?: Name; since?: Moment; until?: Moment }
/** `fork`: the new child goes on from the conversation of its parent. `handoff`: it does, and its answer is that of the run. */
type Answering = { answers?: Frozen<{ session: Name; call: CallKey }>; fork?: true; handoff?: true }
/** Carried out as its call is handed over. `none`: there is nothing to do, and `why`. `task` is what a child is found again by. */
export type Order = Frozen<Place & { type: 'spawn' | 'say' | 'close' | 'none'; session?: Name; child?: Name } & Ordered>
type Ordered = { decision?: Name; task?: string; why?: string; call?: CallKey; fork?: true }
type Place = { folder?: string; owns?: readonly string[]; options?: RunChoice } // Where a new child works, if not where its parent does, the only paths that it may write, and what its first run chooses.

/** One call as admitted: what is stored, shown, approved and executed are these same bytes. `raw` is the model's own spelling. */
export type Proposal = Frozen<{ id: string; tool: string; args: Json; raw?: string } & Terms>

/** A file at a real path: the hash of its bytes, or null if there is none. */
export type FileState = Frozen<{ path: string; hash: Hash | null }>

/** On which terms it runs. Without a gate it runs as soon as there is room; `blocks` is not aborted by an interrupt. */
export type Terms = Frozen<{
  /** `digest` is of what is asked, and `place` of where it would act: an approval is for both. */
  gate?: Gate
  digest?: Hash
  place?: Hash
  /** Where its paths led through links, and the files it would change as they were, when it was asked about: the digest holds both. */
  links?: readonly string[]
  files?: readonly FileState[]
  /** Equal for calls that do the same, however they are spelled. Only for calls that were asked about. */
  same?: Hash
  effect: EffectClass
  timeoutMs: number
  sequential?: true
  reconcile?: true
  retries?: Whole
  blocks?: true
  /** A hook, or the policy as it is then, must allow it right before it starts. */
  clear?: true
  /** Its failure ends the run. A denial, an abort and a call that the model is to correct are no failures. */
  fails?: true
}>

/** What a reply means, computed outside with user code and recorded here. */
export type Verdict = Frozen<
  | { type: 'final'; output?: Json }
  | { type: 'continue' }
  | { type: 'retry_tool_output'; call: Whole; text: string }
  | { type: 'retry_user_message'; text: string }
  | { type: 'stop'; reason: string; as?: Outcome }
  | { type: 'unexpected'; reason: string }
  | { type: 'empty'; boost?: true }
>

type Details = { cachedTokens?: number; cacheWriteTokens?: number; reasoningTokens?: number; webSearches?: number }
/** How long the request was, where the input is a sum: of rounds that the provider made for one reply. Absent: as long as the input. */
type Length = { contextTokens?: number }
/** Input counts what was read from and written to a cache, output what was spent on reasoning. `webSearches` are of the provider. */
export type Usage = Frozen<{ inputTokens: number; outputTokens: number } & Details & Length>

export type Stopper = Frozen<{ run?: Whole; by?: string; why?: string; closes?: true }>
export type Routed = { route?: string; fallback_from?: Name }
/**
 * Of the messages shown so far `pins` are pinned; `turned`: an inherited or not yet shown one is, or is no longer; why it `failed`.
 * `ago`: where several have that number, the one of so many forks ago is meant, and with 0 the one of this log.
 */
export type Compacted = {
  pins?: Seqs
  turned?: Seqs
  ago?: Whole
  /** Every text since the last reply that is longer than this many characters shows only its two ends. 0: none of it is shown. */
  fitted?: Whole
  /** A provider refused a request of about this size: the window has no more tokens than this. */
  learned?: Whole
  before?: Whole
  after?: Whole
  failed?: string
} & Spent &
  Routed
type Seqs = readonly Whole[]
/** `assumed`: the provider did not report usage, and this is an estimate. The accounts then count all that was held for it. */
export type Spent = { usage?: Usage; cost?: number; assumed?: true }
/** What a host says of a session or a run for its own use: tools, hooks and traces see it, models do not. */
export type Metadata = Readonly<Record<string, Json>>
/** What sessions are listed by. */
export type Labels = Readonly<Record<string, string>>

/** What a run shows was made for `model`, by this run or the one at `since`. `now`: what its agent has as it begins, if that is other. */
export type Prefix = Frozen<{ model?: Name; plan?: true; since?: Whole; now?: Frozen<Made> }>
type Made = { toolset: Hash; instructions: Hash }

/** What one run has instead of what its agent has. `tools`: of the agent's tools, only these. */
export type RunChoice = Frozen<{
  model?: Name
  instructions?: string
  limits?: Readonly<Record<string, number | null>>
  output?: Frozen<{ schema: Json; mode?: string }>
  tools?: readonly Name[]
  settings?: Readonly<Record<string, Json>>
}>

/** The most that a session and all sessions below it may do, because a run above it was narrowed. Of its tools it has only these. */
export type Within = Frozen<{ tools?: readonly Name[]; limits?: Readonly<Record<string, number>> }>

/** Counted by fold, enforced by next. `hold` is in millionths of a dollar: money is counted in integers. */
export type Limits = Frozen<{
  modelRequests: number
  modelAttempts: number | null
  modelMs: number
  activeMs: number
  lossesMax: number
  hold: number
  toolCalls: number | null
  toolRetries: number
  outputRetries: number
  parallel: number
  /** Of input and output together; how deep children may be; retries of a cut, empty answer. Older logs have none of them. */
  tokens?: number | null
  depth?: number
  /** How many sessions may be below the root of the tree; how many wakes one run may ask for. Older logs have neither. */
  children?: number
  wakes?: number
  emptyRetries?: number
  /** How long callers wait in an outage: then their wait ends, and the session tries on. Older logs have none. */
  patienceMs?: number
  /** How long an outage may last before the run fails: tries and the waits between them, since the last reply. Older logs have none. */
  outageMs?: number
}>

export type ProviderFailureClass =
  | ('rate_limit' | 'auth' | 'overflow' | 'bad_request')
  | ('server' | 'network' | 'timeout' | 'other')
export type ModelFailureClass = ProviderFailureClass | 'lost' | 'superseded' | 'interrupted'

export type NoteKind = 'limit' | 'nudge' | 'correction' | 'learning' | 'undo' | 'context' | 'pin'
/** Whose money it is: of the run, the session, the session with its children, or the day. */
export type Account = 'run' | 'session' | 'tree' | 'day'

/** For the limit `usd`: the account that did not cover the next call, and how it stood. */
type Reached = { limit: LimitName; account?: Account; short?: Shortage }
type LimitName = 'model_requests' | 'tool_calls' | 'active_ms' | 'usd' | 'tokens' | 'context'
/** In millionths of a dollar. `held` is set aside for calls at work; `needed` is the most that the next call may cost. */
export type Shortage = Frozen<{ limit: number; spent: number; held: number; needed: number }>

/** Data for the model and for people: short, bounded, actionable. It never ends a run by itself. */
export type Failure = Frozen<{ kind: FailureKind; message: string; recoverable?: boolean }>
export type FailureKind =
  | ('InvalidInput' | 'NotFound' | 'Denied' | 'Timeout' | 'NonZeroExit')
  | ('Unavailable' | 'Interrupted' | 'Unknown' | 'Failed')

export type CallStatus = 'ok' | 'error' | 'denied' | 'aborted' | 'timeout' | 'unknown'
export type FailedReason =
  | ('provider_error' | 'output_validation_failed' | 'tool_retries_exceeded' | 'unexpected_model_behavior' | 'refusal')
  | ('empty_answer' | 'crashed_too_often' | 'prepare_failed' | 'hook_error' | 'planner_failed' | 'tool_error')

export type Outcome = Frozen<
  | { type: 'completed' }
  | { type: 'interrupted'; hook?: string }
  | ({ type: 'limit' } & Frozen<Reached>)
  | { type: 'halted'; reason: string }
  /** `class` is what the provider's failure was, where it was one. */
  | { type: 'failed'; reason: FailedReason; failure: Failure; class?: ModelFailureClass }
>

/** Which tools a request may use: the list itself never changes within a run. */
export type Allow = 'all' | 'writers' | 'none'
