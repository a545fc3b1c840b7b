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

/** The owner of a token. */
export type Principal = Frozen<{
  /** The name of the token, which is recorded as the author of what it does. */
  name: string
  /** What the token may do. */
  role: Role
  /** The roles in which it may decide calls that ask for one. */
  roles: readonly string[]
  /** `own`: it reaches only sessions that it opened, and others do not exist for it. */
  reach: 'own' | 'all'
}>

// Codes that only a server has. The others are the library's fault codes.
/** The codes of refusals: those of faults, and those that only a server has. */
export type WireCode =
  | FaultCode
  | ('bad_target' | 'bad_host' | 'bad_origin' | 'unauthorized' | 'not_found' | 'forbidden' | 'media_type' | 'too_large')
  | ('in_flight' | 'store_changed' | 'closing' | 'internal' | 'method')
/** The body of every refusal: a code for programs and a sentence for people. */
export type WireError = Frozen<{
  /** The code for programs, and the sentence for people. */
  error: Frozen<{ code: WireCode; message: string }>
}>

/** A server's report of itself. `ok` only if an append was just made durable; otherwise `trouble` gives the reason. */
export type WireHealth = Frozen<{
  /** True if an append was just made durable. */
  ok: boolean
  /** The version of terret that serves. */
  version: string
  /** The server's time, in ms since 1970. */
  now: number
  /** When the server started, in ms since 1970. */
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
  /** Why it cannot write. Null if it can. */
  trouble: string | null
  /** The code of that trouble, such as `disk_full`. */
  code?: FaultCode
  /** The only `Host` values that it accepts. */
  hosts: readonly string[]
  /** Whether this server drives sessions. */
  drives: boolean
  /** How many sessions it drives now. 0 for a token that reaches only its own sessions. */
  driving: number
  /** How many streams are open. 0 for a token that reaches only its own sessions. */
  streams: number
  /** How many sessions of the store are due and not driven. 0 for a token that reaches only its own sessions. */
  due: number
  /** The size of the store in bytes. Absent if it is not known, or not for this token. */
  bytes?: number
  /** How many sessions the store has. Absent if the store cannot be read, or not for this token. */
  sessions?: number
  /** How many sessions a living worker holds. Absent if it is not known, or not for this token. */
  leases?: number
  /** The longest time that a due session has waited. */
  waitedMs?: number
  /** Counters of this process and the database's state, for a store that several machines share. */
  network?: NetworkHealth
}>

/** Whose token a request has, and the time and the store of the server. */
export type Me = Principal &
  Frozen<{
    /** The server's time, in ms since 1970. */
    now: number
    /** Identifies the store: cursors of one store are invalid in another. */
    store: string
  }>

/** A card in a list. */
export type WireCard = Card &
  Frozen<{
    /** What the session itself has spent, in dollars. */
    costUsd: number
    /** What the session and the sessions below it have spent, in dollars. */
    treeCostUsd: number
    /** `treeCostUsd` in millionths of a dollar. Only in lists. */
    treeCost?: number
    /** No worker of this server drives the session: a sentence about who does. */
    elsewhere?: string
  }>

/** A page of sessions. */
export type SessionPage = Frozen<{
  /** The cards of this page. */
  sessions: readonly WireCard[]
  /** The `cursor` of the next page. Null when nothing follows. */
  next: string | null
  /** The server's time in ms since 1970, for computing ages. */
  now: number
  /** Identifies the store: cursors of one store are invalid in another. */
  store: string
}>

/** A pending call, with its context for a page. */
export type WirePending = Pending &
  Frozen<{
    /** The agent of the waiting session. */
    agent?: string
    /** The session's title. */
    title?: string
    /** The labels of the waiting session. */
    labels?: Labels
    /** The changes to files that the call would make. */
    preview?: Json
    /** When the call was asked, if known. */
    since?: number
    /** The model's text in the same reply. It is not a verified description of the call. */
    said?: string
    /** How often the call may run, if its log says it. */
    effect?: 'read' | 'idempotent' | 'once'
  }>

/** One account of money and how it stands, in dollars. */
export type WireAccount = Frozen<{
  /** The scope of the limit: the last run, the session, its tree, or one day of the agent that pays. */
  account: 'run' | 'session' | 'tree' | 'day'
  /** The id of the account in the store. */
  id: string
  /** The agent that pays: that of the root session. */
  agent: string
  /** The most that may be spent and set aside together. Null for no limit. */
  limitUsd: number | null
  /** Set aside for calls in progress. */
  heldUsd: number
  /** What was spent so far, with the assumed part. */
  spentUsd: number
  /** The part of the spending that no provider reported. */
  assumedUsd: number
}>

/** A session, with what it waits for and what it spent. */
export type SessionAnswer = Frozen<{
  /** The card of the session. */
  card: WireCard
  /** The calls that wait for people in it and below it, the oldest first. Empty if the log is damaged. */
  pending: readonly WirePending[]
  /** The accounts that pay for it. Empty accounts are left out. */
  accounts: readonly WireAccount[]
  /** The seq of its last event. */
  head: number
  /** The server's time, in ms since 1970. */
  now: number
  /** Identifies the store: cursors of one store are invalid in another. */
  store: string
  /** The first event that cannot be read. All events before it can be. */
  damaged?: Damaged
  /** With `include=pursuit`. */
  pursuit?: WirePursuit
}>
/** The outcome that the session pursues, or pursued last. Of `missing_outcome` only the state is there. */
export type WirePursuit = Frozen<{
  /** What is known of the outcome. `missing_outcome`: nothing is pursued. */
  state: 'missing_outcome' | 'blocked' | 'not_ready' | 'uncertain' | 'fail' | 'pass'
  /** How it ended. Null while it goes on. */
  end?: 'satisfied' | 'max_rounds' | 'failed' | 'interrupted' | 'ungraded' | null
  /** Why it ended without a grade, or what it waits for. Null if the state says it all. */
  why?: string | null
  /** Names the pursuit. Round 2 of it is graded in the session `outcome.FINGERPRINT.2`. */
  fingerprint?: string
  /** What must be reached. */
  description?: string
  /** The criteria by which it is graded. */
  rubric?: string
  /** The round at work, or the last one. */
  round?: number
  /** After so many rounds it ends. */
  roundsMax?: number
  /** What all rounds and graders may cost, in dollars. Null for no limit. */
  usd?: number | null
  /** What the session and the graders spent since it began, in dollars. */
  spentUsd?: number
  /** The last grade compared with the one before. */
  trend?: 'first_iteration' | 'improving' | 'stable' | 'regressing'
  /** The last 12 grades, the oldest first. */
  history?: readonly WireGrade[]
}>
/** The grade of one round of a pursuit. */
export type WireGrade = Frozen<{
  /** The number of the round, from 1. */
  round: number
  /** Whether all criteria are met, some are not, or the grader could not tell. */
  state: 'uncertain' | 'fail' | 'pass'
  /** How many criteria are met. */
  met: number
  /** How many criteria the rubric has, as the grader counted them. */
  of: number
  /** The grader's own words. */
  summary: string
  /** When the round was graded, in ms since 1970. */
  at: number
  /** The session of the grader. */
  session: string
}>
/** Where the log of a session cannot be read any more, and why. */
export type Damaged = Frozen<{
  /** The first event that cannot be read. */
  seq: number
  /** Why it cannot be read. */
  reason: string
}>

/** A page of events. */
export type EventsAnswer = Frozen<{
  /** The events of the page, in the order of the log. */
  events: readonly Event[]
  /** The seq of the last event of the log. */
  head: number
  /** The `after` of the next page. Null when nothing follows. */
  after: number | null
  /** The `before` of the page before. Null when this is the first. */
  before: number | null
  /**
   * With `types` or `q`: the position that the search reached. One search reads a bounded number of events; continue
   * from here.
   */
  scanned?: number
  /** The log cannot be read from there on. Absent if it can. */
  damaged?: Damaged
}>

/** The conversation as the model is shown it, and the last event it stands for. */
export type MessagesAnswer = Frozen<{
  /** The messages of the conversation, the oldest first. */
  messages: readonly Message[]
  /** The last event that they stand for. */
  head: number
}>

/** The folded session after one of its events. */
export type StateAnswer = Frozen<{
  /** The last event in it. */
  seq: number
  /** The seq of the last event of the log. */
  head: number
  /** The state as the kernel decides from it. */
  session: Session
  /** The log cannot be read from there on. Absent if it can. */
  damaged?: Damaged
}>

/** The result of the last run. */
export type ResultAnswer = Frozen<{
  /** The run did not settle within `wait`, or there was none yet. */
  open: boolean
  /** The result. Null while the run is open. */
  result: WireResult | null
}>
/** How the last run of a session ended, or what it waits for. */
export type WireResult = Frozen<{
  /** The session of the run. */
  sessionId: string
  /** How the run ended, or why it has not: a person is asked, or it sleeps until a wake or a provider. */
  status: 'completed' | 'requires_action' | 'sleeping' | 'interrupted' | 'limit' | 'halted' | 'failed'
  /** The status in more detail, such as `end_turn`, `max_tokens`, `approval_required` or the reason of a failure. */
  stopReason: string
  /** The answer, or the last text of a run without one. For a halted run the cause of the halt. */
  text: string
  /** The answer of a completed run as data: by its schema, or the text. Absent for most other ends. */
  output?: Json
  /** The answer came from the response cache. */
  cached?: true
  /** Why the run was halted, interrupted or paused, or why a provider does not answer. Absent if nobody said. */
  reason?: string
  /** For a sleeping run: when it goes on, in ms since 1970. Null if no time is known. */
  until?: number | null
  /** For a run that ended at a limit: which limit and, for `usd`, whose account was short and by how much. */
  limit?: Extract<Outcome, { type: 'limit' }>['limit']
  /** For the limit `usd`: the account that cannot pay for the next call. */
  account?: WireAccount['account']
  /** For the limit `usd`: the amounts of that account, in millionths of a dollar. */
  short?: Shortage
  /** For a halted run: the model's last text. */
  said?: string
  /** For a failed run: what the log has about the failure, and the same classified for people. */
  failure?: Failure & { classified: WireFailure | null }
  /** The tool that ended the run early. */
  endedBy?: string
  /** Tokens, requests and calls of the run, with those of the children that its calls started. `own` excludes them. */
  usage: WireSpending
  /** The cost of the run without those children, in dollars. */
  costUsd: number
  /** The cost of the run with those children, in dollars. */
  treeCostUsd: number
  /** `treeCostUsd` in millionths of a dollar. */
  cost: number
  /** Usage and cost of the run without those children. The cost is in millionths of a dollar. */
  own: { usage: WireSpending; cost: number }
  /** How many tokens of the model's window were in use at the end. Null: no reply of the run was counted. */
  context: { tokens: number; window: number | null } | null
  /** Ends of a run that must not be taken for one another: it was paused, met a limit, was halted, gave an empty answer, or was imported. */
  flags: { paused: boolean; capped: boolean; halted: boolean; empty: boolean; held?: true }
  /** The calls of the run in their order, with their results. */
  calls: readonly WireCall[]
  /** The calls that wait for people, in the session and in the children that its calls started. */
  pending: readonly WirePending[]
  /** Sentences about tools that were missing, such as those of a server that could not be reached. */
  warnings: readonly string[]
  /** The host's metadata of the run, over that of its session. */
  metadata: Metadata
  /** The messages that the run added to the conversation. */
  messages: readonly Message[]
  /** The pages that the replies cite and that the run's own searches found, each address once. */
  sources: readonly Source[]
  /** Pictures and files that the model made. Their bytes are read by their hashes. */
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
  /** The key of the call in its session. */
  callId: CallKey
  /** The name of the tool. */
  tool: string
  /** The arguments from the model, as they were admitted. */
  args: Json
  /** The arguments that the call ran with, if a person changed them. */
  edited?: { by: string; args: Json }
  /** How the call ended. Null while it is open. */
  status: CallStatus | null
  /** What the model reads as the result, or a reference to a stored one. */
  content: string | BlobRef
  /** Its pictures and files. Absent for none. */
  parts?: readonly BlobRef[]
  /** The length of the content, in characters. */
  chars: number
  /** What went wrong, for people. `kind` comes from the tool itself. Absent for no failure. */
  failure?: WireFailure & { kind?: FailureKind }
  /** What people decided about the call. Absent if nobody did. */
  approved?: { allow: boolean; by: string; why?: string; voters?: readonly string[] }
}>

/** The event is on disk. */
export type WireReceipt = Frozen<{
  /** The id of the event. */
  eventId: string
  /** The position of the event in the session's log. */
  seq: number
  /** The event was there already. */
  duplicate: boolean
  /** The session waits for a person, and reads the message after the decision. */
  queued: boolean
  /** No worker of this server drives the session: a sentence about who does. */
  elsewhere?: string
}>
/** The delivery is on disk. */
export type TriggeredAnswer = Frozen<{
  /** The session of the delivery. */
  session: string
  /** The delivery was there already. */
  duplicate: boolean
  /** Its source is over a cap until this time, in ms since 1970. */
  notBefore?: number
}>
/** The session as it was lived again, compared with the recording. */
export type WhatIfAnswer = Frozen<{
  /** The recorded session. */
  session: string
  /** The last event that is the recorded one. */
  from: number
  /** The last event of the recording that it is compared with. */
  end: number
  /** The new events, which follow `from`. */
  events: readonly Event[]
  /** What the run that was open at that event shows its model otherwise. */
  changed: readonly string[]
  /** How many answers the recording did not have. */
  drift: number
  /** The calls and requests without an answer in the recording. */
  missing: readonly Frozen<{ session: string; call?: string; tool?: string; args?: Json }>[]
  /** What this cost, in dollars. Recorded replies cost nothing again. */
  costUsd: number
  /** How the last run ended. Null if it waits for people. */
  settled: Outcome | null
  /** The new answer. */
  text: string
  /** The calls that nobody has decided about, and why the recording does not. */
  parked: readonly Frozen<{ session: string; call: string; tool: string; args: Json; why: string }>[]
}>
/** The session that was opened, and the acknowledgement of its first message. */
export type OpenedAnswer = Frozen<{
  /** The id of the session. */
  session: string
  /** The acknowledgement of the first message. Null if none was sent. */
  receipt: WireReceipt | null
}>
/** The outcome for each change of a call. */
export type UndoneAnswer = Frozen<{
  /** Each change, the call that made it, and what became of it. */
  undone: readonly { call: CallKey; what: string; result: 'restored' | 'removed' | 'changed_since' | 'not_kept' }[]
}>
/** The pins of a session. */
export type PinsAnswer = Frozen<{
  /** In the order in which the model reads them. `name` (such as `^7`) removes a pin that came with a fork. */
  pins: readonly Frozen<{ seq: number; text: string; inherited?: true; name?: string }>[]
}>
/** The pin that was set. */
export type PinnedAnswer = Frozen<{
  /** The seq of the pinned message. */
  seq: number
}>
/** The wake that waits under a key now. */
export type ScheduledAnswer = Frozen<{
  /** The key of the wake: the given one, or a new one. */
  key: string
  /** When the session looks again, in ms since 1970. */
  due: number
  /** The event that asked for it. */
  seq: number
  /** A wake waited under this key before, so nothing changed. */
  duplicate: boolean
  /** No worker of this server drives the session: a sentence about who does. */
  elsewhere?: string
}>
/** Whether a wake was dropped. */
export type UnscheduledAnswer = Frozen<{
  /** False: no wake waited under the key. */
  dropped: boolean
}>
/** The title that a session was given. */
export type RenamedAnswer = Frozen<{
  /** The title as lists show it. */
  title: string
  /** The position of its event in the session's log. */
  seq: number
  /** It was given before under this key. */
  duplicate: boolean
}>
/** The acknowledgement of a pursuit. */
export type PursuedAnswer = Frozen<{
  /** The id of the message that begins the first round. */
  eventId: string
  /** The position of that message in the session's log. */
  seq: number
  /** The pursuit was there already. */
  duplicate: boolean
  /** The session waits for a person, and begins after the decision. */
  queued: boolean
  /** Names the pursuit. Round 2 of it is graded in the session `outcome.FINGERPRINT.2`. */
  fingerprint: string
}>
/** What was asked is done. */
export type DoneAnswer = Frozen<{
  /** Always true: whatever could not be done is refused. */
  ok: true
}>
/** The sessions that were taken out. */
export type RemovedAnswer = Frozen<{
  /** The session and its children, with who removed them and how large they were. */
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

/** The calls that wait for people. */
export type PendingAnswer = Frozen<{
  /** Up to `limit` calls and the rest of the last session, in the order of the times at which they were asked. */
  pending: readonly WirePending[]
  /** The `cursor` of the next page, which begins after this session. Null: no further calls wait. */
  next: string | null
  /** The cards of the root sessions of the listed calls. */
  sessions: readonly WireCard[]
  /** The server's time, in ms since 1970. */
  now: number
}>

/** A tool of an agent, as the inspector shows it. */
export type WireTool = Frozen<{
  /** The name that the model calls. */
  name: string
  /** What the model reads about the tool. */
  description: string
  /** Where the tool comes from: `user`, `subagent`, `parallel_llm` or `mcp`. */
  kind: string
  /** How often a call may run: `read`, `idempotent` or `once`. */
  effect: string
  /** When it requires approval: always, never, or by its arguments. */
  approval: unknown
  /** Its calls are answered from outside. */
  outside: boolean
}>
/** An agent of a server: its model, tools, limits and children. */
export type WireAgent = Frozen<{
  /** The name by which sessions are opened with it. */
  name: string
  /** The name of its model. */
  model: string
  /** The planner of its turns: `model`, or a workflow by its name, such as `graph:report`. */
  planner: string
  /** The tools that are known so far. */
  tools: readonly WireTool[]
  /** The names of its sources of tools, such as MCP servers. Their tools are known after their first run. */
  sources: readonly string[]
  /** The limits of its runs. */
  limits: Limits
  /** What it may spend, in dollars. Null for no budget. */
  budget: unknown
  /** The agents it may start. */
  children: readonly string[]
  /** The workflow's drawing: its nodes and edges. */
  graph: unknown
}>
/** The agents of a server. */
export type AgentsAnswer = Frozen<{
  /** All agents for which sessions can be opened. */
  agents: readonly WireAgent[]
}>

/** What one agent spent with one model on one day. */
export type UsageRow = Frozen<{
  /** The day in UTC, such as `2026-01-31`. */
  day: string
  /** The agent of the sessions. */
  agent: string
  /** The model that answered, or `unknown`. */
  model: string
  /** What they spent, in dollars. */
  usd: number
  /** Tokens of requests, cached ones included. */
  inputTokens: number
  /** Tokens of replies, reasoning included. */
  outputTokens: number
  /** How many replies there were. */
  replies: number
}>
/** What was spent, by day, agent and model. */
export type UsageAnswer = Frozen<{
  /** The newest day first. */
  rows: readonly UsageRow[]
  /** False while older logs are still being counted: ask again. */
  complete: boolean
  /** The server's time, in ms since 1970. */
  now: number
  /** Dollars spent in the last sixty minutes. */
  hourUsd: number
}>

/** A wake, or a message that waits for its time. */
export type ScheduledRow = Frozen<{
  /** The key of the wake. Absent for a message. */
  key?: string
  /** When its time comes, in ms since 1970. */
  due: number
  /** What the model reads then; for a message the beginning of its text. */
  reason: string
}>
/** A session that looks again by itself. */
export type DueRow = Frozen<{
  /** The id of the session. */
  session: string
  /** The agent of the session. */
  agent: string
  /** When it looks again, in ms since 1970. */
  due: number
  /** How many wakes wait in it. */
  wakes: number
  /** The title of the session. Absent if it has none. */
  title?: string
  /** Why it looks again, as recorded with its wake, or why its provider is unavailable. */
  reason?: string
  /** How often an unavailable provider was asked. Absent if none is unavailable. */
  tries?: number
  /** Its wakes and messages for later, the earliest first. Absent for none. */
  scheduled?: readonly ScheduledRow[]
}>
/** The sessions that look again by themselves, and when. */
export type DueAnswer = Frozen<{
  /** The earliest first. */
  due: readonly DueRow[]
  /** The server's time, in ms since 1970. */
  now: number
}>

/** A cron job as it stands. Times are in ms since 1970. */
export type CronJobRow = Frozen<{
  /** The name of the job. */
  name: string
  /** The session that keeps the job. */
  session: string
  /** When it fires: minute, hour, day of month, month, day of week. Absent for a job with `at`. */
  line?: string
  /** The one time at which it fires. Absent for a job with a line. */
  at?: number
  /** The time zone of the line, such as `Europe/Oslo`. */
  zone: string
  /** The agent or workflow of its runs. */
  agent: string
  /** What the agent is told each time. Absent for a workflow with an input. */
  prompt?: string
  /** The input of a workflow, in place of a prompt. */
  input?: Json
  /** What becomes of times at which no worker was there: none runs, one for all, or each. */
  missed: 'skip' | 'once' | 'all'
  /** What a time does while an earlier run works: nothing, wait for it, or stop it. */
  overlap: 'skip' | 'queue' | 'replace'
  /** The limits of its runs, in place of the agent's. Null is no limit. */
  limits?: { readonly [name: string]: number | null }
  /** It fires at its times. */
  on: boolean
  /** The next five times. Empty while it is off. */
  next: readonly number[]
  /** The last run that began. Its outcome is null while it works. Null if none began. */
  last: Frozen<{ session: string; at: number; outcome: Outcome['type'] | null }> | null
  /** How many of its times wait for an earlier run. */
  waiting: number
  /** The last runs and left-out times, the newest first. */
  ticks: readonly CronJobTick[]
}>
/** One time of a job: the session that it started, or why it was left out. */
export type CronJobTick = Frozen<{ at: number; session: string } | { at: number; skipped: string; times?: number }>
/** The jobs of a server, a page of them. */
export type CronJobsAnswer = Frozen<{
  /** The jobs of this page. */
  jobs: readonly CronJobRow[]
  /** The `cursor` of the next page. Null when nothing follows. */
  next: string | null
  /** The server's time, in ms since 1970. */
  now: number
}>
/** What became of a change of a job. */
export type CronChangedAnswer = Frozen<{
  /** The job after the change. Null if it was removed. */
  job: CronJobRow | null
  /** The session of the run that was asked for. Absent if none began. */
  began?: string
  /** Why the run that was asked for did not begin. */
  why?: string
}>

/** A delivery from outside, and what was decided about it. */
export type TriggerRow = Frozen<{
  /** The session of the delivery. */
  session: string
  /** The source that it came from. */
  source: string
  /** The kind of the event, such as `issues.opened`. */
  label: string
  /** `waiting`: nothing is decided yet. `stopped`: a person dropped or stopped it. */
  state: 'waiting' | 'deferred' | 'decided' | 'dead' | 'stopped'
  /** What was decided. Null before that. */
  action: 'drop' | 'notify' | 'react' | 'escalate' | null
  /** Which model decided, or that the decision for an equal event was taken again. Null before that. */
  path: 'first' | 'first_again' | 'second' | 'cached' | null
  /** The reason of the decision, or why it is deferred or dead. Null for none. */
  reason: string | null
  /** The agent that got the task. Null if none did. */
  target: string | null
  /** When it arrived, in ms since 1970. */
  at: number
}>
/** The newest deliveries of one source, counted. */
export type TriggerSourceRow = Frozen<{
  /** The name of the source. */
  source: string
  /** How many deliveries are counted here. */
  accepted: number
  /** There are older ones, which are not counted. */
  more: boolean
  /** Of these: nobody is told. */
  dropped: number
  /** Of these: people got a notice. */
  notified: number
  /** Of these: an agent got a task. */
  reacted: number
  /** Of these: an agent for difficult tasks got one. */
  escalated: number
  /** Of these: a cap of the source holds them back. */
  deferred: number
  /** Deliveries that came to no end, older ones included: at most 50 are counted. */
  dead: number
}>
/** The sources of events, and the last events of each. */
export type TriggersAnswer = Frozen<{
  /** Each source with its counts. */
  sources: readonly TriggerSourceRow[]
  /** The last deliveries, the newest first. */
  triggers: readonly TriggerRow[]
  /** The server's time, in ms since 1970. */
  now: number
}>

/** A settled run that a consumer could not be told of. `lane` and `key` name it. */
export type LetterRow = Frozen<{
  /** The session that keeps the consumer's deliveries. */
  lane: string
  /** Names the delivery in that lane, in every try. */
  key: string
  /** The name of the consumer. */
  consumer: string
  /** The session of the settled run. */
  session: string
  /** How often the consumer was told in vain. */
  tries: number
  /** Why the last try failed. */
  reason: string
  /** When it was given up, in ms since 1970. */
  at: number
}>
/** The dead letters that wait for a decision. */
export type LettersAnswer = Frozen<{
  /** The newest 50, the newest first. */
  letters: readonly LetterRow[]
  /** How many there are. */
  count: number
  /** The server's time, in ms since 1970. */
  now: number
}>
/** A decision about a dead letter. */
export type LetterBody = Frozen<{
  /** The lane of the letter, as it is listed. */
  lane: string
  /** The key of the letter, as it is listed. */
  key: string
  /** Tells the consumer again, or never. */
  decision: 'retry' | 'drop'
}>
/** The decision that counts, and who made it. */
export type LetterDecidedAnswer = Frozen<{
  /** The first decision, which stands. */
  decision: 'retry' | 'drop'
  /** Who made it. */
  by: string
}>

/** The row of a token in lists. The token itself is shown once, when it is made. */
export type TokenRow = Principal &
  Frozen<{
    /** When the token was made, in ms since 1970. */
    made: number
    /** When the token ends, in ms since 1970. Absent for never. */
    expires?: number
  }>
/** Who has a token. The tokens themselves are never shown again. */
export type TokensAnswer = Frozen<{
  /** All tokens of the server. */
  tokens: readonly TokenRow[]
}>
/** A new token. This answer is the only one that has it. */
export type TokenMade = TokenRow &
  Frozen<{
    /** The token itself, which no other answer shows. */
    token: string
  }>

// The types of request bodies. The schemas in wire-schemas.ts check them.

/** A text, parts, or an object that is sent as JSON. */
export type WireInput = string | readonly InputPart[] | { readonly [name: string]: Json }
/** A part of a message as it is sent to a server. Bytes are in base64. */
export type InputPart =
  | Extract<Part, { type: 'text' | 'url' | 'file_id' | 'blob' }>
  | Frozen<{ type: 'image' | 'file'; media: string; data: string; name?: string }>

/** What a session is opened with. */
export type OpenBody = Frozen<{
  /** The agent or workflow of the session. Absent: the server's own. */
  agent?: string
  /** The first message. Absent: the session waits for one. */
  input?: WireInput
  /** The folder of the session: one that the server allows. Absent: the server's own choice. */
  folder?: string
  /** Labels that the session is listed by. The label `owner` is that of the token. */
  labels?: Labels
  /** Data for tools, hooks and traces. The model does not see it. */
  metadata?: Metadata
  /** The model of the run of the first message: one of those that the server names. Refused without an `input`. */
  model?: string
  /** An id of your own: the same body again gives the same session. Not together with an Idempotency-Key. */
  id?: string
  /** A conversation from elsewhere. The model reads it before the first message; its calls do not run. */
  messages?: readonly WireBroughtMessage[]
}>
/** One message of a conversation from elsewhere, in the format of chat completions, the messages API or the AI SDK. */
export type WireBroughtMessage = Frozen<{
  /** Who speaks. */
  role: 'user' | 'assistant' | 'tool'
  /** A text or a list of parts. */
  content?: Json
  /** Calls of an assistant message, where the content does not hold them. */
  tool_calls?: Json
  /** For the role `tool`: the id of the call that it answers. */
  tool_call_id?: string
}>
/** Overrides the model's settings for one run. */
export type WireSettings = Frozen<{
  /** How many tokens one answer may have, thoughts included. */
  outputTokensMax?: number
  /** How freely the model chooses its words, where it lets that be set. */
  temperature?: number
  /** Only the likeliest words that together have this probability are chosen from. */
  topP?: number
  /** Asks the host for the same words for the same request, as far as it can. */
  seed?: number
  /** Texts that end the answer. They are not part of it. */
  stop?: readonly string[]
  /** Whether the model may, must or must not call a tool, or must call this one, in its first reply to a message. */
  toolChoice?: 'auto' | 'required' | 'none' | Frozen<{ tool: string }>
  /** False: at most one call in a reply. */
  parallelToolCalls?: boolean
  /** How much the model thinks. */
  reasoning?: 'off' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max' | Frozen<{ budgetTokens: number }>
}>
/** A message for a session, and what holds for the run that reads it. */
export type MessageBody = Frozen<{
  /** The message: a text, parts, or an object that is sent as JSON. */
  input: WireInput
  /** While a run is open: read at its next request (`next`, the default), in a later run (`after`), at once (`now`), or refused (`idle`). */
  when?: 'next' | 'after' | 'now' | 'idle'
  /** Pins the message as a rule: every later request has it word for word, also after a compaction. Default false. */
  pin?: boolean
  /** The model of the run that the message opens: one of those that the server names. */
  model?: string
  /** Replaces the agent's own instructions in that run. Those of its tools stay. */
  instructions?: string
  /** Limits of that run, over those of its agent. Null is no limit. */
  limits?: Readonly<Record<string, number | null>>
  /** Allows that run only these of the agent's tools. */
  tools?: readonly string[]
  /** Settings of the model in that run, over its own. */
  settings?: WireSettings
  /** Data for tools, hooks and traces of that run. The model does not see it. */
  metadata?: Metadata
  /** How long callers wait for that run while its provider is unavailable, in ms. Default: the limit `patienceMs`. */
  patienceMs?: number
  /** The message is read at this time and not before, in ms since 1970. Absent: now. */
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
export type CommandsBody = Frozen<{
  /** In the order in which they are taken: from 1 to 100. */
  commands: readonly WireCommand[]
}>
/** The token's principal is the one who answers. */
export type AnswerBody = Frozen<{
  /** The call that is answered, as it is listed. */
  callId: CallKey
  /** What the model reads as the result. */
  content: string
  /** False: the model reads it as a failure. Default true. */
  ok?: boolean
  /** The session that asked, as it is listed. Default: the one in the path. */
  sessionId?: string
}>
/** A decision about one call. The person and the role come from the token. */
export type DecisionBody = Frozen<{
  /** The call that is decided, as it is listed. */
  callId: CallKey
  /** True lets the call run, false denies it. */
  allow: boolean
  /** The digest of the call as it was shown. A decision about a call that has changed since is refused. */
  digest: string
  /** Edited arguments: the call runs with these if its tool and the policy accept them. */
  args?: Json
  /** Fields of the question, handed back optionally. They must match the current question. */
  tool?: string
  /** The class of the question, if it is handed back. */
  class?: string
  /** How many people must approve, if it is handed back. */
  n?: number
  /** The roles of which one must decide, if they are handed back. */
  roles?: readonly string[]
  /** The reason. For a denial the model reads it. */
  why?: string
  /** One of the principal's own roles. Default: the first role that the call accepts. */
  role?: string
  /** The session that asked, as it is listed. Default: the one in the path. */
  sessionId?: string
}>
/** A decision about more money for a session. */
export type BudgetBody = Frozen<{
  /** Tells it from a decision about a call. */
  callId: 'budget'
  /** True lets the session spend more, false ends the wait. */
  allow: boolean
  /** How much more it may spend, in dollars. Required with `allow: true`. */
  usd?: number
  /** The reason, for the log. */
  why?: string
  /** The session that asked, as it is listed. Default: the one in the path. */
  sessionId?: string
}>
/** When a session looks again. Give `at` or `inMs`. */
export type ScheduleBody = Frozen<{
  /** The time, in ms since 1970. A past one is due at once. */
  at?: number
  /** How many ms from now. */
  inMs?: number
  /** What the model reads then. Default: "a look at this session". */
  reason?: string
  /** While a wake with this key waits, it stands. Default: a new key. */
  key?: string
}>
/** Which wake is dropped. */
export type UnscheduleBody = Frozen<{
  /** The key of the wake. */
  key: string
}>
/** Another title for a session. */
export type RenameBody = Frozen<{
  /** One line of at most 80 columns; what is longer is cut. */
  title: string
}>
/** What a session is to reach, and the rubric it is graded by. */
export type PursueBody = Frozen<{
  /** What must be reached. The agent reads it, and the grader. */
  description: string
  /** The criteria that the result must meet. */
  rubric: string
  /** After so many rounds it ends, whatever the grade. From 1 to 20; default 3. */
  roundsMax?: number
  /** What all rounds and graders may cost, in dollars. Default: no limit of its own. */
  usd?: number
}>
/** Whether a session is stopped or paused. */
export type InterruptBody = Frozen<{
  /** `stop` ends the run, `pause` holds it until it is resumed. Default `stop`. */
  mode?: 'stop' | 'pause'
}>
/** From which event a copy of a session goes its own way, and what is different in it. */
export type ForkBody = Frozen<{
  /** The last event that the fork shares. Default: the end. */
  at?: number
  /** Another agent continues. Default: that of the session. */
  agent?: string
  /** The model of all runs of the fork: one of those that the server names. Default: that of the agent. */
  model?: string
  /** The folder of the fork: one that the server allows. Default: that of the session. */
  folder?: string
  /** Labels over those of the session. */
  labels?: Labels
  /** Metadata over that of the session. */
  metadata?: Metadata
  /** An id of your own for the fork. Not together with an Idempotency-Key. */
  id?: string
}>
/** From which event on a session is lived again, and what is changed. */
export type WhatIfBody = Frozen<{
  /** The last event that stays as it was. */
  at: number
  /** The model that answers for every agent. Absent: the recording does, and no model is asked. */
  model?: string
  /** The instructions of the agent, in place of its own. */
  instructions?: string
  /** Said in place of what people said after that event. */
  message?: Json | readonly Json[]
  /** How calls of these tools are answered, by name. Default for each: `recorded`. */
  tools?: Readonly<Record<string, 'recorded' | 'live' | 'recorded_or_live'>>
  /** How far it goes: to the end of the run at that event or of the next one (`one`, the default), or of the log. */
  runs?: 'one' | 'all'
  /** In dollars: requests that could exceed it are not made. */
  usd?: number
}>
/** The run whose changes to files are taken back. */
export type UndoBody = Frozen<{
  /** The seq of the run's `run.started`. Default: the last run. */
  run?: number
}>
/** Either a text, or the seq of a message that was sent. */
export type PinBody = Frozen<{
  /** A rule to pin. The model reads it in every later request. */
  text?: string
  /** The seq of a message to pin. */
  seq?: number
}>
/** `add` has the job; the others name the session of one. */
export type CronBody = Frozen<{
  /** What is done: a job is added or changed, switched on or off, run now, or removed. */
  action: 'add' | 'on' | 'off' | 'run' | 'remove'
  /** The session of the job. Required unless one is added. */
  session?: string
  /** The folder of a new job's runs: one that the server allows. */
  folder?: string
  /** The job to add: name, line or `at`, prompt or input, and what differs from the defaults. */
  job?: { readonly [name: string]: Json }
}>
/** Who gets a token, and what may be done with it. */
export type TokenBody = Frozen<{
  /** The name of the token, which is recorded as the author of what it does. */
  name: string
  /** What the token may do. */
  role: Role
  /** The roles in which it may decide calls that ask for one. Default: none. */
  roles?: readonly string[]
  /** `own`: it reaches only sessions that it opens. Default `all`. */
  reach?: 'own' | 'all'
  /** How long the token is valid, in ms. Default: without end. */
  expiresMs?: number
  /** It takes over the sessions of a dropped token of the same name. */
  inherit?: boolean
}>
/** What a stream of many sessions sends. */
export type StreamBody = Frozen<{
  /** The sessions to follow, each with the last seq that the reader has of it. */
  sessions?: Readonly<Record<string, number>>
  /** Also sends each card that changes. Default false. */
  cards?: boolean
  /** Also sends the text of replies in progress. Default false. */
  deltas?: boolean
}>

// The frames of a stream, by their `event:`. On a stream of one session `event` has its seq as `id:`; no other frame
// has an id.

/** What a stream sends, by the name of each frame. */
export type Frames = {
  /** The first frame. `head`: of the session, or of each session. */
  readonly hello: Frozen<{ store: string; head: number | Readonly<Record<string, number>>; now: number }>
  /** On a stream of many sessions, `session` names the event's session. */
  readonly event: Event & { readonly session?: string }
  /** A piece of a reply in progress. */
  readonly delta: WireDelta
  /** The card of a session that changed. */
  readonly card: WireCard
  /** The session was removed. No more frames of it follow. */
  readonly gone: Frozen<{ session: string }>
  /** The server ends the stream. Connect again after `retryMs`. */
  readonly bye: Frozen<{ reason: 'closing' | 'slow' | 'token' | 'trouble'; retryMs: number; message?: string }>
}
/** A piece of a reply in progress. It is not in the log. */
export type WireDelta = Frozen<{
  /** The session, on a stream of many. */
  session?: string
  /** The seq of `model.started`; for the output of a call that of its reply. */
  seq: number
  /** Counts the parts and calls of the reply from 0. For the output of a call it is the index of the call. */
  part: number
  /** How many characters of that part came before this text. */
  offset: number
  /** `text`, `reasoning`, `arguments`, or `output` of a call that runs. */
  kind: string
  /** The next characters of that part. */
  text: string
}>

export type { Card, Event, Json, Message, Run, Session, Status, Usage }
