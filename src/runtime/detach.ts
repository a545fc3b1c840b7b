// A copy of plain JSON, so that a handler that changes its arguments changes nothing of ours. Cheaper than structuredClone.
import type { Json } from '../kernel/content.ts'

export function detach(value: Json): Json {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(detach)
  // Own properties even for "__proto__": nothing here may reach a prototype.
  const copy: Record<string, Json> = { ...(value as Readonly<Record<string, Json>>) }
  for (const key of Object.keys(copy)) {
    const inner = copy[key]
    if (inner !== null && typeof inner === 'object') copy[key] = detach(inner)
  }
  return copy
}
