// Parses numbers as programs write them, with one scale for each column: `48,211`, `98.7%`, `1h03m`, `47m12`,
// `12.5MiB`, `00:41:09`, dates.

export type ColumnNumbers = {
  /** NaN for a text that is not a number. */
  readonly numbers: Float64Array
  /** The numbers are seconds of dates. */
  readonly areDates: boolean
}

/** The share of a column that must be numbers. */
const NUMBERS_SHARE = 0.9
const PROBED = 8
const PROBED_SHARE = 0.6
const CHARS_MAX = 48

/** Null for a column of texts. */
export function parseNumbers(values: readonly string[]): ColumnNumbers | null {
  const step = Math.max(1, Math.floor(values.length / PROBED))
  let [probed, found, dates] = [0, 0, 0]
  for (let i = 0; i < values.length; i += step) {
    const value = values[i] ?? ''
    probed += 1
    if (Number.isFinite(parseNumber(value))) found += 1
    if (DATE.test(value)) dates += 1
  }
  if (found < probed * PROBED_SHARE) return null
  const numbers = new Float64Array(values.length)
  const missingMax = values.length * (1 - NUMBERS_SHARE)
  let missing = 0
  for (let i = 0; i < values.length; i++) {
    const number = parseNumber(values[i] ?? '')
    numbers[i] = number
    if (!Number.isFinite(number) && ++missing > missingMax) return null
  }
  return { numbers, areDates: dates > 0 }
}

/** A number with thousands separators and a unit, between signs such as `(` and `,`. */
const NUMBER = /^([-+]?\d[\d,_]*(?:\.\d+)?|[-+]?\.\d+)\s?([a-zA-Zµ%]{0,5})$/
const DATE = /^\D?\d{4}-\d\d-\d\d(?:$|\D)/
const CLOCK = /^(?:(\d{1,3})-)?(\d{1,4}):(\d\d)(?::(\d\d(?:\.\d+)?))?$/
/** The units in durations of several parts, by the code of their first letter. */
const SECONDS: ReadonlyMap<number, number> = new Map([
  [100, 86_400],
  [104, 3_600],
  [109, 60],
  [115, 1],
])
const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-9,
  us: 1e-6,
  µs: 1e-6,
  ms: 1e-3,
  s: 1,
  sec: 1,
  secs: 1,
  m: 60,
  min: 60,
  mins: 60,
  h: 3_600,
  d: 86_400,
  ...byteUnits('', 1),
  ...byteUnits('k', 1_024),
  ...byteUnits('m', 1_024 ** 2),
  ...byteUnits('g', 1_024 ** 3),
  ...byteUnits('t', 1_024 ** 4),
}

/** The forms `G`, `GB`, `GiB` and `Gi`. A small `m` means minutes. */
function byteUnits(prefix: string, factor: number): Readonly<Record<string, number>> {
  const large = prefix.toUpperCase()
  const names = [large, ...(prefix === 'm' ? [] : [prefix])].filter((name) => name !== '')
  return Object.fromEntries(
    [...names, `${prefix}B`, `${large}B`, `${large}iB`, `${large}i`].map((name) => [name, factor]),
  )
}

function parseNumber(text: string): number {
  if (text.length === 0 || text.length > CHARS_MAX) return Number.NaN
  const first = text.charCodeAt(0)
  if (first === 32 || first > 122 || (first >= 65 && first < 123 && first !== 91)) return Number.NaN
  // A text that ends with a letter after `f` is not a plain number.
  if (!(text.charCodeAt(text.length - 1) > 102)) {
    const number = Number(text)
    if (Number.isFinite(number)) return number
  }
  const said = trimSigns(text)
  if (!startsNumber(said)) return Number.NaN
  if (said.charCodeAt(4) === 45 && DATE.test(said)) return secondsOfDate(said)
  const [, digits, unit = ''] = NUMBER.exec(said) ?? []
  if (digits !== undefined)
    return Number(digits.replace(/[,_]/g, '')) * (Object.hasOwn(UNITS, unit) ? (UNITS[unit] ?? 1) : 1)
  if (!said.includes(':')) return secondsOfDuration(said)
  const clock = CLOCK.exec(said)
  return clock === null ? Number.NaN : secondsOfClock(clock)
}

function startsNumber(said: string): boolean {
  const first = said.charCodeAt(0)
  const from = first === 43 || first === 45 ? 1 : 0
  return isDigit(said.charCodeAt(said.charCodeAt(from) === 46 ? from + 1 : from))
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

/**
 * Parses `1h03m`, `2m1.5s` and `47m12`: up to two digits after the last unit are seconds. It goes by character, since
 * whole columns are durations.
 */
function secondsOfDuration(said: string): number {
  const { length } = said
  let [seconds, at] = [0, 0]
  while (at < length) {
    const from = at
    while (isDigit(said.charCodeAt(at))) at += 1
    if (at === from) return Number.NaN
    if (at === length) return from > 0 && at - from <= 2 ? seconds + Number(said.slice(from)) : Number.NaN
    if (said.charCodeAt(at) === 46 && isDigit(said.charCodeAt(at + 1))) {
      at += 1
      while (isDigit(said.charCodeAt(at))) at += 1
    }
    const unit = SECONDS.get(said.charCodeAt(at))
    if (unit === undefined) return Number.NaN
    const isMilli = unit === 60 && said.charCodeAt(at + 1) === 115
    seconds += Number(said.slice(from, at)) * (isMilli ? 0.001 : unit)
    at += isMilli ? 2 : 1
  }
  return seconds
}

/** Parses `2031-02-03` and `2031-02-03T04:05:06`, in UTC. */
function secondsOfDate(said: string): number {
  const part = (from: number, to: number): number => Number(said.slice(from, to)) || 0
  const clock = said.charCodeAt(13) === 58 ? part(11, 13) * 3_600 + part(14, 16) * 60 + part(17, 19) : 0
  return Date.UTC(part(0, 4), part(5, 7) - 1, part(8, 10)) / 1_000 + clock
}

/** Parses `1-02:03:04`, `02:03:04` and `03:04`. */
function secondsOfClock([, days = '0', first = '0', second = '0', third]: RegExpExecArray): number {
  const clock =
    third === undefined ? [0, Number(first), Number(second)] : [Number(first), Number(second), Number(third)]
  return Number(days) * 86_400 + (clock[0] ?? 0) * 3_600 + (clock[1] ?? 0) * 60 + (clock[2] ?? 0)
}

const BEFORE = new Set('([{<"\'$€£~=#@')
const AFTER = new Set(')]}>"\',;:.')

function trimSigns(text: string): string {
  let [from, to] = [0, text.length]
  while (from < to && BEFORE.has(text[from] ?? '')) from += 1
  while (to > from && AFTER.has(text[to - 1] ?? '')) to -= 1
  return text.slice(from, to)
}
