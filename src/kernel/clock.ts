// How times in a log are read when the clocks of their writers were wrong. No clock is read here.
import type { Envelope } from './event.ts'

const AHEAD_MS_MAX = 24 * 60 * 60 * 1_000

/**
 * A wake is not waited for if the clock that scheduled it was more than a day ahead of the present one. `askedAt` is
 * that clock's time.
 */
export function isFarAhead(askedAt: number, now: number): boolean {
  return askedAt > now + AHEAD_MS_MAX
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
