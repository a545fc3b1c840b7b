// What one can do with a session, and with sessions, wherever they are: the verbs as interfaces. In this process `Harness` and
// session.ts have them; a client of a server can have the same. No verb takes or gives what could not be sent over a wire, but for
// streams, which can be followed over one, a signal, and the schema of an answer, which is sent as JSON Schema.
import type { BlobRef, Json } from '../kernel/content.ts'
import type { Blob, Page, Removal } from '../ports/store.ts'
import type { Message } from '../kernel/transcript.ts'
import type { Looked } from '../engine/worker.ts'
import type { ContextReport } from '../context/report.ts'
import type { ToolList } from '../tools/core/typed.ts'
import type { ApprovalDecision } from './approval-decision.ts'
import type { Command, SendOptions } from './command.ts'
import type { BroughtMessage } from './bring/shapes.ts'
import type { CardChange, Followed, FollowOptions, WatchOptions } from './follow/open.ts'
import type { Input } from './input.ts'
import type { MoneyAccount } from './look/accounts.ts'
import type { AgentRow } from './look/describe.ts'
import type { FoldedState } from './look/folded.ts'
import type { Health } from './look/health.ts'
import type { PendingCall } from './look/pending.ts'
import type { SessionState } from './look/state.ts'
import type { OriginOptions } from './origin.ts'
import type { ActiveFilter, EventPage, EventsFilter, RunCard } from './reading.ts'
import type { ListedCard, ListOptions } from './meter.ts'
import type { ListedPage, PageOptions } from './paging/page.ts'
import type { Completed, Result } from './result.ts'
import type { Strictness } from './run-failed.ts'
import type { ChildRow, Spawned, SpawnOptions } from './children.ts'
import type { StreamEvent } from './follow/stream.ts'
import type { UndoneCall } from './undo.ts'
import type {
  Answer,
  ForkOptions,
  CloseOptions,
  InterruptOptions,
  PendingFilter,
  RemoveOptions,
  ResultOptions,
  RunOptions,
  SessionChoice,
  SteerOptions,
  StreamOptions,
} from './verb-options.ts'

/** The sessions of one store. */
export interface Sessions {
  /**
   * A new session, on disk when this resolves. With an `id`, the same options again give the same session; others are refused with
   * `id_reused`.
   */
  open(options?: OpenOptions): Promise<Session>
  /**
   * The session with this id. Nothing is read or written until a verb is used. An id that no new session may have is refused, unless it
   * is `stored`: one that `list` or another session gave.
   */
  session(id: string, options?: SessionChoice): Session
  /** One input in a new session, to its end. */
  run(input: Input, options?: RunOptions & BeginOptions): Promise<Result>
  /** The same, as it happens. */
  stream(input: Input, options?: StreamOptions & BeginOptions): RunStream
  /**
   * A page of a session's events, or of one of its runs. It is read on with `after: next` until `next` is null. A session or run that
   * there is not has an empty page.
   */
  events(filter: EventsFilter): Promise<EventPage>
  /** How one session stands, by its card: which run is its last, and how far it is. Null: there is no such session. */
  status(session: string): Promise<RunCard | null>
  /** Sessions with a run that goes on without a person, and those that wait for such a child: all, of one tree, or of one parent. */
  active(filter?: ActiveFilter): Promise<readonly RunCard[]>
  /**
   * Sessions of the store, by their cards, with what each cost with its children: all of them, unless `limit` says how many. The
   * next page comes `after` the last id. With `context` each also says how full its context is, which reads the end of its log.
   */
  list(options?: ListOptions): Promise<readonly ListedCard[]>
  /**
   * Cards as they change from this call on, in any process on the store: of all sessions, or of those that `list` would have. A reader
   * that is slow gets the newest card of each. It ends with its signal and with the harness.
   */
  watch(options?: WatchOptions): AsyncIterableIterator<CardChange>
  /**
   * A page of sessions, newest first, that pass all filters and have the words of `q`. It is read on with `cursor: next` until `next` is
   * null. A session that grows meanwhile moves to the front: the next first page has it.
   */
  page(options?: PageOptions): Promise<ListedPage>
  /**
   * What waits for people in all sessions, or in those with these labels, by the ids of the sessions. With `limit` it is a page: the
   * next one comes `after` the `sessionId` of the last. It reads the store and drives nothing.
   */
  pending(filter?: PendingFilter): Promise<readonly PendingCall[]>
  /**
   * Forgets a session for good, with its children: its log, its files and what was held for it. Refused while it is driven
   * (`session_busy`), and while a fork reads its log (`conflict`). The store notes `by` whom.
   */
  remove(session: string, options?: RemoveOptions): Promise<readonly Removed[]>
  /** The agents that sessions can be opened for: model, tools, limits, children, and the picture of a graph. */
  agents(): Promise<readonly AgentRow[]>
  /** The models and routes of the configuration by name: what a language model, and a caller of a server, may choose from. */
  models(): readonly string[]
  /** The money accounts that pay for a session, or, without one, those of today by agent. One that holds nothing is left out. */
  accounts(session?: string): Promise<readonly MoneyAccount[]>
  /** Makes a write, and says how the store stands. It resolves also where nothing can be written: then `ok` is false. */
  health(): Promise<Health>
  /**
   * Looks at a session and drives it until it rests: the only way work is begun. With nothing to do it leaves no trace. One that waits
   * for a provider is tried at once.
   */
  wake(session: string): Promise<Looked>
  /** Sessions themselves stay as they are. */
  close(): Promise<void>
}

/** One session. Each verb either appends to its inbox or reads; a worker does the rest. */
export interface Session {
  readonly id: string
  /** Admits a message durably. It resolves when the message is on disk; the work goes on by itself. */
  send(input: Input, options?: SendOptions): Promise<SentReceipt>
  /** Several words at once, in order. One that is not valid leaves none of them said. The receipt is that of the first. */
  steer(commands: readonly Command[], options?: SteerOptions): Promise<SentReceipt>
  /** Sends and drives until that run settles or waits for a person. With nothing to send: the last run, driven to rest. */
  run(input?: Input, options?: SendOptions & RunOptions): Promise<Result>
  /** The same, as it happens. */
  stream(input?: Input, options?: StreamOptions & SendOptions): RunStream
  /**
   * Every event after `after`, once and in order, then those that come; with `deltas` also what is being said. It reads and drives
   * nothing. It ends with its signal and with the harness, and with the Fault `session_missing` if the session is removed.
   */
  follow(options?: FollowOptions): AsyncIterableIterator<Followed>
  /** The whole conversation: what the model was shown, and what it will be shown next. */
  messages(): Promise<readonly Message[]>
  /** How it stands now: what it does, what it waits for, what it used and said. It reads the store and drives nothing. */
  state(): Promise<SessionState>
  /** What its log meant after this event: the fold of the kernel, as plain JSON, to draw or to fold on from. */
  stateAt(seq: number): Promise<FoldedState>
  /** Its card, with its last run and how far that is. Null: there is no such session. */
  card(): Promise<RunCard | null>
  /** What waits for people in it and below it: what `decide` and `answer` take. It reads the store and drives nothing. */
  pending(): Promise<readonly PendingCall[]>
  /** The result of its last run. Null while it works, and before its first run. It drives nothing: `run()` does. */
  result(options?: ResultOptions): Promise<Result | null>
  /** Allow or deny one pending call. The first decision stands. */
  decide(decision: ApprovalDecision): Promise<SentReceipt>
  /** Answer one call that is owned outside. The first answer stands. */
  answer(answer: Answer): Promise<SentReceipt>
  /** Stops the session, or pauses it. What waited to be read is not answered after a stop. */
  interrupt(mode?: 'stop' | 'pause', options?: InterruptOptions): Promise<SentReceipt>
  /**
   * Takes back what the calls of a run changed, newest first: the last run, or the one whose `run.started` has this seq.
   * What was changed since is left alone. The model is told at its next request.
   */
  undo(run?: number): Promise<readonly UndoneCall[]>
  /**
   * A new session that goes on from here, or from an earlier event of this one. Nothing here changes: the new session reads this
   * log up to that event. Only a reply whose calls are open there is taken along: each of them is asked about again. It may go on with
   * another agent or another model.
   */
  fork(options?: ForkOptions): Promise<Session>
  /**
   * The bytes of a picture, a file or a long result that lies beside the log, by its hash or its reference. Null if the store has none,
   * or if nothing of this session, its tree or the log it was forked from refers to it.
   */
  blob(ref: string | Pick<BlobRef, 'hash'>): Promise<Blob | null>
  /**
   * A rule that every later request has, word for word, also after the context was compacted: a text, or a message of this session by
   * its seq. Not while a run works: then send it with `pin`.
   */
  pin(what: string | number): Promise<Pinned>
  /**
   * It is an ordinary message again, which the next compaction may cut. By its number, or by its `name` in the list: `^7` is message 7 of
   * the session that this one was forked from. A number without `^` is the session's own pin where there is one.
   */
  unpin(what: number | string): Promise<void>
  /** What is pinned, in the order in which the model reads it. It reads the store and drives nothing. */
  pins(): Promise<readonly Pin[]>
  /** Summarises all but the newest turns now, with the session's own model. Null: there was too little to summarise. */
  compact(options?: CompactOptions): Promise<CompactedTo | null>
  /** What its next request holds, by source and tokens, and what was cut before. Read from the log; nothing is driven. */
  context(): Promise<ContextReport>
  /**
   * Starts a child on one task and returns when it is on disk. It works on its own, and reports to this session by a message. The
   * same agent with the same `taskKey` is found again.
   */
  spawn(agent: string, prompt: string, options?: SpawnOptions): Promise<Spawned>
  /** Its children, by their cards: those that its model started, and those that were spawned here. */
  children(): Promise<readonly ChildRow[]>
  /** The log itself, from `after` on. */
  read(after?: number, limit?: number): Promise<Page>
  /** Nothing more will be accepted. What runs is interrupted first. */
  close(options?: CloseOptions): Promise<void>
}

/** The message that is pinned now. */
export type Pinned = { readonly seq: number }
/**
 * `inherited`: from the session that this one was forked from, with its number there. `name`: what lets it go, also where a pin of this
 * session has the same number: the number after one `^` for each fork since.
 */
export type Pin = Pinned & { readonly text: string; readonly inherited?: true; readonly name?: string }
/** `focus`: what the summary is to say most about. */
export type CompactOptions = { readonly focus?: string }
/**
 * About how many tokens the conversation had, and has now; or why nothing was done. `seq` is the event that says so. `coded`: no summary
 * of a model counted, for this reason, and all of it was written by code from the log.
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

/** `worktrees` are those of it that stay: they have changes, or another session works there. */
export type Removed = Removal & {
  readonly worktrees?: readonly { readonly path: string; readonly branch: string }[]
}

export type SentReceipt = {
  /** It is recorded, and no worker of this program drives the session: who does, in a sentence for people. */
  readonly elsewhere?: string
  readonly eventId: string
  readonly seq: number
  readonly duplicate: boolean
  /** The session waits for a person: the message is kept and comes after the decision. */
  readonly queued: boolean
}

export type RunStream<Output = Json, Tools extends ToolList[number] = ToolList[number]> = AsyncIterable<
  StreamEvent<Tools>
> & {
  /**
   * The text of the answer as it comes, without reasoning, calls and children. A blank line stands between the texts of two replies, and
   * before one that is asked for again because it broke off. A stream is read either by its events or by its text.
   */
  readonly text: AsyncIterable<string>
  readonly result: Promise<Result<Output, Tools>>
  /** The result of a run that completed; rejects with `RunFailed` for any other end, and for what `strictness` names. */
  orThrow(strictness?: Strictness): Promise<Completed<Output, Tools>>
}

/** A run in a new session of its own, which has these labels. */
export type BeginOptions<Agent extends string = string> = AgentChoice<Agent> & Pick<OriginOptions, 'labels'>

/** `reuse`: a session that has this id already is taken as it is, with the agent, labels and metadata it was made with. */
export type OpenOptions<Agent extends string = string> = AgentChoice<Agent> &
  OriginOptions & {
    readonly id?: string
    readonly reuse?: boolean
    /**
     * A conversation that took place elsewhere, as your library writes it: the model reads it before the first message. It is history:
     * nothing of it runs. Every call in it has its result.
     */
    readonly messages?: readonly BroughtMessage[]
  }

/** Which agent's session it is. Default: the harness's own. */
export type AgentChoice<Agent extends string = string> = { readonly agent?: Agent }
