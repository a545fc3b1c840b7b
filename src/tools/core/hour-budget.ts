// Hourly budgets: how many calls that change something may start, and how many questions people may be asked. Pure. It
// only refuses calls over the budget.
import type { Proposal } from '../../kernel/content.ts'
import type { Charge } from '../../ports/store.ts'

export type HourBudget = 'actions' | 'asks'

/** Goes through the calls of one reply in order and refuses the counted ones for which no budget is left. */
export function refuseOverBudget(
  of: HourBudget,
  calls: readonly Proposal[],
  left: number,
  perHour: number,
): { readonly calls: readonly Proposal[]; readonly spent: number } {
  let spent = 0
  const kept = calls.map((call): Proposal => {
    if (!isCounted(of, call)) return call
    if (spent < left) {
      spent += 1
      return call
    }
    const { digest: _digest, clear: _clear, ...rest } = call
    return {
      ...rest,
      gate: {
        type: 'refuse',
        status: 'denied',
        failure: { kind: 'Denied', message: overText(of, call.tool, perHour) },
      },
    }
  })
  return { calls: kept, spent }
}

function isCounted(of: HourBudget, { gate, effect }: Proposal): boolean {
  if (of === 'asks') return gate?.type === 'ask'
  return effect !== 'read' && gate?.type !== 'refuse' && gate?.type !== 'outside'
}

function overText(of: HourBudget, tool: string, perHour: number): string {
  if (of === 'asks')
    return `People were asked ${perHour} times within an hour, and may not be asked more, so "${tool}" was not run. Finish without it.`
  return `The budget of ${perHour} actions an hour is used up, so "${tool}" was not run. Finish without it, or go on later.`
}

const STEP_MS = 300_000
const STEPS = 3_600_000 / STEP_MS

/**
 * Each account covers one hour plus one step (5 minutes), and a new one begins with each step, so every possible hour
 * lies within one account. All sessions and workers of a store share the accounts, which outlive them.
 */
export function hourAccounts(of: HourBudget, agent: string, now: number): readonly string[] {
  const step = Math.floor(now / STEP_MS)
  return Array.from({ length: STEPS + 1 }, (_, i) => `${of}:${agent}:${step - i}`)
}

/**
 * The store enforces the limits: of several charges at the same moment, those that would exceed a limit are refused.
 */
export function hourCharges(
  accounts: readonly string[],
  perHour: number,
  key: string,
  amount: number,
): readonly Charge[] {
  return [
    ...accounts.map((account): Charge => ({ type: 'limit', account, limit: perHour })),
    { type: 'hold', key, accounts, amount },
    { type: 'settle', key, amount },
  ]
}
