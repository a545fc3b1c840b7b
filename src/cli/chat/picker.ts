// One list with search, for everything a person chooses from: sessions, models, messages. Pure: a key goes in, the new
// list and the choice come out. terminal-input.ts reads the keys and draws.
import { clean, oneLine } from '../../view/clean.ts'
import type { DrawnRows } from '../present/screen.ts'
import { clipToWidth, type Paint, widthOf } from '../present/terminal-text.ts'
import { drawLine, type InputLine, lineFromText, lineText, NOTHING_KNOWN, pressKey } from './edit-line.ts'
import { fuzzyRank, type SearchText, searchTextOf } from './fuzzy.ts'
import type { KeyPress } from './keys.ts'

export type PickItem = { readonly value: string; readonly label: string; readonly detail?: string }
export type PickOptions = {
  readonly title: string
  readonly items: readonly PickItem[]
  /** The value that is chosen first. */
  readonly start?: string
  readonly query?: string
}

type SearchItem = { readonly item: PickItem; readonly label: SearchText; readonly detail: SearchText }

export type Picking = {
  readonly title: string
  readonly all: readonly SearchItem[]
  readonly matches: readonly SearchItem[]
  readonly query: InputLine
  /** The index of the chosen match. */
  readonly at: number
}

/** The end of a picking: the value taken, or null if it was left. */
export type PickEnd = { readonly value: string | null }

export function openPicking({ title, items, start, query = '' }: PickOptions): Picking {
  const all = items.map((item) => {
    return { item, label: searchTextOf(item.label), detail: searchTextOf(item.detail ?? '') }
  })
  const picking = narrow({ title, all, matches: all, query: lineFromText(query), at: 0 })
  const at = picking.matches.findIndex(({ item }) => item.value === start)
  return at < 0 ? picking : { ...picking, at }
}

/** Each word of the query has to fit. The order of the list stays for equal ranks, and without a query. */
function narrow(picking: Picking): Picking {
  const words = lineText(picking.query).toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return { ...picking, matches: picking.all, at: 0 }
  const ranked = picking.all.flatMap((each) => {
    let sum = 0
    for (const word of words) {
      const rank = fuzzyRank(word, each.label) ?? fuzzyRank(word, each.detail)
      if (rank === null) return []
      sum += rank
    }
    return [{ each, sum }]
  })
  return { ...picking, matches: ranked.toSorted((a, b) => a.sum - b.sum).map(({ each }) => each), at: 0 }
}

const PAGE = 8
const STEPS: Readonly<Record<string, number>> = { up: -1, down: 1, pageup: -PAGE, pagedown: PAGE }
const STEPS_CTRL: Readonly<Record<string, number>> = { p: -1, n: 1 }

export function pressPickKey(picking: Picking, key: KeyPress): readonly [Picking, PickEnd | null] {
  const { name = '', ctrl, meta } = key
  if (name === 'escape' || (ctrl && (name === 'c' || name === 'd'))) return [picking, { value: null }]
  if (!ctrl && !meta && (name === 'return' || name === 'tab')) {
    const chosen = picking.matches[picking.at]
    return [picking, chosen ? { value: chosen.item.value } : null]
  }
  const step = (ctrl ? STEPS_CTRL : STEPS)[name]
  if (step !== undefined) {
    const last = Math.max(0, picking.matches.length - 1)
    return [{ ...picking, at: Math.min(last, Math.max(0, picking.at + step)) }, null]
  }
  const [query] = pressKey(picking.query, key, NOTHING_KNOWN)
  if (lineText(query) === lineText(picking.query)) return [{ ...picking, query }, null]
  return [narrow({ ...picking, query }), null]
}

/** The title with the query, the matches around the chosen one, and how many there are. */
export function drawPicking(picking: Picking, paint: Paint, columns: number, rows: number): DrawnRows {
  const { matches, at, all } = picking
  const title = clipToWidth(oneLine(picking.title, 200), Math.max(8, Math.floor(columns / 2)))
  const head = drawLine({ text: `${title} › `, paint: paint.bold }, picking.query, columns)
  const room = Math.max(1, Math.min(12, rows - head.rows.length - 3))
  const from = Math.max(0, Math.min(at - Math.floor(room / 2), matches.length - room))
  const shown = matches.slice(from, from + room).map((each, index) => {
    return itemRow(each.item, from + index === at, paint, columns)
  })
  const count = matches.length === all.length ? `${all.length}` : `${matches.length} of ${all.length}`
  const foot = matches.length === 0 ? `nothing fits · Esc leaves` : `${count} · ↑ ↓ · Enter takes · Esc leaves`
  return { ...head, rows: [...head.rows, ...shown, paint.dim(clipToWidth(`  ${foot}`, columns))] }
}

function itemRow({ label, detail = '' }: PickItem, isChosen: boolean, paint: Paint, columns: number): string {
  const name = clipToWidth(oneLine(label, 400), columns - MARK_COLUMNS)
  const room = columns - MARK_COLUMNS - widthOf(name)
  const more = detail === '' || room < 8 ? '' : clipToWidth(` · ${oneLine(detail, 400)}`, room)
  return isChosen ? `${paint.cyan('❯')} ${paint.bold(name)}${paint.dim(more)}` : `  ${name}${paint.dim(more)}`
}
const MARK_COLUMNS = 2

/** The list for a terminal that cannot redraw: numbered lines. */
export function numberedLines({ items }: PickOptions): readonly string[] {
  return items.map(({ label, detail }, at) => {
    return `  ${at + 1} ${oneLine(label, 400)}${detail === undefined ? '' : ` · ${oneLine(detail, 400)}`}`
  })
}

/** The value that a typed number or name means. Undefined: none. */
export function typedChoice({ items }: PickOptions, typed: string): string | undefined {
  const byName = items.find(({ value }) => value === typed) ?? items.find(({ label }) => clean(label) === typed)
  return (byName ?? (/^\d+$/.test(typed) ? items[Number(typed) - 1] : undefined))?.value
}
