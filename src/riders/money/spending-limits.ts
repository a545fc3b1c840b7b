// What a model call may cost at most, and the accounts that pay: the amount that is held before it, and the accounts with their limits.
// It moves no money; the charges stand in the commit that causes them (charges.ts).
import type { Account, Shortage } from '../../kernel/content.ts'
import type { Fault } from '../../kernel/failure.ts'
import type { Charge, Store } from '../../ports/store.ts'
import type { Model } from '../../ports/model.ts'
import { isPriced, OUTPUT_TOKENS } from '../../models/http/hosted.ts'
import { CAUTIOUS, type Price } from '../../models/price.ts'
import { type Checks, usd } from '../../options.ts'

/** In dollars. A call that could go over any of them is not made. */
export type Budget = {
  readonly runUsd?: number
  readonly sessionUsd?: number
  /** A session and all its children, by their root. */
  readonly treeUsd?: number
  /** All sessions of this agent in the store and their children, by the day of the store's clock (UTC). */
  readonly dayUsd?: number
}

export type Payer = { readonly session: string; readonly root: string; readonly run: number; readonly at: number }

/** A token is seldom less than this many characters of text. Rather hold too much. */
export const CHARS_A_TOKEN = 3
const DAY_MS = 86_400_000
const MILLION = 1_000_000

export type Rate = { readonly price: Price; readonly outputTokensMax: number }

/** For a model that does not say what it costs. */
export const UNKNOWN_RATE: Rate = { price: CAUTIOUS, outputTokensMax: OUTPUT_TOKENS }

export async function rateOf(model: Model): Promise<Rate> {
  if (!isPriced(model)) return UNKNOWN_RATE
  return { price: (await model.profile()).price, outputTokensMax: model.outputTokensMax }
}

/** The most that a request of so many characters may cost. */
export function holdOf({ price, outputTokensMax }: Rate, chars: number, boost = false): number {
  // What is new is written to the cache at most once, and dearer than read.
  const input = Math.max(price.input, price.cacheWrite ?? 0)
  return Math.ceil((chars / CHARS_A_TOKEN) * input + outputTokensMax * (boost ? 2 : 1) * price.output)
}

/**
 * What the model of the open run costs, and what every request carries: instructions and tools. Both are asked for when money is held,
 * since a run may choose its model, and tools may change.
 */
type Own = { readonly rate: () => Rate; readonly baseChars: () => number }

export class SpendingLimits {
  readonly #agent: string
  readonly #budget: Budget
  readonly #rate: Own | null

  /**
   * `agent` is the root's. Without a rate every call holds what its run's limits say, and the limits of accounts are set
   * elsewhere.
   */
  constructor(agent: string, budget: Budget, rate: Own | null) {
    this.#agent = agent
    this.#budget = budget
    this.#rate = rate
  }

  /** Something is held for every call, if it is nothing: what it comes to is settled. */
  get bounded(): boolean {
    return this.#rate !== null
  }

  /** Null: as the run's limits say. */
  hold(historyChars: () => number, boost: boolean): number | null {
    return this.#rate === null ? null : holdOf(this.#rate.rate(), historyChars() + this.#rate.baseChars(), boost)
  }

  accounts(payer: Payer): readonly string[] {
    const accounts = accountsOf(this.#agent, payer)
    return this.#rate === null ? [accounts.session] : Object.values(accounts)
  }

  /** The limit of a run that begins. What was allowed when the run before it ended is for this one. */
  runLimit(payer: Payer, before: number): readonly Charge[] {
    if (this.#rate === null) return []
    const { run } = accountsOf(this.#agent, payer)
    return [limitOf(run, this.#budget.runUsd, accountsOf(this.#agent, { ...payer, run: before }).run)]
  }

  /** The limits that outlive a run. They stand beside every hold: a budget may have changed, or a day begun. */
  limits(payer: Payer): readonly Charge[] {
    if (this.#rate === null) return []
    const { session, tree, day } = accountsOf(this.#agent, payer)
    const { sessionUsd, treeUsd, dayUsd } = this.#budget
    return [limitOf(session, sessionUsd), limitOf(tree, treeUsd), limitOf(day, dayUsd)]
  }
}

/** What was allowed beyond the budget stands in accounts of its own: it survives, and counts wherever a limit is set. */
function limitOf(account: string, usd: number | undefined, raised = account): Charge {
  const limit = usd === undefined ? null : Math.round(usd * MILLION)
  return { type: 'limit', account, limit, raisedBy: raisedBy(raised) }
}

function raisedBy(account: string): string {
  return `raised:${account}`
}

export const BUDGETS: Checks<Budget> = { runUsd: usd, sessionUsd: usd, treeUsd: usd, dayUsd: usd }

/** Which account does not cover it, as the store says when it refuses a hold. */
export function emptyAccount({ detail }: Fault): Account | undefined {
  return (['run', 'session', 'tree', 'day'] as const).find((account) => detail.startsWith(`${account}:`))
}

/** How that account stood, as the store says in the same detail. */
export function shortageOf({ detail }: Fault): Shortage | undefined {
  const told = /: limit (\S+), spent (\S+), held (\S+), asked (\S+)$/.exec(detail)
  const [limit = Number.NaN, spent = 0, held = 0, needed = 0] = (told?.slice(1) ?? []).map(Number)
  return Number.isFinite(limit + spent + held + needed) ? { limit, spent, held, needed } : undefined
}

/** More was allowed: for the run that follows and the session, and, where it is `shared`, for its tree and this day. */
export function raiseOf(agent: string, payer: Payer, amount: number, shared: boolean): readonly Charge[] {
  const { run, session, tree, day } = accountsOf(agent, payer)
  const accounts = (shared ? [run, session, tree, day] : [run, session]).map(raisedBy)
  // The key of a request ends with a number: no session has a name that makes one of this.
  const key = `${payer.session}:${payer.run}:raise`
  return [
    { type: 'hold', key, accounts, amount },
    { type: 'settle', key, amount },
  ]
}

/** Was more allowed since this run ended? */
export async function wasRaised(agent: string, payer: Payer, store: Pick<Store, 'account'>): Promise<boolean> {
  return ((await store.account(raisedBy(accountsOf(agent, payer).run)))?.spent ?? 0) > 0
}

/** The accounts that pay for a run, by what each bounds. */
export function accountsOf(agent: string, { session, root, run, at }: Payer) {
  return {
    run: `run:${session}:${run}`,
    session: `session:${session}`,
    tree: `tree:${root}`,
    day: `day:${agent}:${Math.floor(at / DAY_MS)}`,
  } as const
}
