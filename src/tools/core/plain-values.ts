// Values that survive being written as JSON and read again. A schema's transform or a handler may return values that
// JSON cannot hold.
import type { Json } from '../../kernel/content.ts'
import { type Check, objectCheck } from '../../options.ts'

export const TOO_DEEP = 'too many levels'

/** The check of an option that must be an object of plain JSON, of bounded depth. */
export function jsonRecord(levelsMax: number): Check {
  return (value, name, of) => {
    const wrong = objectCheck(value, name, of)
    if (wrong !== null) return wrong
    const odd = firstNonJson(value, levelsMax)
    return odd === null ? null : `must be plain JSON, and ${odd} is not`
  }
}

/**
 * Describes the first part of a value that is not JSON, in plain words; null if all of it is. It uses loops, because it
 * runs in every call. With `own`, a class with `toJSON`, such as Date, counts as its JSON.
 */
export function firstNonJson(value: unknown, levels: number, own = false): string | null {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return null
  if (typeof value === 'number') return Number.isFinite(value) ? null : String(value)
  if (typeof value !== 'object') return value === undefined ? 'undefined' : `a ${typeof value}`
  if (levels === 0) return TOO_DEEP
  if (Array.isArray(value)) {
    for (const item of value) {
      const found = firstNonJson(item, levels - 1, own)
      if (found !== null) return found
    }
    return null
  }
  if (own && 'toJSON' in value && typeof value.toJSON === 'function')
    return firstNonJson((value.toJSON as () => unknown)(), levels - 1, own)
  if (isClassInstance(value)) return `a ${className(value)}`
  let fields = 0
  let empty = 0
  for (const key in value) {
    const item = (value as Readonly<Record<string, unknown>>)[key]
    fields += 1
    // A missing field and an undefined one are written alike.
    if (item === undefined) empty += 1
    const found = item === undefined ? null : firstNonJson(item, levels - 1, own)
    if (found !== null) return found
  }
  return own && fields > 0 && empty === fields ? 'only undefined' : null
}

function isClassInstance(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype !== null && Object.getPrototypeOf(prototype) !== null
}

/** The class name can be anything, or missing. */
function className(value: object): string {
  const name: unknown = (value.constructor as { readonly name?: unknown } | undefined)?.name
  return typeof name === 'string' && /^[\w$]{1,64}$/.test(name) ? name : 'class'
}

/**
 * Copies a value so that later reads cannot differ: no accessors, no Proxy, no `toJSON`. Each value is read once, and
 * that copy is checked and kept. A part that is not JSON is described in `odd`, as by `firstNonJson`; then the copy is
 * unusable.
 */
export function plainCopy(value: unknown, levels: number, odd: string[]): Json {
  if (value === null || typeof value !== 'object' || levels === 0) {
    const why = firstNonJson(value, levels)
    if (why !== null) odd.push(why)
    return value as Json
  }
  if (Array.isArray(value)) return copyItems(value, levels, odd)
  if (Object.getPrototypeOf(value) !== Object.prototype && isClassInstance(value)) {
    odd.push(`a ${className(value)}`)
    return null
  }
  // Copy own properties, even "__proto__": nothing here may reach a prototype.
  const copy: Record<string, unknown> = { ...value }
  const keys = Object.keys(copy)
  for (let i = 0; i < keys.length && odd.length === 0; i++) {
    const key = keys[i] as string
    const item = copy[key]
    if (typeof item === 'string' || typeof item === 'boolean' || Number.isFinite(item)) continue
    if (item === undefined) delete copy[key]
    else copy[key] = plainCopy(item, levels - 1, odd)
  }
  return copy as Json
}

function copyItems(items: readonly unknown[], levels: number, odd: string[]): Json {
  const copy: Json[] = []
  for (let i = 0; i < items.length && odd.length === 0; i++) copy.push(plainCopy(items[i], levels - 1, odd))
  return copy
}
