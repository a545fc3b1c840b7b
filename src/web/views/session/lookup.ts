// Which row an event belongs to, and which call an address means. An address is the seq of an event, or the key of a call.
import type { CallKey, Event } from '../../../kernel/index.ts'
import type { TimelineRow } from '../../../view/timeline.ts'

/** `812`, or `812.0` for a call of that reply. Null: neither. */
export type Chosen = { readonly seq: number; readonly call: CallKey | null }

export function chosenIn(text: string | null): Chosen | null {
  const found = /^([1-9]\d{0,14})(?:\.(\d{1,6}))?$/.exec(text ?? '')
  if (!found) return null
  return { seq: Number(found[1]), call: found[2] === undefined ? null : text }
}

export function keyOf(row: TimelineRow): string {
  return row.type === 'call' ? `call ${row.call}` : `${row.type} ${row.seq}`
}

/** What the address of a row says. */
export function addressOf(row: TimelineRow): string {
  return row.type === 'call' ? row.call : String(row.seq)
}

/** The call that an event is about. */
function callOf(event: Event | undefined): CallKey | null {
  return event && 'call' in event ? event.call : null
}

/** The row that shows this event: that of its call, of its request, its own, or the last one before it. */
export function rowOf(
  rows: readonly TimelineRow[],
  { seq, call }: Chosen,
  event: Event | undefined,
): TimelineRow | null {
  const about = call ?? callOf(event)
  const own = rows.find((row) => row.seq === seq && row.type !== 'call' && row.type !== 'idle')
  if (about !== null && (call !== null || own === undefined))
    return rows.find((row) => row.type === 'call' && row.call === about) ?? null
  const reply = rows.find((row) => row.type === 'turn' && row.reply === seq)
  return own ?? reply ?? rows.findLast((row) => row.seq <= seq && row.type !== 'idle') ?? null
}
