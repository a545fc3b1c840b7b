// The door through which a tool asks a model: under the budget of the run that called the tool, like the run's own calls. What a
// try may cost is held before it is made and settled after it. It tries once: whether to try again is the tool's.
import { traceparentIn } from '../../effects/trace-context.ts'
import { callSpanIdOf } from '../../view/spans/span.ts'
import type { CallKey, Mutable, Usage } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Charge } from '../../ports/store.ts'
import type { Model, ModelFailure, Reply, Request } from '../../ports/model.ts'
import { answerOf } from '../../models/answer.ts'
import { failure } from '../../models/http/failures.ts'
import { commit } from '../../engine/again.ts'
import type { SessionCache } from '../../engine/session-cache.ts'
import type { Allowances } from './allowance.ts'
import { closing, holdsUnder } from './charges.ts'
import type { FlightContext, Landing } from '../../engine/flights.ts'
import { costOf } from '../../effects/outcomes.ts'
import { emptyAccount, holdOf, type SpendingLimits, rateOf } from './spending-limits.ts'
import { sleep } from '../../engine/sleep.ts'
import { assumedFor, charsIn, costed, soundly, type Spent } from './usage-estimate.ts'
import type { Services } from '../../engine/wiring.ts'

/** The result of a call that asked models says what they came to. What is still held for one is not waited for. */
export function paidFor({ events, ...rest }: Landing, session: string, call: CallKey, spent: Spent | null): Landing {
  const told = events.map((event) => (event.type === 'agent.tool_result' ? { ...event, ...spent } : event))
  return { ...rest, events: told, charges: [{ type: 'lost', key: holdsUnder(session, call) }] }
}

export class BudgetedModel {
  /** What all requests of this call came to so far; null if none was made. */
  spent: Spent | null = null
  /** The last request was not made: there was no money for it. */
  over = false
  readonly #services: Services
  readonly #cache: SessionCache
  readonly #call: CallKey
  readonly #under: string
  readonly #flight: FlightContext
  readonly #allowances: Allowances
  #spending: Promise<SpendingLimits> | null = null
  #tries = 0

  constructor(
    {
      services,
      cache,
      flight,
    }: { readonly services: Services; readonly cache: SessionCache; readonly flight: FlightContext },
    call: CallKey,
    allowances: Allowances,
  ) {
    this.#services = services
    this.#cache = cache
    this.#flight = flight
    this.#call = call
    this.#under = holdsUnder(cache.id, call)
    this.#allowances = allowances
  }

  readonly ask = async (model: Model, request: Request): Promise<Reply | ModelFailure> => {
    const spending = await (this.#spending ??= this.#allowances.allowance(this.#cache))
    this.#tries += 1
    // The epoch keeps it apart from what an attempt before this one asked.
    const key = `${this.#under}${this.#cache.epoch}.${this.#tries}`
    const held = spending.bounded ? holdOf(await rateOf(model), charsIn(request)) : null
    this.over = false
    const refused = held === null ? null : await this.#hold(spending, key, held)
    if (refused !== null) return refused
    // What is thrown, such as by prices that are no prices, leaves nothing held: what it came to is not known.
    let spent: Spent | null = { assumed: true }
    try {
      const told = await this.#asked(model, request)
      spent = told.spent
      return told.answer
    } finally {
      if (spent !== null) this.spent = this.spent === null ? spent : sum(this.spent, spent)
      // If it cannot be written now, it is settled in full with the result of the call.
      if (held !== null) await this.#charge([closing(key, held, spent)]).catch(() => {})
    }
  }

  /** `spent` is null where the provider did nothing. */
  async #asked(model: Model, request: Request): Promise<{ answer: Reply | ModelFailure; spent: Spent | null }> {
    const flight = this.#flight
    if (!flight.clear()) return { answer: failure('other', 'The call was stopped before it was made.'), spent: null }
    const { clock } = this.#services
    let spoke = false
    const emit = (): void => {
      spoke = true
    }
    const pause = (ms: number): Promise<void> => sleep(clock, ms, flight.signal)
    const context = { signal: flight.signal, clock, emit, sleep: pause, traceparent: this.#traceparent() }
    const told = soundly(await answerOf(model, request, context))
    if (told.type === 'reply') {
      const answer = told.cost === undefined ? await costed(model, request, told) : told
      const late = flight.reason === null ? null : failure('other', 'The call was stopped before its answer came.')
      return { answer: late ?? answer, spent: spentIn(answer) }
    }
    const worked = !told.unasked && (spoke || told.broken || flight.reason !== null || told.class === 'timeout')
    return { answer: told, spent: worked ? await assumedFor(model, request, told.partial?.length ?? 0) : null }
  }

  #traceparent(): string | undefined {
    const cache = this.#cache
    if (!this.#services.traces?.propagate) return undefined
    return traceparentIn(this.#services, cache, () => callSpanIdOf(cache.id, this.#call))
  }

  async #hold(spending: SpendingLimits, key: string, amount: number): Promise<ModelFailure | null> {
    const { id, session } = this.#cache
    const payer = { session: id, root: session.parent?.root ?? id, run: session.began, at: this.#services.store.now() }
    try {
      const hold = { type: 'hold', key, accounts: spending.accounts(payer), amount } as const
      // What a worker holds that has lost the session, nobody would settle.
      await this.#charge([...spending.limits(payer), hold], this.#cache.epoch || undefined)
      return null
    } catch (error) {
      if (error instanceof Fault && error.code === 'lease_lost')
        return failure('other', 'The call was stopped before it was made.')
      if (!(error instanceof Fault) || error.code !== 'over_budget') throw error
      this.over = true
      return failure(
        'other',
        `over budget: the money of the ${emptyAccount(error) ?? 'account'} does not cover this call`,
      )
    }
  }

  /** Beside the log: nothing happened in the session yet. */
  async #charge(charges: readonly Charge[], epoch?: number): Promise<void> {
    const fence = epoch === undefined ? {} : { epoch }
    await commit(this.#services, [{ session: this.#cache.id, lane: 'inbox', events: [], charges, ...fence }])
  }
}

function spentIn(reply: Reply): Spent {
  const { usage, assumed } = reply
  const cost = costOf(reply)
  return { ...(usage ? { usage } : {}), ...(cost === undefined ? {} : { cost }), ...(assumed ? { assumed } : {}) }
}

function sum(one: Spent, other: Spent): Spent {
  const usage: Mutable<Usage> = { inputTokens: 0, outputTokens: 0 }
  for (const used of [one.usage, other.usage]) {
    // Of several requests there is no one length.
    const { contextTokens: _contextTokens, ...counts } = used ?? {}
    for (const [name, tokens] of Object.entries(counts) as [keyof Usage, number][])
      usage[name] = (usage[name] ?? 0) + tokens
  }
  const assumed = one.assumed ?? other.assumed
  return { usage, cost: (one.cost ?? 0) + (other.cost ?? 0), ...(assumed ? { assumed } : {}) }
}
