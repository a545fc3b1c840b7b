// Reads a time that a caller gives: a Date, or milliseconds since 1970. Runs in a browser too.
import { Fault } from '../kernel/failure.ts'
import { describeValue } from '../options.ts'

const DAYS_AHEAD_MAX = 3_650
const AHEAD_MS_MAX = DAYS_AHEAD_MAX * 24 * 3_600_000

/** The time in ms since 1970. A past time is valid: it is due at once. `name` is that of the option. */
export function readMoment(at: unknown, name: string): number {
  const ms = at instanceof Date ? at.getTime() : at
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 0) {
    const given = at instanceof Date ? 'an invalid Date' : describeValue(at)
    throw new Fault('invalid_input', `"${name}" is a Date, or a time in milliseconds since 1970, not ${given}.`)
  }
  return Math.round(ms)
}

/** Throws for a time too far ahead, as when seconds or microseconds were taken for milliseconds. */
export function checkNotFar(due: number, now: number): void {
  if (due <= now + AHEAD_MS_MAX) return
  throw new Fault('invalid_input', `A time may lie ${DAYS_AHEAD_MAX} days ahead at most. Choose an earlier one.`)
}

export function laterWithSignal(): Fault {
  return new Fault('invalid_input', 'A message with "at" is read later, and takes no signal. Interrupt the session.')
}
