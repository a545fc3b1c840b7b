// The lines of JSONL files that ripgrep lets through: finds the files, opens them through the guard, numbers the lines.
// What a line says is not its business.
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Frozen } from '../../kernel/content.ts'
import { inFile, inFolder } from '../files/disk.ts'
import { ToolFailure } from '../core/output.ts'
import { type Guard, isErrno, isShown, leftOut, locateFor, type Place } from '../files/paths.ts'
import type { ToolContext } from '../core/tool.ts'
import { failedSearch, ignoring, type Ran, ripgrep, troubleOf } from '../files/ripgrep.ts'

export type Scan = Frozen<{
  guard: Guard
  ripgrep: string | null
  /** A file, a folder or a glob. */
  path: string
  /** Empty lets every line through. */
  query: string
  context: ToolContext
  /** Called in the order of files and lines. What it throws ends the scan. */
  line: (file: string, number: number, text: string) => void
}>
export type Scanned = Frozen<{ files: number; warnings: readonly string[] }>

/** Each file costs one process, and a folder may hold any number of them. */
const FILES_MAX = 2_000
const EVERY_ONE = '*.{jsonl,ndjson}'
const WARNINGS_MAX = 5
/** Files are read as a stream, so this is about time and not about memory. */
const FILE_BYTES_MAX = 1024 * 1024 * 1024

export async function scan(asked: Scan): Promise<Scanned> {
  const { folder, glob } = await selectionOf(asked)
  if (glob === null) {
    const trouble = await scanFile(asked, folder)
    return { files: 1, warnings: trouble === null ? [] : [trouble] }
  }
  const { names: all, trouble } = await filesIn(asked, folder, glob)
  const names = all.filter((name) => isShown(join(folder.path, name), asked.context))
  const warnings = [...(trouble === null ? [] : [trouble]), ...leftOut(all.length - names.length)]
  if (names.length > FILES_MAX) warnings.push(`Only the first ${FILES_MAX} of ${names.length} files were searched.`)
  for (const name of names.slice(0, FILES_MAX)) {
    const warning = await scanFound(asked, join(folder.path, name))
    if (warning !== null) warnings.push(warning)
  }
  const more = warnings.length > WARNINGS_MAX ? [`${warnings.length - WARNINGS_MAX} more warnings.`] : []
  return { files: Math.min(names.length, FILES_MAX), warnings: [...warnings.slice(0, WARNINGS_MAX), ...more] }
}

type Selection = { readonly folder: Place; readonly glob: string | null }

/** A path that is there means itself, whatever characters it holds. Otherwise its last parts may be a glob. */
async function selectionOf({ guard, path, context }: Scan): Promise<Selection> {
  const parts = path.split('/')
  const wild = parts.findIndex((part) => /[*?[{]/.test(part))
  const place = await locateFor(guard, path, 'read', context)
  const kind = await kindOf(place)
  if (kind !== null) return { folder: place, glob: kind === 'folder' ? EVERY_ONE : null }
  if (wild < 0) throw new ToolFailure('NotFound', `There is no "${path}".`)
  const above = parts.slice(0, wild).join('/') || (path.startsWith('/') ? '/' : '.')
  const folder = await locateFor(guard, above, 'read', context)
  // With a slash in front it starts where the folder is: `*.jsonl` means the files right in it.
  return { folder, glob: `/${parts.slice(wild).join('/')}` }
}

async function kindOf(place: Place): Promise<'file' | 'folder' | null> {
  try {
    return (await lstat(place.path)).isDirectory() ? 'folder' : 'file'
  } catch (error) {
    if (isErrno(error, 'ENOENT') || isErrno(error, 'ENOTDIR')) return null
    throw error
  }
}

type Found = { readonly names: readonly string[]; readonly trouble: string | null }

/** Data is often ignored by git and often hidden, so neither counts here. Links are not followed. */
async function filesIn(asked: Scan, folder: Place, glob: string): Promise<Found> {
  const names: string[] = []
  const what = asked.query === '' ? ['--files'] : ['--files-with-matches', '--text']
  const globs = [`--${glob === EVERY_ONE ? 'iglob' : 'glob'}=${glob}`, ...ignoring([asked.path])]
  const query = asked.query === '' ? [] : ['--regexp', asked.query, './']
  const ran = await inFolder(folder, (open) =>
    ripgrep({
      file: asked.ripgrep,
      args: [...what, '--null', '--hidden', '--no-ignore', ...globs, ...query],
      cwd: open.at('.'),
      stdin: null,
      separator: '\0',
      signal: asked.context.signal,
      record: (name) => names.push(name) > 0,
    }),
  )
  // A wide glob such as `data/**` finds other files too.
  const rows = names.filter((name) => /\.(jsonl|ndjson)$/i.test(name)).toSorted()
  return { names: rows, trouble: judged(ran, names.length > 0) }
}

/** One that cannot be read is a warning: the others still count. */
async function scanFound(asked: Scan, path: string): Promise<string | null> {
  try {
    return await scanFile(asked, await locateFor(asked.guard, path, 'read', asked.context))
  } catch (error) {
    const skipped = error instanceof ToolFailure && (error.kind === 'Denied' || error.kind === 'NotFound')
    if (skipped) return error.message
    throw error
  }
}

/** The open file is ripgrep's standard input: no name is looked up again between the check and the reading. */
async function scanFile(asked: Scan, place: Place): Promise<string | null> {
  let matched = false
  let thrown: { readonly error: unknown } | null = null
  const record = (text: string): boolean => {
    matched = true
    const colon = text.indexOf(':')
    // An error must not surface in the middle of a stream: there it would end the process.
    try {
      asked.line(place.shown, Number(text.slice(0, colon)), text.slice(colon + 1))
    } catch (error) {
      thrown = { error }
    }
    return thrown === null
  }
  const args = [
    '--line-number',
    '--no-filename',
    '--text',
    '--color=never',
    '--threads=1',
    '--regexp',
    asked.query,
    '-',
  ]
  const ran = await inFile({ ...asked.guard, fileBytesMax: FILE_BYTES_MAX }, place, ({ fd }) =>
    ripgrep({
      file: asked.ripgrep,
      args,
      cwd: asked.guard.root,
      stdin: fd,
      separator: '\n',
      signal: asked.context.signal,
      record,
    }),
  )
  const failed = thrown as { readonly error: unknown } | null
  if (failed !== null) throw failed.error
  return judged(ran, matched)
}

/** Trouble beside matches is a warning; trouble without any is a failure. */
function judged(ran: Ran, matched: boolean): string | null {
  const trouble = troubleOf(ran)
  if (trouble !== null && ran.code !== null && ran.code > 1 && !matched) throw failedSearch(trouble)
  return trouble
}
