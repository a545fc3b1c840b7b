// What can happen to a session: the closed union of events, and nothing about what they mean (that is fold.ts).
// A session is an append-only log of these. A new type needs a decision record. Two lanes:
// - inbox events may be appended by anyone, at any time, and must be harmless in any interleaving;
// - owner events are written only by the worker that holds the session's lease, and carry its epoch.
import type { CallKey, Frozen, Hash, Json, Labels, Metadata, Moment, Name, Stopper, Whole } from './content.ts'
import type { Allow, BlobRef, CallStatus, Failure, Limits, ModelFailureClass, NoteKind, Outcome } from './content.ts'
import type { Compacted, Part, Prefix, Proposal, Routed, RunChoice, Spent, Terms, Verdict, Within } from './content.ts'

/** `id` is the caller's own: the same id twice is the same event. */
export type InboxBody = Frozen<
  | ({ type: 'user.message'; id: Name; parts: readonly Part[]; when: 'next' | 'after' | 'now' } & Frozen<Sender>)
  | ({ type: 'user.tool_confirmation'; id: Name; call: CallKey; digest: string; allow: boolean } & Frozen<Decider>)
  | ({ type: 'user.custom_tool_result'; id: Name; call: CallKey; ok: boolean; content: string } & Frozen<Answerer>)
  | ({ type: 'user.interrupt'; id: Name; mode: 'stop' | 'pause' | 'resume' } & Stopper)
>
/** `report`: a child's, which may wait so many ms for others to be read with it. All that `Opening` has is for the run it opens. */
type Sender = Opening & { by?: string; pin?: true; report?: Whole; denied?: true }
type Opening = { patienceMs?: number; options?: RunChoice; metadata?: Metadata; traceparent?: string }
/** `scope: 'run'`: the rule in `remember` may allow later calls of this run. Those name this call: they are `under` it. */
type Decider = { by: string; role?: string; why?: string; remember?: Json; scope?: 'run'; under?: CallKey; edit?: Edit }
/** The person allows the call with these arguments in place of those shown. `digest` is of the call with them. */
export type Edit = Frozen<{ args: Json; digest: Hash }>
/** `parent`: the call of the parent session that waits for this one from now on. `denied`: a person said no to the child, or below it. */
type Answerer = { by?: string; metadata?: Json; parent?: CallKey; denied?: true }

export type OwnerBody = Frozen<
  | ({ type: 'session.created'; agent: Name; planner: string } & Frozen<Origin>)
  | ({ type: 'run.started'; inputs: readonly Whole[]; wakes: readonly string[]; limits: Limits } & Frozen<Begun>)
  /** `shows` are the seqs this request shows for the first time, in order: this is promotion. */
  | ({ type: 'model.started'; shows: readonly Whole[]; allow?: Allow; held?: number; boost?: true } & Frozen<Step>)
  | ({ type: 'agent.message'; parts: readonly Part[]; calls: readonly Proposal[]; verdict: Verdict } & Frozen<Paid>)
  | ({ type: 'model.failed'; class: ModelFailureClass; message: string; retryable: boolean } & Frozen<Again>)
  | { type: 'agent.tool_use'; call: CallKey }
  | { type: 'agent.custom_tool_use'; call: CallKey }
  | ({ type: 'agent.tool_result'; call: CallKey; status: CallStatus; content: string | BlobRef } & Frozen<Evidence>)
  | ({ type: 'context.compacted'; cut?: Whole; summary?: string; cleared?: Whole } & Frozen<Compacted>)
  | { type: 'note.added'; kind: NoteKind; text: string }
  /** `options`: those of the run that asked for it, if it has any. The run that the wake opens has no more tools than that one. */
  | { type: 'wake.scheduled'; due: Moment; reason: string; key: string; urgent?: true; options?: Hash }
  /** A run could not begin because something was away: what would open it stays pending. `waitedMs` is all that took so far. */
  | { type: 'run.deferred'; message: string; retryAt: Moment; waitedMs: number }
  | { type: 'run.settled'; outcome: Outcome; output?: Json; inputs?: readonly Whole[]; wakes?: readonly string[] }
  | { type: 'session.closed' }
  /**
   * It came out of a file, where it was called `from`, or out of messages that a host gave. What stands before this is history: nothing
   * is done on its word. The environment is that of a host: no file has one here.
   */
  | ({ type: 'session.imported'; from: Name; environment?: string } & Frozen<Description>)
  /** What an open run froze elsewhere is replaced by what holds here and now. */
  | ({ type: 'run.reviewed'; limits: Limits } & Frozen<Setup>)
  /**
   * An open call gets its terms anew. What was decided about it before does not count any more. With `edit`, the seq of the
   * confirmation that edited it, the call has the arguments of that confirmation from now on, and its decision counts for them.
   */
  | ({ type: 'call.reviewed'; call: CallKey; edit?: Whole } & Terms)
>
type Origin = Description & {
  parent?: Parent
  environment?: string
  attachments?: readonly BlobRef[]
  fork?: Fork
  within?: Within
  /** It was opened with a conversation from elsewhere, of this hash. */
  messages?: Hash
}
/** `folder` is where a root works, by its full path. `program` is the one whose workers drive the session: older logs name none. After an import only what `session.imported` says counts. */
export type Description = { folder?: string; metadata?: Metadata; labels?: Labels; program?: Name }
/** `root` is `depth` levels up. `reader`: the parent's tool that reads long, kept answers. */
export type Parent = Frozen<Bond & { session: Name; call: CallKey; root: Name; depth: Whole; reader?: Name }>
/** `tells`: another session that is told when a run of the child has ended. `answersFor`: agents in whose place the child answers the user. */
type Bond = {
  parks?: true
  detached?: true
  task?: string
  owns?: readonly string[]
  tells?: Name
  answersFor?: readonly Name[]
} // One that `parks` hears ends, and no questions. For `detached`, no call waits. Its parent finds it by `task`. It may write only what it `owns`.
type Fork = Frozen<{ session: Name; seq: Whole; model?: Name; asked?: Hash }> // `model`: its runs have this one, unless they choose. `asked`: by hash, what a caller with an id of its own asked for.
/** `foreign`: a fork took it along from the session it came from. `traceparent`: that of the first of its inputs that has one. */
type Begun = Setup & Prefix & { foreign?: true; traceparent?: string }
/** The frozen toolset, instructions, policy and choice, by hash; the code that ran; tools that are missing, in sentences for people. */
export type Setup = { toolset: Hash; instructions: Hash; policy?: Hash; options?: Hash } & Told
/** `metadata` is that of the session, and over it that of the message that opens the run. */
type Told = { code?: string; warnings?: readonly string[]; metadata?: Metadata }
/** What a hook chose for this request: the model of a chain that is asked first, and the only tools that may be used. */
type Step = { route?: Name; tools?: readonly Name[] }
/** What is absent is nothing: bytes are stored for ever. `fallback_from`: the route that should have answered. `unasked` is a call that was held back here: it was no attempt. */
type Paid = Spent & Routed & { cached?: true; missed?: Json; finish?: 'length' | 'refusal'; guard?: AnswerGuard }
/** What a hook made of a reply that would have been the answer: it was asked for again, replaced, or withheld. */
export type AnswerGuard = 'retry' | 'replace' | 'block'
type Again = Spent & { route?: string; retryAt?: Moment; partial?: string; unasked?: true }
/** `from` is the inbox answer this result repeats; `retryKind` was captured before hooks. */
type Evidence = Spent & Attached & { from?: Whole; failure?: Failure; retryKind?: string; metadata?: Json }
/** Pictures and files of a result, after its text: older logs have none. `ends` says why the run must end. */
type Attached = { parts?: readonly BlobRef[]; ends?: string }

export type EventBody = InboxBody | OwnerBody

/** `at` never goes back: `wall` is what a clock said that was behind it. `epoch` is the writer's lease, or 0 for the inbox. */
export type Envelope = Frozen<{ seq: Whole; at: Moment; wall?: Moment; epoch: Whole }>
export type InboxEvent = Envelope & InboxBody
export type OwnerEvent = Envelope & OwnerBody
export type Event = InboxEvent | OwnerEvent

export function callKey(seq: number, index: number): CallKey {
  return `${seq}.${index}`
}
