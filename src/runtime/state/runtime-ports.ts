// The services that a harness gives to its runtime: the store, the clock and the like, the agents and the models by
// name. Types and small lookups; nothing happens here.
import type { Metadata, WorktreeReport } from '../../kernel/content.ts'
import type { Session } from '../../kernel/session.ts'
import type { OwnerEvent } from '../../kernel/event.ts'
import type { Waiting } from '../../kernel/next.ts'
import type { CompleteStore } from '../../ports/store.ts'
import type { Model, Workload } from '../../ports/model.ts'
import type { Clock, Processes, Random } from '../../ports/system.ts'
import { workloadOfHint, noRouteFault } from '../../models/router.ts'
import { shortenText } from '../../view/shown-text.ts'
import type { BreakerOptions } from '../guard/guard.ts'
import type { RunHooks } from './hook-events.ts'
import type { Live } from '../../live/local-live.ts'
import type { Redactor } from '../redact/redactor.ts'
import type { Watchdog } from './watchdog.ts'
import type { StandardSchema } from '../../tools/core/json-schema.ts'
import type { Agent, Budget } from './agent.ts'

/**
 * `windowTokens`: an upper limit for every model, whatever else is known of it. `detectPins`: a user message that sets
 * a rule (never, always, only, from now on) is pinned when it would be cut. Default true.
 */
export type Compaction = { readonly windowTokens?: number; readonly detectPins?: boolean }

/** The seqs at which two runs began: the last one, and the one that these events settle, if they settle any. */
export type RunSeqs = { readonly began: number; readonly ended: number | null }

/** Receives events after they are on disk. */
export type CommitListener = {
  committed(session: string, agent: string, run: RunSeqs, events: readonly OwnerEvent[]): void
  /** Nothing is left to do for now. */
  rested(session: string, waiting: Waiting): void
  /** Resolves when every listener that may delay an answer has been called. */
  awaitDelivery(session: string): Promise<void>
  /** Calls back with the events of each commit, of lanes too. Returns a function that ends it. */
  count(counter: CommitCounter): () => void
  close(): Promise<void>
}
/** Counts events. It must neither wait nor throw. */
export type CommitCounter = (session: string, agent: string, events: readonly OwnerEvent[]) => void

/**
 * `names`: sessions of these programs are driven, and new ones belong to the first. `given`: the host chose the names.
 */
export type ProgramNames = { readonly names: readonly string[]; readonly given: boolean }

export type ChildWorktrees = {
  /** Whether sessions below one that works in this folder may have left worktrees. */
  exist(folder: string): boolean
  /** Sweeps those that nobody needs, and describes what a child leaves to its parent. */
  readonly settle: (store: CompleteStore, id: string, session: Session) => Promise<WorktreeReport | null>
  /** Where a child works that asks for a worktree, if the session works in this folder. Absent: git makes one. */
  readonly place?: (folder: string) => string
}

/** A consumer as the commits of runs know it. `first`: it is told only of the first run of each session. */
export type ToldConsumer = { readonly name: string; readonly runs?: 'first' | 'all' }

export type Services = {
  readonly store: CompleteStore
  readonly live: Live
  readonly clock: Clock
  readonly random: Random
  /** Absent: leases end by the clock alone. */
  readonly processes?: Processes
  readonly agent: (name: string) => Agent
  readonly redactor: Redactor
  readonly watchdog: Watchdog | null
  /** Null: there are none. */
  readonly hooks: RunHooks | null
  readonly breaker: BreakerOptions | false
  /** Absent: a full context is compacted, if the model's length is known. */
  readonly compaction?: Compaction | false | undefined
  /** Reports trouble beside a run to the host. Absent: it is not reported. */
  readonly report?: (where: string, error: unknown) => void
  /** Null: no observer of runs. It is made when a server begins to count. */
  observer: CommitListener | null
  /**
   * The consumers that are told about settled runs, and the lanes that this process has seen in the store. The
   * consumer that continues pursuits is not among them. Absent: there are none, and nothing is pursued.
   */
  readonly consumers?: { readonly told: readonly ToldConsumer[]; readonly existing: Set<string> } | undefined
  /** The worktrees of sessions. Absent: those that git keeps in their folders. */
  readonly worktrees?: ChildWorktrees
  /** How runs are traced. Absent: they are not. */
  readonly traces?: { readonly propagate: boolean }
  readonly code: string
  /** Absent: a program without a name. */
  readonly program?: ProgramNames
  /**
   * Agents with a budget of their own for a day, which their children share. Absent: all have the harness's.
   */
  readonly dayBudgets?: ReadonlyMap<string, Pick<Budget, 'dayUsd'>> | undefined
  /** A model that a run may choose, by its name. */
  readonly model: (name: string) => Model
  /** The names of all models and routes of the configuration: what a model may choose from. */
  readonly choosable: readonly string[]
  /** The model that is set for a workload; null for none. Absent: no routes are set. */
  readonly route?: ((workload: Workload) => Model | null) | undefined
  /**
   * Schemas that callers in this process gave with a message, by `schemaKey`: workers elsewhere know them only as JSON
   * Schema.
   */
  readonly schemas: Map<string, StandardSchema>
  /** Builds the `deps` for the tools of one attempt; null if there is nothing to build. */
  readonly makeDeps: MakeDeps | null
}

/**
 * The model of this name. The name of a workload stands for the model of its route or, where none is set, the agent's
 * own.
 */
export function modelByName(services: Services, name: string, own: Model | null): Model {
  const workload = workloadOfHint(name)
  if (workload === null) return services.model(name)
  const model = services.route?.(workload) ?? own
  if (model === null) throw noRouteFault(workload)
  return model
}

/** Why a language model may not choose this model for a child, with the possible choices; null if it may. */
export function whyModelRefused({ choosable }: Pick<Services, 'choosable'>, name: string): string | null {
  if (choosable.includes(name)) return null
  const named = `You cannot choose the model "${shortenText(name, MODEL_CHARS_SHOWN)}".`
  if (choosable.length === 0) return `${named} Leave "model" out.`
  return `${named} Choose one of: ${choosable.join(', ')}; or leave "model" out.`
}
const MODEL_CHARS_SHOWN = 64

/** The id of a message is chosen by its caller, so another session may have the same. */
export function schemaKey(session: string, message: string): string {
  return JSON.stringify([session, message])
}

/**
 * Schemas of callers whose runs no worker here has started yet. Beyond this number the oldest is dropped, and its run
 * uses the JSON Schema only.
 */
export const SCHEMAS_KEPT = 1_000

/** Input for building the `deps` of an attempt. */
export type RunIdentity = { readonly session: string; readonly agent: string; readonly metadata: Metadata }
export type MakeDeps<Deps = unknown> = (of: RunIdentity) => Deps | Promise<Deps>
