// Secrets in what `xxd`, `hexdump` and `od` print: rows of bytes as numbers or letters, with a place before and a text behind.
// Rows that follow one another are one run of bytes; of a run that holds a secret the rows that hold it are found.
import type { Found } from './scan.ts'

const WORD = '(?:(?:[0-9a-f]{2}){1,8}|[0-7]{3}|[0-7]{6})'
/** It may also be the first word: both are tried. */
const PLACE = '(?:([0-9a-f]{6,16}:?)[ \\t]+)?'
const ROW = new RegExp(`^[ \\t]*${PLACE}(${WORD}(?:[ \\t]+${WORD})*)(?:[ \\t]|\\r?$)`, 'i')
/** Each letter stands at the end of four columns. */
const CELL = ' [ 0-7][ 0-7\\\\]'
const LETTERS_ROW = new RegExp(`^(?:[0-7]{7})?((?:${CELL}.){1,16})$`)
const ROW_CHARACTERS_MAX = 400
const ROW_BYTES_MAX = 16
/** Is it worth a look? */
const SOME = new RegExp(`^[ \\t]*${PLACE}${WORD}[ \\t]+${WORD}\\b|^(?:[0-7]{7})?(?:${CELL}.){3}`, 'im')

/** A line that more text could make a row. */
const ROW_BEGUN = /^[ \t]*(?:[0-9a-f]{1,16}:?[ \t]+)*[0-9a-f]{0,16}:?\r?$/i
const LETTERS_BEGUN = new RegExp(`^(?:[0-7]{7})?(?:${CELL}.)*(?: [ 0-7]?[ 0-7\\\\]?)?$`)

type Row = { readonly start: number; readonly end: number; readonly bytes: readonly Buffer[] }

/**
 * Adds the rows that hold a secret to `found`. Unless the text is `whole`, returns from where on rows may hold the beginning of one that
 * later rows complete: no more of them than the longest secret has bytes.
 */
export function scanDumps(
  text: string,
  { secrets, bytesMax }: { readonly secrets: ReadonlyMap<string, string>; readonly bytesMax: number },
  whole: boolean,
  found: Found[],
): number {
  if (whole && !SOME.test(text)) return text.length
  let run: Row[] = []
  let at = 0
  const lines = text.split('\n')
  for (const [i, line] of lines.entries()) {
    const isOpen = !whole && i === lines.length - 1
    const bytes = isOpen || line.length > ROW_CHARACTERS_MAX ? null : bytesOf(line)
    if (bytes !== null) run.push({ start: at, end: at + line.length, bytes })
    else {
      if (run.some(({ start, end }) => SOME.test(text.slice(start, end)))) findIn(run, secrets, found)
      if (isOpen) {
        const isRow = line.length <= ROW_CHARACTERS_MAX && mayBecomeRow(line)
        return isRow ? heldFrom(run, bytesMax, at) : text.length
      }
      run = []
    }
    at += line.length + 1
  }
  if (run.some(({ start, end }) => SOME.test(text.slice(start, end)))) findIn(run, secrets, found)
  return text.length
}

function mayBecomeRow(line: string): boolean {
  return bytesOf(line) !== null || ROW_BEGUN.test(line) || LETTERS_BEGUN.test(line)
}

/** The start of the first row with which a secret may begin that goes on behind the last row. */
function heldFrom(run: readonly Row[], bytesMax: number, end: number): number {
  let from = end
  for (let reading = 0; reading < READINGS; reading++) {
    let behind = 0
    for (const row of run.toReversed()) {
      const { length } = row.bytes[reading] ?? NO_BYTES
      if (length === 0 || behind >= bytesMax - 1) break
      from = Math.min(from, row.start)
      behind += length
    }
  }
  return from
}

const NO_BYTES = Buffer.alloc(0)

/** Each way to read the row: bytes or words in either order, hexadecimal or octal, or letters. */
const READINGS = 7

function bytesOf(line: string): readonly Buffer[] | null {
  const letters = LETTERS_ROW.exec(line)?.[1]
  const [, place = '', words] = ROW.exec(line) ?? []
  if (letters === undefined && words === undefined) return null
  const rest = words?.trim().split(/[ \t]+/) ?? []
  const all = /^([0-9a-f]{2})+$/i.test(place) ? [place, ...rest] : []
  return [...numbersOf(rest), ...numbersOf(all), letters === undefined ? Buffer.alloc(0) : lettersOf(letters)]
}

function numbersOf(words: readonly string[]): readonly Buffer[] {
  const hex = words.map((word) => Buffer.from(word, 'hex'))
  const turned = hex.map((word) => Buffer.from(word).reverse())
  return [hex, turned, words.map(octalOf)].map((row) => Buffer.concat(row).subarray(0, ROW_BYTES_MAX))
}

function octalOf(word: string): Buffer {
  const value = Number.parseInt(word, 8) || 0
  return word.length === 6 ? Buffer.from([value % 256, Math.floor(value / 256) % 256]) : Buffer.from([value % 256])
}

const NAMED: Readonly<Record<string, number>> = {
  '\\0': 0,
  '\\a': 7,
  '\\b': 8,
  '\\t': 9,
  '\\n': 10,
  '\\v': 11,
  '\\f': 12,
  '\\r': 13,
}

function lettersOf(cells: string): Buffer {
  const all: number[] = []
  for (let at = 0; at < cells.length; at += 4) {
    const cell = cells.slice(at, at + 4).trim()
    if (/^[0-7]{3}$/.test(cell)) all.push(Number.parseInt(cell, 8))
    else all.push(NAMED[cell] ?? (cell === '' ? 32 : cell.charCodeAt(cell.length - 1)))
  }
  return Buffer.from(all)
}

function findIn(run: readonly Row[], secrets: ReadonlyMap<string, string>, found: Found[]): void {
  for (let reading = 0; reading < READINGS; reading++) {
    for (const rows of piecesOf(run, reading)) {
      const all = Buffer.concat(rows.map((row) => row.bytes[reading] ?? NO_BYTES))
      for (const [spelling, name] of secrets) findOne(rows, { reading, all, name, bytes: Buffer.from(spelling) }, found)
    }
  }
}

/** Rows that follow one another and can be read in this way. */
function piecesOf(run: readonly Row[], reading: number): readonly (readonly Row[])[] {
  const pieces: Row[][] = [[]]
  for (const row of run) {
    if ((row.bytes[reading]?.length ?? 0) > 0) pieces.at(-1)?.push(row)
    else if (pieces.at(-1)?.length !== 0) pieces.push([])
  }
  return pieces.filter((rows) => rows.length > 0)
}

type Sought = { readonly reading: number; readonly all: Buffer; readonly name: string; readonly bytes: Buffer }

/** The rows that hold these bytes, whole: the text behind them shows the same. */
function findOne(run: readonly Row[], { reading, all, name, bytes }: Sought, found: Found[]): void {
  let hit = all.indexOf(bytes)
  let at = 0
  for (const row of run) {
    const next = at + (row.bytes[reading]?.length ?? 0)
    while (hit >= 0 && hit + bytes.length <= at) hit = all.indexOf(bytes, hit + bytes.length)
    if (hit < 0) return
    if (next > hit) found.push({ start: row.start, end: row.end, name })
    at = next
  }
}
