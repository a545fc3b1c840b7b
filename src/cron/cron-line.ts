// A cron line: which lines are accepted, and when they fire. croner lists the times of day that a line names, as if there
// were no zones; zoned-time.ts says which instants these are.
import { Cron } from 'croner'
import { Fault } from '../kernel/failure.ts'
import { findZone, firstMinute, floorToMinute, instantOf, MINUTE_MS, offsetAt, type Zone } from './zoned-time.ts'

export type Schedule = {
  /** The first time after this instant. Null for a line that does not fire within some years. */
  readonly next: (after: number) => number | null
}

const LINE_CHARS_MAX = 200
const FIELDS = 'Give five fields: minute, hour, day of month, month, day of week, such as "0 3 * * *".'
/** Names of days and months, `L`, `#` and `W` are known to croner. `?` is not accepted, as it depends on the moment. */
const FIELD = /^[0-9A-Za-z*,/#-]+$/

/** Reads a line. A croner object takes 83 KB, so callers drop the schedule when they have their answer. */
export function readSchedule(line: string, zone: string): Schedule {
  const place = findZone(zone)
  const fields = fieldsOf(line)
  const cron = parseLine(fields.join(' '))
  const listed = (wall: number): number | null => cron.nextRun(new Date(wall))?.getTime() ?? null
  const next = /^(?:\*|\*\/1|0-23)$/.test(fields[1] ?? '') ? nextByElapsedTime : nextByTimeOfDay
  return { next: (after) => next(place, listed, after) }
}

function fieldsOf(line: string): readonly string[] {
  const shown = `The cron line "${line.slice(0, 40)}"`
  if (line.length > LINE_CHARS_MAX)
    throw new Fault('invalid_input', `${shown}… is longer than ${LINE_CHARS_MAX} characters. ${FIELDS}`)
  const fields = line.trim().split(/\s+/)
  if (line.trim().startsWith('@'))
    throw new Fault('invalid_input', `${shown} is a name, and names are not known here. ${FIELDS}`)
  if (fields.length === 6 || fields.length === 7)
    throw new Fault('invalid_input', `${shown} has ${fields.length} fields: seconds and years are not known. ${FIELDS}`)
  if (fields.length !== 5) throw new Fault('invalid_input', `${shown} is no cron line. ${FIELDS}`)
  const odd = fields.find((field) => !FIELD.test(field))
  if (odd !== undefined)
    throw new Fault('invalid_input', `${shown} cannot be read at "${odd}". Use numbers, names, "*", ",", "-" and "/".`)
  return fields
}

function parseLine(line: string): Cron {
  let cron: Cron
  try {
    cron = new Cron(line, { timezone: 'UTC', mode: '5-part', paused: true })
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, '').replace(/\.$/, '') : ''
    throw new Fault('invalid_input', `The cron line "${line}" cannot be read: ${why}. ${FIELDS}`)
  }
  if (cron.nextRun(new Date(0)) !== null) return cron
  throw new Fault('invalid_input', `The cron line "${line}" never fires: there is no such day. Give another day.`)
}

type ListedTimes = (wall: number) => number | null

/** A time in a gap is the end of the gap, and a repeated time is its first. So a daily line fires once each day. */
function nextByTimeOfDay(zone: Zone, listed: ListedTimes, after: number): number | null {
  for (let wall = listed(zone.wallAt(after)); wall !== null; wall = listed(wall)) {
    const instant = instantOf(zone, wall)
    if (instant > after) return instant
  }
  return null
}

/** Every hour: the line fires whenever the clock shows one of its times, also in both passes of a repeated hour. */
function nextByElapsedTime(zone: Zone, listed: ListedTimes, after: number): number | null {
  let from = after
  let wall = listed(zone.wallAt(after))
  while (wall !== null) {
    const offset = offsetAt(zone, from)
    const instant = wall - offset
    if (offsetAt(zone, instant) === offset) return instant
    // The clock changes before that instant. From the change on it shows other times.
    from = firstMinute(floorToMinute(from), instant, (at) => offsetAt(zone, at) !== offset)
    wall = listed(zone.wallAt(from) - MINUTE_MS)
  }
  return null
}

/** The next times, as many as this at most. */
export function nextTimes({ next }: Schedule, after: number, count: number): readonly number[] {
  const times: number[] = []
  for (let at = next(after); at !== null && times.length < count; at = next(at)) times.push(at)
  return times
}

const APART_MS = 5 * MINUTE_MS
/** Two times that are too close are among so many, whichever days a line names. */
const COMPARED = 400

/** Throws if two times of the line are less than five minutes apart. */
export function checkApart(line: string): void {
  const times = nextTimes(readSchedule(line, 'UTC'), -1, COMPARED)
  const close = times.findIndex((at, i) => i > 0 && at - (times[i - 1] ?? 0) < APART_MS)
  if (close < 0) return
  const [first, second] = times.slice(close - 1, close + 1).map((at) => new Date(at).toISOString().slice(11, 16))
  const text = `The cron line "${line}" fires at ${first} and at ${second}. Jobs of agents are at least five minutes apart: write such as "*/5 * * * *".`
  throw new Fault('invalid_input', text)
}
