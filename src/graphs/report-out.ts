// Where a report is written: what is there now, and the exact bytes put in its place, once, all or nothing.
import { hash } from 'node:crypto'
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { diff } from '../tools/diff.ts'
import { look, replace } from '../tools/disk.ts'
import { ToolFailure } from '../tools/output.ts'
import { contains, type Guard, guard, isErrno, locate, type Place } from '../tools/paths.ts'
import type { ToolContext } from '../tools/tool.ts'
import { clipped } from './report-text.ts'
import { type Ground, placeOf, trouble } from './report-sources.ts'

/** What a person is asked to allow: these bytes, at this path, in the place of what is there. */
export type Proposal = {
  readonly path: string
  readonly bytes: number
  readonly sha256: string
  /** The hash of what is there and would be replaced; null if nothing is. */
  readonly replaces: string | null
  readonly diff?: string
}
export type Written = {
  readonly path: string
  readonly sha256: string
  readonly bytes: number
  readonly changed: boolean
}

const DIFF_CHARS_MAX = 20_000

/** Nobody is asked for what cannot be done: a place that cannot be written is said here. */
export async function propose(ground: Ground, out: string, text: string): Promise<Proposal> {
  const path = placeOf(ground, out)
  try {
    const { guarded, place } = await placed(ground, path)
    const seen = await look(guarded, place)
    await access(await nearest(path), constants.W_OK)
    const bytes = Buffer.from(text)
    const before = seen?.bytes.toString() ?? ''
    const change = seen && before !== text ? { diff: clipped(diff(path, before, text), DIFF_CHARS_MAX) } : {}
    return { path, bytes: bytes.length, sha256: hash('sha256', bytes), replaces: seen?.hash ?? null, ...change }
  } catch (error) {
    throw unwritable(path, error)
  }
}

/** The bytes that were approved. There already: done. Something else than what was seen: nothing is written. */
export async function finalize(
  ground: Ground,
  { path, text, replaces }: { readonly path: string; readonly text: string; readonly replaces: string | null },
  context: ToolContext,
): Promise<Written> {
  try {
    const { guarded, place } = await placed(ground, path)
    const seen = await look(guarded, place)
    const bytes = Buffer.from(text)
    const sha256 = hash('sha256', bytes)
    if (seen?.hash === sha256) return { path, sha256, bytes: bytes.length, changed: false }
    if ((seen?.hash ?? null) !== replaces) throw taken(path)
    await replace({ guarded, place, seen, bytes, context })
    return { path, sha256, bytes: bytes.length, changed: true }
  } catch (error) {
    if (error instanceof ToolFailure && error.metadata['error_type'] === 'Conflict') throw taken(path)
    throw unwritable(path, error)
  }
}

async function placed({ root }: Ground, path: string): Promise<{ readonly guarded: Guard; readonly place: Place }> {
  const base = contains(root, path) ? root : await nearest(path)
  const guarded = guard({ root: base, read: [], write: [base] })
  return { guarded, place: await locate(guarded, path, 'write') }
}

/** The folder that a file is or will be in, as far as it is there. */
async function nearest(path: string): Promise<string> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const found = await stat(folder).catch((error: unknown) => {
      if (isErrno(error, 'ENOENT')) return null
      throw error
    })
    if (found?.isDirectory()) return folder
    if (found)
      throw trouble('Unwritable', `${folder} is no folder, so ${path} cannot be written. Move it away, and go on.`)
  }
}

function taken(path: string): Error {
  return trouble(
    'OutChanged',
    `${path} is not what it was when this was proposed, so nothing was written. Move it away, and go on.`,
  )
}

const OURS = new Set(['Unwritable', 'OutChanged', 'OutOfBounds'])

function unwritable(path: string, error: unknown): unknown {
  if (!(error instanceof Error) || OURS.has(error.name) || error.name === 'Interrupted') return error
  const why = error instanceof ToolFailure ? error.message : 'code' in error ? String(error.code) : error.message
  return trouble(
    'Unwritable',
    `${path} cannot be written: ${why.replace(/\.$/, '')}. Make the place writable, and go on.`,
  )
}
