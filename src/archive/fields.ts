// Checks of plain JSON from outside, field by field: nothing missing, nothing more, everything of its type. Each check is bound
// to a type, so that the compiler says which field of an event has no check yet.
import type { Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { isObject } from '../view/json.ts'

/** Throws when the value at this place is not a T. */
export type Check<T> = ((value: unknown, at: string) => void) & { readonly of?: T }
type Optional<T> = { readonly optional: Check<T> }
export type Fields<T> = {
  readonly [K in keyof T]-?: object extends Pick<T, K> ? Optional<Exclude<T[K], undefined>> : Check<T[K]>
}

export function invalid(sentence: string): Fault {
  return new Fault('invalid_input', `This is no session that can be imported: ${sentence}`)
}

function must(good: boolean, at: string, what: string): void {
  if (!good) throw invalid(`${at === '' ? 'it' : at} must be ${what}.`)
}

export const text: Check<string> = (value, at) => must(typeof value === 'string', at, 'a text')
export const name: Check<string> = (value, at) =>
  must(typeof value === 'string' && value !== '', at, 'a text that is not empty')
export const flag: Check<boolean> = (value, at) => must(typeof value === 'boolean', at, 'true or false')
export const yes: Check<true> = (value, at) => must(value === true, at, 'true')
export const whole: Check<number> = (value, at) =>
  must(Number.isSafeInteger(value) && (value as number) >= 0, at, 'a whole number')
export const amount: Check<number> = (value, at) =>
  must(typeof value === 'number' && Number.isFinite(value) && value >= 0, at, 'a number that is not negative')
/** In ms since 1970, up to where calendars end: a later one would stop the clock of the session for ever. */
export const moment: Check<number> = (value, at) =>
  must(typeof value === 'number' && value >= 0 && value <= 8.64e15, at, 'a moment in time')
/** It came out of a JSON text, so it is JSON. */
export const json: Check<Json> = () => {}
export const callName: Check<string> = (value, at) =>
  must(typeof value === 'string' && /^[1-9]\d*\.\d+$/.test(value), at, 'the key of a call')
export const hashName: Check<string> = (value, at) =>
  must(typeof value === 'string' && /^[0-9a-f]{64}$/.test(value), at, 'a SHA-256 in hexadecimal')

export function optional<T>(check: Check<T>): Optional<T> {
  return { optional: check }
}

export function orNull<T>(check: Check<T>): Check<T | null> {
  return (value, at) => {
    if (value !== null) check(value, at)
  }
}

export function constant<T extends string | number>(expected: T): Check<T> {
  return (value, at) => must(value === expected, at, JSON.stringify(expected))
}

/** The words as keys, so that the compiler says which one is missing. */
export function oneOf<T extends string>(words: Readonly<Record<T, true>>): Check<T> {
  const all = Object.keys(words)
  return (value, at) => must(typeof value === 'string' && all.includes(value), at, `one of ${all.join(', ')}`)
}

export function list<T>(item: Check<T>): Check<readonly T[]> {
  return (value, at) => {
    must(Array.isArray(value), at, 'a list')
    ;(value as readonly unknown[]).forEach((each, i) => item(each, `${at}[${i}]`))
  }
}

export function table<T>(key: Check<string>, item: Check<T>): Check<Readonly<Record<string, T>>> {
  return (value, at) => {
    for (const [each, stored] of Object.entries(record(value, at))) {
      key(each, `the key ${JSON.stringify(each)} of ${at}`)
      item(stored, `${at}.${each}`)
    }
  }
}

export function object<T>(fields: Fields<T>): Check<T> {
  return (value, at) => checkFields(record(value, at), fields, at, [])
}

/** A union by its `type`. */
export function variants<T extends { readonly type: string }>(
  members: { readonly [K in T['type']]: Fields<Omit<Extract<T, { type: K }>, 'type'>> },
): Check<T> {
  return (value, at) => checkFields(...memberOf(members, value, at), at, ['type'])
}

/** A text, or something with fields. */
export function textOr<T>(check: Check<T>): Check<string | T> {
  return (value, at) => {
    if (typeof value !== 'string') check(value, at)
  }
}

type Table = Readonly<Record<string, Check<unknown> | Optional<unknown>>>

function memberOf(members: object, value: unknown, at: string): readonly [Readonly<Record<string, unknown>>, Table] {
  const found = record(value, at)
  const { type } = found
  if (typeof type !== 'string' || !Object.hasOwn(members, type))
    throw invalid(`${at} has the type ${JSON.stringify(type) ?? 'undefined'}, which this version does not know.`)
  return [found, (members as Readonly<Record<string, Table>>)[type] ?? {}]
}

function checkFields(
  found: Readonly<Record<string, unknown>>,
  fields: object,
  at: string,
  more: readonly string[],
): void {
  const place = (key: string): string => (at === '' ? key : `${at}.${key}`)
  for (const key of Object.keys(found)) {
    if (!Object.hasOwn(fields, key) && !more.includes(key)) throw invalid(`${place(key)} is not known.`)
  }
  for (const [key, check] of Object.entries(fields as Table)) {
    const there = Object.hasOwn(found, key)
    if (typeof check === 'function') {
      if (!there) throw invalid(`${place(key)} is missing.`)
      check(found[key], place(key))
    } else if (there) check.optional(found[key], place(key))
  }
}

function record(value: unknown, at: string): Readonly<Record<string, unknown>> {
  must(isObject(value), at, 'an object')
  return value as Readonly<Record<string, unknown>>
}
