// A copy of plain JSON, so that a handler that changes its arguments changes nothing of ours. Cheaper than structuredClone.
import type { Json } from '../kernel/content.ts'

export function detach(value: Json): Json {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(detach)
  const source = value as Readonly<Record<string, Json>>
  const copy: Record<string, Json> = {}
  for (const key of Object.keys(source)) {
    // Own property even for "__proto__": nothing here may reach a prototype.
    if (key === '__proto__') Object.defineProperty(copy, key, { value: detach(source[key] as Json), enumerable: true })
    else copy[key] = detach(source[key] as Json)
  }
  return copy
}
