// Chooses the sessions that the store in memory may forget to make room for new ones. It only decides: memory-store.ts
// forgets them.
import type { Write } from '../../ports/store.ts'
import type { MemoryLog } from './memory-log.ts'

/** The sessions that a commit names, with their roots and the origins of its forks. They are not forgotten for it. */
export function sessionsNamedIn(
  writes: readonly Write[],
  fresh: readonly Write[],
  logs: ReadonlyMap<string, MemoryLog>,
): ReadonlySet<string> {
  const named = new Set(writes.flatMap((write) => [write.session, logs.get(write.session)?.card.root ?? '']))
  for (const write of fresh)
    for (const event of write.events) if ('fork' in event && event.fork) named.add(event.fork.session)
  return named
}

/** The oldest root with nothing to do, and its children; null if there is none. */
export function findSettledTree(
  logs: ReadonlyMap<string, MemoryLog>,
  list: readonly MemoryLog[],
  named: ReadonlySet<string>,
  isLeased: (log: MemoryLog) => boolean,
): readonly MemoryLog[] | null {
  const isDone = (log: MemoryLog): boolean =>
    (log.status === 'idle' || log.status === 'terminated') && log.due === null && !isLeased(log)
  for (const log of logs.values()) {
    if (log.card.root !== log.id || named.has(log.id) || !isDone(log)) continue
    const family = list.filter(({ card }) => card.root === log.id)
    const ids = new Set(family.map(({ id }) => id))
    const read = list.some(({ origin, id }) => origin !== null && ids.has(origin) && !ids.has(id))
    if (!read && family.every(isDone)) return family
  }
  return null
}
