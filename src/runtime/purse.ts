// What a model call may cost at most, and who pays: the amount that is held before it, and the accounts with their limits.
// It moves no money; the charges stand in the commit that causes them (charges.ts).
import { Fault } from '../kernel/failure.ts'
import type { Charge, Store } from '../kernel/ports.ts'
import type { Price } from '../models/price.ts'

/** In dollars. A call that could go over any of them is not made. */
export type Budget = {
  readonly runUsd?: number
  readonly sessionUsd?: number
  /** A session and all its children, by their root. */
  readonly treeUsd?: number
  /** All sessions of this agent in the store, by the day of the store's clock (UTC). */
  readonly dayUsd?: number
}

export type Payer = { readonly session: string; readonly root: string; readonly run: number; readonly at: number }

/** A token is seldom less than this many characters of text. Rather hold too much. */
export const CHARS_A_TOKEN = 3
const DAY_MS = 86_400_000
const MILLION = 1_000_000

export type Rate = {
  readonly price: Price
  readonly outputTokensMax: number
  /** What every request carries: instructions and tools. Asked when money is held, since tools may change. */
  readonly baseChars: () => number
}

/** What people allowed beyond the budget, by account. */
export type Raised = Readonly<Record<string, number>>

export class Purse {
  readonly #agent: string
  readonly #budget: Budget
  readonly #rate: Rate | null
  readonly #raised: Raised

  /** Without a rate every call holds what its run's limits say, and the limits of accounts are somebody else's. */
  constructor(agent: string, budget: Budget, rate: Rate | null, raised: Raised = {}) {
    this.#agent = agent
    this.#budget = budget
    this.#rate = rate
    this.#raised = raised
  }

  /** Null: as the run's limits say. */
  hold(historyChars: () => number, boost: boolean): number | null {
    if (this.#rate === null) return null
    const { price, outputTokensMax, baseChars } = this.#rate
    const inputTokens = (historyChars() + baseChars()) / CHARS_A_TOKEN
    // What is new is written to the cache at most once, and dearer than read.
    const input = Math.max(price.input, price.cacheWrite ?? 0)
    return Math.ceil(inputTokens * input + outputTokensMax * (boost ? 2 : 1) * price.output)
  }

  accounts(payer: Payer): readonly string[] {
    const accounts = accountsOf(this.#agent, payer)
    return this.#rate === null ? [accounts.session] : Object.values(accounts)
  }

  /** The limit of a run that begins. What was allowed when the run before it ended is for this one. */
  runLimit(payer: Payer, before: number): readonly Charge[] {
    if (this.#rate === null) return []
    const { run } = accountsOf(this.#agent, payer)
    return [this.#limit(run, this.#budget.runUsd, accountsOf(this.#agent, { ...payer, run: before }).run)]
  }

  /** The limits that outlive a run. They stand beside every hold: a budget may have changed, or a day begun. */
  limits(payer: Payer): readonly Charge[] {
    if (this.#rate === null) return []
    const { session, tree, day } = accountsOf(this.#agent, payer)
    const { sessionUsd, treeUsd, dayUsd } = this.#budget
    return [this.#limit(session, sessionUsd), this.#limit(tree, treeUsd), this.#limit(day, dayUsd)]
  }

  #limit(account: string, usd: number | undefined, raised = account): Charge {
    const limit = usd === undefined ? null : Math.round(usd * MILLION) + (this.#raised[raised] ?? 0)
    return { type: 'limit', account, limit }
  }
}

export function checkBudget(budget: Budget): Budget {
  for (const [name, usd] of Object.entries(budget)) {
    if (usd === undefined || (Number.isFinite(usd) && usd >= 0)) continue
    throw new Fault('invalid_config', `The budget ${name} must be a number of dollars, from 0 on.`)
  }
  return budget
}

/** What was allowed beyond the budget stands in accounts of its own: it survives, and is added wherever a limit is set. */
export async function raisedOf(agent: string, payer: Payer, store: Pick<Store, 'account'>): Promise<Raised> {
  const rows = Object.values(accountsOf(agent, payer)).map(
    async (account) => [account, (await store.account(`raised:${account}`))?.spent ?? 0] as const,
  )
  return Object.fromEntries(await Promise.all(rows))
}

/** Somebody allows more: for the run that follows, the session, its tree and this day. */
export function raiseOf(agent: string, payer: Payer, amount: number): readonly Charge[] {
  const accounts = Object.values(accountsOf(agent, payer)).map((account) => `raised:${account}`)
  const key = `raise:${payer.session}:${payer.run}`
  return [
    { type: 'hold', key, accounts, amount },
    { type: 'settle', key, amount },
  ]
}

/** Has somebody allowed more since this run ended? */
export async function wasRaised(agent: string, payer: Payer, store: Pick<Store, 'account'>): Promise<boolean> {
  return ((await store.account(`raised:${accountsOf(agent, payer).run}`))?.spent ?? 0) > 0
}

function accountsOf(agent: string, { session, root, run, at }: Payer) {
  return {
    run: `run:${session}:${run}`,
    session: `session:${session}`,
    tree: `tree:${root}`,
    day: `day:${agent}:${Math.floor(at / DAY_MS)}`,
  } as const
}
