// Times of day in a zone and the instants they stand for. A clock change leaves a gap of times that do not exist, or
// repeats some of them: both are answered here, from `Intl` alone.
import { Fault } from '../kernel/failure.ts'

export const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

/** A zone. Its times of day are written as the milliseconds of the same date and time in UTC. */
export type Zone = {
  readonly name: string
  /** The time of day at this instant, to the minute. */
  readonly wallAt: (instant: number) => number
}

const zones = new Map<string, Zone>()

/** The zone of this name, such as `Europe/Oslo`. Throws a Fault if there is none. */
export function findZone(name: string): Zone {
  const known = zones.get(name)
  if (known) return known
  const zone = makeZone(name)
  zones.set(name, zone)
  return zone
}

function makeZone(name: string): Zone {
  const format = makeFormat(name)
  return {
    name,
    wallAt: (instant) => {
      const at: Record<string, number> = {}
      for (const { type, value } of format.formatToParts(instant)) at[type] = Number(value)
      const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = at
      return Date.UTC(year, month - 1, day, hour, minute)
    },
  }
}

/** Offsets such as `+02:00` are zones in some versions of Node only, and have no clock changes, so they are refused. */
function makeFormat(name: string): Intl.DateTimeFormat {
  const fields = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' } as const
  try {
    if (/^[A-Za-z]/.test(name))
      return new Intl.DateTimeFormat('en-US', { timeZone: name, hourCycle: 'h23', calendar: 'gregory', ...fields })
  } catch {}
  const text = `There is no time zone "${name.slice(0, 64)}". Give a name such as Europe/Oslo, America/New_York or UTC.`
  throw new Fault('invalid_input', text)
}

/** How far the zone's clock is ahead of UTC. */
export function offsetAt({ wallAt }: Zone, instant: number): number {
  return wallAt(instant) - floorToMinute(instant)
}

export function floorToMinute(instant: number): number {
  return Math.floor(instant / MINUTE_MS) * MINUTE_MS
}

/** The instant of this time of day: the first of two, and for a time in a gap the first minute after the gap. */
export function instantOf(zone: Zone, wall: number): number {
  const [before, after] = [offsetAt(zone, wall - DAY_MS), offsetAt(zone, wall + DAY_MS)]
  const [early, late] = [wall - Math.max(before, after), wall - Math.min(before, after)]
  for (const instant of [early, late]) if (zone.wallAt(instant) === wall) return instant
  return firstMinute(early, late, (instant) => zone.wallAt(instant) > wall)
}

/** The first minute from `low` to `high` for which this holds, where it holds for `high` and for all after the first. */
export function firstMinute(low: number, high: number, holds: (instant: number) => boolean): number {
  let [from, to] = [low, high]
  while (from < to) {
    const middle = floorToMinute((from + to) / 2)
    if (holds(middle)) to = middle
    else from = middle + MINUTE_MS
  }
  return to
}
