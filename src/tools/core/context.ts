// What a handler sees of its call, as types: the doors it may use, and nothing else of the harness.
import type { BlobRef, CallKey, FileState, Frozen, Metadata } from '../../kernel/content.ts'
import type { Hint, Model, ModelFailure, Reply, Request } from '../../ports/model.ts'
import type { Clock } from '../../ports/system.ts'

/**
 * Where the tools of one session work, if that is not where they were made for: in another folder, such as a worktree, or with paths of
 * its own among those of others.
 */
export type ToolRoot = { readonly folder?: string; readonly claims?: Claims }
/** The only paths that may be written, and those of others with the names of their owners. All from the root. */
export type Claims = { readonly own: readonly string[]; readonly others: readonly Claim[] }
export type Claim = { readonly owner: string; readonly paths: readonly string[] }

/** What a handler gets beside its arguments. One that needs something of the host says so: `context: ToolContext<Deps>`. */
export interface ToolContext<Deps = unknown> extends Doors {
  /** What the harness's `context` built for this run. Undefined where it builds nothing, and in `undo`. */
  readonly deps: Deps
}

type Doors = Frozen<{
  session: string
  call: CallKey
  /** The same for every try of this call: hand it to services that accept an idempotency key. */
  key: string
  /** A person was asked about this very call, and said yes. */
  approved: boolean
  /** The files it would change, as they were when a person was asked about it. Absent: no person was, or it changes no file. */
  files?: readonly FileState[] | undefined
  /** What the rules say of this call if it uses the file or folder at this real path. Absent: no rule speaks of paths. */
  permits?: ((path: string) => 'allow' | 'ask' | 'deny') | undefined
  signal: AbortSignal
  /** What the host said of this run and its session. */
  metadata: Metadata
  /** The harness's clock: a tool that waits waits by it. */
  clock: Clock
  /** The time of the session, by the store's clock. What is written down and read by other processes goes by it. */
  now?: () => number
  /**
   * Keeps a large text or the bytes of a file beside the log, in the same commit as the result. `recall` reads a text back, also in
   * later calls. A reference may be a part of the result.
   */
  keep: (data: string | Uint8Array, media?: string) => BlobRef
  recall: (hash: string) => Promise<string | null>
  /** The tool of this agent with which its model can read on in a kept text, at the path `blob:<hash>`. Absent: it has none. */
  reader?: string | undefined
  /**
   * Shows a piece of text to those who listen to the session now, as a delta of kind `output`: a line that a command printed, how far
   * a download is. Never in the log, and bounded for each call.
   */
  tell: (text: string) => void
  /** The text with known secrets as their marks. Results are redacted anyway: this is for what is cut before it is one. */
  redact: (text: string) => string
  /**
   * The same for a text that comes in pieces: `push` gives what no later piece changes, `end` the rest. Joined, they are what `redact`
   * makes of the whole.
   */
  redactPieces?: () => { readonly push: (piece: string) => string; readonly end: () => string }
  /**
   * Asks a model under the budget of this run: the way for every tool that asks one. Held for before the request and settled after
   * it; what does not fit is not asked. Tried once. `hint:NAME` is the model of that route, or else of this agent.
   */
  askModel: (model: Model | Hint, request: Request) => Promise<Reply | ModelFailure>
  /** How many tokens the model of this run takes at most, without end where that is unknown. Absent: outside of a run. */
  windowTokens?: (() => Promise<number>) | undefined
  /** The W3C `traceparent` of this call, for what it asks of other programs. Absent: there is no trace to go on with. */
  traceparent?: string | undefined
  /** A secret this tool declared, by its name. */
  secret: (name: string) => string
  /** Puts the secrets this tool declared in the place of their marks (`⟦secret:NAME⟧`). */
  reveal: (text: string) => string
}>
