// What `next` needs to know of a session: plain JSON, bounded by what is open, replaced and never mutated.
// Settled calls and shown messages leave it; the transcript (transcript.ts) keeps what a model must read.
import { clockOf } from './clock.ts'
import type { Frozen, Labels, Limits, Metadata, ModelFailureClass, Mutable, Outcome, Within } from './content.ts'
import type { Description, Event, Parent } from './event.ts'
import type { OpenTurn, Said, Turn } from './ledger.ts'

/** Raise it when fold changes meaning: older snapshots are then ignored, and the log is folded anew. */
export const FOLD_VERSION = 14

/** `chooses`: it has options or metadata for the run that it opens. A child's report may wait for others `until`. */
export type Input = Frozen<{ seq: number; when: 'next' | 'after' | 'now' } & Frozen<InputOptions>>
type InputOptions = { patienceMs?: number; traceparent?: string; chooses?: true; report?: Report }
type Report = Frozen<{ by: string; at: number; until: number }>
/** `at` is what the clock said when it was asked for. `options`: of the run that asked for it. */
export type Wake = Frozen<{ seq: number; due: number; key: string; at: number; urgent?: true; options?: string }>

export type Run = Frozen<{
  seq: number
  limits: Limits
  /** The frozen toolset and instructions, by hash, and what the run has instead of what its agent has. */
  toolset: string
  instructions: string
  options?: string
  metadata?: Metadata
  requests: number
  toolCalls: number
  /** Wakes that it asked for. Absent for none. */
  wakes?: number
  outputRetries: number
  boosts: number
  toolRetries: Readonly<Record<string, number>>
  exhausted: string | null
  /** Provider failures since the last reply; `fatal` when the last will not get better; `ends` when a strict hook failed. */
  failures: number
  fatal: Frozen<{ class: ModelFailureClass; message: string }> | null
  retryAt: number
  /** Attempts that were lost since the last whole turn, and the epoch that recorded the last of them. */
  losses: number
  lossEpoch?: number
  ends: string | null
  /** A call failed whose failure ends the run. */
  broken?: string
  /** Why the provider did not answer last, and how long its tries and the waits between them took. Both end with a reply. */
  trouble: Frozen<{ class: ModelFailureClass; message: string; at: number }> | null
  waitedMs: number
  /** Answers in a row that were cut after they began. */
  cuts: number
  /** Time spent working, without parked time and without time in which no worker drove it. `since` is null while parked. */
  activeMs: number
  since: number | null
  cost: number
  model: Frozen<{ seq: number; epoch: number; at: number; held: number }> | null
  turn: Turn | null
  /** It began elsewhere: nothing of it goes on before its setup and its open calls were looked at here. */
  foreign?: boolean
  /** The span of another program that it stands under, as it was given. */
  traceparent?: string
  /** Absent until a person says no, or yes to more than one call. */
  said?: Said
}>

/** A run that its one owner changes in place. */
export type OpenRun = Omit<Mutable<Run>, 'turn'> & { turn: OpenTurn | null }

export type Session = Frozen<{
  seq: number
  at: number
  epoch: number
  created: boolean
  closed: boolean
  closing?: boolean
  agent: string
  /** The workflow that answers its turns, by its name. Absent for a language model, and in older snapshots. */
  planner?: string
  /** The program whose workers drive it. Absent in older logs. */
  program?: string
  parent: Parent | null
  /** What a narrowed run above it leaves it. */
  within?: Within
  /** Where it works, and what its host says of it, if that was said here: an import forgets what its file says. */
  folder?: string
  metadata?: Metadata
  labels?: Labels
  /** Admitted, not yet promoted. */
  inputs: readonly Input[]
  /** What an earlier run left that no request has shown yet: results, notes, and inputs an interrupt swallowed. */
  unshown: readonly number[]
  /** seq of the last compaction that cut what is shown. */
  cut?: number
  /** Notes for the next request: they follow the results and precede the inputs. */
  notes: readonly number[]
  wakes: readonly Wake[]
  /** seq of an interrupt that has not taken effect yet, or 0. */
  stop: number
  paused: boolean
  /** `began` is the seq of the last run's start, `last` how the last settled one ended. */
  run: Run | null
  began: number
  last: Outcome | null
  /** Calls of the last run whose outcome is unknown. Absent for none. */
  unknown?: number
  cost: number
  /** seq of the last import. While `held`, nothing that came with it is driven, until a person says so. */
  imported?: number
  held?: boolean
  /** Of a child: a person said no in a run that ended for want of money. Its parent is told when a later run answers. */
  denied?: boolean
  /** The next run could not begin: why, how often it was tried, how long that took, and when it is tried again. */
  deferred?: Frozen<{ reason: string; tries: number; waitedMs: number; at: number; retryAt: number }> | null
}>

/** A session that its one owner changes in place. */
export type OpenSession = Omit<Mutable<Session>, 'run'> & { run: OpenRun | null }

const NOBODY = { created: false, closed: false, agent: '', parent: null, run: null, last: null, paused: false } as const
const NOTHING = { inputs: [], unshown: [], notes: [], wakes: [], stop: 0, began: 0, cost: 0 } as const
export const EMPTY: Session = { seq: 0, at: 0, epoch: 0, ...NOBODY, ...NOTHING }

export function inputOf(e: Extract<Event, { type: 'user.message' }>): Input {
  const { seq, when, patienceMs, traceparent, options, metadata, report } = e
  if (report !== undefined) return { seq, when, report: { by: e.by ?? '', at: clockOf(e), until: clockOf(e) + report } }
  const input = patienceMs === undefined ? { seq, when } : { seq, when, patienceMs }
  if (traceparent === undefined && options === undefined && metadata === undefined) return input
  const traced = traceparent === undefined ? input : { ...input, traceparent }
  return options === undefined && metadata === undefined ? traced : { ...traced, chooses: true }
}

/** Input that may join the run at its next request. */
export function steering(s: Session): readonly Input[] {
  return s.inputs.length === 0 ? s.inputs : s.inputs.filter((input) => input.when !== 'after')
}

/** The inputs that the next run starts with: the oldest, and every later one that does not ask to come after. */
export function opening(s: Session): readonly number[] {
  return s.inputs.filter((input, i) => i === 0 || input.when !== 'after').map((input) => input.seq)
}

/** Waiting for a person or a provider, with nothing of ours in flight: this time does not count as active. */
function parked(s: Session, run: Run): boolean {
  if (run.model) return false
  const open = run.turn?.open
  if (!open || open.length === 0) return s.paused || run.retryAt > 0
  for (const { state } of open) {
    if (state.type === 'running' || (!s.paused && state.type !== 'asked' && state.type !== 'outside')) return false
  }
  return true
}

export function newRun(e: Extract<Event, { type: 'run.started' }>): Run & { readonly turn: null } {
  const { seq, limits, toolset, instructions, options, metadata, traceparent } = e
  const run: Omit<Mutable<Run>, 'turn'> & { turn: null } = {
    seq,
    limits,
    toolset,
    instructions,
    requests: 0,
    toolCalls: 0,
    outputRetries: 0,
    boosts: 0,
    toolRetries: {},
    exhausted: null,
    failures: 0,
    fatal: null,
    retryAt: 0,
    losses: 0,
    ends: null,
    trouble: null,
    waitedMs: 0,
    cuts: 0,
    activeMs: 0,
    since: clockOf(e),
    cost: 0,
    model: null,
    turn: null,
  }
  if (options !== undefined) run.options = options
  if (metadata !== undefined) run.metadata = metadata
  if (traceparent !== undefined) run.traceparent = traceparent
  if (e.foreign) run.foreign = true
  return run
}

/** A review puts what holds here and now in the place of what a run froze elsewhere. */
export function renewed(run: OpenRun, e: Extract<Event, { type: 'run.reviewed' }>): void {
  const { limits, toolset, instructions, options, metadata } = e
  Object.assign(run, { limits, toolset, instructions, retryAt: 0, foreign: false })
  if (options === undefined) delete run.options
  else run.options = options
  if (metadata === undefined) delete run.metadata
  else run.metadata = metadata
}

/** What is said of it where it is made, or where it arrives. */
export function describe(s: OpenSession, { folder, metadata, labels, program }: Frozen<Description>): void {
  if (folder !== undefined) s.folder = folder
  if (metadata !== undefined) s.metadata = metadata
  if (labels !== undefined) s.labels = labels
  if (program !== undefined) s.program = program
}

/** Time counts while one attempt works, by that attempt's own clock: not while parked, and not while no worker drives. */
export function clock(s: Session, run: OpenRun, e: Event, epochBefore: number): void {
  const now = clockOf(e)
  const drove = e.epoch > 0 && e.epoch === epochBefore && e.type !== 'session.imported'
  // A try that failed and is made again is part of the outage, and no work. In older logs, which have no `outageMs`, it counted.
  const tried = e.type === 'model.failed' && e.retryAt !== undefined && run.limits.outageMs !== undefined
  if (run.since !== null && drove && !tried) run.activeMs += Math.max(0, now - run.since)
  if (parked(s, run)) run.since = null
  else if (e.epoch > 0) run.since = now
}

export function wakeOf(e: Extract<Event, { type: 'wake.scheduled' }>): Wake {
  const { seq, due, key, urgent, options } = e
  const wake = { seq, due, key, at: clockOf(e), ...(urgent ? { urgent } : {}) }
  return options === undefined ? wake : { ...wake, options }
}

/** It came out of a file: what is open in it is held, and nothing that was allowed elsewhere is allowed here. A no still counts. */
export function arrive(s: OpenSession, e: Extract<Event, { type: 'session.imported' }>): void {
  s.imported = e.seq
  delete s.folder
  delete s.metadata
  delete s.labels
  delete s.program
  describe(s, e)
  s.held = s.run !== null || s.inputs.length > 0 || s.wakes.length > 0
  // Neither how long to wait for a provider nor in whose trace.
  s.inputs = s.inputs.map(({ seq, when, chooses }) => (chooses ? { seq, when, chooses } : { seq, when }))
  if (!s.run) return
  s.run.foreign = true
  delete s.run.traceparent
  if (s.run.said) s.run.said = { ...s.run.said, yes: [] }
}
