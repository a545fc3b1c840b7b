// Reads untrusted JSON values: a missing value or one of another type is empty. It validates nothing.
import type { Json } from '../kernel/content.ts'
import { isObject, type JsonObject } from '../view/json.ts'

export function fieldsOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

/** Null if it is not JSON. */
export function parsed(text: string): { readonly value: Json } | null {
  try {
    return { value: JSON.parse(text) as Json }
  } catch {
    return null
  }
}
