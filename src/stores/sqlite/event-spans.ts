// Where the events of one session lie in the table of all events: spans, and how they are read back in pieces. It reads
// no events: read-store.ts does.
import { SPAN, type SqliteStatements } from './sqlite-schema.ts'

/** Event `seq` is at position `pos`, the next at `pos + 1`, and so on, `count` in all. */
export type EventSpan = { readonly seq: number; readonly pos: number; readonly count: number }

/** The spans with the events `from` to `to` of a session, cut to these. Incomplete if the index is damaged. */
export function findSpans(sql: SqliteStatements, head: LogEnd, from: number, to: number): readonly EventSpan[] {
  const zero = head.n * SPAN
  const row = sql.spans.get(zero, zero, zero + from, zero + to, zero) as { text: string | null }
  const marks = JSON.parse(`[${[row.text, head.tail].filter(Boolean).join(',')}]`) as number[]
  const spans: EventSpan[] = []
  for (let i = 0; i < marks.length; i += 2) {
    const [seq = 0, pos = 0] = marks.slice(i, i + 2)
    const first = Math.max(seq, from)
    const last = Math.min((marks[i + 2] ?? head.seq + 1) - 1, to)
    if (first <= last) spans.push({ seq: first, pos: pos + first - seq, count: last - first + 1 })
  }
  return spans
}

/** The end of a session's log. `tail` lists its newest spans: seq, pos, seq, pos… */
export type LogEnd = { readonly n: number; readonly seq: number; readonly tail: string }

/** The spans in pieces of at most `size` events. */
export function* cutSpans(spans: readonly EventSpan[], size: number): Generator<readonly EventSpan[]> {
  let piece: EventSpan[] = []
  let room = size
  for (const span of spans) {
    for (let taken = 0; taken < span.count; ) {
      const count = Math.min(span.count - taken, room)
      piece.push({ seq: span.seq + taken, pos: span.pos + taken, count })
      taken += count
      room -= count
      if (room > 0) continue
      yield piece
      piece = []
      room = size
    }
  }
  if (piece.length > 0) yield piece
}

export function countEvents(piece: readonly EventSpan[]): number {
  return piece.reduce((sum, { count }) => sum + count, 0)
}

export function positionsOf(piece: readonly EventSpan[]): readonly number[] {
  return piece.flatMap(({ pos, count }) => Array.from({ length: count }, (_, i) => pos + i))
}
