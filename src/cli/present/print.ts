// Writes lines: answers to standard output, everything else to standard error. Also asks the one question of a command.
import { basename, isAbsolute, join, relative, resolve } from 'node:path'
import { fitted, type Paint, paintsOf, saidText, spoken } from './text.ts'
import { clean, safeJson, shownId, shownRow } from '../../view/clean.ts'
import { shellCommandWith, shellWord } from '../../view/shell.ts'
import { quoted, type Room } from './preview.ts'
import { createInterface } from 'node:readline'
import { EXIT, Refusal } from '../exit.ts'
import { worksFar } from '../table.ts'

/** Each text is one row, whatever stands in it. */
export function print(...rows: readonly string[]): void {
  const { columns } = seatOf(process.stdout).room
  for (const row of rows) printRaw(fitted(shownRow(row), columns))
}

/** Unchanged, for other programs. */
export function printRaw(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function printJson(value: unknown): void {
  printRaw(safeJson(value))
}

/** The text of a model: with a margin at a terminal, unchanged for a program. */
export function printSaid(text: string): void {
  const { columns } = seatOf(process.stdout).room
  printRaw(Number.isFinite(columns) ? saidText(text, columns) : spoken(text))
}

/** Quoted text: with a margin at a terminal, unchanged for a program. */
export function printQuoted(text: string): void {
  const { room } = seatOf(process.stdout, true)
  const rows = quoted(text, room).rows.flatMap(({ texts }) => texts)
  printRaw(Number.isFinite(room.columns) ? rows.join('\n') : clean(text))
}

/** Each text is one row, whatever stands in it. */
export function warn(...rows: readonly string[]): void {
  const { columns } = seatOf(process.stderr).room
  for (const row of rows) process.stderr.write(`${fitted(shownRow(row), columns)}\n`)
}

/** The folder of `--data`, which printed commands name too; null for the usual one. */
let dataFolder: string | null = null

/** From here on this process keeps its sessions in this folder. */
export function keepIn(folder: string | undefined): void {
  if (folder?.trim() === '') throw new Refusal(EXIT.usage, '--data is empty. Name a folder.')
  dataFolder = folder === undefined ? null : resolve(folder)
  if (dataFolder === null) return
  process.env['TERRET_HOME'] = dataFolder
  process.env['TERRET_STORE'] = join(dataFolder, 'terret.db')
}

/** A server elsewhere, and the file with its token. */
export type Far = { readonly url: string; readonly tokenFile: string | undefined }

/** The server of `--server`, which printed commands name too; null for none. */
let server: Far | null = null

/** From here on this process works with this server. */
export function nameServer(far: Far | null): void {
  server = far
}

/**
 * A command the user can type here, as a template whose values are quoted: `terret …` if it was run by that name, `npx terret …` if a
 * package runner found it, else `node FILE …`. A printed command must run as printed, so it names the same server and data folder. Ids
 * of sessions are given whole, and are made short here.
 */
export function typed(parts: TemplateStringsArray, ...values: readonly string[]): string {
  const data = dataFolder === null ? [] : [`--data ${near(dataFolder)}`]
  const all = shellCommandWith(data, parts, values.map(idToType))
  const isFar = server !== null && worksFar(all.split(' ', 1)[0] ?? '')
  return [programToType(), ...(isFar && server ? serverWords(server) : []), all].join(' ')
}

function serverWords({ url, tokenFile }: Far): readonly string[] {
  const token = tokenFile === undefined ? [] : [`--token-file ${near(resolve(tokenFile))}`]
  return [`--server ${shellWord(url)}`, ...token]
}

/** How this program is started. A program that a package runner found is not on the path of the user's shell. */
function programToType(): string {
  const [, script = ''] = process.argv
  if (!/^terret(?:\.\w+)?$/.test(basename(script))) return `node ${near(script)}`
  const isLocal = /[\\/]node_modules[\\/]\.bin[\\/][^\\/]+$/.test(script)
  return isLocal || process.env['npm_command'] === 'exec' ? 'npx terret' : 'terret'
}

/** A session as it is named in a command: a long id by its beginning, others whole. It is not quoted yet. */
function idToType(session: string): string {
  return /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(session) ? session.slice(0, 8) : session
}

/** The id of a session in a line for people. */
export function shortId(session: string): string {
  return shownId(idToType(session))
}

/** A path to type in this folder. */
export function near(path: string): string {
  const way = relative(process.cwd(), path)
  const shown = way === '' || way.startsWith('..') || isAbsolute(way) ? path : way
  return shellWord(shown)
}

/** Lines of a call shown without a terminal. */
const ROWS_UNSEEN = 200
/** Rows kept free around a shown call, for the lines before it, the question and the input. */
const ROWS_AROUND = 8

/** The room and colours of an output. Lines for a file are not wrapped. */
export function seatOf(out: NodeJS.WriteStream, whole = false): { readonly room: Room; readonly paint: Paint } {
  const { isTTY } = out
  // Some terminals do not know their size.
  const [columns, rows] = [out.columns || 80, out.rows || 24]
  const most = whole ? Number.POSITIVE_INFINITY : isTTY ? Math.max(10, rows - ROWS_AROUND) : ROWS_UNSEEN
  const colours = isTTY && (process.env['NO_COLOR'] ?? '') === '' && process.env['TERM'] !== 'dumb' && out.hasColors()
  // One column stays free: terminals differ on the cursor position after the last column.
  const width = isTTY ? Math.max(10, columns - 1) : Number.POSITIVE_INFINITY
  return { room: { columns: width, rows: most }, paint: paintsOf(colours) }
}

/** Whether a person is at the terminal: questions can be asked and lines redrawn. */
export function isAttended(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** Asks the person at the terminal. Null after Ctrl-C or Ctrl-D, or if the question was aborted. */
export function ask(question: string, ending?: AbortSignal): Promise<string | null> {
  const signal = ending ? { signal: ending } : {}
  const lines = createInterface({ input: process.stdin, output: process.stderr, ...signal })
  return new Promise((resolve) => {
    lines.once('SIGINT', () => lines.close())
    lines.once('close', () => {
      if (ending?.aborted) process.stderr.write('\n')
      resolve(null)
    })
    lines.question(question, (text) => {
      resolve(text)
      lines.close()
    })
  })
}
