// What goes over the wire between a server and its clients, as types: the answers of its routes, the bodies it takes, and the frames of
// its streams. Only the words of the kernel are used, so that a page in a browser has the same types. The routes are wire-routes.ts.
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
import type { Pending } from '../view/pending.ts'
import type { Role } from './wire-routes.ts'

export { type Method, type Role, type Route, type RouteName, ROUTES } from './wire-routes.ts'

/** Whose token it is. `roles` are those that rules ask approvals of. `own`: only sessions that it opened; others are not there for it. */
export type Principal = Frozen<{ name: string; role: Role; roles: readonly string[]; reach: 'own' | 'all' }>

// Codes that only a server has; the others are those of the library's faults.
export type WireCode =
  | FaultCode
  | ('bad_target' | 'bad_host' | 'bad_origin' | 'unauthorized' | 'not_found' | 'forbidden' | 'media_type' | 'too_large')
  | ('in_flight' | 'store_changed' | 'closing' | 'internal' | 'method')
export type WireError = Frozen<{ error: Frozen<{ code: WireCode; message: string }> }>

/** What a server says of itself. `ok` only if an append was just made durable; `trouble` says why not. */
export type Health = Frozen<{
  ok: boolean
  version: string
  now: number
  startedAt: number
  /** Names this file of sessions: cursors of one store mean nothing in another. */
  store: string
  /** Where it lies and what an acknowledged write survives. */
  durability: Frozen<{
    kind: 'memory' | 'sqlite' | 'other'
    survives: string
    appendMs: number | null
    /** Of the writes that the last looks at its health made, 99 in a hundred were as fast. */
    appendP99Ms?: number
  }>
  trouble: string | null
  /** The code of that trouble, such as `disk_full`. */
  code?: FaultCode
  /** The only values of `Host` it answers to. */
  hosts: readonly string[]
  /** Whether this server drives sessions, how many now, and how many streams are open. */
  drives: boolean
  driving: number
  streams: number
  due: number
  bytes?: number
  sessions?: number
  leases?: number
  /** How long the longest waiting of those that are due has waited. */
  waitedMs?: number
  /** What this process met, and how the database stands, where the store is one that machines share. */
  network?: NetworkHealth
}>

export type Me = Principal & Frozen<{ now: number; store: string }>

/**
 * A card as it is listed. Costs in dollars: of the session alone, and with the children below it. `treeCost`: the latter in millionths of a
 * dollar, as lists have it. `elsewhere`: as in a receipt.
 */
export type WireCard = Card & Frozen<{ costUsd: number; treeCostUsd: number; treeCost?: number; elsewhere?: string }>

/** `next`: the `cursor` of the next page, or null. `now` is the server's clock: ages are counted from it. */
export type SessionPage = Frozen<{ sessions: readonly WireCard[]; next: string | null; now: number; store: string }>

/** A call that waits for somebody, with what a page shows of it. */
export type WirePending = Pending &
  Frozen<{
    agent?: string
    /** What the session is called. */
    title?: string
    labels?: Labels
    /** What the call would change in files. */
    preview?: Json
    /** When it was asked, if that is known. */
    since?: number
    /** What the model said of it, in the same reply: its own words, and no description of what the call does. */
    said?: string
    effect?: 'read' | 'idempotent' | 'once'
  }>

/** In dollars. */
export type WireAccount = Frozen<{
  /** What it bounds: the last run, the session, its tree, or a day of the agent that pays. */
  account: 'run' | 'session' | 'tree' | 'day'
  id: string
  agent: string
  limitUsd: number | null
  heldUsd: number
  spentUsd: number
  assumedUsd: number
}>

export type SessionAnswer = Frozen<{
  card: WireCard
  pending: readonly WirePending[]
  accounts: readonly WireAccount[]
  head: number
  now: number
  store: string
  /** The first event that cannot be read; everything before it can. */
  damaged?: Damaged
}>
export type Damaged = Frozen<{ seq: number; reason: string }>

/** `events` in order. `after` and `before` lead to the neighbours of this page; null where there are none. */
export type EventsAnswer = Frozen<{
  events: readonly Event[]
  head: number
  after: number | null
  before: number | null
  /** With `types` or `q`: how far the search came. It reads so many events at most, and goes on from here. */
  scanned?: number
  damaged?: Damaged
}>

export type MessagesAnswer = Frozen<{ messages: readonly Message[]; head: number }>

/** The session as the fold has it, after event `seq`. */
export type StateAnswer = Frozen<{ seq: number; head: number; session: Session; damaged?: Damaged }>

/** The last run, once it rests. `open`: it did not within `wait`. */
export type ResultAnswer = Frozen<{ open: boolean; result: WireResult | null }>
export type WireResult = Frozen<{
  sessionId: string
  status: 'completed' | 'requires_action' | 'sleeping' | 'interrupted' | 'limit' | 'halted' | 'failed'
  stopReason: string
  text: string
  output?: Json
  /** The response cache gave the answer. */
  cached?: true
  reason?: string
  until?: number | null
  /** Of a run that ended at a limit: which, and for `usd` whose money was short and how it stood. */
  limit?: Extract<Outcome, { type: 'limit' }>['limit']
  account?: WireAccount['account']
  short?: Shortage
  /** Of a run that was halted: what the model said last. */
  said?: string
  failure?: Failure & { classified: WireFailure | null }
  /** The tool that ended the run early. */
  endedBy?: string
  /** With the children that its calls started. `own` is without them. */
  usage: Spent
  costUsd: number
  treeCostUsd: number
  /** `treeCostUsd` in millionths of a dollar. */
  cost: number
  own: { usage: Spent; cost: number }
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
type Spent = {
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
export type WireCall = Frozen<{
  callId: CallKey
  tool: string
  args: Json
  /** A person changed the arguments: it ran with these. */
  edited?: { by: string; args: Json }
  status: CallStatus | null
  content: string | BlobRef
  parts?: readonly BlobRef[]
  chars: number
  failure?: WireFailure & { kind?: FailureKind }
  approved?: { allow: boolean; by: string; why?: string; voters?: readonly string[] }
}>

/** It is on disk. `duplicate`: it was before this request. `elsewhere`: no worker of this server drives the session; who does, for people. */
export type WireReceipt = Frozen<{
  eventId: string
  seq: number
  duplicate: boolean
  queued: boolean
  elsewhere?: string
}>
export type OpenedAnswer = Frozen<{ session: string; receipt: WireReceipt | null }>
/** What became of each thing that a call had changed. */
export type UndoneAnswer = Frozen<{
  undone: readonly { call: CallKey; what: string; result: 'restored' | 'removed' | 'changed_since' | 'not_kept' }[]
}>
/** `inherited`: its number is that of the session that this one was forked from, and `name` lets it go (`^7`). */
export type PinsAnswer = Frozen<{
  pins: readonly Frozen<{ seq: number; text: string; inherited?: true; name?: string }>[]
}>
export type PinnedAnswer = Frozen<{ seq: number }>
export type DoneAnswer = Frozen<{ ok: true }>
export type RemovedAnswer = Frozen<{
  removed: readonly Frozen<{
    session: string
    agent: string
    events: number
    bytes: number
    at: number
    by: string
    /** Worktrees of it that stay on disk. */
    worktrees?: readonly { path: string; branch: string }[]
  }>[]
}>

/**
 * `pending` has as many as `limit` allows, the first that was asked first, and `total` says how many wait in all. `sessions` are the roots
 * of those shown: something waits in each of them or below it.
 */
export type PendingAnswer = Frozen<{
  pending: readonly WirePending[]
  total: number
  sessions: readonly WireCard[]
  now: number
}>

export type WireTool = Frozen<{
  name: string
  description: string
  kind: string
  effect: string
  /** When it asks: always, never, or by its arguments. */
  approval: unknown
  outside: boolean
}>
export type WireAgent = Frozen<{
  name: string
  model: string
  /** What answers its turns: `model`, or a workflow by its name, such as `graph:report`. */
  planner: string
  tools: readonly WireTool[]
  sources: readonly string[]
  limits: Limits
  budget: unknown
  children: readonly string[]
  /** How a workflow is drawn: its nodes, and the edges between them. */
  graph: unknown
}>
export type AgentsAnswer = Frozen<{ agents: readonly WireAgent[] }>

/** One row a day (UTC), agent and model. `complete`: false while older logs are still being counted; ask again. */
export type UsageRow = Frozen<{
  day: string
  agent: string
  model: string
  usd: number
  inputTokens: number
  outputTokens: number
  replies: number
}>
export type UsageAnswer = Frozen<{
  rows: readonly UsageRow[]
  complete: boolean
  now: number
  /** What was spent in the last sixty minutes. */
  hourUsd: number
}>

/**
 * `reason`: why it looks again, as it was said when that was planned. `tries`: it waits for a provider, which was asked so often without
 * an answer.
 */
export type DueRow = Frozen<{
  session: string
  agent: string
  due: number
  wakes: number
  title?: string
  reason?: string
  tries?: number
}>
export type DueAnswer = Frozen<{ due: readonly DueRow[]; now: number }>

/** A token itself is shown once, when it is made. */
export type TokenRow = Principal & Frozen<{ made: number; expires?: number }>
export type TokensAnswer = Frozen<{ tokens: readonly TokenRow[] }>
export type TokenMade = TokenRow & Frozen<{ token: string }>

// What bodies hold. The schemas of wire-routes.ts check them; these are the same as types.

/** A text, parts, or an object, which is sent as its JSON. */
export type WireInput = string | readonly InputPart[] | { readonly [name: string]: Json }
export type InputPart =
  | Extract<Part, { type: 'text' | 'url' | 'file_id' | 'blob' }>
  | Frozen<{ type: 'image' | 'file'; media: string; data: string; name?: string }>

export type OpenBody = Frozen<{
  agent?: string
  input?: WireInput
  folder?: string
  labels?: Labels
  metadata?: Metadata
  model?: string
  id?: string
  /** A conversation that took place elsewhere: the model reads it before the first message, and nothing of it runs. */
  messages?: readonly WireBroughtMessage[]
}>
/** As chat completions, the messages API or the AI SDK write it. */
export type WireBroughtMessage = Frozen<{
  role: 'user' | 'assistant' | 'tool'
  content?: Json
  tool_calls?: Json
  tool_call_id?: string
}>
/** How the model answers in one run, over how it was made. */
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
}>
export type WireCommand =
  | Frozen<{ type: 'message'; input: WireInput; when?: 'next' | 'after' | 'now' }>
  | Frozen<{ type: 'redirect'; text: string }>
  | Frozen<{ type: 'pause'; reason?: string }>
  | Frozen<{ type: 'resume' }>
  | Frozen<{ type: 'cancel' }>
export type CommandsBody = Frozen<{ commands: readonly WireCommand[] }>
/** Who answers is the token's principal. */
export type AnswerBody = Frozen<{ callId: CallKey; content: string; ok?: boolean; sessionId?: string }>
/** `digest` is that of what was shown; without it nothing is decided. Who decides, and in which role, is said by the token. */
export type DecisionBody = Frozen<{
  callId: CallKey
  allow: boolean
  digest: string
  /** Other arguments than were shown: the call runs with these, if its tool and the policy take them. */
  args?: Json
  /** What was shown beside it may be handed back, and must be what is asked. */
  tool?: string
  class?: string
  n?: number
  roles?: readonly string[]
  why?: string
  /** One of the principal's own roles. Default: the first that the call asks for. */
  role?: string
  sessionId?: string
}>
export type BudgetBody = Frozen<{ callId: 'budget'; allow: boolean; usd?: number; why?: string; sessionId?: string }>
export type InterruptBody = Frozen<{ mode?: 'stop' | 'pause' }>
export type ForkBody = Frozen<{
  at?: number
  agent?: string
  model?: string
  folder?: string
  labels?: Labels
  metadata?: Metadata
  id?: string
}>
export type UndoBody = Frozen<{ run?: number }>
/** A text, or a message that was sent before, by its seq: one of the two. */
export type PinBody = Frozen<{ text?: string; seq?: number }>
/** `expiresMs`: how long it is good. `inherit`: it gets the sessions of a dropped token of the same name. */
export type TokenBody = Frozen<{
  name: string
  role: Role
  roles?: readonly string[]
  reach?: 'own' | 'all'
  expiresMs?: number
  inherit?: boolean
}>
/** `sessions`: the last seq that was seen of each. `cards`: also each card that changes, from `since` on. */
export type StreamBody = Frozen<{ sessions?: Readonly<Record<string, number>>; cards?: boolean; deltas?: boolean }>

// The frames of a stream, by their `event:`. On a stream of one session `event` has its seq as `id:`, and nothing else has an id.

export type Frames = {
  /** First of all. `head` is that of the session, or of each of them. */
  readonly hello: Frozen<{ store: string; head: number | Readonly<Record<string, number>>; now: number }>
  /** On a stream of many, `session` says whose it is. */
  readonly event: Event & { readonly session?: string }
  readonly delta: WireDelta
  readonly card: WireCard
  /** It was removed: nothing of it comes any more. */
  readonly gone: Frozen<{ session: string }>
  /** The server ends the stream. Connect again after `retryMs`. */
  readonly bye: Frozen<{ reason: 'closing' | 'slow' | 'token' | 'trouble'; retryMs: number; message?: string }>
}
/** A piece of what is being said: `seq` of the request, the part, and the offset of its first character. It is in no log. */
export type WireDelta = Frozen<{
  session?: string
  seq: number
  part: number
  offset: number
  kind: string
  text: string
}>

export type { Card, Event, Json, Message, Run, Session, Status, Usage }
