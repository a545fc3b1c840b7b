// A tool asks a model through this class: under the budget of the run that called the tool, like the run's own calls.
// The highest possible cost of a try is held before it and settled after it. It tries once: whether to try again is the
// tool's decision.
import { traceparentIn } from '../state/trace-context.ts'
import { callSpanIdOf } from '../../view/spans/span.ts'
import type { CallKey, Mutable, Usage } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Charge } from '../../ports/store.ts'
import type { Model, ModelFailure, Reply, Request } from '../../ports/model.ts'
import { askModel } from '../../models/model-answer.ts'
import { failure } from '../../models/http/failures.ts'
import { commitWithRetry } from '../state/store-retry.ts'
import type { SessionCache } from '../state/session-cache.ts'
import type { Allowances } from '../money/allowance.ts'
import { chargeForHold, callHoldPrefix, overBudgetFailure } from '../money/holds.ts'
import type { FlightContext, Landing } from '../state/effect.ts'
import { validCost } from './landings.ts'
import { emptyAccount, maxRequestCost, type SpendingLimits, readModelRate } from '../money/spending-limits.ts'
import { sleep } from '../state/sleep.ts'
import {
  estimateSpending,
  countRequestChars,
  priceReply,
  dropUnsoundUsage,
  type CallSpending,
} from '../money/usage-estimate.ts'
import type { Services } from '../state/runtime-ports.ts'

/**
 * Adds the usage and cost of its model requests to the result of a call. Any money that is still held is not waited
 * for.
 */
export function addCallSpending(
  { events, ...rest }: Landing,
  session: string,
  call: CallKey,
  spent: CallSpending | null,
): Landing {
  const told = events.map((event) => (event.type === 'agent.tool_result' ? { ...event, ...spent } : event))
  return { ...rest, events: told, charges: [{ type: 'lost', key: callHoldPrefix(session, call) }] }
}

export class BudgetedModel {
  /** Usage and cost of all requests of this call so far; null if none was made. */
  spent: CallSpending | null = null
  /** The last request was not made because there was no money for it. */
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
    this.#under = callHoldPrefix(cache.id, call)
    this.#allowances = allowances
  }

  readonly ask = async (model: Model, request: Request): Promise<Reply | ModelFailure> => {
    const spending = await (this.#spending ??= this.#allowances.allowance(this.#cache))
    this.#tries += 1
    // The epoch keeps the key apart from those of an earlier attempt.
    const key = `${this.#under}${this.#cache.epoch}.${this.#tries}`
    const held = spending.bounded ? maxRequestCost(await readModelRate(model), countRequestChars(request)) : null
    this.over = false
    const refused = held === null ? null : await this.#hold(spending, key, held)
    if (refused !== null) return refused
    // If this throws, for example because of invalid prices, nothing stays held, and the spending counts as unknown.
    let spent: CallSpending | null = { assumed: true }
    try {
      const told = await this.#asked(model, request)
      spent = told.spent
      return told.answer
    } finally {
      if (spent !== null) this.spent = this.spent === null ? spent : sumCallSpending(this.spent, spent)
      // If it cannot be written now, it is settled in full with the result of the call.
      if (held !== null) await this.#charge([chargeForHold(key, held, spent)]).catch(() => {})
    }
  }

  /** `spent` is null if the provider did nothing. */
  async #asked(model: Model, request: Request): Promise<{ answer: Reply | ModelFailure; spent: CallSpending | null }> {
    const flight = this.#flight
    if (!flight.clear()) return { answer: failure('other', 'The call was stopped before it was made.'), spent: null }
    const { clock } = this.#services
    let spoke = false
    const emit = (): void => {
      spoke = true
    }
    const pause = (ms: number): Promise<void> => sleep(clock, ms, flight.signal)
    const context = { signal: flight.signal, clock, emit, sleep: pause, traceparent: this.#traceparent() }
    const told = dropUnsoundUsage(await askModel(model, request, context))
    if (told.type === 'reply') {
      const answer = told.cost === undefined ? await priceReply(model, request, told) : told
      const late = flight.reason === null ? null : failure('other', 'The call was stopped before its answer came.')
      return { answer: late ?? answer, spent: replySpending(answer) }
    }
    const worked = !told.unasked && (spoke || told.broken || flight.reason !== null || told.class === 'timeout')
    return { answer: told, spent: worked ? await estimateSpending(model, request, told.partial?.length ?? 0) : null }
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
      // A worker that has lost the session must not hold money: no process would settle it.
      await this.#charge([...spending.limits(payer), hold], this.#cache.epoch || undefined)
      return null
    } catch (error) {
      if (error instanceof Fault && error.code === 'lease_lost')
        return failure('other', 'The call was stopped before it was made.')
      if (!(error instanceof Fault) || error.code !== 'over_budget') throw error
      this.over = true
      return overBudgetFailure(emptyAccount(error) ?? 'account')
    }
  }

  /** Writes beside the log: nothing happened in the session yet. */
  async #charge(charges: readonly Charge[], epoch?: number): Promise<void> {
    const fence = epoch === undefined ? {} : { epoch }
    await commitWithRetry(this.#services, [{ session: this.#cache.id, lane: 'inbox', events: [], charges, ...fence }])
  }
}

function replySpending(reply: Reply): CallSpending {
  const { usage, assumed } = reply
  const cost = validCost(reply)
  return { ...(usage ? { usage } : {}), ...(cost === undefined ? {} : { cost }), ...(assumed ? { assumed } : {}) }
}

function sumCallSpending(one: CallSpending, other: CallSpending): CallSpending {
  const usage: Mutable<Usage> = { inputTokens: 0, outputTokens: 0 }
  for (const used of [one.usage, other.usage]) {
    // Several requests have no single context length.
    const { contextTokens: _contextTokens, ...counts } = used ?? {}
    for (const [name, tokens] of Object.entries(counts) as [keyof Usage, number][])
      usage[name] = (usage[name] ?? 0) + tokens
  }
  const assumed = one.assumed ?? other.assumed
  return { usage, cost: (one.cost ?? 0) + (other.cost ?? 0), ...(assumed ? { assumed } : {}) }
}
