// How much of a repetitive test is done: a part of it, and all of it with `TERRET_RUNS=all npm run test:long`.
import { relative } from 'node:path'
import { expect } from 'vitest'

const all = process.env['TERRET_RUNS'] === 'all'
/** Divided by two and by three, it chooses every part as often. */
const STARTS = 6
const start = startOf(process.env['TERRET_SHARE'])

/** How many cases a property looks at, how many rounds there are, or how long a text is: a fifth. */
export function runs(whole: number, part = 5): number {
  return all ? whole : Math.ceil(whole / part)
}

/**
 * Of cases that are all alike a third, or another part: each third one, from a start that is another one in each run. `TERRET_SHARE`
 * names the start, and the console says which it was.
 */
export function share<T>(cases: readonly T[], part = 3): readonly T[] {
  if (all) return cases
  const file = relative('.', expect.getState().testPath ?? '')
  const command = `npm ${file.includes('.long.') ? 'run test:long' : 'test'} -- ${file}`
  console.log(`1 of ${part} cases; again with: TERRET_SHARE=${start} ${command}; all with TERRET_RUNS=all`)
  return shareFrom(cases, part, start)
}

/** At least one, if there is one. */
export function shareFrom<T>(cases: readonly T[], part: number, from: number): readonly T[] {
  const step = Math.min(part, cases.length)
  return cases.filter((_, i) => i % step === from % step)
}

/** 1, 2, 3 and so on. */
export function upTo(last: number): readonly number[] {
  return Array.from({ length: last }, (_, i) => i + 1)
}

export function startOf(named: string | undefined): number {
  if (named === undefined) return Math.floor(Math.random() * STARTS)
  if (/^\d+$/.test(named) && Number(named) < STARTS) return Number(named)
  throw new Error(`TERRET_SHARE must be a whole number from 0 to ${STARTS - 1}, not "${named}".`)
}
