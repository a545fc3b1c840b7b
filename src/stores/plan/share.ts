// Which of the sessions that are due are taken first: of one tree no more than a share, as long as others wait. Pure.

/** How many of the sessions that wait longest are ranked by tree: 16 for each that is asked for, and no more than 1,024, beside those. */
export function rankedOf(limit: number): number {
  return limit + Math.min(16 * limit, 1_024)
}

/** How many sessions of one tree are taken before another tree has its turn: a quarter of the limit. */
export function shareOf(limit: number): number {
  return Math.max(1, Math.floor(limit / 4))
}

/** `due` in its order. What is urgent comes first, whatever its tree had. */
export function takenFirst<T extends { readonly urgent: boolean }>(
  due: readonly T[],
  rootOf: (one: T) => string,
  limit: number,
): readonly T[] {
  const share = shareOf(limit)
  const counts = new Map<string, number>()
  const turns = due.map((one, at) => {
    const key = `${one.urgent} ${rootOf(one)}`
    const before = counts.get(key) ?? 0
    counts.set(key, before + 1)
    return { one, at, turn: Math.floor(before / share) }
  })
  turns.sort((a, b) => Number(b.one.urgent) - Number(a.one.urgent) || a.turn - b.turn || a.at - b.at)
  const taken = turns.slice(0, limit).sort((a, b) => a.at - b.at)
  return taken.map(({ one }) => one)
}
