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

type Row = { readonly start: number; readonly end: number; readonly bytes: readonly Buffer[] }

export function scanDumps(text: string, secrets: ReadonlyMap<string, string>, found: Found[]): void {
  if (!SOME.test(text)) return
  let run: Row[] = []
  let at = 0
  for (const line of text.split('\n')) {
    const bytes = line.length > ROW_CHARACTERS_MAX ? null : bytesOf(line)
    if (bytes !== null) run.push({ start: at, end: at + line.length, bytes })
    else {
      findIn(run, secrets, found)
      run = []
    }
    at += line.length + 1
  }
  findIn(run, secrets, found)
}

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
  if (run.length === 0) return
  for (let reading = 0; reading < READINGS; reading++) {
    const all = Buffer.concat(run.map((row) => row.bytes[reading] ?? Buffer.alloc(0)))
    for (const [spelling, name] of secrets) findOne(run, { reading, all, name, bytes: Buffer.from(spelling) }, found)
  }
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
