// The most that a model call may cost, and the accounts that pay: the amount that is held before the call, and the
// accounts with their limits. It moves no money; the charges stand in the commit that causes them (charges.ts).
import type { Account, Shortage } from '../../kernel/content.ts'
import type { Fault } from '../../kernel/failure.ts'
import type { Charge, Store } from '../../ports/store.ts'
import type { Model } from '../../ports/model.ts'
import { isPriced, OUTPUT_TOKENS } from '../../models/http/hosted-model.ts'
import { CAUTIOUS, type Price } from '../../models/price.ts'
import { type Checks, usdCheck } from '../../options.ts'
import type { Shortfall } from '../../kernel/landing.ts'
import type { Budget } from '../state/agent.ts'

export type Payer = { readonly session: string; readonly root: string; readonly run: number; readonly at: number }

/** A token is seldom shorter than this many characters of text. It is better to hold too much. */
export const CHARS_PER_TOKEN_MIN = 3
const DAY_MS = 86_400_000
const MILLION = 1_000_000

export type ModelRate = { readonly price: Price; readonly outputTokensMax: number }

/** For a model without a known price. */
export const UNKNOWN_RATE: ModelRate = { price: CAUTIOUS, outputTokensMax: OUTPUT_TOKENS }

export async function readModelRate(model: Model): Promise<ModelRate> {
  if (!isPriced(model)) return UNKNOWN_RATE
  return { price: (await model.profile()).price, outputTokensMax: model.outputTokensMax }
}

/** The most that a request of this many characters may cost. */
export function maxRequestCost({ price, outputTokensMax }: ModelRate, chars: number, boost = false): number {
  // New input is written to the cache at most once, which costs more than reading it.
  const input = Math.max(price.input, price.cacheWrite ?? 0)
  return Math.ceil((chars / CHARS_PER_TOKEN_MIN) * input + outputTokensMax * (boost ? 2 : 1) * price.output)
}

/**
 * The rate of the open run's model, and the length that every request carries: instructions and tools. Both are read
 * when money is held, since a run may choose its model, and tools may change.
 */
type RunRate = { readonly rate: () => ModelRate; readonly baseChars: () => number }

export class SpendingLimits {
  readonly #agent: string
  readonly #budget: Budget
  readonly #rate: RunRate | null

  /**
   * `agent` is the agent of the root session. Without a rate, the limits of its run say how much each call holds, and
   * other code sets the limits of accounts.
   */
  constructor(agent: string, budget: Budget, rate: RunRate | null) {
    this.#agent = agent
    this.#budget = budget
    this.#rate = rate
  }

  /** Whether every call holds money, even an amount of 0, and is settled by its real cost. */
  get bounded(): boolean {
    return this.#rate !== null
  }

  /** Null: the run's limits decide. */
  hold(historyChars: () => number, boost: boolean): number | null {
    return this.#rate === null
      ? null
      : maxRequestCost(this.#rate.rate(), historyChars() + this.#rate.baseChars(), boost)
  }

  accounts(payer: Payer): readonly string[] {
    const accounts = accountsOf(this.#agent, payer)
    return this.#rate === null ? [accounts.session] : Object.values(accounts)
  }

  /** The limit of a run that begins. More money that was allowed when the run before it ended counts for this one. */
  runLimit(payer: Payer, before: number): readonly Charge[] {
    if (this.#rate === null) return []
    const { run } = accountsOf(this.#agent, payer)
    return [limitCharge(run, this.#budget.runUsd, accountsOf(this.#agent, { ...payer, run: before }).run)]
  }

  /**
   * The limits that outlive a run. They stand beside every hold, because a budget may have changed, or a new day begun.
   */
  limits(payer: Payer): readonly Charge[] {
    if (this.#rate === null) return []
    const { session, tree, day } = accountsOf(this.#agent, payer)
    const { sessionUsd, treeUsd, dayUsd } = this.#budget
    return [limitCharge(session, sessionUsd), limitCharge(tree, treeUsd), limitCharge(day, dayUsd)]
  }
}

/**
 * Money that was allowed beyond the budget stands in accounts of its own: it survives, and counts wherever a limit is
 * set.
 */
function limitCharge(account: string, usd: number | undefined, raised = account): Charge {
  const limit = usd === undefined ? null : Math.round(usd * MILLION)
  return { type: 'limit', account, limit, raisedBy: raisedAccount(raised) }
}

function raisedAccount(account: string): string {
  return `raised:${account}`
}

export const BUDGET_CHECKS: Checks<Budget> = {
  runUsd: usdCheck,
  sessionUsd: usdCheck,
  treeUsd: usdCheck,
  dayUsd: usdCheck,
}

/** The account that does not cover a hold, from the store's refusal. */
export function emptyAccount({ detail }: Fault): Account | undefined {
  return (['run', 'session', 'tree', 'day'] as const).find((account) => detail.startsWith(`${account}:`))
}

/** The state of that account, from the same detail. */
function readShortage({ detail }: Fault): Shortage | undefined {
  const told = /: limit (\S+), spent (\S+), held (\S+), asked (\S+)$/.exec(detail)
  const [limit = Number.NaN, spent = 0, held = 0, needed = 0] = (told?.slice(1) ?? []).map(Number)
  return Number.isFinite(limit + spent + held + needed) ? { limit, spent, held, needed } : undefined
}

/** More money was allowed: for the run that follows and the session, and, if `shared`, for its tree and this day. */
export function raiseCharges(agent: string, payer: Payer, amount: number, shared: boolean): readonly Charge[] {
  const { run, session, tree, day } = accountsOf(agent, payer)
  const accounts = (shared ? [run, session, tree, day] : [run, session]).map(raisedAccount)
  // The key of a request ends with a number, so no session's name can produce this key.
  const key = `${payer.session}:${payer.run}:raise`
  return [
    { type: 'hold', key, accounts, amount },
    { type: 'settle', key, amount },
  ]
}

/** Whether more was allowed since this run ended. */
export async function wasRaised(agent: string, payer: Payer, store: Pick<Store, 'account'>): Promise<boolean> {
  return ((await store.account(raisedAccount(accountsOf(agent, payer).run)))?.spent ?? 0) > 0
}

/** The accounts that pay for a run, by the scope that each bounds. */
export function accountsOf(agent: string, { session, root, run, at }: Payer) {
  return {
    run: `run:${session}:${run}`,
    session: `session:${session}`,
    tree: `tree:${root}`,
    day: `day:${agent}:${Math.floor(at / DAY_MS)}`,
  } as const
}

/** Why a request did not fit the budget, from the store's refusal of the commit. */
export function shortfallOf(error: Fault): Shortfall {
  const account = emptyAccount(error)
  const short = readShortage(error)
  return { ...(account === undefined ? {} : { account }), ...(short === undefined ? {} : { short }) }
}
