// Where two values differ. Only for saying so: nothing is decided by it.
import type { Json } from '../kernel/content.ts'
import { canonicalJson } from '../tools/core/canonical.ts'

export type Gap = { readonly path: string; readonly expected: Json; readonly found: Json }

/** The first place where two values differ; null if they are the same. What is not there is null. */
export function firstGap(expected: Json, found: Json, path = ''): Gap | null {
  if (canonicalJson(expected) === canonicalJson(found)) return null
  if (!isKeyed(expected) || !isKeyed(found) || Array.isArray(expected) !== Array.isArray(found))
    return { path, expected, found }
  for (const key of new Set([...Object.keys(expected), ...Object.keys(found)])) {
    const gap = firstGap(expected[key] ?? null, found[key] ?? null, path === '' ? key : `${path}.${key}`)
    if (gap) return gap
  }
  return { path, expected, found }
}

function isKeyed(value: Json): value is Readonly<Record<string, Json>> {
  return value !== null && typeof value === 'object'
}
