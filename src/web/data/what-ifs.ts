// The what-ifs that this tab has asked for, until it is closed or reloaded. No server keeps them.
import type { WhatIfAnswer } from '../../server/wire.ts'
import type { WholeSession } from './other-logs.ts'

/** Their logs may be long. */
const KEPT = 10
const kept = new Map<string, WhatIfAnswer>()
let count = 0

/** Returns the name by which the page of a comparison finds it. */
export function keepWhatIf(answer: WhatIfAnswer): string {
  count += 1
  kept.set(String(count), answer)
  const [oldest] = kept.keys()
  if (kept.size > KEPT && oldest !== undefined) kept.delete(oldest)
  return String(count)
}

export function findWhatIf(name: string): WhatIfAnswer | null {
  return kept.get(name) ?? null
}

/** The recorded session and the one of the what-if, each as far as they are compared. */
export function sidesOf(
  whole: WholeSession,
  { from, end, events }: WhatIfAnswer,
): readonly [WholeSession, WholeSession] {
  const origins = whole.logs.slice(0, -1)
  const { session = '', events: own = [] } = whole.logs.at(-1) ?? {}
  const of = (log: typeof own): WholeSession => ({ ...whole, logs: [...origins, { session, events: log }] })
  return [of(own.slice(0, end)), of([...own.slice(0, from), ...events])]
}
