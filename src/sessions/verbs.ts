// The verbs of a session and of the sessions of a store, as interfaces. `Harness` and session.ts implement them in this
// process; a client of a server can have the same. Everything that a verb takes or gives can be sent over a wire,
// except streams (which can be followed over one), a signal, and the schema of an answer, which is sent as JSON Schema.
import type { BlobRef, Json } from '../kernel/content.ts'
import type { Blob, Removal } from '../ports/store.ts'
import type { Message } from '../kernel/transcript.ts'
import type { WorkOptions, WorkResult } from '../runtime/loop/due-loop.ts'
import type { RestReport } from '../runtime/loop/worker.ts'
import type { ToolList } from '../tools/core/tool-types.ts'
import type { ApprovalDecision } from './approval-decision.ts'
import type { Command, LaterOptions, SendOptions } from './command.ts'
import type { BroughtMessage } from './bring/shapes.ts'
import type { CardChange, Followed, FollowOptions, WatchOptions } from './follow/open.ts'
import type { Input } from './input.ts'
import type { AgentRow } from './look/describe.ts'
import type { FoldedState } from './look/folded.ts'
import type { Health } from './look/health.ts'
import type { PendingCall } from './look/pending.ts'
import type { SessionState } from './look/session-state.ts'
import type { OriginOptions } from './origin.ts'
import type { EventPage, EventsFilter } from './event-page.ts'
import type { ListedPage, ListOptions } from './list-page.ts'
import type { Completed, Result } from '../runtime/state/run-result.ts'
import type { Strictness } from './run-failed.ts'
import type { SpawnResult, SpawnOptions } from './children.ts'
import type { PursueOptions } from './pursuit.ts'
import type { StreamEvent } from './follow/stream.ts'
import type { UndoneCall } from './undo.ts'
import type { TriggerEnvelope, TriggerReceipt } from './trigger-envelope.ts'
import type {
  Answer,
  ForkOptions,
  CloseOptions,
  CommandOptions,
  InterruptOptions,
  PendingFilter,
  RemoveOptions,
  RenamedSession,
  RenameOptions,
  ResultOptions,
  RunOptions,
  ScheduledWake,
  ScheduleOptions,
  SessionChoice,
  StreamOptions,
  StatusParts,
  StatusOptions,
  PinOptions,
  PinReceipt,
  UnscheduleOptions,
} from './verb-options.ts'

export type { Result } from '../runtime/state/run-result.ts'

/** The sessions of one store. */
export interface Sessions {
  /**
   * A new session, on disk when this resolves. With an `id`, the same options again give the same session; other
   * options are refused with `id_reused`.
   */
  open(options?: OpenOptions): Promise<Session>
  /**
   * The session with this id. Nothing is read or written until a verb is used. An id that is not valid for new sessions
   * is refused, unless it is `stored`: given by `list` or by another session.
   */
  session(id: string, options?: SessionChoice): Session
  /** Runs one input in a new session to its end. */
  run(input: Input, options?: RunOptions & BeginOptions): Promise<Result>
  /** The same, as it happens. */
  stream(input: Input, options?: StreamOptions & BeginOptions): RunStream
  /**
   * Takes in an event from outside, for a harness with `triggers`. When this resolves, its session and its message are on
   * disk. A second delivery with the same `dedupeKey` is a duplicate, and nothing runs twice.
   */
  trigger(envelope: TriggerEnvelope): Promise<TriggerReceipt>
  /**
   * A page of sessions that pass all filters: continue with `cursor: next` until `next` is null. Without an `order` the
   * session with the last event comes first, and one that grows meanwhile is on the next first page. Only `order: 'id'`
   * and `root` also give children. `active: true`: the sessions whose run continues without a person, and those that
   * wait for such a child, in one page.
   */
  list(options?: ListOptions): Promise<ListedPage>
  /**
   * Cards as they change from this call on, in any process on the store: of all sessions, or of those that `list` would
   * give. A slow reader gets the newest card of each. It ends with its signal and with the harness.
   */
  watch(options?: WatchOptions): AsyncIterableIterator<CardChange>
  /**
   * The calls that wait for people in all sessions, or in those with these labels, ordered by session id. With `limit`
   * it is a page: the next one comes `after` the `sessionId` of the last. It reads the store and drives nothing.
   */
  pending(filter?: PendingFilter): Promise<readonly PendingCall[]>
  /**
   * Deletes a session for good, with its children, its log, its files and the money held for it. Refused while it is
   * driven (`session_busy`), and while a fork reads its log (`conflict`). The store records `by`.
   */
  remove(session: string, options?: RemoveOptions): Promise<readonly Removed[]>
  /**
   * The agents for which sessions can be opened: model, tools, limits, children, the drawing of a graph, the models that
   * a run may choose, and the whole setup as plain JSON.
   */
  agents(): Promise<readonly AgentRow[]>
  /**
   * Makes a write, and reports the health of the store and today's accounts. It resolves even if nothing can be written:
   * then `ok` is false.
   */
  health(): Promise<Health>
  /**
   * Drives a session until it rests. With nothing to do it leaves no trace. A session that waits for a provider is tried
   * at once.
   */
  work(options: { readonly session: string }): Promise<RestReport>
  /**
   * Drives all due sessions of the store that belong to an agent of this harness (or to one of `agents`), until nothing
   * was due for `idleMs`, `signal` is aborted or the harness is closed. Any number of processes may do so on one store.
   * The process stays alive meanwhile.
   */
  work(options?: WorkOptions): Promise<WorkResult>
  /** Closes the harness. The sessions stay as they are. */
  close(): Promise<void>
}

/** One session. Each verb either appends to its inbox or reads; a worker does the rest. */
export interface Session {
  /** The id of the session. */
  readonly id: string
  /**
   * Admits a message durably. It resolves when the message is on disk; the work continues in the background. `at`: no
   * run reads it before that time.
   */
  send(input: Input, options?: SendOptions & LaterOptions): Promise<SentReceipt>
  /**
   * Sends several commands at once, in order, all or none: an invalid one refuses the batch. The receipt is that of the
   * first.
   */
  send(commands: readonly Command[], options?: CommandOptions): Promise<SentReceipt>
  /**
   * Sends the input and drives until its run settles or waits for a person. Without an input it drives the last run
   * until it rests.
   */
  run(input?: Input, options?: SendOptions & RunOptions): Promise<Result>
  /** The same, as it happens. */
  stream(input?: Input, options?: StreamOptions & SendOptions): RunStream
  /**
   * Every event after `after`, once and in order, then new ones as they come; with `deltas` also live text. It reads
   * and drives nothing. It ends with its signal and with the harness, and with the Fault `session_missing` if the
   * session is removed.
   */
  follow(options?: FollowOptions): AsyncIterableIterator<Followed>
  /** The whole conversation: the messages that the model was shown, and those it will be shown next. */
  messages(): Promise<readonly Message[]>
  /**
   * A page of its events, or of those of one of its runs. Continue with `after: next` until `next` is null. A session or
   * run that does not exist has an empty page.
   */
  events(filter?: EventsFilter): Promise<EventPage>
  /** The state after the event `at`: the kernel's fold as plain JSON, to draw or to fold further. */
  status(options: { readonly at: number }): Promise<FoldedState>
  /**
   * What the session does, what it waits for, its usage, its cost, its last text and the calls that wait for people in it
   * and below it. `include` adds parts that cost a read of their own. It reads the store and drives nothing.
   */
  status<const Part extends keyof StatusParts = never>(options?: StatusOptions<Part>): Promise<SessionStatus<Part>>
  /** The result of its last run. Null while it works, and before its first run. It drives nothing: `run()` does. */
  result(options?: ResultOptions): Promise<Result | null>
  /** Allows or denies one pending call. The first decision stands. */
  decide(decision: ApprovalDecision): Promise<SentReceipt>
  /** Answers one call that is answered from outside. The first answer stands. */
  answer(answer: Answer): Promise<SentReceipt>
  /** Stops or pauses the session. Unread messages are not answered after a stop. */
  interrupt(mode?: 'stop' | 'pause', options?: InterruptOptions): Promise<SentReceipt>
  /**
   * Asks for a look at that time: a run begins, and its model reads the reason. It is on disk when this resolves, also
   * while the session works. A wake that waits under the same key stands. An interrupt drops all wakes.
   */
  schedule(options: ScheduleOptions): Promise<ScheduledWake>
  /** Drops the wake that waits under this key, also one that a model asked for. False if none waits. */
  unschedule(key: string, options?: UnscheduleOptions): Promise<boolean>
  /**
   * Gives the session another title in lists: one line of at most 80 columns; what is longer is cut. It is no work: no
   * run begins, no model reads it, and a session that works goes on. The latest title counts. A closed session keeps its
   * title.
   */
  rename(title: string, options?: RenameOptions): Promise<RenamedSession>
  /**
   * Works towards an outcome in rounds: after each one a grader of its own judges the answer and the files by the rubric,
   * and what is still open begins the next round. The first round is on disk when this resolves, and the rest follows
   * in any process that drives the session. Refused with `session_busy` while a run is open or another outcome is
   * pursued. `status({ include: ['pursuit'] })` has how it stands; an interrupt ends it.
   */
  pursue(options: PursueOptions): Promise<PursuitReceipt>
  /**
   * Takes back the changes of a run's calls, newest first: of the last run, or of the one whose `run.started` has this
   * seq. Files that changed since are left alone. The model is told at its next request.
   */
  undo(run?: number): Promise<readonly UndoneCall[]>
  /**
   * A new session that continues from here, or from an earlier event of this one. Nothing changes in this session: the
   * new one reads its log up to that event. Only a reply whose calls are open there is copied, and each of those calls
   * is asked about again. Another agent or another model may continue.
   */
  fork(options?: ForkOptions): Promise<Session>
  /**
   * The bytes of a picture, a file or a long result stored beside the log, by its hash or its reference. Null if the
   * store has none, or if nothing in this session, its tree or the log it was forked from refers to it.
   */
  blob(ref: string | Pick<BlobRef, 'hash'>): Promise<Blob | null>
  /**
   * Pins a rule, which every later request has word for word, also after a compaction: a text, or a message of this
   * session by its seq. While a run works, send a message with `pin` instead. `off`: releases a pin by its number, or by
   * its `name` in the list (`^7` is message 7 of the session from which this one was forked), so that the next
   * compaction may cut the message again.
   */
  pin(what: string | number, options?: PinOptions): Promise<PinReceipt>
  /** Summarises all but the newest turns now, with the session's own model. Null: there was too little to summarise. */
  compact(options?: CompactOptions): Promise<CompactedTo | null>
  /**
   * Starts a child on one task, and returns when it is on disk. The child works on its own and reports to this session
   * by a message. A child with the same agent and the same `taskKey` is used again.
   */
  spawn(agent: string, prompt: string, options?: SpawnOptions): Promise<SpawnResult>
  /** Closes the session: it accepts nothing more. An open run is interrupted first. */
  close(options?: CloseOptions): Promise<void>
}
/** How a session stands, with the further parts that were asked for. */
export type SessionStatus<Part extends keyof StatusParts = never> = SessionState & Pick<StatusParts, Part>
/** `focus`: the main subject for the summary. */
export type CompactOptions = { readonly focus?: string }
/**
 * `before` and `after` are about how many tokens the conversation had and has now; `failed` says why nothing was done.
 * `seq` is the event that records it. `coded`: no model's summary was usable, for this reason, and code wrote all of it
 * from the log.
 */
export type CompactedTo =
  | {
      readonly seq: number
      readonly before: number
      readonly after: number
      readonly summary: string
      readonly coded?: string
    }
  | { readonly seq: number; readonly failed: string }

/** `worktrees` are those of the session that stay: they have changes, or another session works there. */
export type Removed = Removal & {
  /** Worktrees of the session that stay: they have changes, or another session works there. Absent for none. */
  readonly worktrees?: readonly { readonly path: string; readonly branch: string }[]
}

/** The acknowledgement of a message: it is in the log, and will be read even if this process ends now. */
export type SentReceipt = {
  /**
   * The message is recorded, but no worker of this program drives the session: a sentence for people about who does.
   */
  readonly elsewhere?: string
  /** The id of the event: your own, or a new one. Sending under it again has no second effect. */
  readonly eventId: string
  /** The position of the event in the session's log. */
  readonly seq: number
  /** The event was in the log already, so nothing was written. */
  readonly duplicate: boolean
  /** The session waits for a person: the message is kept and read after the decision. */
  readonly queued: boolean
}

/** The message of the first round, which is on disk. */
export type PursuitReceipt = SentReceipt & {
  /** Names the pursuit. Round 2 of it is graded in the session `outcome.FINGERPRINT.2`. */
  readonly fingerprint: string
}

/**
 * A run as it goes on: events and live text as they come, and `result` at its end. Leaving it early interrupts the
 * run.
 */
export type RunStream<Output = Json, Tools extends ToolList[number] = ToolList[number]> = AsyncIterable<
  StreamEvent<Tools>
> & {
  /**
   * The text of the answer as it comes, without reasoning, calls and children. A blank line separates the texts of two
   * replies, and the text of a reply that is asked for again because it broke off. A stream is read either by its
   * events or by its text.
   */
  readonly text: AsyncIterable<string>
  /** The result, when the run has settled or waits for a person. */
  readonly result: Promise<Result<Output, Tools>>
  /**
   * The result of a run that completed. Rejects with `RunFailed` for any other end, and for the ends named in
   * `strictness`.
   */
  orThrow(strictness?: Strictness): Promise<Completed<Output, Tools>>
}

/** Options of a run in a new session of its own, with its labels. */
export type BeginOptions<Agent extends string = string> = AgentChoice<Agent> & Pick<OriginOptions, 'labels'>

/**
 * `reuse`: an existing session with this id is taken as it is, with the agent, labels and metadata it was created with.
 */
export type OpenOptions<Agent extends string = string> = AgentChoice<Agent> &
  OriginOptions & {
    /** An id of your own. The same call again gives the same session. */
    readonly id?: string
    /** Takes the session that has this id, whatever options it was made with. */
    readonly reuse?: boolean
    /**
     * A conversation from elsewhere, in the form of your library: the model reads it before the first message. It is
     * history, and nothing of it runs. Every call in it needs its result.
     */
    readonly messages?: readonly BroughtMessage[]
  }

/** The session's agent. Default: the harness's own. */
export type AgentChoice<Agent extends string = string> = {
  /** The agent or workflow of the harness that works. Default: the harness's own agent. */
  readonly agent?: Agent
}
