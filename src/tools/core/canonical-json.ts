// Canonical JSON: equal values have equal bytes, whatever the order of their keys. For comparisons, digests and
// checksums.
import type { Json } from '../../kernel/content.ts'

export function canonicalJson(value: unknown): string {
  return JSON.stringify(sortKeys(value as Json))
}

export function sortKeys(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value as Readonly<Record<string, Json>>)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, sortKeys(item)]))
}
