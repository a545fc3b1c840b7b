// Rows page by page on the alternate screen, for everything that a chat showed. Pure: terminal-input.ts reads the keys
// and writes.
import type { KeyPress } from './keys.ts'
import { keyNameOf } from './edit-line.ts'
import type { Paint } from '../present/terminal-text.ts'

/** `top`: the index of the first row on the screen. */
export type Pager = { readonly rows: readonly string[]; readonly top: number }

/** It opens at the end, where the last calls are. */
export function openPager(rows: readonly string[], height: number): Pager {
  return moveTo({ rows, top: 0 }, rows.length, height)
}

/** One row is for the keys. */
const room = (height: number): number => Math.max(1, height - 1)

function moveTo(pager: Pager, top: number, height: number): Pager {
  return { ...pager, top: Math.max(0, Math.min(top, pager.rows.length - room(height))) }
}

const LEAVES: ReadonlySet<string> = new Set(['escape', 'ctrl-o', 'ctrl-c', 'ctrl-d', 'return'])

/** Null: the person left. */
export function pressPageKey(pager: Pager, key: KeyPress, height: number): Pager | null {
  const name = key.name === undefined ? key.sequence : keyNameOf(key)
  if (LEAVES.has(name) || name === 'q') return null
  const { top, rows } = pager
  const steps: Readonly<Record<string, number>> = {
    up: top - 1,
    k: top - 1,
    down: top + 1,
    j: top + 1,
    pageup: top - room(height) + 1,
    b: top - room(height) + 1,
    pagedown: top + room(height) - 1,
    ' ': top + room(height) - 1,
    home: 0,
    g: 0,
    end: rows.length,
    G: rows.length,
  }
  return moveTo(pager, steps[name] ?? top, height)
}

const HOME = '\u001b[H'
const ERASE_ROW = '\u001b[K'
const ERASE_BELOW = '\u001b[J'
const HIDE = '\u001b[?25l'

export function drawPage({ rows, top }: Pager, paint: Paint, columns: number, height: number): string {
  const shown = rows.slice(top, top + room(height))
  const blank = Array<string>(room(height) - shown.length).fill('')
  const last = top + shown.length
  const where = rows.length === 0 ? 'nothing yet' : `${top + 1}–${last} of ${rows.length}`
  const foot = paint.dim(`${where} · ↑ ↓ PgUp PgDn · Esc leaves`.slice(0, columns))
  return `${HIDE}${HOME}${[...shown, ...blank, foot].map((row) => `${row}${ERASE_ROW}`).join('\r\n')}${ERASE_BELOW}`
}
