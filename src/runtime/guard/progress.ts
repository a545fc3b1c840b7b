// Whether a run makes progress: a fold over the calls of its turns that counts repetitions: Continue → Nudge → Halt. It
// decides nothing else: guard.ts turns its advice into a note or an end. No clock, no I/O: the same events give the
// same advice.
import type { Proposal } from '../../kernel/content.ts'
import type { EventOf } from '../../kernel/event.ts'
import { countCheck, withoutUndefined, optionsChecker } from '../../options.ts'
import {
  type CallOutcome,
  callError,
  concernsModel,
  isPermanent,
  isRejected,
  isTransient,
  shrinkOutcome,
  isSameCall,
  isSameFailure,
  isSameOutput,
  hashOutput,
} from './call-outcome.ts'
import { haltText, nudgeText, permanentText, rejectedText, type Repetition } from './notices.ts'

/**
 * How many times in a row until the run is halted. A nudge comes at two thirds of that, and one turn never goes past a
 * nudge.
 */
export type BreakerOptions = {
  /** The same call with the same arguments and the same error. Default 3. */
  readonly identical?: number
  /** The same call, not allowed by a rule, a hook or a person. There is no nudge. Default 2. */
  readonly rejected?: number
  /** Failures of any calls. Default 6. */
  readonly failures?: number
  /** The same, for failures that may pass: time-outs, resets, rate limits. Defaults 8 and 12. */
  readonly identicalTransient?: number
  /** Failures of any calls that may pass: time-outs, resets, rate limits. Default 12. */
  readonly failuresTransient?: number
  /** Turns that made the same successful calls. Default 3. */
  readonly sameCalls?: number
  /** Turns of calls that only read and brought the same output. Default 4. */
  readonly sameOutput?: number
}

const DEFAULTS: Required<BreakerOptions> = {
  identical: 3,
  rejected: 2,
  failures: 6,
  identicalTransient: 8,
  failuresTransient: 12,
  sameCalls: 3,
  sameOutput: 4,
}

const timesCheck = countCheck(2)
const checkBreaker = optionsChecker<BreakerOptions>('breaker', {
  identical: timesCheck,
  rejected: timesCheck,
  failures: timesCheck,
  identicalTransient: timesCheck,
  failuresTransient: timesCheck,
  sameCalls: timesCheck,
  sameOutput: timesCheck,
})

function readThresholds(options: BreakerOptions): Required<BreakerOptions> {
  checkBreaker(options)
  return { ...DEFAULTS, ...withoutUndefined(options) }
}

export type BreakerAdvice = { readonly type: 'nudge' | 'halt'; readonly text: string }

type CountedTurn = {
  readonly n: number
  /** Needed until the calls have their results. */
  readonly calls: readonly Proposal[]
  readonly attempts: (CallOutcome | null)[]
  /** The model was nudged after this turn. */
  nudged: boolean
}

type AnswerEvent = EventOf<'user.custom_tool_result'>

/** All counts as plain JSON, with nothing large in it. */
export type SavedProgress = {
  readonly turns: number
  readonly open: CountedTurn | null
  readonly waiting: readonly CountedTurn[]
  readonly answers: readonly AnswerEvent[]
  readonly streaks: readonly Streak[]
  readonly failed: CallOutcome | null
  readonly failedIn: number
  readonly before: CountedTurn | null
  readonly permanent: CallOutcome | null
}

/** More turns than this wait only after a restart. Those beyond it are kept in a small form. */
const WHOLE_TURNS_MAX = 8

export class ProgressWatch {
  readonly #halts: Required<BreakerOptions>
  #turns = 0
  /** The last turn, until it is counted, and turns before it that were not yet counted. */
  #open: CountedTurn | null = null
  readonly #waiting: CountedTurn[] = []
  #answers: Map<number, AnswerEvent> | null = null
  readonly #same = new Streak()
  readonly #hard = new Streak()
  readonly #any = new Streak()
  readonly #calls = new Streak()
  readonly #outputs = new Streak()
  #failed: CallOutcome | null = null
  #failedIn = 0
  #before: CountedTurn | null = null
  #permanent: CallOutcome | null = null

  constructor(options: BreakerOptions) {
    this.#halts = readThresholds(options)
  }

  save(): SavedProgress {
    const small = (turn: CountedTurn | null): CountedTurn | null => turn && { ...shrinkTurn(turn), calls: [] }
    const [failed, permanent] = [this.#failed, this.#permanent]
    return {
      turns: this.#turns,
      open: this.#open && shrinkTurn(this.#open),
      waiting: this.#waiting.flatMap((turn) => small(turn) ?? []),
      answers: [...(this.#answers?.values() ?? [])],
      streaks: [this.#same, this.#hard, this.#any, this.#calls, this.#outputs],
      failed: failed && shrinkOutcome(failed),
      failedIn: this.#failedIn,
      before: small(this.#before),
      permanent: permanent && shrinkOutcome(permanent),
    }
  }

  /** Continues from saved counts. */
  restore(saved: SavedProgress): void {
    this.#turns = saved.turns
    this.#open = saved.open
    this.#waiting.push(...saved.waiting)
    this.#answers = saved.answers.length > 0 ? new Map(saved.answers.map((answer) => [answer.seq, answer])) : null
    const streaks = [this.#same, this.#hard, this.#any, this.#calls, this.#outputs]
    streaks.forEach((streak, i) => Object.assign(streak, saved.streaks[i]))
    this.#failed = saved.failed
    this.#failedIn = saved.failedIn
    this.#before = saved.before
    this.#permanent = saved.permanent
  }

  reset(): void {
    this.#turns = 0
    this.#open = null
    this.#waiting.length = 0
    this.#answers = null
    this.#permanent = null
    this.#succeeded()
    this.#varied()
  }

  reply({ calls, verdict }: EventOf<'agent.message'>): void {
    this.#turns += 1
    if (verdict.type === 'continue' && calls.length > 0) {
      const attempts: (CallOutcome | null)[] = []
      for (let i = 0; i < calls.length; i++) attempts.push(null)
      this.#open = { n: this.#turns, calls, attempts, nudged: false }
    } else if (verdict.type === 'final') {
      // The model answered, and a message asked for more.
      this.#waiting.length = 0
      this.#succeeded()
      this.#varied()
    }
  }

  answer(e: EventOf<'user.custom_tool_result'>): void {
    if (this.#open) (this.#answers ??= new Map()).set(e.seq, e)
  }

  result(e: EventOf<'agent.tool_result'>): void {
    // A turn with an invalid reply has its own budget, and is not counted here.
    if (!this.#open) return
    const index = Number(e.call.slice(e.call.indexOf('.') + 1))
    const call = this.#open.calls[index] as Proposal
    const answer = e.from === undefined ? undefined : this.#answers?.get(e.from)
    const { tool, effect, gate, args } = call
    const { status, failure, metadata = answer?.metadata } = e
    const output = answer ? answer.content : e.parts ? hashOutput(e.content, e.parts) : e.content
    this.#open.attempts[index] = { tool, effect, gate, args, print: null, status, failure, metadata, output }
  }

  /** A request was made. A turn that was not counted by now waits until the level is asked for next. */
  asked(): void {
    this.#answers = null
    if (this.#open) this.#wait(this.#open)
  }

  /** A nudge is in the log. */
  nudged(): void {
    const turn = this.#open ?? this.#waiting.at(-1)
    if (turn) turn.nudged = true
    else this.#told()
  }

  /** How close the run is to a halt. Calls of `pollers` do not count. `model` is the model that the run asks. */
  breakerLevel(pollers: ReadonlySet<string>, model: string): BreakerAdvice | null {
    if (this.#waiting.length > 0) {
      for (const turn of this.#waiting) this.#count(turn, pollers)
      this.#waiting.length = 0
    }
    if (this.#open) this.#count(this.#open, pollers)
    this.#open = null
    // In most turns nothing failed, and nothing was repeated.
    if (!this.#failed && !this.#permanent && this.#calls.count < 2 && this.#outputs.count < 2) return null
    return this.#halt(model) ?? this.#nudge()
  }

  #wait(turn: CountedTurn): void {
    this.#waiting.push(this.#waiting.length < WHOLE_TURNS_MAX ? turn : shrinkTurn(turn))
    this.#open = null
  }

  #count(turn: CountedTurn, pollers: ReadonlySet<string>): void {
    let ok = 0
    let failed = 0
    let reads = true
    for (let i = 0; i < turn.attempts.length; i++) {
      const attempt = turn.attempts[i]
      if (!attempt || attempt.status === 'aborted' || pollers.has(attempt.tool)) continue
      if (attempt.effect !== 'read') reads = false
      if (attempt.status === 'ok') ok += 1
      else {
        failed += 1
        if (isPermanent(attempt)) this.#permanent = attempt
      }
    }
    // Without a failure there is nothing that a success would end.
    if (ok > 0 && this.#failed) this.#succeeded()
    else if (ok === 0 && failed > 0) this.#fail(turn, pollers)
    if (ok < turn.attempts.length) this.#varied()
    else this.#repeat(turn, reads)
    if (turn.nudged) this.#told()
  }

  #fail({ n, attempts }: CountedTurn, pollers: ReadonlySet<string>): void {
    let hard = 0
    let any = 0
    for (const attempt of attempts) {
      if (!attempt || attempt.status === 'aborted' || pollers.has(attempt.tool)) continue
      this.#identical(attempt, n)
      // A wrong tool name is corrected by the answer it gets. Only the same name again and again is no progress.
      if (attempt.gate?.type === 'refuse' && attempt.failure?.kind === 'NotFound') continue
      any += 1
      if (!isTransient(attempt)) hard += 1
    }
    this.#hard.climb(hard, n, this.#halts.failures)
    this.#any.climb(any, n, this.#halts.failuresTransient)
  }

  /** Twice in one reply counts once: the model had not read the first failure. */
  #identical(attempt: CallOutcome, n: number): void {
    const before = this.#failed
    if (!before || !isSameFailure(before, attempt)) this.#same.begin(n)
    else if (this.#failedIn !== n) this.#same.count += 1
    this.#failed = attempt
    this.#failedIn = n
  }

  #repeat(turn: CountedTurn, reads: boolean): void {
    const before = this.#before
    this.#before = turn
    if (before && turnsAgree(before, turn, isSameCall)) this.#calls.count += 1
    else this.#calls.begin(turn.n)
    // A call that changes something may well answer the same each time.
    if (!reads) this.#outputs.clear()
    else if (before && this.#outputs.count > 0 && turnsAgree(before, turn, isSameOutput)) this.#outputs.count += 1
    else this.#outputs.begin(turn.n)
  }

  #succeeded(): void {
    this.#failed = null
    this.#same.clear()
    this.#hard.clear()
    this.#any.clear()
  }

  /** Only whole turns of successful calls without polling count as repetitions. */
  #varied(): void {
    this.#before = null
    this.#calls.clear()
    this.#outputs.clear()
  }

  #halt(model: string): BreakerAdvice | null {
    const [last, lost] = [this.#failed, this.#permanent]
    if (lost && concernsModel(lost, model)) return { type: 'halt', text: permanentText(lost.tool, callError(lost)) }
    if (last && this.#same.count >= this.#halts.rejected && isRejected(last))
      return { type: 'halt', text: rejectedText(last.tool, callError(last)) }
    const due = this.#streaks().find(([, { count }, halt]) => count >= halt)
    if (!due) return null
    const [what, { count }] = due
    const failed = what.type === 'call' || what.type === 'failures'
    return { type: 'halt', text: haltText(what, count, failed && last ? callError(last) : null) }
  }

  #nudge(): BreakerAdvice | null {
    const due = this.#streaks().find(([, { count, told }, halt]) => !told && count >= nudgeAt(halt))
    return due ? { type: 'nudge', text: nudgeText(due[0], due[1].count, due[1].since) } : null
  }

  #told(): void {
    for (const [, streak, halt] of this.#streaks()) if (streak.count >= nudgeAt(halt)) streak.told = true
  }

  /** Each count, with the number that ends the run. */
  #streaks(): readonly StreakLimit[] {
    const counted: StreakLimit[] = []
    const { identical, identicalTransient, failures, failuresTransient, sameCalls, sameOutput } = this.#halts
    if (this.#failed) {
      const halt = isTransient(this.#failed) ? identicalTransient : identical
      counted.push([{ type: 'call', tool: this.#failed.tool }, this.#same, halt])
      counted.push([FAILURES, this.#hard, failures], [FAILURES, this.#any, failuresTransient])
    }
    if (this.#calls.count > 1) counted.push([CALLS, this.#calls, sameCalls])
    if (this.#outputs.count > 1) counted.push([OUTPUTS, this.#outputs, sameOutput])
    return counted
  }
}

function shrinkTurn(turn: CountedTurn): CountedTurn {
  return { ...turn, attempts: turn.attempts.map((attempt) => attempt && shrinkOutcome(attempt)) }
}

type StreakLimit = readonly [what: Repetition, streak: Streak, halt: number]
const FAILURES = { type: 'failures' } as const
const CALLS = { type: 'calls' } as const
const OUTPUTS = { type: 'outputs' } as const

class Streak {
  count = 0
  since = 0
  told = false

  begin(n: number): void {
    this.count = 1
    this.since = n
    this.told = false
  }

  clear(): void {
    this.count = 0
    this.told = false
  }

  /**
   * One turn raises the level by one: a large batch that fails gets a nudge first, and a halt only if the next one
   * fails too.
   */
  climb(by: number, n: number, halt: number): void {
    if (this.count === 0) this.since = n
    this.count = this.count < nudgeAt(halt) ? Math.min(this.count + by, halt - 1) : this.count + by
  }
}

function nudgeAt(halt: number): number {
  return Math.min(Math.ceil((halt * 2) / 3), halt - 1)
}

function turnsAgree(a: CountedTurn, b: CountedTurn, alike: (a: CallOutcome, b: CallOutcome) => boolean): boolean {
  if (a.attempts.length !== b.attempts.length) return false
  for (let i = 0; i < a.attempts.length; i++) {
    const one = a.attempts[i]
    const other = b.attempts[i]
    if (!one || !other || !alike(one, other)) return false
  }
  return true
}
