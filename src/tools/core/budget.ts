// The budgets of an hour: how many calls that change something may start, and how many questions people may be asked. Pure; it
// refuses what is over and nothing else.
import type { Proposal } from '../../kernel/content.ts'
import type { Charge } from '../../ports/store.ts'

export type HourBudget = 'actions' | 'asks'

/** Of the calls of one reply, in order, those that count and for which nothing is left are refused. */
export function withinBudget(
  of: HourBudget,
  calls: readonly Proposal[],
  left: number,
  perHour: number,
): { readonly calls: readonly Proposal[]; readonly spent: number } {
  let spent = 0
  const kept = calls.map((call): Proposal => {
    if (!counts(of, call)) return call
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

function counts(of: HourBudget, { gate, effect }: Proposal): boolean {
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
 * An account for each stretch of an hour and a step that this moment is in: one begins with each step, so every hour lies within one
 * of them. All sessions and workers of a store share them, and they survive them.
 */
export function hourAccounts(of: HourBudget, agent: string, now: number): readonly string[] {
  const step = Math.floor(now / STEP_MS)
  return Array.from({ length: STEPS + 1 }, (_, i) => `${of}:${agent}:${step - i}`)
}

/** The store itself holds the limits: of several that count at the same moment, those that would go over are refused. */
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
