// The state that `next` needs of a session: plain JSON, bounded by its open work, replaced and never mutated. Settled
// calls and shown messages leave it; the transcript (transcript.ts) keeps what a model must read.
import { writerTime } from './clock.ts'
import type { Frozen, Labels, Limits, Metadata, ModelFailureClass, Mutable, Outcome, Narrowing } from './content.ts'
import type { SessionDescription, Event, FrozenRunSetup, Parent } from './event.ts'
import type { OpenTurn, RunConsent, Turn } from './ledger.ts'

/** Increase it when the fold changes meaning: older snapshots are then ignored, and the log is folded again. */
export const FOLD_VERSION = 16

/** A message that no run has read yet. */
export type UnreadInput = Frozen<
  {
    /** The seq of the message. */
    seq: number
    /** With which request it is read: the next one, the first of a later run, or one in place of the open request. */
    when: 'next' | 'after' | 'now'
  } & Frozen<InputOptions>
>
type InputOptions = OpeningTerms & {
  /** It has options or metadata for the run that it opens. */
  chooses?: true
  /** It opens no run before this time. Absent: at once. */
  due?: number
  /** With `due`: the time on the clock of its writer. */
  at?: number
}
/** These terms do not outlast an import. */
type OpeningTerms = {
  /** How long callers wait for its run in an outage, in ms. Absent: the limit of the run. */
  patienceMs?: number
  /** The span of another program that its run belongs to. */
  traceparent?: string
  /** It is a child's report, from `by`, and may wait `until` for others to be read with it. */
  report?: Report
}
type Report = Frozen<{ by: string; at: number; until: number }>
/** `at` is the clock's time when the wake was scheduled. `options` are those of the run that scheduled it. */
export type Wake = Frozen<{ seq: number; due: number; key: string; at: number; urgent?: true; options?: string }>

/** The open run of a session, with all that is counted in it. */
export type Run = Frozen<{
  /** The seq of its `run.started`. */
  seq: number
  /** Its limits, which stay to its end. */
  limits: Limits
  /** The hash of the list of tools that the model is shown. */
  toolset: string
  /** The hash of its instructions. */
  instructions: string
  /** The hash of its own choices in place of the agent's. Absent: it has none. */
  options?: string
  /** The host's metadata, of the session and over it of the message that opened the run. */
  metadata?: Metadata
  /** How many replies of the model it had. */
  requests: number
  /** How many calls it proposed so far. */
  toolCalls: number
  /** How many wakes it has scheduled. Absent for none. */
  wakes?: number
  /** How often an invalid answer was asked for again. */
  outputRetries: number
  /** How often in a row an empty answer was asked for again. */
  boosts: number
  /** By tool: how many replies in a row had a call that the model must correct. */
  toolRetries: Readonly<Record<string, number>>
  /** The tool that used up its retries. Null if none did. */
  exhausted: string | null
  /** Provider failures since the last reply. */
  failures: number
  /** The last failure of the provider, if it will not pass. Null otherwise. */
  fatal: Frozen<{ class: ModelFailureClass; message: string }> | null
  /** No request is made before this time. 0: at once. */
  retryAt: number
  /** Attempts lost since the last complete turn. */
  losses: number
  /** The epoch that recorded the last loss. Absent for none. */
  lossEpoch?: number
  /** Why the run must fail, because a strict hook failed. Null otherwise. */
  ends: string | null
  /** A call failed, and its failure ends the run. */
  broken?: string
  /** Why the provider did not answer last. A reply clears it. */
  trouble: Frozen<{ class: ModelFailureClass; message: string; at: number }> | null
  /** How long the tries of the provider and the waits between them took since the last reply, in ms. */
  waitedMs: number
  /** How many answers in a row broke off after they began. */
  cuts: number
  /** Working time in ms, without parked time and without time in which no worker drove it. */
  activeMs: number
  /** When the present stretch of work began. Null while the run is parked. */
  since: number | null
  /** What the run has spent so far, in millionths of a dollar, without children. */
  cost: number
  /** The open request. Null while none is open. */
  model: Frozen<{ seq: number; epoch: number; at: number; held: number }> | null
  /** The last reply and its calls. Null before the first reply. */
  turn: Turn | null
  /** The run began elsewhere. Nothing of it goes on until its setup and its open calls are reviewed here. */
  foreign?: boolean
  /** The given span of another program, which is the parent of this run's span. */
  traceparent?: string
  /** Its end was announced. `epoch` is that of the attempt that performs it, `tries` counts such attempts. */
  ending?: Frozen<{ outcome: Outcome; epoch: number; tries: number }>
  /** Absent until a person denies a call, or approves more than one. */
  said?: RunConsent
}>

/** A run that its only owner changes in place. */
export type OpenRun = Omit<Mutable<Run>, 'turn'> & { turn: OpenTurn | null }

/** A session as its events make it. Everything that happens next is decided from this alone. */
export type Session = Frozen<{
  /** The seq of the last event that was folded. */
  seq: number
  /** The time of that event. */
  at: number
  /** The epoch of the last attempt that wrote. */
  epoch: number
  /** False before the first event. */
  created: boolean
  /** It accepts nothing more. */
  closed: boolean
  /** It closes when the open run has ended. */
  closing?: boolean
  /** The name of its agent or workflow. */
  agent: string
  /** The name of the workflow that answers its turns. Absent for a language model, and in older snapshots. */
  planner?: string
  /** The program whose workers drive it. Absent in older logs. */
  program?: string
  /** Where it belongs, if it is a child. Null for a root. */
  parent: Parent | null
  /** The bounds that a narrowed run above sets. */
  within?: Narrowing
  /** Its folder, if set here: an import drops what the file says. */
  folder?: string
  /** The host's metadata. Absent for none. */
  metadata?: Metadata
  /** The labels that it is listed by. Absent for none. */
  labels?: Labels
  /** Admitted and not yet promoted. */
  inputs: readonly UnreadInput[]
  /** Events of earlier runs that no request has shown yet: results, notes, and inputs that an interrupt consumed. */
  unshown: readonly number[]
  /** The seq of the last compaction that cut the transcript. */
  cut?: number
  /** Notes for the next request: they follow the results and precede the inputs. */
  notes: readonly number[]
  /** The wakes that wait for their time. */
  wakes: readonly Wake[]
  /** The seq of an interrupt that has not taken effect yet, or 0. */
  stop: number
  /** A person paused it, and it was not resumed since. */
  paused: boolean
  /** The open run. Null between runs. */
  run: Run | null
  /** The seq of the last `run.started`. 0 before the first run. */
  began: number
  /** The outcome of the last settled run. Null before the first. */
  last: Outcome | null
  /** How many calls of the last run have an unknown outcome. Absent for none. */
  unknown?: number
  /** What the session has spent so far, in millionths of a dollar, without children. */
  cost: number
  /** The seq of the last import. Absent for none. */
  imported?: number
  /** It was imported with open work, which waits until a person resumes it. */
  held?: boolean
  /**
   * For a child: a person denied more money to a run that ended at its budget. Its parent is told when a later run
   * answers.
   */
  denied?: boolean
  /** The next run could not begin: why, how many tries there were, how long they took, and when the next one is. */
  deferred?: Frozen<{ reason: string; tries: number; waitedMs: number; at: number; retryAt: number }> | null
}>

/** A session that its only owner changes in place. */
export type OpenSession = Omit<Mutable<Session>, 'run'> & {
  /** The open run. Null between runs. */
  run: OpenRun | null
}

const NOBODY = { created: false, closed: false, agent: '', parent: null, run: null, last: null, paused: false } as const
const NOTHING = { inputs: [], unshown: [], notes: [], wakes: [], stop: 0, began: 0, cost: 0 } as const
/** The session before its first event: where folding begins. */
export const EMPTY: Session = { seq: 0, at: 0, epoch: 0, ...NOBODY, ...NOTHING }

export function inputOf(e: Extract<Event, { type: 'user.message' }>): UnreadInput {
  const { seq, patienceMs, traceparent, report, notBefore } = e
  const input: Mutable<UnreadInput> = { seq, when: notBefore === undefined ? e.when : 'after' }
  if (patienceMs !== undefined) input.patienceMs = patienceMs
  if (traceparent !== undefined) input.traceparent = traceparent
  if (e.options ?? e.metadata) input.chooses = true
  if (report !== undefined) input.report = { by: e.by ?? '', at: writerTime(e), until: writerTime(e) + report }
  if (notBefore !== undefined) {
    input.due = notBefore
    input.at = writerTime(e)
  }
  return input
}

/** Input that may join the run at its next request. */
export function inputsForRequest(s: Session): readonly UnreadInput[] {
  return s.inputs.filter((input) => input.when !== 'after')
}

/** Which of the inputs that are due open the next run: the oldest, and every later one whose `when` is not `after`. */
export function inputsForRun(due: readonly UnreadInput[]): readonly number[] {
  return due.filter((input, i) => i === 0 || input.when !== 'after').map(({ seq }) => seq)
}

/** The run waits for a person or a provider with nothing in flight here. This time does not count as active. */
function isParked(s: Session, run: Run): boolean {
  if (run.model) return false
  const open = run.turn?.open
  if (!open || open.length === 0) return s.paused || run.retryAt > 0
  for (const { state } of open) {
    if (state.type === 'running' || (!s.paused && state.type !== 'asked' && state.type !== 'outside')) return false
  }
  return true
}

export function newRun(e: Extract<Event, { type: 'run.started' }>): Run & { readonly turn: null } {
  const { seq, limits, toolset, instructions, traceparent } = e
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
    since: writerTime(e),
    cost: 0,
    model: null,
    turn: null,
  }
  setChoices(run, e)
  if (traceparent !== undefined) run.traceparent = traceparent
  if (e.foreign) run.foreign = true
  return run
}

/** A review replaces what the run froze elsewhere with what holds here and now. */
export function applyReview(run: OpenRun, e: Extract<Event, { type: 'run.reviewed' }>): void {
  const { limits, toolset, instructions } = e
  Object.assign(run, { limits, toolset, instructions, retryAt: 0, foreign: false })
  delete run.options
  delete run.metadata
  setChoices(run, e)
}

function setChoices(run: Mutable<Pick<Run, 'options' | 'metadata'>>, { options, metadata }: FrozenRunSetup): void {
  if (options !== undefined) run.options = options
  if (metadata !== undefined) run.metadata = metadata
}

const DESCRIPTION = ['folder', 'metadata', 'labels', 'program'] as const

/** Replaces the description of a session by that of its creation or its import. */
export function applyDescription(s: OpenSession, e: Frozen<SessionDescription>): void {
  for (const name of DESCRIPTION) {
    if (e[name] === undefined) delete s[name]
    else Object.assign(s, { [name]: e[name] })
  }
}

/**
 * Time counts while one attempt works, by that attempt's own clock. Parked time and time without a worker do not count.
 */
export function countActiveTime(s: Session, run: OpenRun, e: Event, epochBefore: number): void {
  const now = writerTime(e)
  const drove = e.epoch > 0 && e.epoch === epochBefore && e.type !== 'session.imported'
  // A failed try that is repeated is part of the outage, not work. In older logs, which have no `outageMs`, it counted.
  const tried = e.type === 'model.failed' && e.retryAt !== undefined && run.limits.outageMs !== undefined
  if (run.since !== null && drove && !tried) run.activeMs += Math.max(0, now - run.since)
  if (isParked(s, run)) run.since = null
  else if (e.epoch > 0) run.since = now
}

/** How many wakes may wait in one session. */
export const WAKES_MAX = 100

/** A pending wake with the same key is the same wake: the first stands. */
export function addWake(s: OpenSession, e: Extract<Event, { type: 'wake.scheduled' | 'user.schedule' }>): void {
  const { seq, due, key } = e
  if (s.closed || s.wakes.length >= WAKES_MAX || s.wakes.some((w) => w.key === key)) return
  const wake: Mutable<Wake> = { seq, due, key, at: writerTime(e) }
  s.wakes = [...s.wakes, wake]
  if (e.type === 'user.schedule') return
  if (e.urgent) wake.urgent = e.urgent
  if (e.options !== undefined) wake.options = e.options
  if (s.run) s.run.wakes = (s.run.wakes ?? 0) + 1
}

/**
 * The session came from a file: its open work is held, and approvals given elsewhere are dropped. Denials still count.
 */
export function applyImport(s: OpenSession, e: Extract<Event, { type: 'session.imported' }>): void {
  s.imported = e.seq
  applyDescription(s, e)
  s.held = s.run !== null || s.inputs.length > 0 || s.wakes.length > 0
  // The imported patience and trace do not apply here.
  s.inputs = s.inputs.map(({ patienceMs: _patience, traceparent: _trace, report: _report, ...input }) => input)
  if (!s.run) return
  s.run.foreign = true
  delete s.run.traceparent
  delete s.run.ending
  if (s.run.said) s.run.said = { ...s.run.said, yes: [] }
}
