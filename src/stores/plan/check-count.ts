// Checks the numbers that name a position in a log or a bound: integers from 0 on. One store would read other values as
// damage, another as nothing.
import { Fault } from '../../kernel/failure.ts'

/** Refuses a count that is no whole number from 0 on, with `invalid_input`. */
export function checkCount(name: string, count: unknown): void {
  if (Number.isSafeInteger(count) && (count as number) >= 0) return
  throw new Fault('invalid_input', `\`${name}\` must be a whole number, 0 or more.`)
}
