// The documents of a report, from one folder only, or from one file with a JSON list of sources. Hidden, binary and too
// large files are left out and named, and so are links out of the folder. It does not judge the contents.
import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { withFolder, readFileAt } from '../../../tools/files/guarded-disk.ts'
import { ToolFailure } from '../../../tools/core/tool-output.ts'
import { containsPath, type PathGuard, createPathGuard, locatePath } from '../../../tools/files/path-guard.ts'
import { readableText } from './sentences.ts'

/** `text` is normalised; hash and size are of the original bytes. */
export type ReportDocument = {
  readonly file: string
  readonly text: string
  readonly sha256: string
  readonly bytes: number
}
/** A document that was not read, and the reason. */
export type UnreadDocument = { readonly file: string; readonly why: string }
export type ReportLibrary = {
  readonly documents: readonly ReportDocument[]
  readonly leftOut: readonly UnreadDocument[]
}

/** The base of a report's paths, and whether they may lead out of it. */
export type ReportPaths = { readonly root: string; readonly anywhere: boolean }

const FILES_MAX = 500
const DEPTH_MAX = 8
const FILE_BYTES_MAX = 2_000_000
const ALL_BYTES_MAX = 32_000_000
const LEFT_OUT_MAX = 50
/** A source is cited as [file:line] on one line, so its name may not have these characters. */
const UNCITABLE = /[[\]\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/u

/** An error with a name, and a message that says what to do. */
export function reportError(name: string, message: string): Error {
  return Object.assign(new Error(message), { name })
}

/** The absolute path for a path in a report. Outside of the root only if that is allowed. */
export function resolveReportPath({ root, anywhere }: ReportPaths, path: string): string {
  const whole = resolve(root, path)
  if (anywhere || containsPath(resolve(root), whole)) return whole
  throw reportError('OutOfBounds', `${path} is not in ${root}. Name a place in that folder.`)
}

export async function readLibrary(ground: ReportPaths, folder: string): Promise<ReportLibrary> {
  if (isSourceList(folder)) return readSourceList(ground, folder)
  const guarded = libraryGuard(ground, folder)
  const files: string[] = []
  const leftOut: UnreadDocument[] = []
  await walkFolder(guarded, '', { files, leftOut, depth: 0 })
  const documents: ReportDocument[] = []
  let bytes = 0
  for (const file of files.sort()) {
    const read = await readDocument(guarded, file)
    if ('why' in read) leftOut.push(read)
    else if (bytes + read.bytes > ALL_BYTES_MAX) leftOut.push({ file, why: 'the documents before it are large enough' })
    else {
      bytes += read.bytes
      documents.push(read)
    }
  }
  return { documents, leftOut: leftOut.slice(0, LEFT_OUT_MAX) }
}

/** Reads one document again. Throws if it is gone or unreadable. */
export async function rereadDocument(ground: ReportPaths, folder: string, file: string): Promise<ReportDocument> {
  const read = isSourceList(folder)
    ? await readListedSource(ground, folder, file)
    : await readDocument(libraryGuard(ground, folder), file)
  if (!('why' in read)) return read
  throw reportError(
    'SourceMissing',
    `${file} was a source of this report and cannot be read now (${read.why}). Put it back, and go on.`,
  )
}

/** A file with a list of sources: `[{ "name": "…", "text": "…" }]`. `title`, `file` or `url` may stand for `name`. */
function isSourceList(path: string): boolean {
  return /\.json$/i.test(path)
}

async function readSourceList(ground: ReportPaths, path: string): Promise<ReportLibrary> {
  const values = await parseSourceList(ground, path)
  const documents: ReportDocument[] = []
  const leftOut: UnreadDocument[] = []
  const names = new Set<string>()
  for (const [i, value] of values.entries()) {
    const { name, text } = sourceOf(value, i)
    if (text === null) leftOut.push({ file: name, why: 'it has no text' })
    else if (UNCITABLE.test(name)) leftOut.push({ file: name, why: 'its name cannot be cited' })
    else if (names.has(name)) leftOut.push({ file: name, why: 'another source has that name' })
    else if (documents.length >= FILES_MAX)
      leftOut.push({ file: name, why: `there are more than ${FILES_MAX} documents` })
    else {
      names.add(name)
      const bytes = Buffer.byteLength(text)
      documents.push({ file: name, text: readableText(text), sha256: hash('sha256', text), bytes })
    }
  }
  return { documents, leftOut: leftOut.slice(0, LEFT_OUT_MAX) }
}

async function readListedSource(
  ground: ReportPaths,
  path: string,
  file: string,
): Promise<ReportDocument | UnreadDocument> {
  const { documents } = await readSourceList(ground, path)
  return documents.find((document) => document.file === file) ?? { file, why: 'it is not there' }
}

async function parseSourceList(ground: ReportPaths, path: string): Promise<readonly unknown[]> {
  const guarded = libraryGuard(ground, dirname(path), ALL_BYTES_MAX)
  try {
    const { bytes } = await readFileAt(guarded, await locatePath(guarded, basename(path), 'read'))
    const values = JSON.parse(bytes.toString()) as unknown
    if (Array.isArray(values)) return values as readonly unknown[]
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof ToolFailure)) throw error
  }
  const text = `${path} is not a JSON list of sources: [{"name": "…", "text": "…"}]. Mend it, and go on.`
  throw reportError('NoDocuments', text)
}

type SourceEntry = Readonly<Record<'name' | 'title' | 'file' | 'url' | 'text' | 'content', unknown>>

/** A plain text is a source too. */
function sourceOf(value: unknown, i: number): { readonly name: string; readonly text: string | null } {
  const fallback = `source ${i + 1}`
  if (typeof value === 'string') return { name: fallback, text: value }
  const given = (typeof value === 'object' && value !== null ? value : {}) as Partial<SourceEntry>
  const names = [given.name, given.title, given.file, given.url]
  const name = names.find((each): each is string => typeof each === 'string' && each.trim() !== '')
  const text = [given.text, given.content].find((each): each is string => typeof each === 'string')
  return { name: name?.trim() ?? fallback, text: text === undefined || text.trim() === '' ? null : text }
}

function libraryGuard(ground: ReportPaths, folder: string, fileBytesMax = FILE_BYTES_MAX): PathGuard {
  const path = resolveReportPath(ground, folder)
  try {
    const guarded = createPathGuard({ root: path, write: [], fileBytesMax })
    // A link may lead elsewhere.
    if (!ground.anywhere) resolveReportPath({ ...ground, root: realpathSync(ground.root) }, guarded.root)
    return guarded
  } catch (error) {
    if (error instanceof Error && error.name === 'OutOfBounds') throw error
    throw reportError(
      'NoDocuments',
      `There is no folder ${folder}. Make it and put .txt or .md documents there, and go on.`,
    )
  }
}

type FolderWalk = { readonly files: string[]; readonly leftOut: UnreadDocument[]; readonly depth: number }

async function walkFolder(guarded: PathGuard, folder: string, { files, leftOut, depth }: FolderWalk): Promise<void> {
  const place = await locatePath(guarded, folder || '.', 'read')
  const entries = await withFolder(place, (open) => readdir(open.at('.'), { withFileTypes: true }))
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const file = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.name.startsWith('.')) continue
    if (entry.isDirectory() && depth < DEPTH_MAX) await walkFolder(guarded, file, { files, leftOut, depth: depth + 1 })
    else if (entry.isDirectory()) leftOut.push({ file, why: 'it is too deep' })
    else if (!/\.(?:txt|md)$/i.test(entry.name)) continue
    else if (UNCITABLE.test(file)) leftOut.push({ file, why: 'its name cannot be cited' })
    else if (files.length >= FILES_MAX) leftOut.push({ file, why: `there are more than ${FILES_MAX} documents` })
    else files.push(file)
  }
}

async function readDocument(guarded: PathGuard, file: string): Promise<ReportDocument | UnreadDocument> {
  try {
    const place = await locatePath(guarded, file, 'read')
    const { bytes, hash } = await readFileAt(guarded, place)
    if (!isUtf8(bytes) || bytes.includes(0)) return { file, why: 'it is no text' }
    return { file, text: readableText(bytes.toString()), sha256: hash, bytes: bytes.length }
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error
    if (error.kind === 'NotFound') return { file, why: 'it is not there' }
    return { file, why: /out of bounds/.test(error.message) ? 'it leads out of the folder' : error.message }
  }
}
