// What can be written down and read again as it was. A schema's transform or a handler may make what JSON cannot hold.
import type { Json } from '../../kernel/content.ts'
import { type Check, record } from '../../options.ts'

export const TOO_DEEP = 'too many levels'

/** An option that is an object of plain JSON, of a bounded depth. */
export function jsonRecord(levelsMax: number): Check {
  return (value, name, of) => {
    const wrong = record(value, name, of)
    if (wrong !== null) return wrong
    const odd = firstNonJson(value, levelsMax)
    return odd === null ? null : `must be plain JSON, and ${odd} is not`
  }
}

/**
 * What of a value is no JSON, in words a person understands; null if all of it is. Loops, because this stands in every call. With
 * `own`, a class that says itself what its JSON is, such as Date, is that.
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
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return `a ${classOf(value)}`
  let [fields, empty] = [0, 0]
  for (const key in value) {
    const item = (value as Readonly<Record<string, unknown>>)[key]
    fields += 1
    // A field that is not there and one that is undefined are written alike.
    if (item === undefined) empty += 1
    const found = item === undefined ? null : firstNonJson(item, levels - 1, own)
    if (found !== null) return found
  }
  return own && fields > 0 && empty === fields ? 'only undefined' : null
}

/** Its name may be anything, also not there. */
function classOf(value: object): string {
  const name: unknown = (value.constructor as { readonly name?: unknown } | undefined)?.name
  return typeof name === 'string' && /^[\w$]{1,64}$/.test(name) ? name : 'class'
}

/**
 * A copy in which nothing can answer twice in two ways: no accessors, no Proxy, no `toJSON`. Only for what `firstNonJson` let pass; what
 * it would now find is a change in between, and is thrown.
 */
export function plainCopy(value: Json, levels: number): Json {
  if (value === null || typeof value !== 'object') {
    if (firstNonJson(value, levels) !== null) throw new TypeError('the value changes while it is read')
    return value
  }
  if (levels === 0) throw new TypeError('the value changes while it is read')
  if (Array.isArray(value)) return Array.from(value as readonly Json[], (item) => plainCopy(item, levels - 1))
  // Own properties even for "__proto__": nothing here may reach a prototype.
  const copy: Record<string, Json> = { ...(value as Readonly<Record<string, Json>>) }
  for (const key of Object.keys(copy)) {
    const item = copy[key]
    if (item === undefined) delete copy[key]
    else copy[key] = plainCopy(item, levels - 1)
  }
  return copy
}
