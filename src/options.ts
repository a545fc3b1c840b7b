// Options that a host hands over, checked once where they are taken: an option that is not known, or whose value cannot be used, is
// refused with one sentence. Checks only; the defaults are where the options are used.
import { Fault } from './kernel/failure.ts'

/** What is wrong with a value, as the end of a sentence; null if it can be used. `name` and `of` are for what it holds in turn. */
export type Check = (value: unknown, name: string, of: string) => string | null
/** The check of an option that must be there. */
type Needed = { readonly needed: Check; readonly hint: string }
type Keys<T> = T extends unknown ? keyof T : never
type IsNeeded<T, K> = T extends unknown
  ? K extends keyof T
    ? object extends Pick<T, K>
      ? false
      : true
    : false
  : never

/** One check for each option of T. An option of the type that is missing here does not compile, nor one that the type lacks. */
export type Checks<T> = { readonly [K in Keys<T> & string]: [IsNeeded<T, K>] extends [true] ? Needed : Check }

/**
 * Throws `invalid_config` for options that are not what `checks` says. `of` is what they are options of: `new Harness`. `elsewhere` says
 * of options that are often given here where they belong.
 */
export function optionsOf<T>(
  of: string,
  checks: Checks<T>,
  elsewhere: Readonly<Record<string, string>> = {},
): (options: unknown, of?: string) => void {
  const known: Readonly<Record<string, Check | Needed>> = checks
  return (value, whose = of) => {
    if (value === null || typeof value !== 'object' || Array.isArray(value))
      throw invalid(`The options of ${whose} must be an object, not ${kindOf(value)}.`)
    const options = value as Readonly<Record<string, unknown>>
    for (const name in options) {
      const check = Object.hasOwn(known, name) ? known[name] : undefined
      if (check === undefined && Object.hasOwn(elsewhere, name))
        throw invalid(`Unknown option "${name}" of ${whose}. ${elsewhere[name]}`)
      if (check === undefined) throw unknownOption(name, whose, Object.keys(known))
      const test = typeof check === 'function' ? check : check.needed
      const wrong = options[name] === undefined ? null : test(options[name], name, whose)
      if (wrong !== null) throw invalid(`The option "${name}" of ${whose} ${wrong}${wrong.endsWith('?') ? '' : '.'}`)
    }
    for (const name in known) {
      const check = known[name]
      if (typeof check === 'object' && options[name] === undefined)
        throw invalid(`The option "${name}" of ${whose} is missing. ${check.hint}`)
    }
  }
}

/** The options without those that are undefined: spread over defaults, these would replace them. */
export function given<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}

/** For an option that must be there. The hint says what to give. */
export function needed(check: Check, hint = 'Give it.'): Needed {
  return { needed: check, hint }
}

function unknownOption(name: string, of: string, known: readonly string[]): Fault {
  const near = nearest(name, known)
  const hint = near === null ? `. Known are: ${known.join(', ')}.` : `: did you mean "${near}"?`
  return invalid(`Unknown option ${JSON.stringify(name.slice(0, 64))} of ${of}${hint}`)
}

function invalid(text: string): Fault {
  return new Fault('invalid_config', text)
}

/** Checked where it is used. */
export const anything: Check = () => null
export const text: Check = (value) => (typeof value === 'string' ? null : `must be a text, not ${kindOf(value)}`)
export const flag: Check = (value) => (typeof value === 'boolean' ? null : `must be true or false, not ${shown(value)}`)
export const callable: Check = (value) =>
  typeof value === 'function' ? null : `must be a function, not ${kindOf(value)}`
export const record: Check = (value) => {
  const good = value !== null && typeof value === 'object' && !Array.isArray(value)
  return good ? null : `must be an object, not ${kindOf(value)}`
}
/** Not empty, and not only blanks. */
export const filled: Check = (value) =>
  typeof value === 'string' && value.trim() !== '' ? null : `must be a text that is not empty, not ${kindOf(value)}`
const WHO_CHARS_MAX = 1_024
/** Control characters, directions, and all else that is drawn as nothing. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u
/** A mark at the beginning or end of a name is easily overlooked: "ann." is read as "ann". */
const EDGE = /^[\p{P}\p{Sm}\p{Sc}\p{Sk}]|[\p{P}\p{Sm}\p{Sc}\p{Sk}]$/u
/** Names that end in a bracket which they open, as `Ann (night shift)`, and those of system accounts, as `_www`. */
const CLOSED = /^[^(]+\([^()]*[^()\s]\)$|^[^<]+<[^<>]*[^<>\s]>$/u

/** What is wrong with the name of a person or program for the log, as the end of a sentence; null if it can be used. */
export function nameTrouble(value: unknown): string | null {
  if (typeof value !== 'string') return `must be a text, not ${kindOf(value)}`
  if (value.length > WHO_CHARS_MAX) return `has more than ${WHO_CHARS_MAX} characters`
  if (UNSEEN.test(value)) return 'has a character that cannot be seen'
  const name = value.trim()
  if (name === '') return 'is empty'
  return !CLOSED.test(name) && EDGE.test(name.replace(/^_(?=\p{L})/u, ''))
    ? 'begins or ends with a mark that is easily overlooked: leave it out'
    : null
}

export const usd = amount('dollars')
export const ms = amount('milliseconds')

function amount(unit: string): Check {
  return (value) => (isFrom(value, 0) ? null : `must be a number of ${unit} from 0 on, not ${shown(value)}`)
}

/** A number of milliseconds above 0. */
export const wait: Check = (value) =>
  isFrom(value, 0) && value !== 0 ? null : `must be a number of milliseconds above 0, not ${shown(value)}`

/** A whole number from `least` on, up to `most`. */
export function count(least = 0, most = Number.MAX_SAFE_INTEGER): Check {
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least} on` : `from ${least} to ${most}`
  return (value) =>
    isFrom(value, least) && Number.isInteger(value) && Number(value) <= most
      ? null
      : `must be a whole number ${range}, not ${shown(value)}`
}

/** One of these words, all of which the type names. */
export function oneOf<T extends string>(words: Readonly<Record<T, true>>): Check {
  const all = Object.keys(words)
  return (value) => {
    if (typeof value === 'string' && Object.hasOwn(words, value)) return null
    const near = typeof value === 'string' ? nearest(value, all) : null
    const hint = near === null ? '' : `: did you mean "${near}"?`
    return `must be ${all.map((word) => `"${word}"`).join(' or ')}, not ${shown(value)}${hint}`
  }
}

export function listOf(check: Check): Check {
  return (value, name, of) => {
    if (!Array.isArray(value)) return `must be a list, not ${kindOf(value)}`
    for (let i = 0; i < value.length; i++) {
      const wrong = check(value[i], `${name}[${i}]`, of)
      if (wrong !== null) return `has an item ${i} that ${wrong}`
    }
    return null
  }
}

/** An object whose every value is checked, whatever its keys are. */
export function tableOf(check: Check): Check {
  return (value, name, of) => {
    const wrong = record(value, name, of)
    if (wrong !== null) return wrong
    for (const [key, item] of Object.entries(value as object)) {
      const bad = item === undefined ? null : check(item, `${name}.${key}`, of)
      if (bad !== null) return `has a value "${key}" that ${bad}`
    }
    return null
  }
}

export function orNull(check: Check): Check {
  return (value, name, of) => (value === null ? null : check(value, name, of))
}

export function orFunction(check: Check): Check {
  return (value, name, of) => (typeof value === 'function' ? null : check(value, name, of))
}

/** Options within options. */
export function within<T>(checks: Checks<T>): Check {
  const check = optionsOf<T>('', checks)
  return (value, name, of) => {
    check(value, `"${name}" of ${of}`)
    return null
  }
}

/** Something that has these methods. `how` says how to make one. */
export function having(how: string, ...methods: readonly string[]): Check {
  return (value) => {
    const object = value !== null && (typeof value === 'object' || typeof value === 'function')
    const all = value as Readonly<Record<string, unknown>>
    return object && methods.every((name) => typeof all[name] === 'function')
      ? null
      : `cannot be ${shown(value)}: ${how}`
  }
}

export const clockCheck = having('give a clock with now() and timer()', 'now', 'timer')

function isFrom(value: unknown, least: number): boolean {
  return typeof value === 'number' && value >= least && value <= Number.MAX_SAFE_INTEGER
}

/** Short, and nothing of what is inside of a list or an object. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : kindOf(value)
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (value === '') return 'an empty text'
  const kinds: Readonly<Record<string, string>> = { string: 'a text', object: 'an object', undefined: 'nothing' }
  return kinds[typeof value] ?? `a ${typeof value}`
}

/** The closest name, if it is close enough to be meant. */
export function nearest(word: string, names: readonly string[]): string | null {
  if (word.length > 64) return null
  const ranked = names.map((name) => ({ name, away: distance(word, name) })).sort((a, b) => a.away - b.away)
  const [best] = ranked
  return best && best.away <= Math.max(1, Math.floor(best.name.length / 3)) ? best.name : null
}

/** How many characters must be changed, added, removed or swapped to get from one word to the other. */
function distance(from: string, to: string): number {
  let [older, row]: [number[], number[]] = [[], [...Array(to.length + 1).keys()]]
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const change = from[i - 1] === to[j - 1] ? 0 : 1
      const swap = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      const least = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + change)
      next.push(swap ? Math.min(least, (older[j - 2] ?? 0) + 1) : least)
    }
    ;[older, row] = [row, next]
  }
  return row[to.length] ?? 0
}
