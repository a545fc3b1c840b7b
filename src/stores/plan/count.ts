// Which numbers the stores accept as a place in a log or as a bound: whole ones, from 0 on. Anything else would be read as damage
// by one store and as nothing by another.
import { Fault } from '../../kernel/failure.ts'

export function checkCount(name: string, count: unknown): void {
  if (Number.isSafeInteger(count) && (count as number) >= 0) return
  throw new Fault('invalid_input', `\`${name}\` must be a whole number, 0 or more.`)
}
