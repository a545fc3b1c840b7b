// Holds of money: how their keys begin, and how a hold is closed when its request has ended.
import type { CallKey } from '../../kernel/content.ts'
import { failure } from '../../models/http/failures.ts'
import type { ModelFailure } from '../../ports/model.ts'
import type { Charge } from '../../ports/store.ts'
import type { CallSpending } from './usage-estimate.ts'

/** The beginning of the keys of all holds that requests of this call opened. */
export function callHoldPrefix(session: string, call: CallKey): string {
  return `${session}:${call}/`
}
/** Closes a hold. Null: the provider did nothing for it. Usage that was not reported counts as the whole hold. */
export function chargeForHold(key: string, held: number, spent: Pick<CallSpending, 'cost' | 'assumed'> | null): Charge {
  if (spent === null) return { type: 'free', key }
  if (spent.cost !== undefined && !spent.assumed) return { type: 'settle', key, amount: spent.cost }
  return { type: 'settle', key, amount: held, assumed: true }
}

const OVER_BUDGET = /^over budget: the money of the (\w+) does not cover this call$/

/** The failure of a request that was not made, because this account does not cover it. */
export function overBudgetFailure(account: string): ModelFailure {
  return { ...failure('other', `over budget: the money of the ${account} does not cover this call`), unasked: true }
}

/** The account that did not cover the request; null if the request failed for another reason. */
export function accountOverBudget({ message, unasked }: ModelFailure): string | null {
  return unasked ? (OVER_BUDGET.exec(message)?.[1] ?? null) : null
}
