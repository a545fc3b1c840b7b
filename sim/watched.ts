// One session as the invariants have seen it grow: its calls, its inputs, its run. Kept beside the fold and without it, so that
// a mistake of the fold cannot hide itself.
import type { CallKey, Limits, Outside, Proposal } from '../src/kernel/content.ts'
import { writerTime } from '../src/kernel/clock.ts'
import type { Event, EventOf } from '../src/kernel/event.ts'
import { open, type OpenSession } from '../src/kernel/fold.ts'
import { EMPTY } from '../src/kernel/session.ts'

export type CallRecord = {
  proposal: Proposal
  readonly turn: number
  /** Of its reply. */
  readonly epoch: number
  readonly runnable: boolean
  decision: boolean | null
  /** The decision that edited it, until its edit is admitted. */
  edit: EventOf<'user.tool_confirmation'> | null
  intents: number
  /** The epoch of its last intent. */
  intentEpoch: number
  running: boolean
  /** seq of its hand-over, of the first answer after that, and of its result; 0 before. */
  handed: number
  answer: number
  result: number
  /** How it ended, for the count of retries; null if neither. */
  ended: 'ok' | 'retry' | null
  /** It came with an import or a fork, and was not asked about in this session. */
  foreign: boolean
  /** It was asked about again. */
  again: boolean
}
type InputRecord = {
  readonly when: string
  fate: 'pending' | 'swallowed' | 'held' | 'shown'
  /** Of a message for later, until it opens its run. */
  time?: AskedTime
}
/** `at` is the time on the clock that asked. */
type AskedTime = { readonly due: number; readonly at: number }
export type RunRecord = {
  readonly seq: number
  limits: Limits
  replies: number
  toolCalls: number
  tokens: number
  cost: number
  /** A strict hook failed in it. */
  ends: boolean
  /** Calls with a valid approval for the whole run, and the actions that were denied. */
  readonly wide: Map<CallKey, string>
  readonly denied: Set<string>
  /** The epochs that recorded a loss since the last whole turn. */
  readonly losses: Set<number>
  /** A call that is safe to repeat was lost and has its result: it is not repeated. */
  abandoned: boolean
}

export type Watched = {
  readonly fold: OpenSession
  readonly calls: Map<CallKey, CallRecord>
  readonly inputs: Map<number, InputRecord>
  readonly results: Map<number, boolean>
  readonly ids: Set<string>
  run: RunRecord | null
  /** seq of the last request. */
  asked: number
  /** When the provider failed first since the last reply, 0 if it did not, and how often its answers were cut since then. */
  failedAt: number
  cuts: number
  readonly wakes: Set<string>
  /** The times of wakes that a host asked for, by key. */
  readonly times: Map<string, AskedTime>
  /** seq of the run that what is shown was made for; 0 if it is to be made. */
  prefix: number
  lastStop: number
  /** seq of the last pause of this session, and whether it holds. */
  lastPause: number
  /** seq of the last time that a call was asked about again, or of the answer to that. */
  lastReview: number
  /** seq of the last cut of its context, of the last reply, and up to where results are cleared. */
  cutAt: number
  repliedAt: number
  cleared: number
  compactFailures: number
  /** It waits for a person because its context is full. */
  full: boolean
  paused: boolean
  cost: number
  closed: boolean
  /** Of its creation; null where that named none. */
  program: string | null
  epoch: number
  broken: boolean
  /** It was imported, and was not released yet. */
  held: boolean
}

/** The newest epoch each session's lease was given out with, and to whom. */
export type Leases = Map<string, { readonly epoch: number; readonly worker: string }>

export type Fail = (rule: string) => void

export function fresh(): Watched {
  const maps = {
    calls: new Map(),
    inputs: new Map(),
    results: new Map(),
    ids: new Set<string>(),
    wakes: new Set<string>(),
    times: new Map(),
    prefix: 0,
  }
  const state = {
    run: null,
    asked: 0,
    failedAt: 0,
    cuts: 0,
    lastStop: 0,
    lastPause: 0,
    lastReview: 0,
    cutAt: 0,
    repliedAt: 0,
    cleared: 0,
    compactFailures: 0,
    full: false,
    paused: false,
    cost: 0,
    closed: false,
    program: null,
    epoch: 0,
    broken: false,
    held: false,
  }
  return { fold: open(EMPTY), ...maps, ...state }
}

export function record(e: EventOf<'agent.message'>, proposal: Proposal, over: boolean): CallRecord {
  const runnable = !over && e.verdict.type === 'continue'
  // Events that were there when the session was made have epoch 0: they come from another session.
  const foreign = e.epoch === 0
  const counts = {
    decision: null,
    edit: null,
    intents: 0,
    intentEpoch: 0,
    running: false,
    handed: 0,
    answer: 0,
    result: 0,
    ended: null,
    foreign,
    again: false,
  }
  return { proposal, turn: e.seq, epoch: e.epoch, runnable, ...counts }
}

/** An interrupt came in this run, and the run has not settled yet. */
export function stopped(w: Watched): boolean {
  return w.run !== null && w.lastStop > w.run.seq
}

/** What answers a call that no tool here executes. */
export function answererOf({ gate }: Proposal): Outside | undefined {
  if (gate?.type === 'outside') return gate
  return gate?.type === 'ask' ? gate.outside : undefined
}

/** A call for a child, or an answer to one. */
export function isForChild(proposal: Proposal): boolean {
  const outside = answererOf(proposal)
  return outside?.child !== undefined || outside?.answers !== undefined
}

/** The first valid decision stands: for the exact action, in time, while the call is open. */
export function decided(w: Watched, e: EventOf<'user.tool_confirmation'>): void {
  const call = w.calls.get(e.call)
  if (!call || call.foreign || call.result > 0 || call.decision !== null || call.proposal.gate?.type !== 'ask') return
  const { expiresAt, each = false } = call.proposal.gate
  if (e.digest !== call.proposal.digest || (expiresAt !== null && writerTime(e) > expiresAt)) return
  const { wide, denied } = w.run ?? { wide: new Map<CallKey, string>(), denied: new Set<string>() }
  const { same = '', place = '' } = call.proposal
  if (e.allow && e.under !== undefined && (each || wide.get(e.under) !== place || denied.has(same))) return
  if (e.edit && e.allow && e.under !== undefined) return
  call.decision = e.allow
  call.edit = e.allow && e.edit ? e : null
  if (call.again) w.lastReview = e.seq
  if (e.allow && e.scope === 'run' && !each) wide.set(e.call, place)
  if (e.allow) return
  wide.clear()
  denied.add(same)
}

/** The first answer after the hand-over stands. */
export function answered(w: Watched, e: EventOf<'user.custom_tool_result'>): void {
  const call = w.calls.get(e.call)
  if (e.denied) {
    w.run?.wide.clear()
    w.run?.denied.add(e.call)
  }
  if (call && call.handed > 0 && call.answer === 0 && call.result === 0) call.answer = e.seq
}

export function steered(w: Watched, e: EventOf<'user.message'> | EventOf<'user.interrupt'>): void {
  if (e.type === 'user.message') {
    const later = e.notBefore === undefined ? {} : { time: { due: e.notBefore, at: writerTime(e) } }
    w.inputs.set(e.seq, { when: e.when, fate: 'pending', ...later })
    if (e.when !== 'after') w.paused = false
    return
  }
  if (e.run !== undefined && e.run !== w.run?.seq) return
  if (e.mode !== 'resume') w.wakes.clear()
  if (e.mode === 'stop') w.lastStop = e.seq
  if (e.mode !== 'pause') w.held = false
  const waits = [...w.inputs.values()].some(({ fate }) => fate === 'pending')
  w.paused = e.mode === 'pause' && (w.run !== null || waits)
  if (w.paused) w.lastPause = e.seq
}

/** The first wake under a key stands. */
export function scheduled(w: Watched, e: EventOf<'user.schedule'> | EventOf<'user.unschedule'>): void {
  if (e.type === 'user.unschedule') w.wakes.delete(e.key)
  else if (!w.wakes.has(e.key)) {
    w.wakes.add(e.key)
    w.times.set(e.key, { due: e.due, at: writerTime(e) })
  }
}

const DAY_MS = 24 * 3_600_000

/** Whether this is before the time that was asked for, by the clock of the writer. A clock far ahead is not believed. */
export function isEarly({ due, at }: AskedTime, e: Event): boolean {
  const now = writerTime(e)
  return now < due && at <= now + DAY_MS
}

/** A tool that failed in more replies in a row than it may. Counted reply by reply, in whatever order its calls ended. */
export function exhaustedIn({ calls, run }: Watched): string | null {
  if (run === null) return null
  const ours = [...calls.values()].filter(({ turn }) => turn > run.seq)
  const spent = ours.find(({ proposal: { tool, retries = run.limits.toolRetries } }) => {
    const own = ours.filter(({ proposal }) => proposal.tool === tool)
    let inARow = 0
    for (const turn of new Set(own.map((call) => call.turn))) {
      const ends = own.filter((call) => call.turn === turn).map(({ ended }) => ended)
      if (ends.includes('ok')) inARow = 0
      if (ends.includes('retry')) inARow += 1
    }
    return inARow > retries
  })
  return spent?.proposal.tool ?? null
}

/** Everything before this was said in another store. */
export function imported(w: Watched): void {
  const waits = [...w.inputs.values()].some(({ fate }) => fate === 'pending')
  w.held = w.run !== null || waits || w.fold.wakes.length > 0
  for (const call of w.calls.values()) {
    if (call.result > 0 || call.handed > 0 || call.decision === false) continue
    call.foreign = call.proposal.gate?.type !== 'refuse'
    call.decision = null
    call.edit = null
    call.running = false
  }
}

/** It is asked about, or refused: no review lets a call through. */
export function reviewed(w: Watched, e: EventOf<'call.reviewed'>, fail: Fail): void {
  const call = w.calls.get(e.call)
  w.lastReview = e.seq
  if (!call || call.result > 0) return fail('I38 a call is reviewed that is not open')
  const { type: _type, seq: _seq, at: _at, wall: _wall, epoch: _epoch, call: _call, edit, ...terms } = e
  const { id, tool, args } = call.proposal
  const confirmed = edit !== undefined && edit === call.edit?.seq ? call.edit.edit : undefined
  if (edit !== undefined && !confirmed) fail('I60 an edit is admitted that no decision made')
  call.proposal = { id, tool, args: confirmed?.args ?? args, ...terms }
  call.foreign = false
  call.again = true
  call.running = false
  // A decision counts for the call that it edited, as it is defined and where it would act now.
  call.decision = confirmed && confirmed.digest === terms.digest ? true : null
  call.edit = null
  if (terms.effect !== 'once') call.intents = 0
  if (terms.gate?.type !== 'ask' && terms.gate?.type !== 'refuse') fail('I38 a review lets a call through unasked')
}
