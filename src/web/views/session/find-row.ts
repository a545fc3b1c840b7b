// Finds the row of an event, and the call that an address names. An address is the seq of an event or the key of a
// call.
import type { CallKey, Event } from '../../../kernel/index.ts'
import type { TimelineRow } from '../../../view/timeline.ts'

/** `812`, or `812.0` for a call of that reply. */
export type ChosenEvent = { readonly seq: number; readonly call: CallKey | null }

export function parseChosen(text: string | null): ChosenEvent | null {
  const found = /^([1-9]\d{0,14})(?:\.(\d{1,6}))?$/.exec(text ?? '')
  if (!found) return null
  return { seq: Number(found[1]), call: found[2] === undefined ? null : text }
}

export function rowKey(row: TimelineRow): string {
  return row.type === 'call' ? `call ${row.call}` : `${row.type} ${row.seq}`
}

/** The address of a row. */
export function rowAddress(row: TimelineRow): string {
  return row.type === 'call' ? row.call : String(row.seq)
}

/** The call that an event is about. */
function eventCall(event: Event | undefined): CallKey | null {
  return event && 'call' in event ? event.call : null
}

/** The row of this event: its call's row, its request's row, its own row, or the last row before it. */
export function findRow(
  rows: readonly TimelineRow[],
  { seq, call }: ChosenEvent,
  event: Event | undefined,
): TimelineRow | null {
  const about = call ?? eventCall(event)
  const own = rows.find((row) => row.seq === seq && row.type !== 'call' && row.type !== 'idle')
  if (about !== null && (call !== null || own === undefined))
    return rows.find((row) => row.type === 'call' && row.call === about) ?? null
  const reply = rows.find((row) => row.type === 'turn' && row.reply === seq)
  return own ?? reply ?? rows.findLast((row) => row.seq <= seq && row.type !== 'idle') ?? null
}
