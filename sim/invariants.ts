// The invariants, checked after every commit on what was really written. Independent of next: it knows what must hold,
// not how it is decided. Each violation names its rule. What concerns children, hooks, money and notices stands beside it.
import { writerTime } from '../src/kernel/clock.ts'
import { createHash } from 'node:crypto'
import type { Outcome, Proposal, Usage } from '../src/kernel/content.ts'
import type { Event, EventOf } from '../src/kernel/event.ts'
import { isLaneAgent } from '../src/view/lanes.ts'
import { take } from '../src/kernel/fold.ts'
import { next } from '../src/kernel/next.ts'
import { FAILURES_MAX } from '../src/context/window-fill.ts'
import { textOf } from '../src/view/shown-text.ts'
import { type Cast, RETRY_AFTER_MS } from './cast.ts'
import { Families } from './families.ts'
import { Flows } from './flows.ts'
import { Guarding } from './guarding.ts'
import { Money } from './money.ts'
import type { Oracle } from './oracle.ts'
import { isVerb, programOf } from './programs.ts'
import { Trees } from './trees.ts'
import { Verdicts } from './verdicts.ts'
import {
  answered,
  answererOf,
  type CallRecord,
  decided,
  exhaustedIn,
  type Fail,
  fresh,
  imported,
  isEarly,
  isForChild,
  type Leases,
  record,
  reviewed,
  scheduled,
  steered,
  stopped,
  type Watched,
} from './watched.ts'

/** The wake that no clock in the simulation ever reaches. */
export const FAR = 'far'

const COUNTED = ['events', 'unknown', 'lostCalls', 'settled', 'once', 'idempotent', 'read', 'stopped', 'cut'] as const
const STEERED = [
  'detached',
  'reports',
  'waits',
  'children',
  'deepest',
  'questions',
  'pauses',
  'choices',
  'broke',
  'notices',
  'nudges',
  'halts',
  'cleared',
  'cuts',
  'edits',
  'scheduled',
  'unscheduled',
  'later',
] as const
export type Seen = Record<(typeof COUNTED)[number] | (typeof STEERED)[number], number>

export class Invariants {
  readonly violations: string[] = []
  readonly seen = Object.fromEntries([...COUNTED, ...STEERED].map((name) => [name, 0])) as Seen
  readonly leases: Leases = new Map()
  readonly money: Money
  readonly verdicts: Verdicts
  readonly trees: Trees
  readonly flows = new Flows()
  readonly #families = new Families()
  readonly #guarding: Guarding
  readonly #oracle: Oracle
  /** The instructions that messages brought for their runs: by message, and by the options that a fork takes along. */
  readonly #chosen = new Map<string, string>()
  readonly #sessions = new Map<string, Watched>()
  readonly #hash = createHash('sha256')
  #digest: string | null = null
  #open: Watched | null = null
  /** Those that wait for the next commit. */
  readonly #looking: (() => void)[] = []

  constructor(oracle: Oracle, cast: Cast) {
    this.#oracle = oracle
    this.money = new Money(cast)
    this.#guarding = new Guarding(cast)
    const complain = (rule: string): void => void this.violations.push(rule)
    this.trees = new Trees(this.#sessions, this.leases, complain)
    this.verdicts = new Verdicts({ cast, leases: this.leases, sessions: this.#sessions, oracle, complain })
  }

  /** The sessions with a call that is asked about, or that somebody outside must answer. */
  readonly asking = new Set<string>()
  /** The runs of roots that settled here, in order. */
  readonly ended = new Map<string, readonly { readonly seq: number; readonly outcome: Outcome['type'] }[]>()

  sessions(): ReadonlyMap<string, Readonly<Pick<Watched, 'fold' | 'cutAt' | 'repliedAt' | 'full'>>> {
    return this.#sessions
  }

  definitionOf(tool: string): string | undefined {
    return this.#oracle.definitions.get(tool)
  }

  /** Is this a child whose parent still waits for a word of it? */
  awaited(session: string): boolean {
    const { parent } = this.#sessions.get(session)?.fold ?? {}
    const call = parent && this.#sessions.get(parent.session)?.calls.get(parent.call)
    return call !== undefined && call !== null && call.handed > 0 && call.answer === 0 && call.result === 0
  }

  /** The seed is over: what comes after this is not looked at. */
  close(): string {
    this.#digest ??= this.#hash.digest('hex').slice(0, 16)
    return this.#digest
  }

  /** Sessions that were removed, also those whose id is used again. */
  readonly gone = new Set<string>()

  /** The session is removed: what comes under its id is another. */
  forget(session: string): void {
    this.gone.add(session)
    this.#sessions.delete(session)
    this.leases.delete(session)
    this.#oracle.forget(session)
  }

  /** The last event of the session that was taken. */
  seqOf(session: string): number {
    return this.#sessions.get(session)?.fold.seq ?? 0
  }

  take(session: string, events: readonly Event[]): void {
    if (this.#digest !== null) return
    const known = this.#sessions.get(session) ?? fresh()
    this.#sessions.set(session, known)
    const arrives = events[0]?.seq === 1 && events.at(-1)?.type === 'session.imported'
    for (const event of events) {
      const body = JSON.stringify(event)
      this.#hash.update(`${session} ${body}\n`)
      this.seen.events += 1
      if (known.broken) continue
      if (arrives) this.#restore(session, known, JSON.parse(body) as Event)
      else this.#check(session, known, JSON.parse(body) as Event)
    }
    if (waitingIn(known.fold)) this.asking.add(session)
    else this.asking.delete(session)
  }

  /** Events from another store are not checked here: they were checked there, or never happened. */
  #restore(session: string, w: Watched, e: Event): void {
    const deaf: Fail = () => {}
    if (e.type === 'session.created' || e.type === 'run.started') {
      this.money.take(session, e, deaf)
      this.#families.take(session, w, e, deaf)
    }
    this.#guarding.take(session, w, e, deaf)
    if (e.type === 'session.created' || e.type === 'session.imported') w.program = e.program ?? null
    w.epoch = Math.max(w.epoch, e.epoch)
    // A file may say that a call runs: nothing of this session does.
    if (e.type === 'agent.tool_use') {
      const call = w.calls.get(e.call)
      if (call) call.intents += 1
    } else this.#rules(session, w, e, deaf)
    take(w.fold, e)
    paid(w, e, deaf)
  }

  /** One commit has been taken, with all the sessions it wrote to. */
  committed(): void {
    if (this.#digest !== null) return
    this.violations.push(...this.#families.committed(this.#sessions), ...this.money.committed())
    for (const look of this.#looking.splice(0)) look()
  }

  /** Resolves after the next commit. */
  nextCommit(): Promise<void> {
    return new Promise((resolve) => void this.#looking.push(resolve))
  }

  /** Everything must have come to rest: nothing open, nothing waiting, nothing owed. */
  settled(now: number): readonly string[] {
    return [...this.#sessions].flatMap(([id, watched]) => {
      if (isSettled(watched, now)) return []
      const decision = next(watched.fold, { now, epoch: watched.fold.epoch })
      return [`${id}: ${decision.type} ${JSON.stringify(decision).slice(0, 160)}`]
    })
  }

  /** The one that was open last is asked first: most often it still is. */
  isSettled(now: number): boolean {
    if (this.#open && !isSettled(this.#open, now)) return false
    for (const watched of this.#sessions.values()) {
      if (isSettled(watched, now)) continue
      this.#open = watched
      return false
    }
    return true
  }

  #check(session: string, w: Watched, e: Event): void {
    const fail = (rule: string): void => void this.violations.push(`${session}@${e.seq} ${e.type}: ${rule}`)
    if (e.at < w.fold.at) fail('I1 time went back')
    if (e.epoch > 0 && e.epoch < w.epoch) fail('I2 an older epoch wrote after a newer one')
    if (e.epoch > 0 && e.epoch !== this.leases.get(session)?.epoch) fail('I3 a worker without the lease wrote')
    if (w.fold.seq === 0 && e.type !== 'session.created' && this.gone.has(session))
      fail('X1 something is written to a session that was removed')
    if (w.closed && e.type !== 'session.closed') fail('X5 a session that is closed goes on')
    if (e.type === 'session.closed') w.closed = true
    this.#programs(session, w, e, fail)
    if (e.epoch > 0 && w.held) fail('I39 an imported session is driven before anybody let it go on')
    w.epoch = Math.max(w.epoch, e.epoch)
    // No hook was asked about the events that a new session begins with, and they cost nothing.
    const brought = e.epoch === 0 && !('id' in e)
    // No hook is about lanes.
    const hooked = !isLaneAgent(w.fold.agent)
    if (hooked && (!brought || e.type === 'session.created')) this.verdicts.take(session, w, e, fail)
    this.#guarding.take(session, w, e, fail)
    this.money.take(session, e, fail)
    this.#rules(session, w, e, fail)
    this.#families.take(session, w, e, fail)
    this.flows.take(session, w, e, fail)
    this.trees.take(session, w, e, fail)
    this.#count(e)
    if (e.type === 'run.settled' && w.fold.parent === null && !isLaneAgent(w.fold.agent)) {
      const runs = this.ended.get(session) ?? []
      this.ended.set(session, [...runs, { seq: e.seq, outcome: e.outcome.type }])
    }
    try {
      take(w.fold, e)
      paid(w, e, fail)
      if (e.type === 'session.closed') w.wakes.clear()
      const kept = w.fold.wakes.map(({ key }) => key)
      if (kept.length !== w.wakes.size || !kept.every((key) => w.wakes.has(key))) fail('I53 a wake is lost')
    } catch (error) {
      w.broken = true
      fail(`I4 the log cannot be folded: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  /** Only workers of the program that made a session drive it. */
  #programs(session: string, w: Watched, e: Event, fail: Fail): void {
    if (e.type === 'session.created') {
      w.program = e.program ?? null
      if (e.parent && this.#sessions.get(e.parent.session)?.program !== w.program)
        fail(`N2 a child is of the program "${w.program}", and its parent is not`)
    }
    if (e.epoch === 0 || w.program === null) return
    const { worker = '' } = this.leases.get(session) ?? {}
    if (!isVerb(worker) && w.program !== programOf(worker))
      fail(`N1 ${worker} drives a session of the program "${w.program}"`)
  }

  #count(e: Event): void {
    const { seen } = this
    if (e.type === 'session.created' && e.parent) {
      seen.children += 1
      if (e.parent.detached) seen.detached += 1
      seen.deepest = Math.max(seen.deepest, e.parent.depth)
    } else if (e.type === 'run.settled') {
      seen.settled += 1
      if (e.outcome.type === 'limit' && e.outcome.limit === 'usd') seen.broke += 1
      if (e.outcome.type === 'halted') seen.halts += 1
    } else if (e.type === 'note.added') {
      if (e.kind === 'limit') seen.notices += 1
      if (e.kind === 'nudge') seen.nudges += 1
    } else if (e.type === 'user.interrupt' && e.mode === 'pause') seen.pauses += 1
    else if (e.type === 'user.message' && e.notBefore !== undefined) seen.later += 1
    else if (e.type === 'user.message' && e.report !== undefined) seen.reports += 1
    else if (e.type === 'agent.message')
      seen.waits += e.calls.filter((call) => answererOf(call)?.awaits !== undefined).length
    else if (e.type === 'user.custom_tool_result' && e.parent !== undefined) seen.questions += 1
    else if (e.type === 'model.failed' && e.class === 'lost') seen.lostCalls += 1
    else if (e.type === 'agent.tool_result' && e.status === 'unknown') seen.unknown += 1
  }

  #rules(session: string, w: Watched, e: Event, fail: Fail): void {
    if (e.epoch === 0 && 'id' in e) {
      if (w.ids.has(e.id)) fail(`I5 the id ${e.id} is in the log twice`)
      w.ids.add(e.id)
    }
    switch (e.type) {
      case 'user.message':
        if (e.pin) this.#oracle.pin(session, e.seq, textOf(e.parts))
        if (e.options?.instructions !== undefined) this.#chosen.set(`${session}:${e.seq}`, e.options.instructions)
        return steered(w, e)
      case 'user.interrupt':
        return steered(w, e)
      case 'user.schedule':
      case 'user.unschedule':
        this.seen[e.type === 'user.schedule' ? 'scheduled' : 'unscheduled'] += 1
        return scheduled(w, e)
      case 'user.tool_confirmation':
        return decided(w, e)
      case 'user.custom_tool_result':
        return answered(w, e)
      case 'run.started': {
        const said = e.inputs.flatMap((seq) => this.#chosen.get(`${session}:${seq}`) ?? []).at(-1)
        const own = said ?? this.#chosen.get(e.options ?? '')
        if (own !== undefined) this.seen.choices += 1
        if (own !== undefined && e.options !== undefined) this.#chosen.set(e.options, own)
        // What came from elsewhere is made anew here, and so is what the next run shows.
        if (e.foreign || (own === undefined && w.prefix === 0)) w.prefix = e.seq
        this.#oracle.begun(session, { run: e.seq, own: own ?? null, epoch: w.prefix })
        if (e.foreign) w.prefix = 0
        return begun(w, e, fail)
      }
      case 'model.started':
        return asked(w, e, fail)
      case 'agent.message':
        e.calls.forEach(({ place }, i) => this.#oracle.admit(`${session}:${e.seq}.${i}`, place))
        return replied(w, e, fail)
      case 'model.failed':
        return this.#failed(session, w, e, fail)
      case 'wake.scheduled':
        return void w.wakes.add(e.key)
      case 'agent.tool_use':
        return this.#intended(session, w, e, fail)
      case 'agent.custom_tool_use':
        return handed(w, e, fail)
      case 'agent.tool_result':
        return this.#resulted(session, w, e, fail)
      case 'run.deferred':
        if (e.retryAt <= writerTime(e)) fail('I57 a run that cannot begin is tried again without a wait')
        return
      case 'run.settled':
        return concluded(w, e, fail)
      case 'context.compacted':
        this.#oracle.compacted(session, e.seq)
        return this.#compacted(w, e, isVerb(this.leases.get(session)?.worker ?? ''), fail)
      case 'session.imported':
        w.prefix = 0
        this.#forgetOptions(session, e.seq)
        return imported(w)
      case 'run.reviewed':
        if (w.run) w.run.limits = e.limits
        return
      case 'call.reviewed':
        this.#oracle.admit(`${session}:${e.call}`, e.place)
        if (e.edit !== undefined) this.seen.edits += 1
        return reviewed(w, e, fail)
      default:
        return
    }
  }

  /** A context is made shorter only where something came since: a reply for a cut, a result for what is cleared. People may ask again. */
  #compacted(w: Watched, e: EventOf<'context.compacted'>, byHand: boolean, fail: Fail): void {
    const isAsked = e.usage !== undefined || e.cost !== undefined
    if (isAsked && !byHand && w.compactFailures >= FAILURES_MAX)
      fail('I59 a summary is asked for after summaries failed too often')
    if (e.failed !== undefined) w.compactFailures += 1
    if (e.cleared !== undefined) {
      this.seen.cleared += 1
      if (e.cleared <= w.cleared) fail('I58 results are cleared that were cleared before')
      w.cleared = e.cleared
    }
    if (e.cut === undefined) return
    this.seen.cuts += 1
    if (!byHand && w.cutAt > 0 && w.repliedAt < w.cutAt) fail('I58 a context is cut twice without a reply between')
    w.cutAt = e.seq
    w.prefix = 0
    if (e.failed === undefined) w.compactFailures = 0
  }

  /** No option of a file counts, neither of its messages nor of its open run. */
  #forgetOptions(session: string, seq: number): void {
    for (const key of this.#chosen.keys()) if (key.startsWith(`${session}:`)) this.#chosen.delete(key)
    this.#oracle.begun(session, { run: seq, own: null, epoch: seq })
  }

  /** Failures of the provider, counted again: how long they last, and how many of its answers were cut. */
  #failed(session: string, w: Watched, e: EventOf<'model.failed'>, fail: Fail): void {
    spent(w, e.usage)
    w.full = e.class === 'overflow'
    if (e.class === 'superseded' || e.class === 'interrupted') this.seen.stopped += 1
    if (e.class === 'lost') w.run?.losses.add(e.epoch)
    if (e.class === 'superseded' || e.class === 'interrupted' || e.class === 'lost') return
    if (w.failedAt === 0) w.failedAt = e.at
    this.#waits(`${session}:${w.asked}`, e, fail)
    if (!this.#oracle.hasSpoken(session, w.asked)) return
    this.seen.cut += 1
    w.cuts += 1
    if (e.partial !== 'Half') fail('I54 what was shown of a cut answer is not in the log')
    if (w.cuts >= CUTS_SOON_MAX && waitOf(e) < CUT_WAIT_MS - WRITTEN_MS_MAX)
      fail('I55 a fifth answer is asked for soon after four were cut')
  }

  /** What a failure costs that nobody knows the price of, and when its request is made again. */
  #waits(request: string, e: EventOf<'model.failed'>, fail: Fail): void {
    const { resets, putOff } = this.#oracle
    if (resets.has(request) && !e.assumed) fail('M5 a reset after the head of an answer is free')
    if (e.retryAt !== undefined && waitOf(e) > RETRY_AFTER_MS * 1.25)
      fail('I60 a wait for a provider is longer than any that was asked for')
    if (putOff.has(request) && waitOf(e) < RETRY_AFTER_MS - WRITTEN_MS_MAX)
      fail('I60 a provider is asked before the time that it said')
  }

  #intended(session: string, w: Watched, e: EventOf<'agent.tool_use'>, fail: Fail): void {
    const call = w.calls.get(e.call)
    if (!call) return fail('I12 an intent for a call nobody proposed')
    this.#oracle.intend(`${session}:${e.call}`, call.proposal.args)
    const { effect } = call.proposal
    const siblings = siblingsOf(w, call)
    const running = siblings.filter((c) => c.running && c !== call).length
    const serial = siblings.some((c) => c.proposal.sequential && c.result === 0)
    if (call.intents === 0) begins(w, call, fail)
    call.intents += 1
    if (effect === 'once' && call.intents > 1) fail('I14 a second intent for a once call')
    if (stopped(w)) fail('I16 a call starts after an interrupt')
    if (answererOf(call.proposal)) fail('I18 a call runs that is not ours to run')
    if (serial ? running > 0 : running >= (w.run?.limits.parallel ?? 0)) fail('I20 too many calls at once')
    if (call.running && call.intentEpoch < e.epoch) w.run?.losses.add(e.epoch)
    call.running = true
    call.intentEpoch = e.epoch
    if (call.intents === 1) this.seen[effect] += 1
    this.#oracle.intents.add(`${session}:${e.call}`)
  }

  #resulted(session: string, w: Watched, e: EventOf<'agent.tool_result'>, fail: Fail): void {
    const call = w.calls.get(e.call)
    if (!call) return fail('I21 a result for a call nobody proposed')
    if (call.result > 0) fail('I22 a second result for one call')
    const { gate, clear } = call.proposal
    const ready = call.intents === 0 && call.handed === 0 && (gate?.type !== 'ask' || call.decision === true)
    // A call that a hook holds back at the last moment does not count as a call.
    if (e.status === 'denied' && ready && clear && w.run) w.run.toolCalls -= 1
    call.result = e.seq
    if (call.running && call.intentEpoch < e.epoch && call.proposal.effect !== 'once' && w.run) {
      w.run.losses.add(e.epoch)
      w.run.abandoned = true
    }
    call.running = false
    call.ended = e.retryKind !== undefined ? 'retry' : e.status === 'ok' ? 'ok' : null
    w.results.set(e.seq, false)
    if (e.status === 'denied' && call.decision === true && !clear) fail('I23 a call that was allowed is denied')
    if (gate?.type === 'ask' && call.decision === false && e.status !== 'denied' && e.status !== 'aborted')
      fail('I24 a call that was denied has another result')
    // What a consumer, a cron job and a trigger do is looked at in listeners.ts, jobs.ts and deliveries.ts; what a grader answers in
    // pursuits.ts.
    const told =
      isLaneAgent(w.fold.agent) || /^(cron|trigger|outcome)\./.test(session) || call.proposal.tool === 'finalize'
    const ours = gate?.type !== 'refuse' && !answererOf(call.proposal) && !told
    if (e.status === 'ok' && ours && e.epoch > 0 && !this.#oracle.executed(session, e.call))
      fail('I25 a call is ok that never ran')
    if (e.from !== undefined && e.from !== call.answer) fail('I31 a result repeats another answer than the first')
    if (call.handed > 0 && e.from === undefined && e.status !== 'aborted' && !isLed(w, call.proposal, e))
      fail('I32 a call that was handed out has a result nobody gave')
    if (call.handed > 0 && e.status === 'aborted' && call.answer > 0) fail('I33 an answer that came is dropped')
  }
}

/** Questions first: a call that is asked about again may wait beside one that was handed out before. */
export function waitingIn({
  run,
}: Watched['fold']): NonNullable<NonNullable<typeof run>['turn']>['open'][number] | undefined {
  const open = run?.turn?.open ?? []
  return (
    open.find(({ state }) => state.type === 'asked') ??
    open.find(({ state, proposal }) => state.type === 'outside' && !isForChild(proposal))
  )
}

function isSettled({ fold, broken }: Watched, now: number): boolean {
  if (broken) return true
  if (fold.inputs.length > 0 || fold.wakes.some(({ key }) => key !== FAR)) return false
  const decision = next(fold, { now, epoch: fold.epoch })
  return decision.type === 'rest' && (decision.waiting === 'input' || decision.waiting === 'nothing')
}

/** Orders have their result with the hand-over; a wait has one when the report is there, or its time is over. */
function isLed({ fold, inputs }: Watched, proposal: Proposal, e: EventOf<'agent.tool_result'>): boolean {
  const { orders, awaits, since = 0, until = 0 } = answererOf(proposal) ?? {}
  if (awaits === undefined) return orders !== undefined
  const now = writerTime(e)
  const came = fold.inputs.some(
    ({ seq, report }) => report?.by === `session:${awaits}` && inputs.get(seq)?.fate === 'pending',
  )
  return came || now >= until || now < since
}

function siblingsOf(w: Watched, call: CallRecord): readonly CallRecord[] {
  return [...w.calls.values()].filter((c) => c.turn === call.turn)
}

/** What must hold whenever a call starts, in whatever way. */
function begins(w: Watched, call: CallRecord, fail: Fail): void {
  const { gate } = call.proposal
  if (call.result > 0) fail('I13 an intent for a call that has its result')
  if (call.foreign) fail('I37 a call from elsewhere starts that nobody was asked about here')
  if (!call.runnable) fail('I15 a call of a reply runs that must not go on')
  if (gate?.type === 'ask' && call.decision !== true) fail('I17 a call runs that was not allowed')
  if (gate?.type === 'refuse') fail('I18 a call runs that was refused')
  const isOpen = (c: CallRecord): boolean => c.result === 0 && (c.decision === null || c.edit !== null)
  if (siblingsOf(w, call).some((c) => c.proposal.gate?.type === 'ask' && isOpen(c)))
    fail('I19 a sibling of an open question runs')
  if (w.paused) fail('I29 a call starts while the session is paused')
}

function handed(w: Watched, e: EventOf<'agent.custom_tool_use'>, fail: Fail): void {
  const call = w.calls.get(e.call)
  if (!call || !answererOf(call.proposal)) return fail('I7 a call was handed out that is ours')
  if (call.handed > 0) fail('I30 a call is handed out twice')
  if (stopped(w)) fail('I16 a call starts after an interrupt')
  // An open question to a person comes along with a fork, so it does not begin here.
  if (e.epoch > 0) begins(w, call, fail)
  call.handed = e.seq
}

/** How often an answer may be cut in a row before the next request waits for half a minute at least. */
const CUTS_SOON_MAX = 4
const CUT_WAIT_MS = 30_000
/** A failure is written down later than it happened: the disk may be full meanwhile. */
const WRITTEN_MS_MAX = 5_000

/** How long the request waits until it is made again. One that is not made again waits for ever. */
function waitOf(e: EventOf<'model.failed'>): number {
  return e.retryAt === undefined ? Number.POSITIVE_INFINITY : e.retryAt - writerTime(e)
}

function begun(w: Watched, e: EventOf<'run.started'>, fail: Fail): void {
  for (const seq of e.inputs) if (seq < w.lastStop) fail(`I6 input ${seq} starts a run after an interrupt stopped it`)
  if (w.paused) fail('I29 a run starts while the session is paused')
  wokenBy(w, e, fail)
  w.failedAt = 0
  w.cuts = 0
  if (e.wakes.includes(FAR)) fail('T1 a wake comes long before its time')
  w.run = {
    seq: e.seq,
    limits: e.limits,
    replies: 0,
    toolCalls: 0,
    tokens: 0,
    cost: 0,
    ends: false,
    wide: new Map(),
    denied: new Set(),
    losses: new Set(),
    abandoned: false,
  }
  w.paused = false
}

/** Each wake begins one run, in its time, and so does each message for later. */
function wokenBy(w: Watched, e: EventOf<'run.started'>, fail: Fail): void {
  for (const key of e.wakes) {
    const time = w.times.get(key)
    if (!w.wakes.delete(key)) fail(`T3 the wake ${key} begins a run, and does not wait`)
    else if (time && isEarly(time, e)) fail(`T4 the wake ${key} begins a run before its time`)
    w.times.delete(key)
  }
  for (const seq of e.inputs) {
    const input = w.inputs.get(seq)
    if (input?.time && isEarly(input.time, e)) fail(`T5 message ${seq} is read before its time`)
    if (input) delete input.time
  }
}

function asked(w: Watched, e: EventOf<'model.started'>, fail: Fail): void {
  if (w.run?.abandoned) fail('I61 a run goes on without a lost call that could be repeated')
  if (w.repliedAt > w.asked) w.run?.losses.clear()
  w.asked = e.seq
  if (stopped(w)) fail('I8 a model was called after an interrupt')
  if (w.paused) fail('I29 a model is called while the session is paused')
  if (w.run && w.run.replies >= w.run.limits.modelRequests) fail('I9 more model requests than the limit')
  if (exhaustedIn(w) !== null) fail('I35 a model is called after a tool used up its retries')
  if (new Set(e.shows).size < e.shows.length) fail('I10 a request shows something twice')
  for (const seq of e.shows) {
    const input = w.inputs.get(seq)
    if (input?.fate === 'shown') fail(`I10 input ${seq} is shown twice`)
    // One that a stop consumed is shown with what comes next.
    if (input?.time && input.fate === 'pending') fail(`T5 message ${seq} is read in a run that it did not open`)
    if (input?.fate === 'held') fail(`I34 input ${seq} is shown that a hook held back`)
    if (input) input.fate = 'shown'
    if (w.results.get(seq)) fail(`I10 result ${seq} is shown twice`)
    if (w.results.has(seq)) w.results.set(seq, true)
  }
  for (const [seq, input] of w.inputs) {
    if (input.fate === 'swallowed' || (input.fate === 'pending' && input.when !== 'after'))
      fail(`I11 input ${seq} was admitted before this request and is not in it`)
  }
  for (const [seq, shown] of w.results) if (!shown) fail(`I11 result ${seq} is not in the request that follows it`)
}

function replied(w: Watched, e: EventOf<'agent.message'>, fail: Fail): void {
  const { run } = w
  w.failedAt = 0
  w.cuts = 0
  w.repliedAt = e.seq
  if (stopped(w)) fail('I50 a reply is taken that an interrupt stopped')
  for (const [seq, { when, fate }] of w.inputs) {
    if (when === 'now' && fate === 'pending' && seq > w.asked) fail(`I51 a reply is taken that input ${seq} superseded`)
  }
  const calls = (run?.toolCalls ?? 0) + (e.verdict.type === 'continue' ? e.calls.length : 0)
  const over = run !== null && run.limits.toolCalls !== null && calls > run.limits.toolCalls
  if (run) run.replies += 1
  if (run && !over) run.toolCalls = calls
  spent(w, e.usage)
  for (const [index, proposal] of e.calls.entries()) w.calls.set(`${e.seq}.${index}`, record(e, proposal, over))
}

/** What the events of a session and of its run cost is what the session says that they cost. */
function paid(w: Watched, e: Event, fail: Fail): void {
  const cost = 'cost' in e ? (e.cost ?? 0) : 0
  w.cost += cost
  if (w.run) w.run.cost += cost
  const { fold } = w
  if (fold.cost !== w.cost) fail(`I63 the session says that it cost ${fold.cost}, and its events cost ${w.cost}`)
  if (fold.run && fold.run.cost !== w.run?.cost)
    fail(`I63 the run says that it cost ${fold.run.cost}, and its events cost ${w.run?.cost}`)
}

function spent({ run }: Watched, usage: Usage | undefined): void {
  if (run && usage) run.tokens += usage.inputTokens + usage.outputTokens
}

function concluded(w: Watched, e: EventOf<'run.settled'>, fail: Fail): void {
  const { modelAttempts = null, outageMs = 0 } = w.run?.limits ?? {}
  const { class: kind = 'other' } = e.outcome.type === 'failed' ? e.outcome : {}
  const down = (kind === 'server' || kind === 'network') && modelAttempts === null
  if (down && w.failedAt > 0 && e.at - w.failedAt < outageMs)
    fail('I52 an outage settles a run that is to be tried for longer')
  // No outage of a seed lasts as long as a run is tried.
  if (!w.run && e.outcome.type === 'failed' && e.outcome.failure.kind === 'Unavailable')
    fail('I55 a run that cannot begin is given up while it is still patient')
  if (w.run && e.wakes) fail('I56 a run that began consumes wakes at its end')
  for (const key of e.wakes ?? []) w.wakes.delete(key)
  for (const seq of e.inputs ?? []) {
    const input = w.inputs.get(seq)
    if (input?.fate !== 'pending') fail(`I26 input ${seq} is swallowed that was not waiting`)
    if (input) input.fate = isHeld(w, e) ? 'held' : 'swallowed'
  }
  const waiting = [...w.inputs].filter(([, input]) => input.fate === 'pending')
  if (e.outcome.type === 'completed' && waiting.some(([, input]) => input.when !== 'after' && w.run))
    fail('I27 completed while steering waits')
  if (e.outcome.type === 'interrupted' && waiting.some(([seq]) => seq < w.lastStop))
    fail('I28 an interrupt left input from before it waiting')
  const spent = e.outcome.type === 'failed' && e.outcome.reason === 'tool_retries_exceeded'
  if (spent && exhaustedIn(w) === null) fail('I36 a run ends for retries that were not used up')
  const crashed = e.outcome.type === 'failed' && e.outcome.reason === 'crashed_too_often'
  if (crashed && w.run && w.run.losses.size < w.run.limits.lossesMax)
    fail('I62 a run is given up though fewer attempts were lost since its last whole turn')
  const timeUp = e.outcome.type === 'limit' && e.outcome.limit === 'active_ms'
  // No seed lasts longer than this.
  if (timeUp && (w.run?.limits.activeMs ?? 0) >= 60_000) fail('T2 a run ends for time that did not pass')
  w.run = null
  // What waits is still held.
  w.paused &&= waiting.length > 0
}

/** A hook said no to what would have begun a run, or could not be asked. */
function isHeld({ run }: Watched, { outcome }: EventOf<'run.settled'>): boolean {
  if (run !== null) return false
  return outcome.type === 'failed'
    ? outcome.reason === 'hook_error'
    : outcome.type === 'interrupted' && 'hook' in outcome
}
