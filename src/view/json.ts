// JSON that others wrote, as it is read everywhere: what has the wrong type is as good as missing. It checks nothing else.
import type { Json } from '../kernel/content.ts'

export type JsonObject = { readonly [key: string]: Json }

/** Neither null nor a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Undefined if it is not JSON. */
export function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

/** Empty for what is no string. */
export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Empty for what is no list. */
export function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : []
}
