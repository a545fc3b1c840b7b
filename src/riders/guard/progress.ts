// Does a run get anywhere? A fold over the calls of its turns that counts what repeats: Continue → Nudge → Halt.
// It decides nothing else: guard.ts turns its word into a note or an end. No clock, no I/O: the same events, the same word.
import type { Proposal } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { count, given, optionsOf } from '../../options.ts'
import { type CallOutcome, errorOf, isLostFor, isPermanent, isRejected, isTransient, sealed } from './call-outcome.ts'
import { isSameCall, isSameFailure, isSameOutput, shownAs } from './call-outcome.ts'
import { haltText, nudgeText, permanentText, rejectedText, type Repeated } from './notices.ts'

/** How often in a row, until the run is halted. A nudge comes at two thirds of it, and one turn never climbs past a nudge. */
export type BreakerOptions = {
  /** The same call with the same arguments and the same error. Default 3. */
  readonly identical?: number
  /** The same call, not allowed by a rule, a hook or a person. There is no nudge. Default 2. */
  readonly rejected?: number
  /** Failures of any calls. Default 6. */
  readonly failures?: number
  /** The same, for what may work later: time-outs, resets, rate limits. Defaults 8 and 12. */
  readonly identicalTransient?: number
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

const often = count(2)
const checkBreaker = optionsOf<BreakerOptions>('breaker', {
  identical: often,
  rejected: often,
  failures: often,
  identicalTransient: often,
  failuresTransient: often,
  sameCalls: often,
  sameOutput: often,
})

function thresholds(options: BreakerOptions): Required<BreakerOptions> {
  checkBreaker(options)
  return { ...DEFAULTS, ...given(options) }
}

export type Rung = { readonly type: 'nudge' | 'halt'; readonly text: string }
type Of<T extends Event['type']> = Extract<Event, { type: T }>

type Turn = {
  readonly n: number
  /** Needed until they have their results. */
  readonly calls: readonly Proposal[]
  readonly attempts: (CallOutcome | null)[]
  /** The model was nudged after it. */
  nudged: boolean
}

type Answer = Of<'user.custom_tool_result'>

/** All that was counted, as plain JSON, with nothing large in it. */
export type SavedProgress = {
  readonly turns: number
  readonly open: Turn | null
  readonly waiting: readonly Turn[]
  readonly answers: readonly Answer[]
  readonly streaks: readonly Streak[]
  readonly failed: CallOutcome | null
  readonly failedIn: number
  readonly before: Turn | null
  readonly permanent: CallOutcome | null
}

/** More turns than this wait only after a restart: then what they hold is made small. */
const WAITING_WHOLE = 8

export class Progress {
  readonly #halts: Required<BreakerOptions>
  #turns = 0
  /** The last turn, until it is counted, and turns before it that were not yet counted. */
  #open: Turn | null = null
  readonly #waiting: Turn[] = []
  #answers: Map<number, Answer> | null = null
  readonly #same = new Streak()
  readonly #hard = new Streak()
  readonly #any = new Streak()
  readonly #calls = new Streak()
  readonly #outputs = new Streak()
  #failed: CallOutcome | null = null
  #failedIn = 0
  #before: Turn | null = null
  #permanent: CallOutcome | null = null

  constructor(options: BreakerOptions) {
    this.#halts = thresholds(options)
  }

  save(): SavedProgress {
    const small = (turn: Turn | null): Turn | null => turn && { ...sealedTurn(turn), calls: [] }
    const [failed, permanent] = [this.#failed, this.#permanent]
    return {
      turns: this.#turns,
      open: this.#open && sealedTurn(this.#open),
      waiting: this.#waiting.flatMap((turn) => small(turn) ?? []),
      answers: [...(this.#answers?.values() ?? [])],
      streaks: [this.#same, this.#hard, this.#any, this.#calls, this.#outputs],
      failed: failed && sealed(failed),
      failedIn: this.#failedIn,
      before: small(this.#before),
      permanent: permanent && sealed(permanent),
    }
  }

  /** Goes on where another one was saved. */
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

  reply({ calls, verdict }: Of<'agent.message'>): void {
    this.#turns += 1
    if (verdict.type === 'continue' && calls.length > 0) {
      const attempts: (CallOutcome | null)[] = []
      for (let i = 0; i < calls.length; i++) attempts.push(null)
      this.#open = { n: this.#turns, calls, attempts, nudged: false }
    } else if (verdict.type === 'final') {
      // It answered, and a message asked for more.
      this.#waiting.length = 0
      this.#succeeded()
      this.#varied()
    }
  }

  answer(e: Of<'user.custom_tool_result'>): void {
    if (this.#open) (this.#answers ??= new Map()).set(e.seq, e)
  }

  result(e: Of<'agent.tool_result'>): void {
    // A turn whose reply was not valid as a whole has its own budget, and is not counted here.
    if (!this.#open) return
    const index = Number(e.call.slice(e.call.indexOf('.') + 1))
    const call = this.#open.calls[index] as Proposal
    const answer = e.from === undefined ? undefined : this.#answers?.get(e.from)
    const { tool, effect, gate, args } = call
    const { status, failure, metadata = answer?.metadata } = e
    const output = answer ? answer.content : e.parts ? shownAs(e.content, e.parts) : e.content
    this.#open.attempts[index] = { tool, effect, gate, args, print: null, status, failure, metadata, output }
  }

  /** A request was made. A turn that was not counted by now waits for the next question. */
  asked(): void {
    this.#answers = null
    this.#wait()
  }

  /** A nudge is in the log. */
  nudged(): void {
    const turn = this.#open ?? this.#waiting.at(-1)
    if (turn) turn.nudged = true
    else this.#told()
  }

  /** How far up the ladder the run is. Calls of `pollers` count for nothing. `model` is the one that the run asks. */
  breakerLevel(pollers: ReadonlySet<string>, model: string): Rung | null {
    if (this.#waiting.length > 0) {
      for (const turn of this.#waiting) this.#count(turn, pollers)
      this.#waiting.length = 0
    }
    if (this.#open) this.#count(this.#open, pollers)
    this.#open = null
    // Most turns: nothing failed, and nothing was done twice.
    if (!this.#failed && !this.#permanent && this.#calls.count < 2 && this.#outputs.count < 2) return null
    return this.#halt(model) ?? this.#nudge()
  }

  #wait(): void {
    if (!this.#open) return
    this.#waiting.push(this.#waiting.length < WAITING_WHOLE ? this.#open : sealedTurn(this.#open))
    this.#open = null
  }

  #count(turn: Turn, pollers: ReadonlySet<string>): void {
    let ok = 0
    let failed = 0
    for (let i = 0; i < turn.attempts.length; i++) {
      const attempt = turn.attempts[i]
      if (!attempt || attempt.status === 'aborted' || pollers.has(attempt.tool)) continue
      if (attempt.status === 'ok') ok += 1
      else {
        failed += 1
        if (isPermanent(attempt)) this.#permanent = attempt
      }
    }
    if (ok > 0) this.#succeeded()
    else if (failed > 0) this.#fail(turn, pollers)
    if (ok < turn.attempts.length) this.#varied()
    else this.#repeat(turn)
    if (turn.nudged) this.#told()
  }

  #fail({ n, attempts }: Turn, pollers: ReadonlySet<string>): void {
    let hard = 0
    let any = 0
    for (const attempt of attempts) {
      if (!attempt || attempt.status === 'aborted' || pollers.has(attempt.tool)) continue
      this.#identical(attempt, n)
      // A name that does not exist is corrected by the answer it gets: only the same name again and again is no progress.
      if (attempt.gate?.type === 'refuse' && attempt.failure?.kind === 'NotFound') continue
      any += 1
      if (!isTransient(attempt)) hard += 1
    }
    this.#hard.climb(hard, n, this.#halts.failures)
    this.#any.climb(any, n, this.#halts.failuresTransient)
  }

  /** Twice in one reply is once: the model had not read the first failure. */
  #identical(attempt: CallOutcome, n: number): void {
    const before = this.#failed
    if (!before || !isSameFailure(before, attempt)) this.#same.begin(n)
    else if (this.#failedIn !== n) this.#same.count += 1
    this.#failed = attempt
    this.#failedIn = n
  }

  #repeat(turn: Turn): void {
    const before = this.#before
    this.#before = turn
    if (before && agree(before, turn, isSameCall)) this.#calls.count += 1
    else this.#calls.begin(turn.n)
    // What acts may well answer the same each time.
    if (!turn.attempts.every((attempt) => attempt?.effect === 'read')) this.#outputs.clear()
    else if (before && this.#outputs.count > 0 && agree(before, turn, isSameOutput)) this.#outputs.count += 1
    else this.#outputs.begin(turn.n)
  }

  #succeeded(): void {
    this.#failed = null
    this.#same.clear()
    this.#hard.clear()
    this.#any.clear()
  }

  /** Only whole turns of successful calls, of none that polls, are repeats. */
  #varied(): void {
    this.#before = null
    this.#calls.clear()
    this.#outputs.clear()
  }

  #halt(model: string): Rung | null {
    const [last, lost] = [this.#failed, this.#permanent]
    if (lost && isLostFor(lost, model)) return { type: 'halt', text: permanentText(lost.tool, errorOf(lost)) }
    if (last && this.#same.count >= this.#halts.rejected && isRejected(last))
      return { type: 'halt', text: rejectedText(last.tool, errorOf(last)) }
    const due = this.#streaks().find(([, { count }, halt]) => count >= halt)
    if (!due) return null
    const [what, { count }] = due
    const failed = what.type === 'call' || what.type === 'failures'
    return { type: 'halt', text: haltText(what, count, failed && last ? errorOf(last) : null) }
  }

  #nudge(): Rung | null {
    const due = this.#streaks().find(([, { count, told }, halt]) => !told && count >= nudgeAt(halt))
    return due ? { type: 'nudge', text: nudgeText(due[0], due[1].count, due[1].since) } : null
  }

  #told(): void {
    for (const [, streak, halt] of this.#streaks()) if (streak.count >= nudgeAt(halt)) streak.told = true
  }

  /** What is counted, with how often ends the run. */
  #streaks(): readonly Counted[] {
    const counted: Counted[] = []
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

function sealedTurn(turn: Turn): Turn {
  return { ...turn, attempts: turn.attempts.map((attempt) => attempt && sealed(attempt)) }
}

type Counted = readonly [what: Repeated, streak: Streak, halt: number]
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

  /** One turn climbs one rung: a large batch that fails is told first, and halted only if the next fails too. */
  climb(by: number, n: number, halt: number): void {
    if (this.count === 0) this.since = n
    this.count = this.count < nudgeAt(halt) ? Math.min(this.count + by, halt - 1) : this.count + by
  }
}

function nudgeAt(halt: number): number {
  return Math.min(Math.ceil((halt * 2) / 3), halt - 1)
}

function agree(a: Turn, b: Turn, alike: (a: CallOutcome, b: CallOutcome) => boolean): boolean {
  if (a.attempts.length !== b.attempts.length) return false
  for (let i = 0; i < a.attempts.length; i++) {
    const one = a.attempts[i]
    const other = b.attempts[i]
    if (!one || !other || !alike(one, other)) return false
  }
  return true
}
