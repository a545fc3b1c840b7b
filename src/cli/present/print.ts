// Writes lines: answers to standard output, everything else to standard error. It also asks the one question of a
// command.
import { basename, isAbsolute, join, relative, resolve } from 'node:path'
import { fitLines, type Paint, createPaint, cleanModelText } from './terminal-text.ts'
import { clean, safeJson, shownId, shownRow } from '../../view/clean.ts'
import { shellCommandWith, shellWord } from '../../view/shell-command.ts'
import { quoteText, type DrawSize } from './call-preview.ts'
import { createInterface } from 'node:readline'
import { EXIT, CliError } from '../exit.ts'
import { worksRemotely } from '../table.ts'

/** Each text is one row, whatever stands in it. */
export function print(...rows: readonly string[]): void {
  const { columns } = outputStyle(process.stdout).room
  for (const row of rows) printRaw(fitLines(shownRow(row), columns))
}

/** Prints text unchanged, for other programs. */
export function printRaw(text: string): void {
  if (collected) collected.push(...text.split('\n'))
  else process.stdout.write(`${text}\n`)
}

/** The lines of a command that a chat runs; null while they go to standard output. */
let collected: string[] | null = null

/** Returns the lines that a command prints, in place of writing them. */
export async function collectPrinted(act: () => Promise<unknown>): Promise<readonly string[]> {
  const rows: string[] = []
  collected = rows
  try {
    await act()
    return rows
  } finally {
    collected = null
  }
}

export function printJson(value: unknown): void {
  printRaw(safeJson(value))
}

/** Prints text of a model: as Markdown with a margin at a terminal, unchanged for a program. */
export async function printModelText(text: string): Promise<void> {
  const { room, hasColours } = outputStyle(process.stdout)
  const { columns } = room
  if (!Number.isFinite(columns)) return printRaw(cleanModelText(text))
  const [{ modelText }, { loadMarkdown }] = await Promise.all([import('./markdown-stream.ts'), import('./markdown.ts')])
  await loadMarkdown()
  printRaw(modelText(text, { columns, hasColours }))
}

/** Prints quoted text: with a margin at a terminal, unchanged for a program. */
export function printQuoted(text: string): void {
  const { room } = outputStyle(process.stdout, true)
  const rows = quoteText(text, room).rows.flatMap(({ texts }) => texts)
  printRaw(Number.isFinite(room.columns) ? rows.join('\n') : clean(text))
}

/** Each text is one row, whatever stands in it. */
export function warn(...rows: readonly string[]): void {
  const { columns } = outputStyle(process.stderr).room
  for (const row of rows) process.stderr.write(`${fitLines(shownRow(row), columns)}\n`)
}

/** The folder of `--data`, which printed commands contain too; null for the default one. */
let dataFolder: string | null = null

/** Makes this process keep its sessions in this folder. */
export function useDataFolder(folder: string | undefined): void {
  if (folder?.trim() === '') throw new CliError(EXIT.usage, '--data is empty. Name a folder.')
  dataFolder = folder === undefined ? null : resolve(folder)
  if (dataFolder === null) return
  process.env['TERRET_HOME'] = dataFolder
  process.env['TERRET_STORE'] = join(dataFolder, 'terret.db')
}

/** A remote server, and the file with its token. */
export type RemoteServer = { readonly url: string; readonly tokenFile: string | undefined }

/** The server of `--server`, which printed commands contain too; null for none. */
let server: RemoteServer | null = null

/** Makes printed commands name this server. */
export function setPrintedServer(far: RemoteServer | null): void {
  server = far
}

/**
 * A command that the user can type here, as a template whose values are quoted: `terret …` if it was run by that name,
 * `npx terret …` if a package runner found it, else `node FILE …`. A printed command must run as printed, so it names
 * the same server and data folder. Session ids are passed in full, and are shortened here.
 */
export function terretCommand(parts: TemplateStringsArray, ...values: readonly string[]): string {
  const data = dataFolder === null ? [] : [`--data ${pathToType(dataFolder)}`]
  const all = shellCommandWith(data, parts, values.map(idToType))
  const isFar = server !== null && worksRemotely(all.split(' ', 1)[0] ?? '')
  return [programToType(), ...(isFar && server ? serverWords(server) : []), all].join(' ')
}

function serverWords({ url, tokenFile }: RemoteServer): readonly string[] {
  const token = tokenFile === undefined ? [] : [`--token-file ${pathToType(resolve(tokenFile))}`]
  return [`--server ${shellWord(url)}`, ...token]
}

/** How the user starts this program. A program that a package runner found is not on the path of the shell. */
function programToType(): string {
  const [, script = ''] = process.argv
  if (!/^terret(?:\.\w+)?$/.test(basename(script))) return `node ${pathToType(script)}`
  const isLocal = /[\\/]node_modules[\\/]\.bin[\\/][^\\/]+$/.test(script)
  return isLocal || process.env['npm_command'] === 'exec' ? 'npx terret' : 'terret'
}

/** The id of a session in a command: only the beginning of a long id, others in full. It is not quoted yet. */
function idToType(session: string): string {
  return /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(session) ? session.slice(0, 8) : session
}

/** The id of a session in a line for people. */
export function shortId(session: string): string {
  return shownId(idToType(session))
}

/** A path to type in this folder, quoted for a shell. */
export function pathToType(path: string): string {
  const way = relative(process.cwd(), path)
  const shown = way === '' || way.startsWith('..') || isAbsolute(way) ? path : way
  return shellWord(shown)
}

/** Rows for a shown call without a terminal. */
const ROWS_UNSEEN = 200
/** Rows kept free around a shown call, for the lines before it, the question and the input. */
const ROWS_AROUND = 8

/** The size and colours of an output. Lines for a file are not wrapped. */
export function outputStyle(
  out: NodeJS.WriteStream,
  whole = false,
): { readonly room: DrawSize; readonly paint: Paint; readonly hasColours: boolean } {
  const { isTTY } = out
  // Some terminals do not know their size.
  const [columns, rows] = [out.columns || 80, out.rows || 24]
  const most = whole ? Number.POSITIVE_INFINITY : isTTY ? Math.max(10, rows - ROWS_AROUND) : ROWS_UNSEEN
  const colours = isTTY && (process.env['NO_COLOR'] ?? '') === '' && process.env['TERM'] !== 'dumb' && out.hasColors()
  // One column stays free: terminals differ on the cursor position after the last column.
  const width = isTTY ? Math.max(10, columns - 1) : Number.POSITIVE_INFINITY
  return { room: { columns: width, rows: most }, paint: createPaint(colours), hasColours: colours }
}

/** True if a person is at the terminal: questions can be asked and lines redrawn. */
export function isAttended(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** Asks the person at the terminal. Null after Ctrl-C or Ctrl-D, or if the question was aborted. */
export function askPerson(question: string, ending?: AbortSignal): Promise<string | null> {
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
