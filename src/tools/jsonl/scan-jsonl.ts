// Scans JSONL files for the lines that match in ripgrep: finds the files, opens them through the guard, and numbers the
// lines. It does not interpret a line.
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Frozen } from '../../kernel/content.ts'
import { withFile, withFolder } from '../files/guarded-disk.ts'
import { ToolFailure } from '../core/tool-output.ts'
import {
  type PathGuard,
  hasErrnoCode,
  isListable,
  leftOutNote,
  locateForCall,
  type GuardedPath,
} from '../files/path-guard.ts'
import type { ToolContext } from '../core/tool.ts'
import { searchFailure, ignoreGlobs, type RipgrepResult, runRipgrep, ripgrepTrouble } from '../files/ripgrep.ts'

export type ScanOptions = Frozen<{
  guard: PathGuard
  ripgrep: string | null
  /** A file, a folder or a glob. */
  path: string
  /** An empty query lets every line through. */
  query: string
  context: ToolContext
  /** Called in the order of files and lines. If it throws, the scan ends. */
  line: (file: string, number: number, text: string) => void
}>
export type ScanResult = Frozen<{ files: number; warnings: readonly string[] }>

/** Each file costs one process, and a folder may hold any number of them. */
const FILES_MAX = 2_000
const EVERY_ONE = '*.{jsonl,ndjson}'
const WARNINGS_MAX = 5
/** Files are read as a stream, so this limits time and not memory. */
const FILE_BYTES_MAX = 1024 * 1024 * 1024

export async function scanJsonl(asked: ScanOptions): Promise<ScanResult> {
  const { folder, glob } = await selectFiles(asked)
  if (glob === null) {
    const trouble = await scanFile(asked, folder)
    return { files: 1, warnings: trouble === null ? [] : [trouble] }
  }
  const { names: all, trouble } = await listMatching(asked, folder, glob)
  const names = all.filter((name) => isListable(join(folder.path, name), asked.context))
  const warnings = [...(trouble === null ? [] : [trouble]), ...leftOutNote(all.length - names.length)]
  if (names.length > FILES_MAX) warnings.push(`Only the first ${FILES_MAX} of ${names.length} files were searched.`)
  for (const name of names.slice(0, FILES_MAX)) {
    const warning = await scanListed(asked, join(folder.path, name))
    if (warning !== null) warnings.push(warning)
  }
  const more = warnings.length > WARNINGS_MAX ? [`${warnings.length - WARNINGS_MAX} more warnings.`] : []
  return { files: Math.min(names.length, FILES_MAX), warnings: [...warnings.slice(0, WARNINGS_MAX), ...more] }
}

type Selection = { readonly folder: GuardedPath; readonly glob: string | null }

/** An existing path means itself, whatever characters it holds. Otherwise its last parts may be a glob. */
async function selectFiles({ guard, path, context }: ScanOptions): Promise<Selection> {
  const parts = path.split('/')
  const wild = parts.findIndex((part) => /[*?[{]/.test(part))
  const place = await locateForCall(guard, path, 'read', context)
  const kind = await fileKind(place)
  if (kind !== null) return { folder: place, glob: kind === 'folder' ? EVERY_ONE : null }
  if (wild < 0) throw new ToolFailure('NotFound', `There is no "${path}".`)
  const above = parts.slice(0, wild).join('/') || (path.startsWith('/') ? '/' : '.')
  const folder = await locateForCall(guard, above, 'read', context)
  // A leading slash anchors the glob in the folder: `*.jsonl` means the files directly in it.
  return { folder, glob: `/${parts.slice(wild).join('/')}` }
}

async function fileKind(place: GuardedPath): Promise<'file' | 'folder' | null> {
  try {
    return (await lstat(place.path)).isDirectory() ? 'folder' : 'file'
  } catch (error) {
    if (hasErrnoCode(error, 'ENOENT') || hasErrnoCode(error, 'ENOTDIR')) return null
    throw error
  }
}

type FoundNames = { readonly names: readonly string[]; readonly trouble: string | null }

/** Data files are often ignored by git or hidden, so both are searched. Links are not followed. */
async function listMatching(asked: ScanOptions, folder: GuardedPath, glob: string): Promise<FoundNames> {
  const names: string[] = []
  const what = asked.query === '' ? ['--files'] : ['--files-with-matches', '--text']
  const globs = [`--${glob === EVERY_ONE ? 'iglob' : 'glob'}=${glob}`, ...ignoreGlobs([asked.path])]
  const query = asked.query === '' ? [] : ['--regexp', asked.query, './']
  const ran = await withFolder(folder, (open) =>
    runRipgrep({
      file: asked.ripgrep,
      args: [...what, '--null', '--hidden', '--no-ignore', ...globs, ...query],
      cwd: open.at('.'),
      stdin: null,
      separator: '\0',
      signal: asked.context.signal,
      record: (name) => names.push(name) > 0,
    }),
  )
  // A wide glob such as `data/**` also finds other files.
  const rows = names.filter((name) => /\.(jsonl|ndjson)$/i.test(name)).toSorted()
  return { names: rows, trouble: checkTrouble(ran, names.length > 0) }
}

/** A file that cannot be read is a warning: the others still count. */
async function scanListed(asked: ScanOptions, path: string): Promise<string | null> {
  try {
    return await scanFile(asked, await locateForCall(asked.guard, path, 'read', asked.context))
  } catch (error) {
    const skipped = error instanceof ToolFailure && (error.kind === 'Denied' || error.kind === 'NotFound')
    if (skipped) return error.message
    throw error
  }
}

/** The open file is ripgrep's standard input, so that no name is looked up again between the check and the reading. */
async function scanFile(asked: ScanOptions, place: GuardedPath): Promise<string | null> {
  let matched = false
  let thrown: { readonly error: unknown } | null = null
  const record = (text: string): boolean => {
    matched = true
    const colon = text.indexOf(':')
    // An error must not be thrown in the middle of a stream: there it would end the process.
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
  const ran = await withFile({ ...asked.guard, fileBytesMax: FILE_BYTES_MAX }, place, ({ fd }) =>
    runRipgrep({
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
  return checkTrouble(ran, matched)
}

/** Trouble beside matches is a warning; trouble without matches is a failure. */
function checkTrouble(ran: RipgrepResult, matched: boolean): string | null {
  const trouble = ripgrepTrouble(ran)
  if (trouble !== null && ran.code !== null && ran.code > 1 && !matched) throw searchFailure(trouble)
  return trouble
}
