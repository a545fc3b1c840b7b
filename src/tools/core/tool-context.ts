// The context of a call as its handler sees it, as types. A handler can use nothing else of the harness.
import type { BlobRef, CallKey, FileState, Frozen, Metadata } from '../../kernel/content.ts'
import type { Hint, Model, ModelFailure, Reply, Request } from '../../ports/model.ts'
import type { Clock } from '../../ports/system.ts'

/**
 * Where the tools of one session work, if it differs from where they were made: in another folder, such as a worktree,
 * or limited to some paths of a shared folder.
 */
export type ToolRoot = { readonly folder?: string; readonly claims?: PathClaims }
/**
 * The only paths that may be written, and the paths of others with their owners' names. All are relative to the root.
 */
export type PathClaims = { readonly own: readonly string[]; readonly others: readonly PathClaim[] }
export type PathClaim = { readonly owner: string; readonly paths: readonly string[] }

/**
 * The second argument of a handler. A handler that needs something of the host declares it: `context:
 * ToolContext<Deps>`.
 */
export interface ToolContext<Deps = unknown> extends ToolContextFields {
  /** The value that the harness's `deps` built for this run. Undefined if it builds nothing, and in `undo`. */
  readonly deps: Deps
}

type ToolContextFields = Frozen<{
  /** The session of the call. */
  session: string
  /** The key of the call in its session. */
  call: CallKey
  /** The same for every try of this call: pass it to services that accept an idempotency key. */
  key: string
  /** A person was asked about this very call and allowed it. */
  approved: boolean
  /**
   * The files that the call would change, as they were when a person was asked about it. Absent if no person was asked,
   * or if it changes no file.
   */
  files?: readonly FileState[] | undefined
  /**
   * The verdict of the rules if the call uses the file or folder at this real path. Absent if no rule mentions paths.
   */
  permits?: ((path: string) => 'allow' | 'ask' | 'deny') | undefined
  /** Aborted when the call is to end: by an interrupt, its timeout or the loss of the session. */
  signal: AbortSignal
  /** The host's metadata for this run and its session. */
  metadata: Metadata
  /** The harness's clock. A tool that waits uses it. */
  clock: Clock
  /** The session's time, by the store's clock. Use it for times that are written down and that other processes read. */
  now?: () => number
  /**
   * Keeps a large text or the bytes of a file beside the log, in the same commit as the result. A reference may be part
   * of the result.
   */
  keep: (data: string | Uint8Array, media?: string) => BlobRef
  /** Reads a text that was kept, also in an earlier call, by its hash. Null if there is none. */
  recall: (hash: string) => Promise<string | null>
  /**
   * The name of the agent's tool with which its model can read a kept text, at the path `blob:<hash>`. Absent if it has
   * none.
   */
  reader?: string | undefined
  /**
   * Shows a piece of text to those who follow the session now, as a delta of kind `output`, such as a printed line or
   * the progress of a download. It is never in the log, and bounded for each call.
   */
  tell: (text: string) => void
  /**
   * Replaces known secrets in the text with their marks. Results are redacted anyway: use it for text that is cut
   * before it becomes a result.
   */
  redact: (text: string) => string
  /**
   * Redacts a text that comes in pieces: `push` returns the part that no later piece can change, `end` returns the
   * rest. Joined, they equal `redact` of the whole.
   */
  redactPieces?: () => { readonly push: (piece: string) => string; readonly end: () => string }
  /**
   * Asks a model under the budget of this run; every tool that asks a model uses it. The cost is held before the
   * request and settled after it; a request over the budget is not sent. Tried once. `hint:NAME` is the model of that
   * route, or else of this agent.
   */
  askModel: (model: Model | Hint, request: Request) => Promise<Reply | ModelFailure>
  /** The context window of this run's model in tokens; infinite if unknown. Absent outside of a run. */
  windowTokens?: (() => Promise<number>) | undefined
  /** The W3C `traceparent` of this call, for requests to other programs. Absent if there is no trace. */
  traceparent?: string | undefined
  /** Returns a secret that this tool declared, by its name. */
  secret: (name: string) => string
  /** Replaces the marks (`⟦secret:NAME⟧`) of secrets that this tool declared with their values. */
  reveal: (text: string) => string
}>
