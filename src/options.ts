// Checks the options of a host once, where they are taken. An unknown option, or one with an unusable value, is refused
// with one sentence. Checks only; the defaults are where the options are used.
import { Fault } from './kernel/failure.ts'

/**
 * The error in a value, as the end of a sentence; null if the value is fine. `name` and `of` are for checks of nested
 * values.
 */
export type Check = {
  (value: unknown, name: string, of: string): string | null
  /** The names of the options in it, if the value is itself an object of options. */
  readonly inner?: readonly string[]
}
/** The check of a required option. */
type RequiredCheck = { readonly needed: Check; readonly hint: string }
type Keys<T> = T extends unknown ? keyof T : never
type IsNeeded<T, K> = T extends unknown
  ? K extends keyof T
    ? object extends Pick<T, K>
      ? false
      : true
    : false
  : never

/**
 * One check for each option of T. It does not compile if an option of the type is missing here, or if the type lacks
 * one.
 */
export type Checks<T> = { readonly [K in Keys<T> & string]: [IsNeeded<T, K>] extends [true] ? RequiredCheck : Check }

type Known = Readonly<Record<string, Check | RequiredCheck>>
/** For options that are often given where they do not belong: a sentence that tells where they do. */
type Elsewhere = Readonly<Record<string, string>>

/**
 * Throws `invalid_config` for options that do not fit `checks`. `of` names their owner, such as `new Harness`.
 */
export function optionsChecker<T>(
  of: string,
  checks: Checks<T>,
  elsewhere: Elsewhere = {},
): (options: unknown, of?: string) => void {
  return (value, whose = of) => {
    if (objectCheck(value, '', whose) !== null)
      throw invalidConfig(`The options of ${whose} must be an object, not ${kindOf(value)}.`)
    checkEach(value as object, { of: whose, path: '', known: checks, elsewhere })
  }
}

/** The same for what comes in while a host works, such as an event or a job: throws `invalid_input`. */
export function inputChecker<T>(of: string, checks: Checks<T>): (value: unknown) => void {
  const check = optionsChecker<T>(of, checks)
  return (value) => {
    try {
      check(value)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      throw new Fault('invalid_input', error.message.replace(/^The option /, 'The field '))
    }
  }
}

/** `path` is where the options are within those of the owner: empty, or such as `limits.`. */
type Owner = { readonly of: string; readonly path: string; readonly known: Known; readonly elsewhere: Elsewhere }

function checkEach(value: object, owner: Owner): void {
  const { of, path, known } = owner
  const options = value as Readonly<Record<string, unknown>>
  for (const name in options) {
    const check = Object.hasOwn(known, name) ? known[name] : undefined
    if (check === undefined) throw unknownOption(name, owner)
    const test = typeof check === 'function' ? check : check.needed
    const wrong = options[name] === undefined ? null : test(options[name], path + name, of)
    if (wrong !== null)
      throw invalidConfig(`The option "${path}${name}" of ${of} ${wrong}${wrong.endsWith('?') ? '' : '.'}`)
  }
  for (const name in known) {
    const check = known[name]
    if (typeof check === 'object' && options[name] === undefined)
      throw invalidConfig(`The option "${path}${name}" of ${of} is missing. ${check.hint}`)
  }
}

/** The options without undefined values, which would otherwise replace defaults in a spread. */
export function withoutUndefined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}

/** For a required option. The hint says what to give. */
export function requiredCheck(check: Check, hint = 'Give it.'): RequiredCheck {
  return { needed: check, hint }
}

function unknownOption(name: string, { of, path, known, elsewhere }: Owner): Fault {
  const unknown = `Unknown option ${JSON.stringify(path + name.slice(0, 64))} of ${of}`
  if (Object.hasOwn(elsewhere, name)) return invalidConfig(`${unknown}. ${elsewhere[name]}`)
  const groups = Object.entries(known).map(([group, check]) => ({ group, inner: innerOf(check) }))
  const home = groups.find(({ inner }) => inner.includes(name))
  if (home) return invalidConfig(`${unknown}. Write ${home.group}: { ${name} }.`)
  const names = Object.keys(known)
  const near = nearest(name, names) ?? nearestInner(name, groups)
  const hint = near === null ? `. Known are: ${names.join(', ')}.` : `: did you mean "${path}${near}"?`
  return invalidConfig(unknown + hint)
}

function innerOf(check: Check | RequiredCheck): readonly string[] {
  return (typeof check === 'function' ? check.inner : check.needed.inner) ?? []
}

function nearestInner(
  name: string,
  groups: readonly { readonly group: string; readonly inner: readonly string[] }[],
): string | null {
  const near = nearest(
    name,
    groups.flatMap(({ inner }) => inner),
  )
  const home = near === null ? undefined : groups.find(({ inner }) => inner.includes(near))
  return home ? `${home.group}.${near}` : null
}

function invalidConfig(text: string): Fault {
  return new Fault('invalid_config', text)
}

/** The option is checked where it is used. */
export const anyCheck: Check = () => null
export const textCheck: Check = (value) => (typeof value === 'string' ? null : `must be a text, not ${kindOf(value)}`)
export const flagCheck: Check = (value) =>
  typeof value === 'boolean' ? null : `must be true or false, not ${describeValue(value)}`
export const functionCheck: Check = (value) =>
  typeof value === 'function' ? null : `must be a function, not ${kindOf(value)}`
export const objectCheck: Check = (value) => {
  const good = value !== null && typeof value === 'object' && !Array.isArray(value)
  return good ? null : `must be an object, not ${kindOf(value)}`
}
/** Not empty, and not only blanks. */
export const nonEmptyCheck: Check = (value) =>
  typeof value === 'string' && value.trim() !== '' ? null : `must be a text that is not empty, not ${kindOf(value)}`
const WHO_CHARS_MAX = 1_024
/** Control characters, text directions, and everything else that is drawn as nothing. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u
/** A mark at the beginning or end of a name is easily overlooked: "ann." is read as "ann". */
const EDGE = /^[\p{P}\p{Sm}\p{Sc}\p{Sk}]|[\p{P}\p{Sm}\p{Sc}\p{Sk}]$/u
/**
 * Names that end in a closed bracket, such as `Ann (night shift)`. A leading `_`, as in the system account `_www`, is
 * allowed below.
 */
const CLOSED = /^[^(]+\([^()]*[^()\s]\)$|^[^<]+<[^<>]*[^<>\s]>$/u

/** The error in a name of a person or program for the log, as the end of a sentence; null if the name is valid. */
export function whyNameInvalid(value: unknown): string | null {
  if (typeof value !== 'string') return `must be a text, not ${kindOf(value)}`
  if (value.length > WHO_CHARS_MAX) return `has more than ${WHO_CHARS_MAX} characters`
  if (UNSEEN.test(value)) return 'has a character that cannot be seen'
  const name = value.trim()
  if (name === '') return 'is empty'
  return !CLOSED.test(name) && EDGE.test(name.replace(/^_(?=\p{L})/u, ''))
    ? 'begins or ends with a mark that is easily overlooked: leave it out'
    : null
}

export const usdCheck = amountCheck('dollars')
export const msCheck = amountCheck('milliseconds')

function amountCheck(unit: string): Check {
  return (value) => (isAtLeast(value, 0) ? null : `must be a number of ${unit} from 0 on, not ${describeValue(value)}`)
}

/** A number of milliseconds above 0. */
export const waitCheck: Check = (value) =>
  isAtLeast(value, 0) && value !== 0 ? null : `must be a number of milliseconds above 0, not ${describeValue(value)}`

/** A whole number from `least` on, up to `most`. */
export function countCheck(least = 0, most = Number.MAX_SAFE_INTEGER): Check {
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least} on` : `from ${least} to ${most}`
  return (value) =>
    isAtLeast(value, least) && Number.isInteger(value) && Number(value) <= most
      ? null
      : `must be a whole number ${range}, not ${describeValue(value)}`
}

/** One of these words, which must be all words of the type. */
export function oneOf<T extends string>(words: Readonly<Record<T, true>>): Check {
  const all = Object.keys(words)
  return (value) => {
    if (typeof value === 'string' && Object.hasOwn(words, value)) return null
    const near = typeof value === 'string' ? nearest(value, all) : null
    const hint = near === null ? '' : `: did you mean "${near}"?`
    return `must be ${all.map((word) => `"${word}"`).join(' or ')}, not ${describeValue(value)}${hint}`
  }
}

export function listCheck(check: Check): Check {
  return (value, name, of) => {
    if (!Array.isArray(value)) return `must be a list, not ${kindOf(value)}`
    for (let i = 0; i < value.length; i++) {
      const wrong = check(value[i], `${name}[${i}]`, of)
      if (wrong !== null) return `has an item ${i} that ${wrong}`
    }
    return null
  }
}

/** An object with any keys, whose every value is checked. */
export function tableCheck(check: Check): Check {
  return (value, name, of) => {
    const wrong = objectCheck(value, name, of)
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

/** An option that is itself an object of options. */
export function optionsCheck<T>(checks: Checks<T>, elsewhere: Elsewhere = {}): Check {
  const check = (value: unknown, name: string, of: string): string | null => {
    const wrong = objectCheck(value, name, of)
    if (wrong === null) checkEach(value as object, { of, path: `${name}.`, known: checks, elsewhere })
    return wrong
  }
  return Object.assign(check, { inner: Object.keys(checks) })
}

/** An object with these methods. `how` says how to make one. */
export function methodsCheck(how: string, ...methods: readonly string[]): Check {
  return (value) => {
    const object = value !== null && (typeof value === 'object' || typeof value === 'function')
    const all = value as Readonly<Record<string, unknown>>
    return object && methods.every((name) => typeof all[name] === 'function')
      ? null
      : `cannot be ${describeValue(value)}: ${how}`
  }
}

export const clockCheck = methodsCheck('give a clock with now() and timer()', 'now', 'timer')

function isAtLeast(value: unknown, least: number): boolean {
  return typeof value === 'number' && value >= least && value <= Number.MAX_SAFE_INTEGER
}

/** Short, and without the content of a list or an object. */
export function describeValue(value: unknown): string {
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
  const ranked = names.map((name) => ({ name, away: editDistance(word, name) })).sort((a, b) => a.away - b.away)
  const [best] = ranked
  return best && best.away <= Math.max(1, Math.floor(best.name.length / 3)) ? best.name : null
}

/** How many characters must be changed, added, removed or swapped to turn one word into the other. */
function editDistance(from: string, to: string): number {
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
