// How times in a log are read when the clocks of their writers were wrong. No clock is read here.
import type { Envelope } from './event.ts'

const AHEAD_MS_MAX = 24 * 60 * 60 * 1_000

/** What waits for a time: a wake, or a message. `at` is the time on the clock that asked for it. */
type Timed = { readonly due?: number; readonly at?: number }

/**
 * The wakes or messages whose time has come. A time is not waited for if the clock that asked for it was more than a day
 * ahead of the present one. A message without a time is always due.
 */
export function dueBy<T extends Timed>(timed: readonly T[], now: number): readonly T[] {
  return timed.filter(({ due = 0, at = 0 }) => due <= now || at > now + AHEAD_MS_MAX)
}

/** A wait for a provider ends as soon as its clock turns out to have been ahead: asking too early does no harm. */
export function mustStillWait(until: number, askedAt: number, now: number): boolean {
  return until > now && askedAt <= now
}

/**
 * The time on the clock of an event's writer, which may be earlier than `at`. Compare only this with a clock or another
 * time.
 */
export function writerTime({ at, wall }: Pick<Envelope, 'at' | 'wall'>): number {
  return wall ?? at
}
