// Lines to standard output and to standard error: answers go to the first, everything about them to the second.
import { safeJson } from './clean.ts'

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function printJson(value: unknown): void {
  print(safeJson(value))
}

export function warn(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** A person is there: they can be asked, and a line may be drawn again. */
export function isAttended(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}
