// Reading a JSON value that somebody else wrote: what is not there or not of the kind asked for is empty. It checks nothing.
import type { Json } from '../kernel/content.ts'
import { isObject, type JsonObject } from '../view/json.ts'

export function fieldsOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

/** Null for what is no JSON. */
export function parsed(text: string): { readonly value: Json } | null {
  try {
    return { value: JSON.parse(text) as Json }
  } catch {
    return null
  }
}
