// The budget of actions: how many calls that change something may start in an hour. Pure; it refuses what is over and nothing else.
import type { Proposal } from '../kernel/content.ts'

/** Of the calls of one reply, in order, those that act and for which nothing is left are refused. */
export function withinBudget(
  calls: readonly Proposal[],
  left: number,
  perHour: number,
): { readonly calls: readonly Proposal[]; readonly spent: number } {
  let spent = 0
  const kept = calls.map((call): Proposal => {
    if (call.effect === 'read' || call.gate?.type === 'refuse' || call.gate?.type === 'outside') return call
    if (spent < left) {
      spent += 1
      return call
    }
    const message = `The budget of ${perHour} actions an hour is used up, so "${call.tool}" was not run. Finish without it, or go on in the next hour.`
    const { digest: _, ...rest } = call
    return { ...rest, gate: { type: 'refuse', failure: { kind: 'Denied', message } } }
  })
  return { calls: kept, spent }
}

/** One account for each hour of the store's clock: all sessions and workers of a store share it, and it survives them. */
export function actionAccount(agent: string, now: number): string {
  return `actions:${agent}:${Math.floor(now / 3_600_000)}`
}
