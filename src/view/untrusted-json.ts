// Reads JSON written by others: a value of the wrong type counts as missing. It checks nothing else.
import type { Json } from '../kernel/content.ts'

export type JsonObject = { readonly [key: string]: Json }

/** True for objects other than null and lists. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The table's own entry under an untrusted name, never an inherited property. */
export function ownOf<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}

/** Undefined if it is not JSON. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

/** Empty if it is not a string. */
export function asString(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Empty if it is not a list. */
export function asList(value: unknown): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : []
}

/** JSON on one line, cut after this many characters. The work is bounded, however large the value is. */
export function jsonLine(value: Json, chars: number): string {
  let line = ''
  const write = (text: string): boolean => {
    line += text
    return line.length <= chars
  }
  const all = (entries: readonly (readonly [string, Json])[], names: boolean): boolean =>
    entries.every(([name, item], i) => {
      const label = names ? `${name.slice(0, chars)}: ` : ''
      return write(`${i === 0 ? '' : ', '}${label}`) && each(item)
    })
  const each = (item: Json): boolean => {
    if (typeof item === 'string') return write(JSON.stringify(item.slice(0, chars + 1)))
    if (item === null || typeof item !== 'object') return write(String(item))
    const isList = Array.isArray(item)
    const entries = Object.entries(item as JsonObject)
    return write(isList ? '[' : '{') && all(entries, !isList) && write(isList ? ']' : '}')
  }
  return each(value) ? line : `${line.slice(0, chars).replace(/[\uD800-\uDBFF]$/, '')}…`
}
