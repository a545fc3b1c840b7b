// ISO dates and datetimes as written, and the order of two of them. It reads no clock and knows no time zone but an offset.

/** `seconds` counts from 1970 at the written offset, or as if in UTC when none is written; `fraction` is its digits. */
export type Moment =
  | { readonly type: 'date'; readonly date: string }
  | {
      readonly type: 'datetime'
      readonly date: string
      readonly aware: boolean
      readonly seconds: number
      readonly fraction: string
    }

const FORM = /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,30}))?)?([Zz]|[+-]\d\d(?::?\d\d)?)?)?$/

/** Null for what is no real date: `2026-02-30` and `24:00` are not. */
export function momentOf(text: string): Moment | null {
  const match = FORM.exec(text)
  if (match === null) return null
  const [, date = '', hours, minutes = '0', seconds = '0', fraction = '', zone = ''] = match
  const midnightMs = Date.parse(`${date}T00:00:00Z`)
  // A day that its month does not have is either refused or moved on; the round trip shows both.
  if (Number.isNaN(midnightMs) || new Date(midnightMs).toISOString().slice(0, 10) !== date) return null
  if (hours === undefined) return { type: 'date', date }
  const offset = offsetOf(zone)
  const [h, m, s] = [Number(hours), Number(minutes), Number(seconds)]
  if (offset === null || h > 23 || m > 59 || s > 59) return null
  return {
    type: 'datetime',
    date,
    aware: zone !== '',
    seconds: midnightMs / 1000 + h * 3600 + m * 60 + s - offset,
    fraction: fraction.replace(/0+$/, ''),
  }
}

/** Below, at or above zero; null when one names its offset and the other does not, so that they cannot be compared. */
export function compareMoments(left: Moment, right: Moment): number | null {
  // A date alone means the day as it was written, whatever the offset of the other.
  if (left.type === 'date' || right.type === 'date') return order(left.date, right.date)
  if (left.aware !== right.aware) return null
  return left.seconds === right.seconds ? order(left.fraction, right.fraction) : left.seconds - right.seconds
}

function order(left: string, right: string): number {
  if (left === right) return 0
  return left < right ? -1 : 1
}

function offsetOf(zone: string): number | null {
  if (zone === '' || zone === 'Z' || zone === 'z') return 0
  const hours = Number(zone.slice(1, 3))
  const minutes = Number(zone.slice(3).replace(':', '') || '0')
  if (hours > 23 || minutes > 59) return null
  return (zone.startsWith('-') ? -1 : 1) * (hours * 3600 + minutes * 60)
}
