// Writes a report: reads the current file, and replaces it by the approved bytes, once and atomically.
import { hash } from 'node:crypto'
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { diff } from '../../view/diff.ts'
import { look, replace } from '../../tools/files/disk.ts'
import { ToolFailure } from '../../tools/core/output.ts'
import { contains, type Guard, guard, isErrno, locate, type Place } from '../../tools/files/paths.ts'
import type { ToolContext } from '../../tools/core/tool.ts'
import { clippedTrimmed } from './text.ts'
import { type Ground, placeOf, trouble } from './sources.ts'

/** The write a person approves: these bytes, at this path, replacing the current file. */
export type Proposal = {
  readonly path: string
  readonly bytes: number
  readonly sha256: string
  /** The hash of the current file; null if there is none. */
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

/** Checks that the place can be written before a person is asked. */
export async function propose(ground: Ground, out: string, text: string): Promise<Proposal> {
  const path = placeOf(ground, out)
  try {
    const { guarded, place } = await placed(ground, path)
    const seen = await look(guarded, place)
    await access(await nearest(path), constants.W_OK)
    const bytes = Buffer.from(text)
    const before = seen?.bytes.toString() ?? ''
    const change = seen && before !== text ? { diff: clippedTrimmed(diff(path, before, text), DIFF_CHARS_MAX) } : {}
    return { path, bytes: bytes.length, sha256: hash('sha256', bytes), replaces: seen?.hash ?? null, ...change }
  } catch (error) {
    throw unwritable(path, error)
  }
}

/** Whether this text and place were proposed. */
export function isProposed(ground: Ground, { path, sha256 }: Proposal, out: string, text: string): boolean {
  return sha256 === hash('sha256', text) && path === placeOf(ground, out)
}

/** Writes the approved bytes, if they are not there already. Null: the current file has changed, and nothing is written. */
export async function finalize(
  ground: Ground,
  { path, sha256, replaces, text }: Proposal & { readonly text: string },
  context: ToolContext,
): Promise<Written | null> {
  try {
    if (hash('sha256', text) !== sha256)
      throw trouble('NotApproved', 'This text has another hash than the one that was approved. Nothing was written.')
    const { guarded, place } = await placed(ground, placeOf(ground, path))
    const seen = await look(guarded, place)
    const bytes = Buffer.from(text)
    if (seen?.hash === sha256) return { path, sha256, bytes: bytes.length, changed: false }
    if ((seen?.hash ?? null) !== replaces) return null
    await replace({ guarded, place, seen, bytes, after: sha256, context })
    return { path, sha256, bytes: bytes.length, changed: true }
  } catch (error) {
    if (error instanceof ToolFailure && error.metadata['error_type'] === 'Conflict') return null
    throw unwritable(path, error)
  }
}

async function placed({ root }: Ground, path: string): Promise<{ readonly guarded: Guard; readonly place: Place }> {
  const base = contains(root, path) ? root : await nearest(path)
  const guarded = guard({ root: base, read: [], write: [base] })
  return { guarded, place: await locate(guarded, path, 'write') }
}

/** The nearest existing folder of a path. */
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

const OURS = new Set(['Unwritable', 'NotApproved', 'OutOfBounds'])

function unwritable(path: string, error: unknown): unknown {
  if (!(error instanceof Error) || OURS.has(error.name) || error.name === 'Interrupted') return error
  const why = error instanceof ToolFailure ? error.message : 'code' in error ? String(error.code) : error.message
  return trouble(
    'Unwritable',
    `${path} cannot be written: ${why.replace(/\.$/, '')}. Make the place writable, and go on.`,
  )
}
