// The types shared by a server and its clients: answers, bodies and stream frames. They build on types of the kernel
// and the view only, so that a page in a browser can import them. The routes are in wire-routes.ts.
import type {
  BlobRef,
  CallKey,
  CallStatus,
  Card,
  Event,
  FaultCode,
  Frozen,
  Json,
  Labels,
  Limits,
  Message,
  Metadata,
  NetworkHealth,
  Part,
  Run,
  Session,
  Status,
  Usage,
} from '../kernel/index.ts'
import type { Failure, FailureKind, Outcome, Shortage, Source } from '../kernel/content.ts'
import type { Pending } from '../view/pending-calls.ts'
import type { Role } from './wire-routes.ts'

export { type Method, type Role, type Route, type RouteName, ROUTES } from './wire-routes.ts'

/**
 * The owner of a token. `roles`: the roles in which it may approve calls. `own`: it reaches only sessions that it
 * opened; others do not exist for it.
 */
export type Principal = Frozen<{ name: string; role: Role; roles: readonly string[]; reach: 'own' | 'all' }>

// Codes that only a server has. The others are the library's fault codes.
/** The codes of refusals: those of faults, and those that only a server has. */
export type WireCode =
  | FaultCode
  | ('bad_target' | 'bad_host' | 'bad_origin' | 'unauthorized' | 'not_found' | 'forbidden' | 'media_type' | 'too_large')
  | ('in_flight' | 'store_changed' | 'closing' | 'internal' | 'method')
/** The body of every refusal: a code for programs and a sentence for people. */
export type WireError = Frozen<{ error: Frozen<{ code: WireCode; message: string }> }>

/** A server's report of itself. `ok` only if an append was just made durable; otherwise `trouble` gives the reason. */
export type WireHealth = Frozen<{
  ok: boolean
  version: string
  now: number
  startedAt: number
  /** Identifies the store: cursors of one store are invalid in another. */
  store: string
  /** Where the store keeps data, and what an acknowledged write survives. */
  durability: Frozen<{
    kind: 'memory' | 'sqlite' | 'other'
    survives: string
    appendMs: number | null
    /** The 99th percentile of the writes of the last health checks. */
    appendP99Ms?: number
  }>
  trouble: string | null
  /** The code of that trouble, such as `disk_full`. */
  code?: FaultCode
  /** The only `Host` values that it accepts. */
  hosts: readonly string[]
  /** Whether this server drives sessions, how many it drives now, and how many streams are open. */
  drives: boolean
  driving: number
  streams: number
  due: number
  bytes?: number
  sessions?: number
  leases?: number
  /** The longest time that a due session has waited. */
  waitedMs?: number
  /** Counters of this process and the database's state, for a store that several machines share. */
  network?: NetworkHealth
}>

/** Whose token a request has, and the time and the store of the server. */
export type Me = Principal & Frozen<{ now: number; store: string }>

/**
 * A card in a list. Costs are in dollars: of the session alone, and with its children. `treeCost`: the latter in
 * millionths of a dollar, in lists. `elsewhere`: as in a receipt.
 */
export type WireCard = Card & Frozen<{ costUsd: number; treeCostUsd: number; treeCost?: number; elsewhere?: string }>

/** `next`: the `cursor` of the next page, or null. `now`: the server's clock, for computing ages. */
export type SessionPage = Frozen<{ sessions: readonly WireCard[]; next: string | null; now: number; store: string }>

/** A pending call, with its context for a page. */
export type WirePending = Pending &
  Frozen<{
    agent?: string
    /** The session's title. */
    title?: string
    labels?: Labels
    /** The changes to files that the call would make. */
    preview?: Json
    /** When the call was asked, if known. */
    since?: number
    /** The model's text in the same reply. It is not a verified description of the call. */
    said?: string
    effect?: 'read' | 'idempotent' | 'once'
  }>

/** In dollars. */
export type WireAccount = Frozen<{
  /** The scope of the limit: the last run, the session, its tree, or one day of the agent that pays. */
  account: 'run' | 'session' | 'tree' | 'day'
  id: string
  agent: string
  limitUsd: number | null
  heldUsd: number
  spentUsd: number
  assumedUsd: number
}>

/** A session, with what it waits for and what it spent. */
export type SessionAnswer = Frozen<{
  card: WireCard
  pending: readonly WirePending[]
  accounts: readonly WireAccount[]
  head: number
  now: number
  store: string
  /** The first event that cannot be read. All events before it can be. */
  damaged?: Damaged
  /** With `include=pursuit`. */
  pursuit?: WirePursuit
}>
/** The outcome that the session pursues, or pursued last. `missing_outcome` comes alone. */
export type WirePursuit = Frozen<{
  state: 'missing_outcome' | 'blocked' | 'not_ready' | 'uncertain' | 'fail' | 'pass'
  end?: 'satisfied' | 'max_rounds' | 'failed' | 'interrupted' | 'ungraded' | null
  why?: string | null
  fingerprint?: string
  description?: string
  rubric?: string
  round?: number
  roundsMax?: number
  usd?: number | null
  spentUsd?: number
  trend?: 'first_iteration' | 'improving' | 'stable' | 'regressing'
  history?: readonly WireGrade[]
}>
/** The grade of one round of a pursuit. */
export type WireGrade = Frozen<{
  round: number
  state: 'uncertain' | 'fail' | 'pass'
  met: number
  of: number
  summary: string
  at: number
  session: string
}>
/** Where the log of a session cannot be read any more, and why. */
export type Damaged = Frozen<{ seq: number; reason: string }>

/** `events` in log order. `after` and `before` lead to the neighbouring pages; null where there is none. */
export type EventsAnswer = Frozen<{
  events: readonly Event[]
  head: number
  after: number | null
  before: number | null
  /**
   * With `types` or `q`: the position that the search reached. One search reads a bounded number of events; continue
   * from here.
   */
  scanned?: number
  damaged?: Damaged
}>

/** The conversation as the model is shown it, and the last event it stands for. */
export type MessagesAnswer = Frozen<{ messages: readonly Message[]; head: number }>

/** The folded session after event `seq`. */
export type StateAnswer = Frozen<{ seq: number; head: number; session: Session; damaged?: Damaged }>

/** The result of the last run. `open`: it did not settle within `wait`. */
export type ResultAnswer = Frozen<{ open: boolean; result: WireResult | null }>
/** How the last run of a session ended, or what it waits for. */
export type WireResult = Frozen<{
  sessionId: string
  status: 'completed' | 'requires_action' | 'sleeping' | 'interrupted' | 'limit' | 'halted' | 'failed'
  stopReason: string
  text: string
  output?: Json
  /** The answer came from the response cache. */
  cached?: true
  reason?: string
  until?: number | null
  /** For a run that ended at a limit: which limit and, for `usd`, whose account was short and by how much. */
  limit?: Extract<Outcome, { type: 'limit' }>['limit']
  account?: WireAccount['account']
  short?: Shortage
  /** For a halted run: the model's last text. */
  said?: string
  failure?: Failure & { classified: WireFailure | null }
  /** The tool that ended the run early. */
  endedBy?: string
  /** Includes children that its calls started. `own` excludes them. */
  usage: WireSpending
  costUsd: number
  treeCostUsd: number
  /** `treeCostUsd` in millionths of a dollar. */
  cost: number
  own: { usage: WireSpending; cost: number }
  context: { tokens: number; window: number | null } | null
  flags: { paused: boolean; capped: boolean; halted: boolean; empty: boolean; held?: true }
  calls: readonly WireCall[]
  pending: readonly WirePending[]
  warnings: readonly string[]
  metadata: Metadata
  messages: readonly Message[]
  sources: readonly Source[]
  files: readonly BlobRef[]
}>
type WireSpending = {
  inputTokens: number
  outputTokens: number
  cachedTokens: number
  cacheWriteTokens: number
  reasoningTokens: number
  modelRequests: number
  toolCalls: number
  cancelledToolCalls: number
  outputRetries: number
  toolRetries: Readonly<Record<string, number>>
}
type WireFailure = { class: string; category: string; cause: string; nextAction: string; recoverable: boolean }
/** One call of a run, with its arguments and its result. */
export type WireCall = Frozen<{
  callId: CallKey
  tool: string
  args: Json
  /** The arguments that the call ran with, if a person changed them. */
  edited?: { by: string; args: Json }
  status: CallStatus | null
  content: string | BlobRef
  parts?: readonly BlobRef[]
  chars: number
  failure?: WireFailure & { kind?: FailureKind }
  approved?: { allow: boolean; by: string; why?: string; voters?: readonly string[] }
}>

/**
 * The event is on disk. `duplicate`: it was already there. `elsewhere`: no worker of this server drives the session;
 * the text says who does.
 */
export type WireReceipt = Frozen<{
  eventId: string
  seq: number
  duplicate: boolean
  queued: boolean
  elsewhere?: string
}>
/** The session of a delivery. `notBefore`: its source is over a cap until then. */
export type TriggeredAnswer = Frozen<{ session: string; duplicate: boolean; notBefore?: number }>
/**
 * The session as it was lived again: its first `from` events are the recorded ones, and `events` follow them. It is
 * compared with the recording up to `end`. `drift` counts the answers that the recording did not have.
 */
export type WhatIfAnswer = Frozen<{
  session: string
  from: number
  end: number
  events: readonly Event[]
  changed: readonly string[]
  drift: number
  missing: readonly Frozen<{ session: string; call?: string; tool?: string; args?: Json }>[]
  costUsd: number
  settled: Outcome | null
  text: string
  parked: readonly Frozen<{ session: string; call: string; tool: string; args: Json; why: string }>[]
}>
/** The session that was opened, and the acknowledgement of its first message. */
export type OpenedAnswer = Frozen<{ session: string; receipt: WireReceipt | null }>
/** The outcome for each change of a call. */
export type UndoneAnswer = Frozen<{
  undone: readonly { call: CallKey; what: string; result: 'restored' | 'removed' | 'changed_since' | 'not_kept' }[]
}>
/** `inherited`: `seq` counts in the log that this session was forked from. `name` (such as `^7`) removes the pin. */
export type PinsAnswer = Frozen<{
  pins: readonly Frozen<{ seq: number; text: string; inherited?: true; name?: string }>[]
}>
/** The pin that was set. */
export type PinnedAnswer = Frozen<{ seq: number }>
/** The wake that waits under this key now. `duplicate`: it waited before. */
export type ScheduledAnswer = Frozen<{
  key: string
  due: number
  seq: number
  duplicate: boolean
  elsewhere?: string
}>
/** Whether a wake was dropped. */
export type UnscheduledAnswer = Frozen<{ dropped: boolean }>
/** The title as lists show it, by the seq of its event. `duplicate`: it was given before under this key. */
export type RenamedAnswer = Frozen<{ title: string; seq: number; duplicate: boolean }>
/** The acknowledgement of a pursuit. */
export type PursuedAnswer = Frozen<{
  eventId: string
  seq: number
  duplicate: boolean
  queued: boolean
  fingerprint: string
}>
/** What was asked is done. */
export type DoneAnswer = Frozen<{ ok: true }>
/** The sessions that were taken out. */
export type RemovedAnswer = Frozen<{
  removed: readonly Frozen<{
    session: string
    agent: string
    events: number
    bytes: number
    at: number
    by: string
    /** Its worktrees that stay on disk. */
    worktrees?: readonly { path: string; branch: string }[]
  }>[]
}>

/**
 * `pending` has up to `limit` calls, the oldest first; `total` counts all that wait. `sessions` has the roots of the
 * listed calls.
 */
export type PendingAnswer = Frozen<{
  pending: readonly WirePending[]
  total: number
  sessions: readonly WireCard[]
  now: number
}>

/** A tool of an agent, as the inspector shows it. */
export type WireTool = Frozen<{
  name: string
  description: string
  kind: string
  effect: string
  /** When it requires approval: always, never, or by its arguments. */
  approval: unknown
  outside: boolean
}>
/** An agent of a server: its model, tools, limits and children. */
export type WireAgent = Frozen<{
  name: string
  model: string
  /** The planner of its turns: `model`, or a workflow by its name, such as `graph:report`. */
  planner: string
  tools: readonly WireTool[]
  sources: readonly string[]
  limits: Limits
  budget: unknown
  children: readonly string[]
  /** The workflow's drawing: its nodes and edges. */
  graph: unknown
}>
/** The agents of a server. */
export type AgentsAnswer = Frozen<{ agents: readonly WireAgent[] }>

/** One row per day (UTC), agent and model. `complete`: false while older logs are still being counted; ask again. */
export type UsageRow = Frozen<{
  day: string
  agent: string
  model: string
  usd: number
  inputTokens: number
  outputTokens: number
  replies: number
}>
/** What was spent, by day, agent and model. */
export type UsageAnswer = Frozen<{
  rows: readonly UsageRow[]
  complete: boolean
  now: number
  /** Dollars spent in the last sixty minutes. */
  hourUsd: number
}>

/** A wake with its key, or a message that waits for its time: then there is no key, and `reason` is its text. */
export type ScheduledRow = Frozen<{ key?: string; due: number; reason: string }>
/**
 * `reason`: why the session looks again, as recorded with its wake. `tries`: how often an unavailable provider has been
 * asked. `scheduled`: its wakes and messages for later, the earliest first.
 */
export type DueRow = Frozen<{
  session: string
  agent: string
  due: number
  wakes: number
  title?: string
  reason?: string
  tries?: number
  scheduled?: readonly ScheduledRow[]
}>
/** The sessions that look again by themselves, and when. */
export type DueAnswer = Frozen<{ due: readonly DueRow[]; now: number }>

/** A cron job as it stands. Times are in ms; `next` is empty while it is off. */
export type CronJobRow = Frozen<{
  name: string
  session: string
  line?: string
  at?: number
  zone: string
  agent: string
  prompt?: string
  input?: Json
  missed: 'skip' | 'once' | 'all'
  overlap: 'skip' | 'queue' | 'replace'
  limits?: { readonly [name: string]: number | null }
  on: boolean
  next: readonly number[]
  last: Frozen<{ session: string; at: number; outcome: Outcome['type'] | null }> | null
  waiting: number
  ticks: readonly CronJobTick[]
}>
/** One time of a job: the session that it started, or why it was left out. */
export type CronJobTick = Frozen<{ at: number; session: string } | { at: number; skipped: string; times?: number }>
/** The jobs of a server, a page of them. */
export type CronJobsAnswer = Frozen<{ jobs: readonly CronJobRow[]; next: string | null; now: number }>
/** `began`: the session of a run that was asked for; `why` says why none began. */
export type CronChangedAnswer = Frozen<{ job: CronJobRow | null; began?: string; why?: string }>

/**
 * A delivery from outside, and what was decided about it. `state`: `waiting` until something is decided; `stopped`: a
 * person dropped or stopped it. `reason`: of the decision, or why it is deferred or dead. `target`: the agent that got
 * the task.
 */
export type TriggerRow = Frozen<{
  session: string
  source: string
  label: string
  state: 'waiting' | 'deferred' | 'decided' | 'dead' | 'stopped'
  action: 'drop' | 'notify' | 'react' | 'escalate' | null
  path: 'first' | 'first_again' | 'second' | 'cached' | null
  reason: string | null
  target: string | null
  at: number
}>
/** Counts of the newest deliveries of a source. `more`: there are older ones, which are not counted. */
export type TriggerSourceRow = Frozen<{
  source: string
  accepted: number
  more: boolean
  dropped: number
  notified: number
  reacted: number
  escalated: number
  deferred: number
  dead: number
}>
/** The sources of events, and the last events of each. */
export type TriggersAnswer = Frozen<{
  sources: readonly TriggerSourceRow[]
  triggers: readonly TriggerRow[]
  now: number
}>

/**
 * A settled run that a consumer could not be told of. `lane` and `key` name it. `session`: whose run it is. `reason`: why
 * the last try failed. `count`: how many there are.
 */
export type LetterRow = Frozen<{
  lane: string
  key: string
  consumer: string
  session: string
  tries: number
  reason: string
  at: number
}>
/** The dead letters that wait for a decision. */
export type LettersAnswer = Frozen<{ letters: readonly LetterRow[]; count: number; now: number }>
/** A decision about a dead letter. */
export type LetterBody = Frozen<{ lane: string; key: string; decision: 'retry' | 'drop' }>
/** The decision that counts, and who made it. */
export type LetterDecidedAnswer = Frozen<{ decision: 'retry' | 'drop'; by: string }>

/** The row of a token in lists. The token itself is shown once, when it is made. */
export type TokenRow = Principal & Frozen<{ made: number; expires?: number }>
/** Who has a token. The tokens themselves are never shown again. */
export type TokensAnswer = Frozen<{ tokens: readonly TokenRow[] }>
/** A new token. This answer is the only one that has it. */
export type TokenMade = TokenRow & Frozen<{ token: string }>

// The types of request bodies. The schemas in wire-schemas.ts check them.

/** A text, parts, or an object that is sent as JSON. */
export type WireInput = string | readonly InputPart[] | { readonly [name: string]: Json }
/** A part of a message as it is sent to a server. Bytes are in base64. */
export type InputPart =
  | Extract<Part, { type: 'text' | 'url' | 'file_id' | 'blob' }>
  | Frozen<{ type: 'image' | 'file'; media: string; data: string; name?: string }>

/** What a session is opened with. */
export type OpenBody = Frozen<{
  agent?: string
  input?: WireInput
  folder?: string
  labels?: Labels
  metadata?: Metadata
  model?: string
  id?: string
  /** A conversation from elsewhere. The model reads it before the first message; its calls do not run. */
  messages?: readonly WireBroughtMessage[]
}>
/** In the format of chat completions, the messages API or the AI SDK. */
export type WireBroughtMessage = Frozen<{
  role: 'user' | 'assistant' | 'tool'
  content?: Json
  tool_calls?: Json
  tool_call_id?: string
}>
/** Overrides the model's settings for one run. */
export type WireSettings = Frozen<{
  outputTokensMax?: number
  temperature?: number
  topP?: number
  seed?: number
  stop?: readonly string[]
  toolChoice?: 'auto' | 'required' | 'none' | Frozen<{ tool: string }>
  parallelToolCalls?: boolean
  reasoning?: 'off' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | Frozen<{ budgetTokens: number }>
}>
/** A message for a session, and what holds for the run that reads it. */
export type MessageBody = Frozen<{
  input: WireInput
  when?: 'next' | 'after' | 'now' | 'idle'
  pin?: boolean
  model?: string
  instructions?: string
  limits?: Readonly<Record<string, number | null>>
  tools?: readonly string[]
  settings?: WireSettings
  metadata?: Metadata
  patienceMs?: number
  at?: number
}>
/** One of several commands that are taken together, or not at all. */
export type WireCommand =
  | Frozen<{ type: 'message'; input: WireInput; when?: 'next' | 'after' | 'now' }>
  | Frozen<{ type: 'redirect'; text: string }>
  | Frozen<{ type: 'pause'; reason?: string }>
  | Frozen<{ type: 'resume' }>
  | Frozen<{ type: 'cancel' }>
  | Frozen<{ type: 'withdraw'; message: number }>
/** Commands that are taken together, or not at all. */
export type CommandsBody = Frozen<{ commands: readonly WireCommand[] }>
/** The token's principal is the one who answers. */
export type AnswerBody = Frozen<{ callId: CallKey; content: string; ok?: boolean; sessionId?: string }>
/** `digest`: of the call as it was shown; required. The person and role come from the token. */
export type DecisionBody = Frozen<{
  callId: CallKey
  allow: boolean
  digest: string
  /** Edited arguments: the call runs with these if its tool and the policy accept them. */
  args?: Json
  /** Fields of the question, handed back optionally. They must match the current question. */
  tool?: string
  class?: string
  n?: number
  roles?: readonly string[]
  why?: string
  /** One of the principal's own roles. Default: the first role that the call accepts. */
  role?: string
  sessionId?: string
}>
/** A decision about more money for a session. */
export type BudgetBody = Frozen<{ callId: 'budget'; allow: boolean; usd?: number; why?: string; sessionId?: string }>
/** Either a time in ms since 1970, or how many ms from now. */
export type ScheduleBody = Frozen<{ at?: number; inMs?: number; reason?: string; key?: string }>
/** Which wake is dropped. */
export type UnscheduleBody = Frozen<{ key: string }>
/** Another title for a session. */
export type RenameBody = Frozen<{ title: string }>
/** What a session is to reach, and the rubric it is graded by. */
export type PursueBody = Frozen<{ description: string; rubric: string; roundsMax?: number; usd?: number }>
/** Whether a session is stopped or paused. */
export type InterruptBody = Frozen<{ mode?: 'stop' | 'pause' }>
/** From which event a copy of a session goes its own way, and what is different in it. */
export type ForkBody = Frozen<{
  at?: number
  agent?: string
  model?: string
  folder?: string
  labels?: Labels
  metadata?: Metadata
  id?: string
}>
/** From which event on a session is lived again, and what is changed. */
export type WhatIfBody = Frozen<{
  at: number
  model?: string
  instructions?: string
  message?: Json | readonly Json[]
  tools?: Readonly<Record<string, 'recorded' | 'live' | 'recorded_or_live'>>
  runs?: 'one' | 'all'
  usd?: number
}>
/** The run whose changes to files are taken back. */
export type UndoBody = Frozen<{ run?: number }>
/** Either a text, or the seq of a message that was sent. */
export type PinBody = Frozen<{ text?: string; seq?: number }>
/**
 * `expiresMs`: how long the token is valid. `inherit`: it takes over the sessions of a dropped token of the same name.
 */
/** `add` has the job; the others name the session of one. */
export type CronBody = Frozen<{
  action: 'add' | 'on' | 'off' | 'run' | 'remove'
  session?: string
  folder?: string
  job?: { readonly [name: string]: Json }
}>
/** Who gets a token, and what may be done with it. */
export type TokenBody = Frozen<{
  name: string
  role: Role
  roles?: readonly string[]
  reach?: 'own' | 'all'
  expiresMs?: number
  inherit?: boolean
}>
/** `sessions`: the last seq that the reader has of each. `cards`: also sends each card that changes. */
export type StreamBody = Frozen<{ sessions?: Readonly<Record<string, number>>; cards?: boolean; deltas?: boolean }>

// The frames of a stream, by their `event:`. On a stream of one session `event` has its seq as `id:`; no other frame
// has an id.

/** What a stream sends, by the name of each frame. */
export type Frames = {
  /** The first frame. `head`: of the session, or of each session. */
  readonly hello: Frozen<{ store: string; head: number | Readonly<Record<string, number>>; now: number }>
  /** On a stream of many sessions, `session` names the event's session. */
  readonly event: Event & { readonly session?: string }
  readonly delta: WireDelta
  readonly card: WireCard
  /** The session was removed. No more frames of it follow. */
  readonly gone: Frozen<{ session: string }>
  /** The server ends the stream. Connect again after `retryMs`. */
  readonly bye: Frozen<{ reason: 'closing' | 'slow' | 'token' | 'trouble'; retryMs: number; message?: string }>
}
/**
 * A piece of a reply in progress: the request's seq, the part, and the offset of its first character. It is not in the
 * log.
 */
export type WireDelta = Frozen<{
  session?: string
  seq: number
  part: number
  offset: number
  kind: string
  text: string
}>

export type { Card, Event, Json, Message, Run, Session, Status, Usage }
