// Chooses which due sessions are taken first: no more than a share from one tree, as long as others wait. Pure.

/**
 * How many of the longest waiting sessions are ranked by tree: the limit, plus 16 for each requested session and at
 * most 1,024.
 */
export function candidateLimit(limit: number): number {
  return limit + Math.min(16 * limit, 1_024)
}

/** How many sessions of one tree are taken before another tree has its turn: a quarter of the limit. */
export function treeShare(limit: number): number {
  return Math.max(1, Math.floor(limit / 4))
}

/** Keeps the order of `due`. Urgent sessions come first, however many their tree has had. */
export function pickByTree<T extends { readonly urgent: boolean }>(
  due: readonly T[],
  rootOf: (one: T) => string,
  limit: number,
): readonly T[] {
  const share = treeShare(limit)
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
