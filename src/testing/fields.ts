// Reads untrusted JSON values: a missing value or one of another type is empty. It validates nothing.
import { isObject, type JsonObject } from '../view/untrusted-json.ts'

export function fieldsOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}
