// Secrets in the output of `xxd`, `hexdump` and `od`: rows of bytes as numbers or letters, with an offset before them
// and text behind. Consecutive rows are one run of bytes. In a run with a secret, the rows that hold it are found.
import type { FoundSecret } from './scan.ts'

const WORD = '(?:(?:[0-9a-f]{2}){1,8}|[0-7]{3}|[0-7]{6})'
/** An offset may also be the first word of the row, so both readings are tried. */
const OFFSET = '(?:([0-9a-f]{6,16}:?)[ \\t]+)?'
const ROW = new RegExp(`^[ \\t]*${OFFSET}(${WORD}(?:[ \\t]+${WORD})*)(?:[ \\t]|\\r?$)`, 'i')
/** Each letter stands at the end of four columns. */
const CELL = ' [ 0-7][ 0-7\\\\]'
const LETTERS_ROW = new RegExp(`^(?:[0-7]{7})?((?:${CELL}.){1,16})$`)
const ROW_CHARACTERS_MAX = 400
const ROW_BYTES_MAX = 16
/** Whether the text may have rows at all. */
const LOOKS_LIKE_DUMP = new RegExp(`^[ \\t]*${OFFSET}${WORD}[ \\t]+${WORD}\\b|^(?:[0-7]{7})?(?:${CELL}.){3}`, 'im')

/** A line that more text could turn into a row. */
const ROW_BEGUN = /^[ \t]*(?:[0-9a-f]{1,16}:?[ \t]+)*[0-9a-f]{0,16}:?\r?$/i
const LETTERS_BEGUN = new RegExp(`^(?:[0-7]{7})?(?:${CELL}.)*(?: [ 0-7]?[ 0-7\\\\]?)?$`)

type Row = { readonly start: number; readonly end: number; readonly bytes: readonly Buffer[] }

/**
 * Adds the rows that hold a secret to `found`. Unless the text is `whole`, returns the position from which on rows may
 * hold the beginning of a secret that later rows complete: no more of them than the longest secret has bytes.
 */
export function scanDumps(
  text: string,
  { secrets, bytesMax }: { readonly secrets: ReadonlyMap<string, string>; readonly bytesMax: number },
  whole: boolean,
  found: FoundSecret[],
): number {
  if (whole && !LOOKS_LIKE_DUMP.test(text)) return text.length
  let run: Row[] = []
  let at = 0
  const lines = text.split('\n')
  for (const [i, line] of lines.entries()) {
    const isOpen = !whole && i === lines.length - 1
    const bytes = isOpen || line.length > ROW_CHARACTERS_MAX ? null : readRow(line)
    if (bytes !== null) run.push({ start: at, end: at + line.length, bytes })
    else {
      if (run.some(({ start, end }) => LOOKS_LIKE_DUMP.test(text.slice(start, end)))) findInRows(run, secrets, found)
      if (isOpen) {
        const isRow = line.length <= ROW_CHARACTERS_MAX && mayBecomeRow(line)
        return isRow ? holdBackFrom(run, bytesMax, at) : text.length
      }
      run = []
    }
    at += line.length + 1
  }
  if (run.some(({ start, end }) => LOOKS_LIKE_DUMP.test(text.slice(start, end)))) findInRows(run, secrets, found)
  return text.length
}

function mayBecomeRow(line: string): boolean {
  return readRow(line) !== null || ROW_BEGUN.test(line) || LETTERS_BEGUN.test(line)
}

/** The start of the first row in which a secret may begin that goes on after the last row. */
function holdBackFrom(run: readonly Row[], bytesMax: number, end: number): number {
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

/** The ways to read a row: bytes or words in either order, hexadecimal or octal, or letters. */
const READINGS = 7

function readRow(line: string): readonly Buffer[] | null {
  const letters = LETTERS_ROW.exec(line)?.[1]
  const [, place = '', words] = ROW.exec(line) ?? []
  if (letters === undefined && words === undefined) return null
  const rest = words?.trim().split(/[ \t]+/) ?? []
  const all = /^([0-9a-f]{2})+$/i.test(place) ? [place, ...rest] : []
  return [...readNumbers(rest), ...readNumbers(all), letters === undefined ? Buffer.alloc(0) : readLetters(letters)]
}

function readNumbers(words: readonly string[]): readonly Buffer[] {
  const hex = words.map((word) => Buffer.from(word, 'hex'))
  const turned = hex.map((word) => Buffer.from(word).reverse())
  return [hex, turned, words.map(readOctal)].map((row) => Buffer.concat(row).subarray(0, ROW_BYTES_MAX))
}

function readOctal(word: string): Buffer {
  const value = Number.parseInt(word, 8) || 0
  return word.length === 6 ? Buffer.from([value % 256, Math.floor(value / 256) % 256]) : Buffer.from([value % 256])
}

const NAMED_ESCAPES: Readonly<Record<string, number>> = {
  '\\0': 0,
  '\\a': 7,
  '\\b': 8,
  '\\t': 9,
  '\\n': 10,
  '\\v': 11,
  '\\f': 12,
  '\\r': 13,
}

function readLetters(cells: string): Buffer {
  const all: number[] = []
  for (let at = 0; at < cells.length; at += 4) {
    const cell = cells.slice(at, at + 4).trim()
    if (/^[0-7]{3}$/.test(cell)) all.push(Number.parseInt(cell, 8))
    else all.push(NAMED_ESCAPES[cell] ?? (cell === '' ? 32 : cell.charCodeAt(cell.length - 1)))
  }
  return Buffer.from(all)
}

function findInRows(run: readonly Row[], secrets: ReadonlyMap<string, string>, found: FoundSecret[]): void {
  for (let reading = 0; reading < READINGS; reading++) {
    for (const rows of readableRows(run, reading)) {
      const all = Buffer.concat(rows.map((row) => row.bytes[reading] ?? NO_BYTES))
      for (const [spelling, name] of secrets)
        findSecret(rows, { reading, all, name, bytes: Buffer.from(spelling) }, found)
    }
  }
}

/** Consecutive rows that can be read in this way. */
function readableRows(run: readonly Row[], reading: number): readonly (readonly Row[])[] {
  const pieces: Row[][] = [[]]
  for (const row of run) {
    if ((row.bytes[reading]?.length ?? 0) > 0) pieces.at(-1)?.push(row)
    else if (pieces.at(-1)?.length !== 0) pieces.push([])
  }
  return pieces.filter((rows) => rows.length > 0)
}

type SoughtSecret = { readonly reading: number; readonly all: Buffer; readonly name: string; readonly bytes: Buffer }

/** Finds the whole rows that hold these bytes, because the text at the end of a row shows the same bytes. */
function findSecret(run: readonly Row[], { reading, all, name, bytes }: SoughtSecret, found: FoundSecret[]): void {
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
