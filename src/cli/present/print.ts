// Lines to standard output and to standard error: answers go to the first, everything about them to the second.
import { basename, isAbsolute, relative } from 'node:path'
import { fitted, type Paint, paintsOf, saidText, spoken } from './text.ts'
import { clean, safeJson } from './clean.ts'
import { quoted, type Room } from './preview.ts'

export function print(text: string): void {
  printRaw(fitted(text, seatOf(process.stdout).room.columns))
}

/** As it is, for what other programs read. */
export function printRaw(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function printJson(value: unknown): void {
  printRaw(safeJson(value))
}

/** What a model said, for a person with a margin, for a program as it is. */
export function printSaid(text: string): void {
  const { columns } = seatOf(process.stdout).room
  printRaw(Number.isFinite(columns) ? saidText(text, columns) : spoken(text))
}

/** A text of others: for a person line by line with a margin, for a program as it is. */
export function printQuoted(text: string): void {
  const { room } = seatOf(process.stdout, true)
  const rows = quoted(text, room).rows.flatMap(({ texts }) => texts)
  printRaw(Number.isFinite(room.columns) ? rows.join('\n') : clean(text))
}

export function warn(text: string): void {
  process.stderr.write(`${fitted(text, seatOf(process.stderr).room.columns)}\n`)
}

/**
 * A command as it can be typed here: by its name if that is how it was run, else as the file that it is. What is printed for
 * people to run must run as it is printed.
 */
export function typed(words: string): string {
  const [, script = ''] = process.argv
  if (/^terret(?:\.\w+)?$/.test(basename(script))) return `terret ${words}`
  const near = relative(process.cwd(), script)
  const path = near === '' || near.startsWith('..') || isAbsolute(near) ? script : near
  return `node ${/^[\w./@+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`} ${words}`
}

/** Where nobody looks, this many lines of a call are shown. */
const ROWS_UNSEEN = 200
/** What stands around a call that is shown: what came before it, the question, what is typed. */
const ROWS_AROUND = 8

/** How much of a call fits on an output, and in which colours. Lines for a file are not broken. */
export function seatOf(out: NodeJS.WriteStream, whole = false): { readonly room: Room; readonly paint: Paint } {
  const { isTTY } = out
  // A terminal may not know its size.
  const [columns, rows] = [out.columns || 80, out.rows || 24]
  const most = whole ? Number.POSITIVE_INFINITY : isTTY ? Math.max(10, rows - ROWS_AROUND) : ROWS_UNSEEN
  const colours = isTTY && (process.env['NO_COLOR'] ?? '') === '' && process.env['TERM'] !== 'dumb' && out.hasColors()
  // One column stays free: in the last one terminals differ on where the cursor is.
  const width = isTTY ? Math.max(20, columns - 1) : Number.POSITIVE_INFINITY
  return { room: { columns: width, rows: most }, paint: paintsOf(colours) }
}

/** A person is there: they can be asked, and a line may be drawn again. */
export function isAttended(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}
