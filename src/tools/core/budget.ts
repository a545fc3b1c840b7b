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
  return `The budget of ${perHour} actions an hour is used up, so "${tool}" was not run. Finish without it, or go on in the next hour.`
}

/** One account for each hour of the store's clock: all sessions and workers of a store share it, and it survives them. */
export function hourAccount(of: HourBudget, agent: string, now: number): string {
  return `${of}:${agent}:${Math.floor(now / 3_600_000)}`
}

/** The store itself holds the limit: of several that count at the same moment, those that would go over are refused. */
export function hourCharges(account: string, perHour: number, key: string, amount: number): readonly Charge[] {
  return [
    { type: 'limit', account, limit: perHour },
    { type: 'hold', key, accounts: [account], amount },
    { type: 'settle', key, amount },
  ]
}
