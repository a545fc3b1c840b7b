// What can happen to a session: the closed union of events, and nothing about what they mean (that is fold.ts).
// A session is an append-only log of these. A new type needs a decision record. There are two kinds:
// - inbox events may be appended by anyone, at any time, and must be harmless in any order;
// - owner events are written only by the worker that holds the session's lease, and carry its epoch.
// A field that is absent says nothing: bytes are stored for ever. Older logs lack some of the optional fields.
import type {
  Allow,
  BlobRef,
  CallKey,
  CallStatus,
  EffectClass,
  Failure,
  FileState,
  Gate,
  Hash,
  Json,
  Labels,
  Limits,
  Metadata,
  ModelFailureClass,
  Moment,
  Name,
  Narrowing,
  NoteKind,
  Outcome,
  Part,
  PrefixHashes,
  Proposal,
  RunChoice,
  Usage,
  Verdict,
  Whole,
  WorktreeReport,
} from './content.ts'

/** An event as it stands in a log. */
export type Event = InboxEvent | OwnerEvent
/** An event from outside, as it stands in a log. */
export type InboxEvent = Envelope & InboxBody
/** An event of the worker that held the session, as it stands in a log. */
export type OwnerEvent = Envelope & OwnerBody
/** The event of a type, as it stands in a log. Its body alone has a name of its own below. */
export type EventOf<T extends Event['type']> = Extract<Event, { type: T }>
/** An event as its writer makes it. */
export type EventBody = InboxBody | OwnerBody
/** What anyone may append, at any time. */
export type InboxBody =
  | UserMessage
  | UserToolConfirmation
  | UserCustomToolResult
  | UserInterrupt
  | UserWithdraw
  | UserSchedule
  | UserUnschedule
  | UserRename
/** What only the worker that holds the session may append. */
export type OwnerBody =
  | SessionCreated
  | RunStarted
  | ModelStarted
  | AgentMessage
  | ModelFailed
  | AgentToolUse
  | AgentCustomToolUse
  | AgentToolResult
  | ContextCompacted
  | NoteAdded
  | WakeScheduled
  | RunDeferred
  | RunEnding
  | RunSettled
  | SessionClosed
  | SessionImported
  | RunReviewed
  | CallReviewed

/** The fields that the store adds to the body of an event when it is appended. */
export type Envelope = {
  readonly seq: Whole // its place in the log: 1 is the first event
  readonly at: Moment // when it was appended; it never goes back
  readonly wall?: Moment // what the writer's clock said, if that was before `at` of the event before
  readonly epoch: Whole // the number of the writer's lease, or 0 for the inbox
}

// ── Inbox: what reaches a session from outside ──────────────────────────────

/** A message to the session, from a person, a program or another session. */
export type UserMessage = {
  readonly type: 'user.message'
  readonly id: Name // the sender's own: the same id twice is the same message
  readonly parts: readonly Part[] // what it says
  readonly when: 'next' | 'after' | 'now' // with the next request, after the open run, or at once
  readonly notBefore?: Moment // it opens a run of its own, and not before this time
  readonly by?: string // who says it; `session:ID` for another session
  readonly pin?: true // stays in every later request, word for word
  readonly report?: Whole // a child's report: it may wait so many ms for others to be read with it
  readonly denied?: true // of a child: a person said no to that child, or below it
  readonly patienceMs?: number // this and all below it are for the run that the message opens
  readonly options?: RunChoice // what the run chooses in place of the agent's settings
  readonly metadata?: Metadata // of the host, over that of the session
  readonly traceparent?: string // of the trace that the run belongs to
}

/** A person decides about a call that asks for approval. */
export type UserToolConfirmation = {
  readonly type: 'user.tool_confirmation'
  readonly id: Name // the sender's own: the same id twice is the same decision
  readonly call: CallKey // the call that is decided
  readonly digest: string // of the call as it was shown: a decision about another one does not count
  readonly allow: boolean // false denies the call
  readonly by: string // who decides
  readonly role?: string // in which role
  readonly why?: string // the model reads it with a denial
  readonly remember?: Json // a rule that covers later calls too
  readonly scope?: 'run' // `remember` may allow later calls of this run
  readonly under?: CallKey // the call whose `remember` allowed this one
  readonly edit?: ArgumentsEdit // allowed with these arguments in place of those shown
}
/** Other arguments for a call than its model gave, and the digest of the call with them. */
export type ArgumentsEdit = {
  readonly args: Json // the new arguments
  readonly digest: Hash // of the call with them
}

/** A call that is answered outside gets its answer, from a host, a person or a child session. */
export type UserCustomToolResult = {
  readonly type: 'user.custom_tool_result'
  readonly id: Name // the sender's own: the same id twice is the same answer
  readonly call: CallKey // the call that is answered
  readonly ok: boolean // false: the model reads it as a failure
  readonly content: string // what the model reads
  readonly by?: string // who answers
  readonly metadata?: Json // data of whoever answers, which the model does not read
  readonly parent?: CallKey // to a child: the call of its parent that waits for it from now on
  readonly denied?: true // of a child: a person said no to that child, or below it
}

/** The session is told to stop, to pause or to go on. */
export type UserInterrupt = {
  readonly type: 'user.interrupt'
  readonly id: Name // the sender's own: the same id twice is the same interrupt
  readonly mode: 'stop' | 'pause' | 'resume' // stop ends the run, pause holds it, resume lets it go on
  readonly run?: Whole // only if this run is open, by the seq of its run.started
  readonly by?: string // who tells it
  readonly why?: string // the reason, for people
  readonly closes?: true // the session closes as well
}

/**
 * A message that came after the open run began is taken back. Once a request has shown it, nothing changes. One that
 * opened the run stays: without it the run would have nothing to answer.
 */
export type UserWithdraw = {
  readonly type: 'user.withdraw'
  readonly id: Name // the sender's own: the same id twice is the same request
  readonly message: Whole // by its seq
  readonly by?: string // who takes it back
}

/** The host asks that the session is looked at again at that time: a new run begins. */
export type UserSchedule = {
  readonly type: 'user.schedule'
  readonly id: Name // the sender's own: the same id twice is the same request
  readonly due: Moment // when the session is looked at again
  readonly reason: string // the model reads it when the time has come
  readonly key: string // while a wake with this key waits, another one changes nothing
  readonly by?: string // who asks
}

/** The wake with this key is dropped, whether the host or a run asked for it. Without such a wake nothing changes. */
export type UserUnschedule = {
  readonly type: 'user.unschedule'
  readonly id: Name // the sender's own: the same id twice is the same request
  readonly key: string // the key of the wake to drop
  readonly by?: string // who asks
}

/** The session has another title in lists. It changes no work, and no model reads it. */
export type UserRename = {
  readonly type: 'user.rename' // of all events the one that is about lists alone
  readonly id: Name // the sender's own: the same id twice is the same request
  readonly title: string // one line; the latest counts, and one with nothing visible changes nothing
  readonly by?: string // who says it
}

// ── Owner: the life of a session ────────────────────────────────────────────

/** The session exists: the first event of every log. */
export type SessionCreated = {
  readonly type: 'session.created'
  readonly agent: Name // the name of its agent or workflow
  readonly planner: string // `model`, or the name of what plans in its place, such as a graph
  readonly folder?: string // where a root session works, by its full path
  readonly metadata?: Metadata // of the host, for tools, hooks and traces
  readonly labels?: Labels // the labels that sessions are listed by
  readonly program?: Name // the program whose workers drive the session
  readonly parent?: Parent // the session that it is a child of
  readonly environment?: string // what its model is told about the place where it works
  readonly attachments?: readonly BlobRef[] // files that its tools may read
  readonly fork?: Fork // the session that it continues a copy of
  readonly within?: Narrowing // the most that it and its children may do
  readonly messages?: Hash // of the conversation from elsewhere that it was opened with
}
/** What a session says about itself to those who list sessions. */
export type SessionDescription = Pick<SessionCreated, 'folder' | 'metadata' | 'labels' | 'program'>
/** Where a child belongs: the call that made it, and what it may do for its parent. */
export type Parent = {
  readonly session: Name // the parent
  readonly call: CallKey // the call of the parent that made it
  readonly root: Name // the session at the top of the tree
  readonly depth: Whole // so many levels below the root
  readonly reader?: Name // the parent's tool that reads long, kept answers
  readonly parks?: true // the parent hears of its end, and of no question
  readonly detached?: true // no call waits for it
  readonly task?: string // the name by which the parent finds it
  readonly owns?: readonly string[] // the only paths that it may write
  readonly tells?: Name // another session that hears of the end of each run
  readonly answersFor?: readonly Name[] // agents in whose place it answers the user
}
type Fork = {
  readonly session: Name
  readonly seq: Whole // the last event that was copied
  readonly model?: Name // of its runs, unless they choose
  readonly asked?: Hash // of what a caller with an id of its own asked for
}

/** It came out of a file or out of messages of a host: what stands before this is history and starts nothing. */
export type SessionImported = {
  readonly type: 'session.imported'
  readonly from: Name // what the session was called there
  readonly environment?: string // that of the host: no file has one here
  readonly folder?: string // this and those below replace what session.created says
  readonly metadata?: Metadata // of the host
  readonly labels?: Labels // those that the host gave
  readonly program?: Name // the program whose workers drive it here
}

/** The session is over: nothing is accepted any more. */
export type SessionClosed = {
  readonly type: 'session.closed'
}

// ── Owner: a run ────────────────────────────────────────────────────────────

/** A run begins, with everything that stays as it is until its end. */
export type RunStarted = {
  readonly type: 'run.started'
  readonly inputs: readonly Whole[] // the messages that open it, by seq
  readonly wakes: readonly string[] // the wakes that open it, by key
  readonly limits: Limits // the limits of the run, to its end
  readonly toolset: Hash // of the tools that the model is shown
  readonly instructions: Hash // of the instructions that the model is shown
  readonly policy?: Hash // of the rules of approval
  readonly options?: Hash // of what this run chose for itself
  readonly code?: string // the version of the code that runs
  readonly warnings?: readonly string[] // tools that are missing, in sentences for people
  readonly metadata?: Metadata // of the session, and over it of the message that opens the run
  readonly model?: Name // the prompt prefix is made for this model, by this run
  readonly plan?: true // the prefix is made for plan mode
  readonly since?: Whole // or the prefix is that of the earlier run with this seq
  readonly now?: PrefixHashes // what the agent has now, if the prefix shows something else
  readonly foreign?: true // a fork took it along from the session it came from
  readonly traceparent?: string // of the first of its inputs that has one
}
/** What stays as it is for a whole run, also when a newer version of the program goes on with it. */
export type FrozenRunSetup = Pick<
  RunStarted,
  'toolset' | 'instructions' | 'policy' | 'options' | 'code' | 'warnings' | 'metadata'
>

/** After an import or a fork, the setup that an open run froze elsewhere is replaced by the present setup here. */
export type RunReviewed = {
  readonly type: 'run.reviewed'
  readonly limits: Limits // this and all below: as in run.started
  readonly toolset: Hash // of the tools that the model is shown from here on
  readonly instructions: Hash // of the instructions that the model is shown from here on
  readonly policy?: Hash // of the rules of approval
  readonly options?: Hash // of what this run chose for itself
  readonly code?: string // the version of the code that goes on
  readonly warnings?: readonly string[] // tools that are missing here, in sentences for people
  readonly metadata?: Metadata // of the session, and over it of the message that opened the run
}

/** A run could not begin because something was away: what would open it stays pending. */
export type RunDeferred = {
  readonly type: 'run.deferred'
  readonly message: string // what was away
  readonly retryAt: Moment // not tried again before this moment
  readonly waitedMs: number // how long all that took so far
}

/**
 * The run ends, but its finalizer runs and its worktrees are swept first: the intent of the effect `end`, which lands as
 * run.settled. A run with neither settles at once.
 */
export type RunEnding = {
  readonly type: 'run.ending'
  readonly outcome: Outcome // what run.settled will say
}

/** The run is over. */
export type RunSettled = {
  readonly type: 'run.settled'
  readonly outcome: Outcome // completed, interrupted, limit, halted or failed, and why
  readonly output?: Json // the answer as data, or what the finalizer of a stopped run made
  readonly inputs?: readonly Whole[] // the messages that it ends without an answer, by seq
  readonly wakes?: readonly string[] // the wakes that it ends, by key: those of a run that could not begin
  readonly workspace?: WorktreeReport // of a child: what it left in its worktree, for its parent to read
}

// ── Owner: a turn ───────────────────────────────────────────────────────────

/** The model is about to be asked: the intent of a model call, on disk before its first byte is sent. */
export type ModelStarted = {
  readonly type: 'model.started'
  readonly shows: readonly Whole[] // the events this request shows for the first time, in order: this is promotion
  readonly allow?: Allow // which tools may be used; all if absent
  readonly held?: number // the money held for it, in millionths of a dollar
  readonly boost?: true // it is asked again after an empty reply, and may answer at greater length
  readonly route?: Name // a hook chose this model of a chain to be asked first
  readonly tools?: readonly Name[] // a hook chose these as the only tools
}

/** The model call failed: it is made again, or the run ends. */
export type ModelFailed = {
  readonly type: 'model.failed'
  readonly class: ModelFailureClass // the kind of trouble
  readonly message: string // what went wrong, for people
  readonly retryable: boolean // whether the same request may succeed later
  readonly retryAt?: Moment // not asked again before this moment
  readonly route?: string // the model that failed
  readonly partial?: string // the text that had come
  readonly unasked?: true // the call was held back here: it was no attempt
  readonly usage?: Usage // what the provider counted, or an estimate
  readonly cost?: number // in millionths of a dollar
  readonly assumed?: true // the provider did not report usage, and this is an estimate
}

/** The model's reply, or the plan of what plans in its place: its calls are admitted and its meaning is recorded. */
export type AgentMessage = {
  readonly type: 'agent.message'
  readonly parts: readonly Part[] // text, reasoning and files of the reply
  readonly calls: readonly Proposal[] // with their terms: may they run, how often, and after whose approval
  readonly verdict: Verdict // what the reply means: an answer, calls, or something to be said again
  readonly finish?: 'length' | 'refusal' // why it stopped early
  readonly guard?: AnswerGuard // what a hook made of an answer
  readonly route?: string // the model that answered
  readonly fallback_from?: Name // the model that should have answered
  readonly cached?: true // cached from an earlier call: no provider was asked
  readonly missed?: Json // what the provider's cache did not have, and why
  readonly usage?: Usage // what the provider counted, or an estimate
  readonly cost?: number // in millionths of a dollar
  readonly assumed?: true // the provider did not report usage, and this is an estimate
}
/** A hook had the reply made again, replaced it, or withheld it. */
export type AnswerGuard = 'retry' | 'replace' | 'block'

/** A call is about to run here: its intent, on disk before it starts. */
export type AgentToolUse = {
  readonly type: 'agent.tool_use'
  readonly call: CallKey // the call that is about to run
}

/** A call is handed out, to be answered from outside: by a host, a person or a child session. */
export type AgentCustomToolUse = {
  readonly type: 'agent.custom_tool_use'
  readonly call: CallKey // the call that is handed out
}

/** The result of a call, as the model sees it. Every call gets exactly one. */
export type AgentToolResult = {
  readonly type: 'agent.tool_result'
  readonly call: CallKey // the call that ended
  readonly status: CallStatus // how it ended
  readonly content: string | BlobRef // what the model reads; empty if `from` has it
  readonly parts?: readonly BlobRef[] // pictures and files, after the text
  readonly from?: Whole // the answer from outside that it repeats, by seq
  readonly failure?: Failure // of a call that did not succeed
  readonly retryKind?: string // the failure that the model is to correct, as it was before hooks
  readonly ends?: string // why the run must end with this result
  readonly metadata?: Json // data of the tool, which the model does not read
  readonly usage?: Usage // of models that the tool called
  readonly cost?: number // in millionths of a dollar
  readonly assumed?: true // the provider did not report usage, and this is an estimate
}

/** An open call gets its terms anew: what was decided about it before does not count any more. */
export type CallReviewed = {
  readonly type: 'call.reviewed'
  readonly call: CallKey // the call with new terms
  readonly edit?: Whole // the confirmation whose arguments the call now has, by seq: its decision counts for them
  readonly gate?: Gate // this and all below: the terms, as in a proposal (see CallTerms)
  readonly digest?: Hash // of the call as it is now: a decision must name it
  readonly place?: Hash // of where the tool acts and with what
  readonly links?: readonly string[] // where its paths lead through links
  readonly files?: readonly FileState[] // the files that the call would change, as they are now
  readonly same?: Hash // equal for calls that do the same
  readonly effect: EffectClass // how often the call may run
  readonly timeoutMs: number // after so many ms it is aborted
  readonly sequential?: true // the calls of its reply run one after the other
  readonly reconcile?: true // its tool can be asked after a crash whether it happened
  readonly retries?: Whole // the tool's own number of retries
  readonly blocks?: true // an interrupt waits for it
  readonly clear?: true // a hook or the policy must allow it right before it starts
  readonly fails?: true // its failure ends the run
}

// ── Owner: what the model reads, and later runs ─────────────────────────────

/** Requests show less of what is older, or another choice of pins, from here on. */
export type ContextCompacted = {
  readonly type: 'context.compacted'
  readonly cut?: Whole // what is older than this seq is no longer shown
  readonly summary?: string // and this stands in its place
  readonly cleared?: Whole // results older than this seq show no content
  readonly pins?: Seqs // which of the messages shown so far are pinned
  readonly turned?: Seqs // inherited or unshown messages whose pin changed
  readonly ago?: Whole // where several messages have that seq, the one of so many forks ago: 0 is this log's
  readonly fitted?: Whole // each longer text since the last reply shows its two ends: so many characters, or nothing
  readonly learned?: Whole // a provider refused a request of this size: the window has no more tokens
  readonly before?: Whole // the tokens of a request before
  readonly after?: Whole // and after
  readonly failed?: string // why it failed
  readonly usage?: Usage // of the summary
  readonly cost?: number // in millionths of a dollar
  readonly assumed?: true // the provider did not report usage, and this is an estimate
  readonly route?: string // the model that wrote the summary
  readonly fallback_from?: Name // the model that should have written it
}
type Seqs = readonly Whole[]

/** The model is told something that no message says. */
export type NoteAdded = {
  readonly type: 'note.added'
  readonly kind: NoteKind // what the note is about
  readonly text: string // what the model reads
}

/** The session is to be looked at again at that time: a new run begins. */
export type WakeScheduled = {
  readonly type: 'wake.scheduled'
  readonly due: Moment // when the session is looked at again
  readonly reason: string // the model reads it when the time has come
  readonly key: string // a second wake with the key of one that waits is dropped
  readonly urgent?: true // it comes before the wakes of other sessions
  readonly options?: Hash // of the run that asked for it: the new one has no more tools than that
}

/** The key of a call: the event whose reply asked for it, and its place in that reply. It never changes. */
export function callKey(seq: number, index: number): CallKey {
  return `${seq}.${index}`
}
