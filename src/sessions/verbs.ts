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
import type { Input } from './input.ts'
import type { PendingCall, SessionState } from './look.ts'
import type { OriginOptions } from './origin.ts'
import type { ActiveFilter, EventPage, EventsFilter, RunCard } from './reading.ts'
import type { ListedCard, ListOptions } from './meter.ts'
import type { Completed, Result } from './result.ts'
import type { Strictness } from './run-failed.ts'
import type { ChildRow, Spawned, SpawnOptions } from './children.ts'
import type { StreamEvent } from './stream.ts'
import type { UndoneCall } from './undo.ts'
import type { Answer, ForkOptions, PendingFilter, RemoveOptions, RunOptions, StreamOptions } from './verb-options.ts'

/** The sessions of one store. */
export interface Sessions {
  /** A new session, on disk when this resolves. */
  open(options?: OpenOptions): Promise<Session>
  /** The session with this id. Nothing is read or written until a verb is used. */
  session(id: string): Session
  /** One input in a new session, to its end. */
  run(input: Input, options?: RunOptions & BeginOptions): Promise<Result>
  /** The same, as it happens. */
  stream(input: Input, options?: StreamOptions & BeginOptions): RunStream
  /**
   * Sessions of the store, by their cards, with what each cost with its children: all of them, unless `limit` says how many. The
   * next page comes `after` the last id. With `context` each also says how full its context is, which reads the end of its log.
   */
  /**
   * A page of a session's events, or of one of its runs. It is read on with `after: next` until `next` is null. A session or run that
   * there is not has an empty page.
   */
  events(filter: EventsFilter): Promise<EventPage>
  /** How one session stands, by its card: which run is its last, and how far it is. Null: there is no such session. */
  status(session: string): Promise<RunCard | null>
  /** Sessions with a run that goes on without a person, and those that wait for such a child: all, of one tree, or of one parent. */
  active(filter?: ActiveFilter): Promise<readonly RunCard[]>
  list(options?: ListOptions): Promise<readonly ListedCard[]>
  /** What waits for people in all sessions, or in those with these labels. It reads the store and drives nothing. */
  pending(filter?: PendingFilter): Promise<readonly PendingCall[]>
  /**
   * Forgets a session for good, with its children: its log, its files and what was held for it. Refused while it is driven
   * (`session_busy`), and while a fork reads its log (`conflict`). The store notes `by` whom.
   */
  remove(session: string, options?: RemoveOptions): Promise<readonly Removal[]>
  /** Looks at a session and drives it until it rests: the only way work is begun. With nothing to do it leaves no trace. */
  wake(session: string): Promise<Looked>
  /** Sessions themselves stay as they are. */
  close(): Promise<void>
}

/** One session. Each verb either appends to its inbox or reads; a worker does the rest. */
export interface Session {
  readonly id: string
  /** Admits a message durably. It resolves when the message is on disk; the work goes on by itself. */
  send(input: Input, options?: SendOptions): Promise<SentReceipt>
  /** Several words at once, in order. One that is not valid leaves none of them said. */
  steer(commands: readonly Command[]): Promise<void>
  /** Sends and drives until that run settles or waits for a person. With nothing to send: the last run, driven to rest. */
  run(input?: Input, options?: SendOptions & RunOptions): Promise<Result>
  /** The same, as it happens. */
  stream(input?: Input, options?: StreamOptions & SendOptions): RunStream
  /** The whole conversation: what the model was shown, and what it will be shown next. */
  messages(): Promise<readonly Message[]>
  /** How it stands now: what it does, what it waits for, what it used and said. It reads the store and drives nothing. */
  state(): Promise<SessionState>
  /** Allow or deny one pending call. The first decision stands. */
  decide(decision: ApprovalDecision): Promise<SentReceipt>
  /** Answer one call that is owned outside. The first answer stands. */
  answer(answer: Answer): Promise<SentReceipt>
  /** Stops the session, or pauses it. What waited to be read is not answered after a stop. */
  interrupt(mode?: 'stop' | 'pause'): Promise<SentReceipt>
  /**
   * Takes back what the calls of a run changed, newest first: the last run, or the one whose `run.started` has this seq.
   * What was changed since is left alone. The model is told at its next request.
   */
  undo(run?: number): Promise<readonly UndoneCall[]>
  /**
   * A new session that goes on from here, or from an earlier event of this one. Nothing here changes: the new session reads this
   * log up to that event. Only a reply whose calls are open there is taken along: each of them is asked about again.
   */
  fork(options?: ForkOptions): Promise<Session>
  /** The bytes of a picture, a file or a long result that lies beside the log, by its reference; null if the store has none. */
  blob(ref: Pick<BlobRef, 'hash'>): Promise<Blob | null>
  /**
   * A rule that every later request has, word for word, also after the context was compacted: a text, or a message of this session by
   * its seq. Not while a run works: then send it with `pin`.
   */
  pin(what: string | number): Promise<Pinned>
  /** It is an ordinary message again, which the next compaction may cut. The session's own number counts before an inherited one. */
  unpin(seq: number): Promise<void>
  /** What is pinned, in the order in which the model reads it. It reads the store and drives nothing. */
  pins(): Promise<readonly Pin[]>
  /** Summarises all but the last messages now, with the session's own model. Null: there was too little to summarise. */
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
  close(): Promise<void>
}

/** The message that is pinned now. */
export type Pinned = { readonly seq: number }
/** `inherited`: from the session that this one was forked from, with its number there. */
export type Pin = Pinned & { readonly text: string; readonly inherited?: true }
/** `focus`: what the summary is to say most about. */
export type CompactOptions = { readonly focus?: string }
/** About how many tokens the conversation had, and has now; or why there is no summary. `seq` is the event that says so. */
export type CompactedTo =
  | { readonly seq: number; readonly before: number; readonly after: number; readonly summary: string }
  | { readonly seq: number; readonly failed: string }

export type SentReceipt = {
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
  OriginOptions & { readonly id?: string; readonly reuse?: boolean }

/** Which agent's session it is. Default: the harness's own. */
export type AgentChoice<Agent extends string = string> = { readonly agent?: Agent }
