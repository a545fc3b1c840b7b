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
/** The call is answered from outside: by a host tool, a person or a child. */
export type Outside = Frozen<
  ChildWorkspace & {
    /** Tells it from the other reasons why a call does not run at once. */
    type: 'outside'
    /** The agent of the child. Absent: no child answers. */
    child?: Name
    /** What children are told when the call is handed out. The call then ends at once. */
    orders?: readonly Order[]
  } & Frozen<OutsideDetails>
>
type OutsideDetails = ChildTerms & {
  /** The child whose report ends the call. */
  awaits?: Name
  /** When the wait for that report began. */
  since?: Moment
  /** When the call ends without it. */
  until?: Moment
}
/**
 * `fork`: the new child continues the conversation of its parent. `handoff`: it does, and its answer becomes the answer
 * of the run.
 */
type ChildTerms = {
  /** The call answers the question of this child, instead of starting one. */
  answers?: Frozen<{ session: Name; call: CallKey }>
  /** The new child continues the conversation of its parent. */
  fork?: true
  /** The new child does, and its answer becomes the answer of the run. */
  handoff?: true
}
/** What a call tells one child. It is carried out when the call is handed out. */
export type Order = Frozen<
  ChildWorkspace & {
    /** Starts a child, sends it a message or closes it. `none`: there is nothing to do. */
    type: 'spawn' | 'say' | 'close' | 'none'
    /** The child that is told something or closed. */
    session?: Name
    /** The agent of the child. */
    child?: Name
  } & OrderDetails
>
type OrderDetails = {
  /** Why a new child or a known one was taken, for the model. */
  decision?: Name
  /** The name by which the parent finds the child again. */
  task?: string
  /** Why there is nothing to do, for the model. */
  why?: string
  /** The call whose child this is. */
  call?: CallKey
  /** The new child continues the conversation of its parent. */
  fork?: true
}
type ChildWorkspace = {
  /** Where the child works. Absent: where its parent works. */
  folder?: string
  /** The only paths that the child may write. Absent: all that its tools allow. */
  owns?: readonly string[]
  /** What the child's first run chooses in place of its agent's settings. */
  options?: RunChoice
}

/** One admitted call: the same bytes are stored, shown, approved and executed. */
export type Proposal = Frozen<
  {
    /** The id that the provider gave to the call. */
    id: string
    /** The name of the tool. */
    tool: string
    /** The arguments as they were admitted: repaired, checked, and without those that the host supplies. */
    args: Json
    /** The model's own spelling of the arguments. Absent if `args` says the same. */
    raw?: string
    /** The whole call as a model without tool calls wrote it in its text. */
    text?: string
  } & CallTerms
>

/** A file as it is at one time. */
export type FileState = Frozen<{
  /** The real path of the file, with links followed. */
  path: string
  /** The SHA-256 of its bytes. Null if it does not exist. */
  hash: Hash | null
}>

/**
 * How a call may run. Without a gate it starts as soon as a slot is free; an interrupt does not abort a call that
 * `blocks`.
 */
export type CallTerms = Frozen<{
  /** Why it does not start at once. Absent: it starts without approval. */
  gate?: Gate
  /** The hash of the action and its place, which an approval must name. Only for calls that ask for one. */
  digest?: Hash
  /** The hash of where the tool acts and with what, beside its arguments. Absent if the tool does not say it. */
  place?: Hash
  /** Where its paths led through links, when it was asked about. The digest covers it. */
  links?: readonly string[]
  /** The files that the call would change, as they were when it was asked about. The digest covers them. */
  files?: readonly FileState[]
  /** Equal for calls that do the same, however they are spelled. Only for calls that were asked about. */
  same?: Hash
  /** How often the call may run. */
  effect: EffectClass
  /** After so many ms the call is aborted. */
  timeoutMs: number
  /** The calls of its reply run one after the other. */
  sequential?: true
  /** The tool can be asked after a crash whether the call happened. */
  reconcile?: true
  /** The tool's own number of retries, in place of the run's limit. */
  retries?: Whole
  /** An interrupt waits for the call instead of aborting it. */
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
/** The length of the request, if that is not the input. */
type ContextLength = {
  /** The length of the last request, if `inputTokens` is a sum over several for one reply. Absent: equal to the input. */
  contextTokens?: number
}
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
export type PrefixHashes = Frozen<{
  /** The hash of the list of tools that the model is shown. */
  toolset: Hash
  /** The hash of the instructions that the model is shown. */
  instructions: Hash
}>

/** Settings of one run in place of the agent's. */
export type RunChoice = Frozen<{
  /** The name of the model. */
  model?: Name
  /** Replaces the agent's own instructions. Those of its tools stay. */
  instructions?: string
  /** Limits over those of the agent. Null is no limit. */
  limits?: Readonly<Record<string, number | null>>
  /** The shape of the answer, as JSON Schema, and how it is asked for. */
  output?: Frozen<{ schema: Json; mode?: string }>
  /** Allows only these of the agent's tools. */
  tools?: readonly Name[]
  /** Settings of the model, over its own. */
  settings?: Readonly<Record<string, Json>>
}>

/** The most that a session and all sessions below it may do, because a run above was narrowed. */
export type Narrowing = Frozen<{
  /** The only tools that may be used. Absent: those of the agent. */
  tools?: readonly Name[]
  /** The highest value for each of these limits. */
  limits?: Readonly<Record<string, number>>
}>

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
/** The amounts of an account that does not cover the next call, in millionths of a dollar. */
export type Shortage = Frozen<{
  /** The most that may be spent and reserved together. */
  limit: number
  /** What was spent so far. */
  spent: number
  /** Reserved for calls in progress. */
  held: number
  /** The most that the next call may cost. */
  needed: number
}>

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
export type WorktreeReport = Frozen<{
  /** Lines that the parent's model reads. */
  lines: readonly string[]
  /** The same as data, for programs. */
  metadata: Metadata
}>
