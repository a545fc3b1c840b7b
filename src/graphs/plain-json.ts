// Checks that a value is plain JSON, so that it comes out of the log as it went in, with no silent change.
import type { Json } from '../kernel/content.ts'

const DEPTH_MAX = 200

/**
 * A copy of the value as plain JSON. Throws for anything that JSON cannot hold, and names the place. Undefined fields
 * are left out.
 */
export function plainJson(value: unknown, place: string, depth = 0): Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return value
    throw new TypeError(`${place} is ${value}, which JSON does not have`)
  }
  if (depth > DEPTH_MAX) throw new TypeError(`${place} is nested deeper than ${DEPTH_MAX} levels`)
  if (Array.isArray(value)) return value.map((item: unknown, i) => plainJson(item ?? null, `${place}[${i}]`, depth + 1))
  const prototype: unknown = typeof value === 'object' ? Object.getPrototypeOf(value) : undefined
  if (prototype !== Object.prototype && prototype !== null)
    throw new TypeError(`${place} is ${typeNameOf(value)}, which JSON does not have`)
  const entries = Object.entries(value as object).filter(([, item]) => item !== undefined)
  return Object.fromEntries(entries.map(([key, item]) => [key, plainJson(item, `${place}.${key}`, depth + 1)]))
}

function typeNameOf(value: unknown): string {
  if (value === null || typeof value !== 'object') return `a ${typeof value}`
  return `a ${value.constructor?.name ?? 'strange object'}`
}
