// What the times in a log mean when the clocks of its writers were not right. No clock is read here.
import type { Envelope } from './event.ts'

const AHEAD_MS_MAX = 24 * 60 * 60 * 1_000

/** A wake is not waited for if the clock that asked for it, at this time, was more than a day ahead of the present one. */
export function isDoubted(askedAt: number, now: number): boolean {
  return askedAt > now + AHEAD_MS_MAX
}

/** A wait for a provider is not waited for as soon as its clock was ahead at all: asking too early does no harm. */
export function isAwaited(until: number, askedAt: number, now: number): boolean {
  return until > now && askedAt <= now
}

/** What the clock of an event's writer said, which may be behind `at`. Only this is ever compared with a clock or another time. */
export function clockOf({ at, wall }: Pick<Envelope, 'at' | 'wall'>): number {
  return wall ?? at
}
