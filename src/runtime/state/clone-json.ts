// A copy of plain JSON: changes to the copy do not reach the original. Cheaper than structuredClone.

export function cloneJson<T>(value: T): T {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(cloneJson) as T
  // The spread copies own properties, even "__proto__", so that no write reaches a prototype.
  const copy = { ...value } as Record<string, unknown>
  const keys = Object.keys(copy)
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string
    const inner = copy[key]
    if (inner !== null && typeof inner === 'object') copy[key] = cloneJson(inner)
  }
  return copy as T
}
