// One session of the store in memory, and what is read from many of them: cards, and lists of cards. It decides nothing: memory.ts does.
import type { Card, CardFilter, Snapshot } from '../../ports/store.ts'
import { assert } from '../../kernel/failure.ts'
import { compareIds } from '../plan/id.ts'
import { type SessionChange, type Head, originOf } from '../plan/plan.ts'

/** One session. A class, so that all of them have one shape: with a shape each, every look at one would be a search. */
export class Log implements Head {
  readonly id: string
  /** Counts sessions in the order of their creation. */
  readonly n: number
  turn = 0
  seq = 0
  at = 0
  epoch: number
  worker: string | null = null
  due: number | null = null
  urgent = false
  status: Card['status']
  tries = 0
  trouble: Head['trouble'] = null
  card: Card
  readonly bodies: string[] = []
  readonly ids = new Map<string, number>()
  snapshot: Snapshot | null = null
  /** The session whose log it reads before its own. */
  readonly origin: string | null
  /** The blobs it refers to, if any. */
  blobs: Set<string> | null = null

  constructor(n: number, draft: SessionChange, card: Card) {
    this.id = draft.session
    this.n = n
    this.epoch = draft.epoch
    this.status = draft.status
    this.card = card
    this.origin = originOf(draft)
  }
}

/** JSON is made in pieces, and a string of pieces takes half as much again. Reading one character joins them. */
export function flat(text: string): string {
  assert(text.charCodeAt(0) === OBJECT, 'an event is an object')
  return text
}
const OBJECT = '{'.charCodeAt(0)

export function isWanted({ status: now, card }: Log, { status, parent, folder, where }: CardFilter): boolean {
  if ((status ?? now) !== now || (folder ?? card.folder) !== card.folder) return false
  if ((parent ?? card.parent) !== card.parent) return false
  return where === undefined || Object.entries(where).every(([name, value]) => card.labels?.[name] === value)
}

export function rootsOf(logs: readonly Log[], filter: CardFilter): Log[] {
  return logs.filter((log) => (filter.parent !== undefined || log.id === log.card.root) && isWanted(log, filter))
}

export function newestOf(logs: readonly Log[], filter: CardFilter): readonly Card[] {
  const roots = rootsOf(logs, filter)
  return roots.sort((a, b) => b.at - a.at || compareIds(a.id, b.id)).map(cardOf)
}

export function cardOf(log: Log): Card {
  const { card, seq, at, due, trouble } = log
  // A reader may do with it what it likes.
  const labels = card.labels ? { labels: { ...card.labels } } : {}
  return { ...card, ...labels, seq, at, due, ...(trouble ? { trouble } : {}) }
}

/** How many of these, ordered by id, are not after `id`. */
export function countUpTo(logs: readonly Log[], id: string): number {
  let [low, high] = [0, logs.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const log = logs[middle]
    if (log && compareIds(log.id, id) <= 0) low = middle + 1
    else high = middle
  }
  return low
}
