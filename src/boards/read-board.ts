// Reads a log from its end. The last results of its tools hold the board of a session, however long the log before them
// is.
import type { Event } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'
import { BoardSearch, type BoardState } from './board.ts'

export type BoardStore = Pick<Store, 'read' | 'card'>

const PAGE = 200

/** The board and the goal of a session. A fork continues with the board of its origin. */
export async function readBoard(store: BoardStore, session: string): Promise<BoardState> {
  const look = new BoardSearch()
  for await (const event of newestFirst(store, session)) {
    look.take(event)
    if (look.done) break
  }
  return look.standing
}

/** The events of a log from its end, a page at a time, so that looking for the last board reads little. */
export async function* newestFirst(store: BoardStore, session: string): AsyncGenerator<Event> {
  const seen = new Set<string>()
  let [log, end] = [session, await lastSeq(store, session)]
  while (!seen.has(log)) {
    seen.add(log)
    let first: Event | undefined
    while (end > 0) {
      const after = Math.max(0, end - PAGE)
      const { events } = await store.read(log, after, end - after)
      for (let i = events.length - 1; i >= 0; i--) yield events[i] as Event
      first = events[0]
      end = after
    }
    if (first?.type !== 'session.created' || first.fork === undefined) return
    ;[log, end] = [first.fork.session, first.fork.seq]
  }
}

/** The card may be behind the log. */
async function lastSeq(store: BoardStore, session: string): Promise<number> {
  let seq = (await store.card(session))?.seq ?? 0
  for (;;) {
    const { events } = await store.read(session, seq, PAGE)
    const last = events.at(-1)
    if (last === undefined) return seq
    seq = last.seq
  }
}
