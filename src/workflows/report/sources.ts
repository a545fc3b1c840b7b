// The documents of a report: from one folder only, or from one file with a JSON list of sources. Hidden, binary and too large files, and
// links out of the folder, are left out and named. It does not judge the contents.
import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { inFolder, see } from '../../tools/files/disk.ts'
import { ToolFailure } from '../../tools/core/output.ts'
import { contains, type Guard, guard, locate } from '../../tools/files/paths.ts'
import { readable } from './text.ts'

/** `text` is normalised; hash and size are of the bytes. */
export type Document = { readonly file: string; readonly text: string; readonly sha256: string; readonly bytes: number }
/** What was not read, and why. */
export type LeftOut = { readonly file: string; readonly why: string }
export type Library = { readonly documents: readonly Document[]; readonly leftOut: readonly LeftOut[] }

/** Where the paths of a report start, and whether they may lead elsewhere. */
export type Ground = { readonly root: string; readonly anywhere: boolean }

const FILES_MAX = 500
const DEPTH_MAX = 8
const FILE_BYTES_MAX = 2_000_000
const ALL_BYTES_MAX = 32_000_000
const LEFT_OUT_MAX = 50
/** A source is cited as [file:line], on one line, as people see it. */
const UNCITABLE = /[[\]\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/u

/** An error with a kind, and a sentence on what to do. */
export function trouble(name: string, message: string): Error {
  return Object.assign(new Error(message), { name })
}

/** The absolute path of a name in a report. Outside of the root only if that is allowed. */
export function placeOf({ root, anywhere }: Ground, path: string): string {
  const whole = resolve(root, path)
  if (anywhere || contains(resolve(root), whole)) return whole
  throw trouble('OutOfBounds', `${path} is not in ${root}. Name a place in that folder.`)
}

export async function readLibrary(ground: Ground, folder: string): Promise<Library> {
  if (isList(folder)) return readList(ground, folder)
  const guarded = libraryGuard(ground, folder)
  const files: string[] = []
  const leftOut: LeftOut[] = []
  await walk(guarded, '', { files, leftOut, depth: 0 })
  const documents: Document[] = []
  let bytes = 0
  for (const file of files.sort()) {
    const read = await document(guarded, file)
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
export async function readAgain(ground: Ground, folder: string, file: string): Promise<Document> {
  const read = isList(folder) ? await listed(ground, folder, file) : await document(libraryGuard(ground, folder), file)
  if (!('why' in read)) return read
  throw trouble(
    'SourceMissing',
    `${file} was a source of this report and cannot be read now (${read.why}). Put it back, and go on.`,
  )
}

/** Sources that are named in one file: `[{ "name": "…", "text": "…" }]`, where `title`, `file` or `url` may name it too. */
function isList(path: string): boolean {
  return /\.json$/i.test(path)
}

async function readList(ground: Ground, path: string): Promise<Library> {
  const values = await listIn(ground, path)
  const documents: Document[] = []
  const leftOut: LeftOut[] = []
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
      documents.push({ file: name, text: readable(text), sha256: hash('sha256', text), bytes })
    }
  }
  return { documents, leftOut: leftOut.slice(0, LEFT_OUT_MAX) }
}

async function listed(ground: Ground, path: string, file: string): Promise<Document | LeftOut> {
  const { documents } = await readList(ground, path)
  return documents.find((document) => document.file === file) ?? { file, why: 'it is not there' }
}

async function listIn(ground: Ground, path: string): Promise<readonly unknown[]> {
  const guarded = libraryGuard(ground, dirname(path), ALL_BYTES_MAX)
  try {
    const { bytes } = await see(guarded, await locate(guarded, basename(path), 'read'))
    const values = JSON.parse(bytes.toString()) as unknown
    if (Array.isArray(values)) return values as readonly unknown[]
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof ToolFailure)) throw error
  }
  const text = `${path} is not a JSON list of sources: [{"name": "…", "text": "…"}]. Mend it, and go on.`
  throw trouble('NoDocuments', text)
}

type Named = Readonly<Record<'name' | 'title' | 'file' | 'url' | 'text' | 'content', unknown>>

/** A text alone is a source too. */
function sourceOf(value: unknown, i: number): { readonly name: string; readonly text: string | null } {
  const fallback = `source ${i + 1}`
  if (typeof value === 'string') return { name: fallback, text: value }
  const given = (typeof value === 'object' && value !== null ? value : {}) as Partial<Named>
  const names = [given.name, given.title, given.file, given.url]
  const name = names.find((each): each is string => typeof each === 'string' && each.trim() !== '')
  const text = [given.text, given.content].find((each): each is string => typeof each === 'string')
  return { name: name?.trim() ?? fallback, text: text === undefined || text.trim() === '' ? null : text }
}

function libraryGuard(ground: Ground, folder: string, fileBytesMax = FILE_BYTES_MAX): Guard {
  const path = placeOf(ground, folder)
  try {
    const guarded = guard({ root: path, write: [], fileBytesMax })
    // A link may lead elsewhere.
    if (!ground.anywhere) placeOf({ ...ground, root: realpathSync(ground.root) }, guarded.root)
    return guarded
  } catch (error) {
    if (error instanceof Error && error.name === 'OutOfBounds') throw error
    throw trouble(
      'NoDocuments',
      `There is no folder ${folder}. Make it and put .txt or .md documents there, and go on.`,
    )
  }
}

type Found = { readonly files: string[]; readonly leftOut: LeftOut[]; readonly depth: number }

async function walk(guarded: Guard, folder: string, { files, leftOut, depth }: Found): Promise<void> {
  const place = await locate(guarded, folder || '.', 'read')
  const entries = await inFolder(place, (open) => readdir(open.at('.'), { withFileTypes: true }))
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const file = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.name.startsWith('.')) continue
    if (entry.isDirectory() && depth < DEPTH_MAX) await walk(guarded, file, { files, leftOut, depth: depth + 1 })
    else if (entry.isDirectory()) leftOut.push({ file, why: 'it is too deep' })
    else if (!/\.(?:txt|md)$/i.test(entry.name)) continue
    else if (UNCITABLE.test(file)) leftOut.push({ file, why: 'its name cannot be cited' })
    else if (files.length >= FILES_MAX) leftOut.push({ file, why: `there are more than ${FILES_MAX} documents` })
    else files.push(file)
  }
}

async function document(guarded: Guard, file: string): Promise<Document | LeftOut> {
  try {
    const place = await locate(guarded, file, 'read')
    const { bytes, hash } = await see(guarded, place)
    if (!isUtf8(bytes) || bytes.includes(0)) return { file, why: 'it is no text' }
    return { file, text: readable(bytes.toString()), sha256: hash, bytes: bytes.length }
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error
    if (error.kind === 'NotFound') return { file, why: 'it is not there' }
    return { file, why: /out of bounds/.test(error.message) ? 'it leads out of the folder' : error.message }
  }
}
