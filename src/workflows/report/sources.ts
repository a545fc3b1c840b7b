// The documents of a report, from one folder only. Hidden, binary and too large files, and links out of the folder, are left out and
// named. It does not judge the contents.
import { isUtf8 } from 'node:buffer'
import { realpathSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { resolve } from 'node:path'
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
  const read = await document(libraryGuard(ground, folder), file)
  if (!('why' in read)) return read
  throw trouble(
    'SourceMissing',
    `${file} was a source of this report and cannot be read now (${read.why}). Put it back, and go on.`,
  )
}

function libraryGuard(ground: Ground, folder: string): Guard {
  const path = placeOf(ground, folder)
  try {
    const guarded = guard({ root: path, write: [], fileBytesMax: FILE_BYTES_MAX })
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
    // It is cited as [file:line], on one line, as people see it.
    else if (/[[\]\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/u.test(file))
      leftOut.push({ file, why: 'its name cannot be cited' })
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
