// The values of flags that say how long, or when.
import { EXIT, CliError } from './exit.ts'

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const DAYS_MAX = 3_650

/** Parses `90s`, `30m`, `12h` or `30d`. */
export function parseSpanMs(flag: string, text: string): number {
  const [, amount = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(text.trim()) ?? []
  const ms = Number(amount) * (UNIT_MS[unit] ?? 0)
  if (ms > 0 && ms <= DAYS_MAX * 86_400_000) return ms
  throw new CliError(
    EXIT.usage,
    `--${flag} must be a time of at most ten years, such as 30m, 12h or 30d, not "${text}".`,
  )
}

const MOMENT = /^(\d{4})-(\d{2})-(\d{2})[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})?$/

/** Parses a day and a time, in the zone of this machine unless the text names one. */
export function parseMomentFlag(flag: string, text: string): Date {
  const [, year = '', month = '', day = ''] = MOMENT.exec(text.trim()) ?? []
  const at = new Date(text.trim().replace(' ', 'T'))
  // JavaScript reads 30 February as a day in March.
  const days = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  if (day !== '' && Number(day) <= days && !Number.isNaN(at.getTime())) return at
  throw new CliError(
    EXIT.usage,
    `--${flag} must be a day and a time, such as 2027-01-31T09:00 or 2027-01-31T09:00Z, not "${text}".`,
  )
}
