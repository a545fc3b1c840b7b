// The building blocks of events: parts, gates, proposals, verdicts, limits, outcomes. Types only; the events are in
// event.ts. The schema of exported files is generated from these types: run `npm run events` after a change.

/** Whatever JSON can say. Everything in a log is of this type. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Makes every field read-only, for each member of a union. */
export type Frozen<T> = { readonly [K in keyof T]: T[K] }

/** Makes every field writable, for the one owner that builds or changes the value in place. */
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

/** Large content is stored outside the log, by hash. */
export type BlobRef = Frozen<{
  /** Tells this part of a message from the others. */
  type: 'blob'
  /** The SHA-256 of the bytes, by which the store finds them. */
  hash: Hash
  /** The size of the content, in bytes. */
  bytes: Whole
  /** The media type of the content, such as `image/png`. */
  media: string
  /** The name of the file. Absent if none was given. */
  name?: string
}>

/**
 * A piece of a message: text, the thoughts of a model, a file in the store, or a file given by its bytes, its address
 * or the id of a provider.
 */
export type Part =
  | Frozen<{ type: 'text'; text: string }>
  /** `opaque` is the provider's own signed or encrypted form. It is sent back byte for byte or not at all. */
  | Frozen<{ type: 'reasoning'; text: string; opaque?: Json }>
  | BlobRef
  /** A picture or a file in base64. Only in requests; the log holds a reference. */
  | Frozen<{ type: 'data'; media: string; data: string; name?: string }>
  /**
   * Content that the provider fetches itself: from an address, or from an earlier upload. `provider` names the host of
   * the upload.
   */
  | Frozen<{ type: 'url'; media: string; url: string; name?: string }>
  | Frozen<{ type: 'file_id'; media: string; provider: string; id: string; name?: string }>
  /**
   * A call or a result of a tool that the provider ran, in the provider's form. It is sent back unchanged to that
   * provider, and to no other.
   */
  | Frozen<{ type: 'provider'; tool: string; opaque: Json }>
  | Source
/** A page that a reply cites. It is for readers and is not sent back. */
export type Source = Frozen<{
  /** Tells this part of a message from the others. */
  type: 'source'
  /** The address of the page. */
  url: string
  /** The title of the page. Absent if the provider gave none. */
  title?: string
}>

/** How often a call may run. `once` is the default: at most once, and `unknown` after a crash while it ran. */
export type EffectClass = 'read' | 'idempotent' | 'once'

/** Why a call does not run at once. */
export type Gate = Frozen<
  | ({ type: 'ask'; class: string; n: Whole; roles: readonly string[]; expiresAt: Moment | null } & Frozen<AskTerms>)
  /** `status` is set if a rule denied the call. Without it the call itself is invalid. */
  | { type: 'refuse'; failure: Failure; status?: 'denied'; retryKind?: string; metadata?: Json; ends?: string }
  | Outside
>
/** `each`: a decision about another call never counts for this one. */
type AskTerms = { outside?: Outside; each?: true }
/**
 * The call is answered from outside: by a host tool, a person or a child. A child is a new session of this agent, an
 * existing one whose question this call answers, or one whose report the call `awaits`. For a new child: its `folder`
 * if it is not the parent's, the only paths it may write (`owns`), and the choices for its first run (`options`).
 */
export type Outside = Frozen<
  ChildWorkspace & { type: 'outside'; child?: Name; orders?: readonly Order[] } & Frozen<OutsideDetails>
>
type OutsideDetails = ChildTerms & { awaits?: Name; since?: Moment; until?: Moment }
/**
 * `fork`: the new child continues the conversation of its parent. `handoff`: it does, and its answer becomes the answer
 * of the run.
 */
type ChildTerms = { answers?: Frozen<{ session: Name; call: CallKey }>; fork?: true; handoff?: true }
/**
 * An order is carried out when its call is handed out. `none`: there is nothing to do, and `why`. The parent finds a
 * child again by its `task`.
 */
export type Order = Frozen<
  ChildWorkspace & { type: 'spawn' | 'say' | 'close' | 'none'; session?: Name; child?: Name } & OrderDetails
>
type OrderDetails = { decision?: Name; task?: string; why?: string; call?: CallKey; fork?: true }
type ChildWorkspace = { folder?: string; owns?: readonly string[]; options?: RunChoice }

/**
 * One admitted call: the same bytes are stored, shown, approved and executed. `raw` is the model's own spelling of the
 * arguments. `text` is the whole call as a model without tool calls wrote it in its text.
 */
export type Proposal = Frozen<{ id: string; tool: string; args: Json; raw?: string; text?: string } & CallTerms>

/** A file at its real path with the hash of its bytes, or null if it does not exist. */
export type FileState = Frozen<{ path: string; hash: Hash | null }>

/**
 * How a call may run. Without a gate it starts as soon as a slot is free; an interrupt does not abort a call that
 * `blocks`.
 */
export type CallTerms = Frozen<{
  /** `digest` covers the action and `place` where it would act: an approval is for both. */
  gate?: Gate
  digest?: Hash
  place?: Hash
  /**
   * Where its paths led through links, and the state of the files it would change, when it was asked about. The digest
   * covers both.
   */
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
  /** A hook, or the policy at that time, must allow it right before it starts. */
  clear?: true
  /** Its failure ends the run. A denial, an abort and a call that the model must correct are no failures. */
  fails?: true
}>

/** The meaning of a reply. User code computes it outside the kernel, and it is recorded here. */
export type Verdict = Frozen<
  | { type: 'final'; output?: Json }
  | { type: 'continue' }
  | { type: 'retry_tool_output'; call: Whole; text: string }
  | { type: 'retry_user_message'; text: string }
  | { type: 'stop'; reason: string; as?: Outcome }
  | { type: 'unexpected'; reason: string }
  | { type: 'empty'; boost?: true }
>

type UsageDetails = {
  /** The part of `inputTokens` that was read from a cache. Absent for none. */
  cachedTokens?: number
  /** The part of `inputTokens` that was written to a cache. Absent for none. */
  cacheWriteTokens?: number
  /** The part of `outputTokens` that was spent on reasoning. Absent for none. */
  reasoningTokens?: number
  /** How many searches the provider itself made for the reply. Absent for none. */
  webSearches?: number
}
/**
 * The length of the request if `inputTokens` is a sum over several rounds of the provider for one reply. Absent: equal
 * to the input.
 */
type ContextLength = { contextTokens?: number }
/** Tokens of one reply, as its provider counted them. */
export type Usage = Frozen<
  {
    /** Tokens of the request, including those that were read from or written to a cache. */
    inputTokens: number
    /** Tokens of the reply, including those spent on reasoning. */
    outputTokens: number
  } & UsageDetails &
    ContextLength
>

/** Data that a host attaches to a session or a run for its own use: tools, hooks and traces see it, models do not. */
export type Metadata = Readonly<Record<string, Json>>
/** Labels that sessions are listed by. */
export type Labels = Readonly<Record<string, string>>

/** The hashes of a prompt's instructions and tools. */
export type PrefixHashes = Frozen<{ toolset: Hash; instructions: Hash }>

/** Settings of one run in place of the agent's. `tools` allows only these of the agent's tools. */
export type RunChoice = Frozen<{
  model?: Name
  instructions?: string
  limits?: Readonly<Record<string, number | null>>
  output?: Frozen<{ schema: Json; mode?: string }>
  tools?: readonly Name[]
  settings?: Readonly<Record<string, Json>>
}>

/**
 * The most that a session and all sessions below it may do, because a run above was narrowed. `tools` allows only
 * these.
 */
export type Narrowing = Frozen<{ tools?: readonly Name[]; limits?: Readonly<Record<string, number>> }>

/** Counted by fold, enforced by next. A run has the limits that it started with to its end. Null is no limit. */
export type Limits = Frozen<{
  /** The most replies of the model in one run, checked before each request: 0 asks no model. Default 64. */
  modelRequests: number

  /** After so many failed requests in a row the run fails, whatever is left of `outageMs`. Default null. */
  modelAttempts: number | null

  /** The longest time that one request may take, in ms. Then it is dropped and made again. Default 600,000. */
  modelMs: number

  /** The time that a run may work, in ms. Waiting for a person or for a provider does not count. Default 600,000. */
  activeMs: number

  /** So many attempts lost with their worker, without a complete turn in between, fail the run. Default 8. */
  lossesMax: number

  /** Reserved for each request where no budget says more, in millionths of a dollar: money is counted in integers. Default 0. */
  hold: number

  /** The most tool calls in one run. A batch that would exceed it runs none of its calls. Default null. */
  toolCalls: number | null

  /** In how many replies in a row the calls of one tool may be wrong and corrected. A tool's own `retries` replaces it. Default 5. */
  toolRetries: number

  /** How often the model may correct an answer that does not fit its schema. Default 1. */
  outputRetries: number

  /** How many calls may run at the same time. Default 16. */
  parallel: number
  /**
   * `tokens`: input and output together. `depth`: how deep children may nest. `emptyRetries`: retries of an empty
   * answer that was cut. Older logs have none of them.
   */
  tokens?: number | null

  /** How deep children may nest below the root. Default 3. */
  depth?: number
  /**
   * `children`: how many sessions may exist below the root of the tree. `wakes`: how many wakes one run may schedule.
   * Older logs have neither.
   */
  children?: number

  /** How many wakes one run may schedule. One more is not kept, and the model is told. Default 20. */
  wakes?: number

  /** How often in a row an empty answer that was cut at its maximum length is asked for again. Absent: 1. */
  emptyRetries?: number
  /** How long callers wait in an outage. Then their wait ends, and the session keeps trying. Older logs have none. */
  patienceMs?: number
  /**
   * How long an outage may last before the run fails: the tries and the waits between them since the last reply. Older
   * logs have none.
   */
  outageMs?: number
}>

/** What the provider of a model said or did not say. It decides whether the request is made again. */
export type ProviderFailureClass =
  | ('rate_limit' | 'auth' | 'overflow' | 'bad_request')
  | ('server' | 'network' | 'timeout' | 'other')
/** Why a model call failed: by its provider, with the process that made it, or because it was stopped. */
export type ModelFailureClass = ProviderFailureClass | 'lost' | 'superseded' | 'interrupted'

/** What a note tells the model, that no message says. */
export type NoteKind = 'limit' | 'nudge' | 'correction' | 'learning' | 'undo' | 'context' | 'pin'
/** Which budget pays: that of the run, the session, the session with its children, or the day. */
export type Account = 'run' | 'session' | 'tree' | 'day'

/** For the limit `usd`: the account that could not cover the next call, and its amounts. */
type ReachedLimit = { limit: LimitName; account?: Account; short?: Shortage }
type LimitName = 'model_requests' | 'tool_calls' | 'active_ms' | 'usd' | 'tokens' | 'context'
/**
 * In millionths of a dollar. `held` is reserved for calls in progress; `needed` is the most that the next call may
 * cost.
 */
export type Shortage = Frozen<{ limit: number; spent: number; held: number; needed: number }>

/** Data for the model and for people: short, bounded, actionable. It never ends a run by itself. */
export type Failure = Frozen<{
  /** The kind of failure, which decides how results and hooks classify it. */
  kind: FailureKind
  /** The sentence that the model and people read. */
  message: string
  /** True if the same action may succeed when it is tried again. Absent is not known. */
  recoverable?: boolean
}>
/**
 * What kind of failure a call came to. `Unknown` is a call that may have taken effect before its process was lost; it
 * is never tried again by itself.
 */
export type FailureKind =
  | ('InvalidInput' | 'NotFound' | 'Denied' | 'Timeout' | 'NonZeroExit')
  | ('Unavailable' | 'Interrupted' | 'Unknown' | 'Failed')

/** How a call ended. `unknown`: its process was lost, and it may have taken effect. */
export type CallStatus = 'ok' | 'error' | 'denied' | 'aborted' | 'timeout' | 'unknown'
/** Why a run failed. Each reason has its cause and remedy in the reference of errors. */
export type FailedReason =
  | ('provider_error' | 'output_validation_failed' | 'tool_retries_exceeded' | 'unexpected_model_behavior' | 'refusal')
  | ('empty_answer' | 'crashed_too_often' | 'prepare_failed' | 'hook_error' | 'planner_failed' | 'tool_error')

/** How a run ended. `limit` and `halted` are ends that somebody set; only `failed` is trouble. */
export type Outcome = Frozen<
  | { type: 'completed' }
  | { type: 'interrupted'; hook?: string }
  | ({ type: 'limit' } & Frozen<ReachedLimit>)
  | { type: 'halted'; reason: string }
  /** `class` is the class of the provider's failure, if there was one. */
  | { type: 'failed'; reason: FailedReason; failure: Failure; class?: ModelFailureClass }
>

/** Which tools a request may use. The list of tools itself never changes within a run. */
export type Allow = 'all' | 'writers' | 'none'

/** The worktree of a child at the end of its run: lines that a model reads, and the same as data. */
export type WorktreeReport = Frozen<{ lines: readonly string[]; metadata: Metadata }>
