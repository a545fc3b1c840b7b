// What can be written down and read again as it was. A schema's transform or a handler may make what JSON cannot hold.

export const TOO_DEEP = 'too many levels'

/** What of a value is no JSON, in words a person understands; null if all of it is. Loops, because this stands in every call. */
export function strangerIn(value: unknown, levels: number): string | null {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return null
  if (typeof value === 'number') return Number.isFinite(value) ? null : String(value)
  if (typeof value !== 'object') return value === undefined ? 'undefined' : `a ${typeof value}`
  if (levels === 0) return TOO_DEEP
  if (Array.isArray(value)) {
    for (const item of value) {
      const found = strangerIn(item, levels - 1)
      if (found !== null) return found
    }
    return null
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) return `a ${value.constructor.name || 'class'}`
  for (const key in value) {
    const item = (value as Readonly<Record<string, unknown>>)[key]
    // A field that is not there and one that is undefined are written alike.
    const found = item === undefined ? null : strangerIn(item, levels - 1)
    if (found !== null) return found
  }
  return null
}
