// The invariants, checked after every commit on what was really written. Independent of next: it knows what must hold,
// not how it is decided. Each violation names its rule.
import { createHash } from 'node:crypto'
import type { CallKey, Limits, Proposal } from '../src/kernel/content.ts'
import type { Event } from '../src/kernel/event.ts'
import { open, type OpenSession, take } from '../src/kernel/fold.ts'
import { next } from '../src/kernel/next.ts'
import { EMPTY } from '../src/kernel/session.ts'
import type { Oracle } from './oracle.ts'

type CallRecord = {
  readonly proposal: Proposal
  readonly turn: number
  readonly runnable: boolean
  decision: boolean | null
  intents: number
  running: boolean
  result: number
}
type InputRecord = { readonly when: string; fate: 'pending' | 'swallowed' | 'shown' }
type RunRecord = { readonly seq: number; readonly limits: Limits; replies: number; toolCalls: number }

type Watched = {
  readonly fold: OpenSession
  readonly calls: Map<CallKey, CallRecord>
  readonly inputs: Map<number, InputRecord>
  readonly results: Map<number, boolean>
  readonly ids: Set<string>
  run: RunRecord | null
  lastStop: number
  epoch: number
  held: number
  spent: number
  broken: boolean
}

export type Seen = {
  events: number
  unknown: number
  lostCalls: number
  settled: number
  once: number
  idempotent: number
  read: number
}

export class Invariants {
  readonly violations: string[] = []
  readonly seen: Seen = { events: 0, unknown: 0, lostCalls: 0, settled: 0, once: 0, idempotent: 0, read: 0 }
  /** The newest epoch each session's lease was given out with, and to whom. */
  readonly leases = new Map<string, { readonly epoch: number; readonly worker: string }>()
  readonly #oracle: Oracle
  readonly #sessions = new Map<string, Watched>()
  readonly #hash = createHash('sha256')
  #digest: string | null = null

  constructor(oracle: Oracle) {
    this.#oracle = oracle
  }

  sessions(): ReadonlyMap<string, { readonly fold: OpenSession; readonly spent: number }> {
    return this.#sessions
  }

  /** The seed is over: what comes after this is not looked at. */
  close(): string {
    this.#digest ??= this.#hash.digest('hex').slice(0, 16)
    return this.#digest
  }

  take(session: string, events: readonly Event[]): void {
    if (this.#digest !== null) return
    const known = this.#sessions.get(session) ?? fresh()
    this.#sessions.set(session, known)
    for (const event of events) {
      const body = JSON.stringify(event)
      this.#hash.update(`${session} ${body}\n`)
      this.seen.events += 1
      if (known.broken) continue
      this.#check(session, known, JSON.parse(body) as Event)
    }
  }

  /** Everything must have come to rest: nothing open, nothing waiting, nothing owed. */
  settled(now: number): readonly string[] {
    const open: string[] = []
    for (const [id, { fold, broken }] of this.#sessions) {
      const decision = next(fold, { now, epoch: fold.epoch })
      const waits = decision.type === 'rest' && (decision.waiting === 'input' || decision.waiting === 'nothing')
      if (!broken && (!waits || fold.inputs.length > 0))
        open.push(`${id}: ${decision.type} ${JSON.stringify(decision).slice(0, 160)}`)
    }
    return open
  }

  #fail(session: string, event: Event, rule: string): void {
    this.violations.push(`${session}@${event.seq} ${event.type}: ${rule}`)
  }

  #check(session: string, w: Watched, e: Event): void {
    const fail = (rule: string): void => this.#fail(session, e, rule)
    if (e.at < w.fold.at) fail('I1 time went back')
    if (e.epoch > 0 && e.epoch < w.epoch) fail('I2 an older epoch wrote after a newer one')
    if (e.epoch > 0 && e.epoch !== this.leases.get(session)?.epoch) fail('I3 a worker without the lease wrote')
    w.epoch = Math.max(w.epoch, e.epoch)
    this.#rules(session, w, e, fail)
    try {
      take(w.fold, e)
    } catch (error) {
      w.broken = true
      fail(`I4 the log cannot be folded: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  #rules(session: string, w: Watched, e: Event, fail: (rule: string) => void): void {
    if (e.epoch === 0 && 'id' in e) {
      if (w.ids.has(e.id)) fail(`I5 the id ${e.id} is in the log twice`)
      w.ids.add(e.id)
    }
    switch (e.type) {
      case 'user.message':
        w.inputs.set(e.seq, { when: e.when, fate: 'pending' })
        return
      case 'user.interrupt':
        if (e.mode === 'stop') w.lastStop = e.seq
        return
      case 'user.tool_confirmation':
        return decided(w, e)
      case 'run.started':
        for (const seq of e.inputs)
          if (seq < w.lastStop) fail(`I6 input ${seq} starts a run after an interrupt stopped it`)
        w.run = { seq: e.seq, limits: e.limits, replies: 0, toolCalls: 0 }
        return
      case 'model.started':
        return this.#asked(w, e, fail)
      case 'agent.message':
        return this.#replied(w, e)
      case 'model.failed':
        if (e.class === 'lost') this.seen.lostCalls += 1
        if (e.class === 'lost') w.spent += w.held
        return
      case 'agent.tool_use':
        return this.#intended(session, w, e, fail)
      case 'agent.custom_tool_use':
        if (w.calls.get(e.call)?.proposal.gate?.type !== 'outside') fail('I7 a call was handed out that is ours')
        return
      case 'agent.tool_result':
        return this.#resulted(session, w, e, fail)
      case 'run.settled':
        return this.#concluded(w, e, fail)
      default:
        return
    }
  }

  #asked(w: Watched, e: Extract<Event, { type: 'model.started' }>, fail: (rule: string) => void): void {
    if (stopped(w)) fail('I8 a model was called after an interrupt')
    if (w.run && w.run.replies >= w.run.limits.modelRequests) fail('I9 more model requests than the limit')
    for (const seq of e.shows) {
      const input = w.inputs.get(seq)
      if (input?.fate === 'shown') fail(`I10 input ${seq} is shown twice`)
      if (input) input.fate = 'shown'
      if (w.results.get(seq)) fail(`I10 result ${seq} is shown twice`)
      if (w.results.has(seq)) w.results.set(seq, true)
    }
    for (const [seq, input] of w.inputs) {
      if (input.fate === 'swallowed' || (input.fate === 'pending' && input.when !== 'after'))
        fail(`I11 input ${seq} was admitted before this request and is not in it`)
    }
    for (const [seq, shown] of w.results) if (!shown) fail(`I11 result ${seq} is not in the request that follows it`)
    w.held = e.held ?? 0
  }

  #replied(w: Watched, e: Extract<Event, { type: 'agent.message' }>): void {
    const { run } = w
    const calls = (run?.toolCalls ?? 0) + e.calls.length
    const over = run !== null && run.limits.toolCalls !== null && calls > run.limits.toolCalls
    if (run) run.replies += 1
    if (run && !over) run.toolCalls = calls
    if (w.held > 0) w.spent += e.cost ?? 0
    for (const [index, proposal] of e.calls.entries()) {
      const record = { proposal, turn: e.seq, runnable: !over, decision: null, intents: 0, running: false, result: 0 }
      w.calls.set(`${e.seq}.${index}`, record)
    }
  }

  #intended(
    session: string,
    w: Watched,
    e: Extract<Event, { type: 'agent.tool_use' }>,
    fail: (rule: string) => void,
  ): void {
    const call = w.calls.get(e.call)
    if (!call) return fail('I12 an intent for a call nobody proposed')
    const { gate, effect } = call.proposal
    const siblings = [...w.calls.values()].filter((c) => c.turn === call.turn)
    const running = siblings.filter((c) => c.running && c !== call).length
    const serial = siblings.some((c) => c.proposal.sequential && c.result === 0)
    call.intents += 1
    if (call.result > 0) fail('I13 an intent for a call that has its result')
    if (effect === 'once' && call.intents > 1) fail('I14 a second intent for a once call')
    if (!call.runnable) fail('I15 a call of a batch over the limit runs')
    if (stopped(w)) fail('I16 a call starts after an interrupt')
    if (gate?.type === 'ask' && call.decision !== true) fail('I17 a call runs that was not allowed')
    if (gate?.type === 'refuse' || gate?.type === 'outside') fail('I18 a call runs that is not ours to run')
    if (siblings.some((c) => c.proposal.gate?.type === 'ask' && c.decision === null && c.result === 0))
      fail('I19 a sibling of an open question runs')
    if (serial ? running > 0 : running >= (w.run?.limits.parallel ?? 0)) fail('I20 too many calls at once')
    call.running = true
    if (call.intents === 1) this.seen[effect] += 1
    this.#oracle.intents.add(`${session}:${e.call}`)
  }

  #resulted(
    session: string,
    w: Watched,
    e: Extract<Event, { type: 'agent.tool_result' }>,
    fail: (rule: string) => void,
  ): void {
    const call = w.calls.get(e.call)
    if (!call) return fail('I21 a result for a call nobody proposed')
    if (call.result > 0) fail('I22 a second result for one call')
    call.result = e.seq
    call.running = false
    w.results.set(e.seq, false)
    if (e.status === 'unknown') this.seen.unknown += 1
    const { gate } = call.proposal
    if (e.status === 'denied' && call.decision === true) fail('I23 a call that was allowed is denied')
    if (gate?.type === 'ask' && call.decision === false && e.status !== 'denied' && e.status !== 'aborted')
      fail('I24 a call that was denied has another result')
    const ours = gate === undefined || gate.type === 'ask'
    if (e.status === 'ok' && ours && !this.#oracle.executed(session, e.call)) fail('I25 a call is ok that never ran')
  }

  #concluded(w: Watched, e: Extract<Event, { type: 'run.settled' }>, fail: (rule: string) => void): void {
    this.seen.settled += 1
    for (const seq of e.inputs ?? []) {
      const input = w.inputs.get(seq)
      if (input?.fate !== 'pending') fail(`I26 input ${seq} is swallowed that was not waiting`)
      if (input) input.fate = 'swallowed'
    }
    const waiting = [...w.inputs].filter(([, input]) => input.fate === 'pending')
    if (e.outcome.type === 'completed' && waiting.some(([, input]) => input.when !== 'after' && w.run))
      fail('I27 completed while steering waits')
    if (e.outcome.type === 'interrupted' && waiting.some(([seq]) => seq < w.lastStop))
      fail('I28 an interrupt left input from before it waiting')
    w.run = null
  }
}

function fresh(): Watched {
  const maps = { calls: new Map(), inputs: new Map(), results: new Map(), ids: new Set<string>() }
  return { fold: open(EMPTY), ...maps, run: null, lastStop: 0, epoch: 0, held: 0, spent: 0, broken: false }
}

/** An interrupt came in this run, and the run has not settled yet. */
function stopped(w: Watched): boolean {
  return w.run !== null && w.lastStop > w.run.seq
}

/** The first valid decision stands: for the exact action, in time, while the call is open. */
function decided(w: Watched, e: Extract<Event, { type: 'user.tool_confirmation' }>): void {
  const call = w.calls.get(e.call)
  if (!call || call.result > 0 || call.decision !== null || call.proposal.gate?.type !== 'ask') return
  const { expiresAt } = call.proposal.gate
  if (e.digest !== call.proposal.digest || (expiresAt !== null && e.at > expiresAt)) return
  call.decision = e.allow
}
