// Writes a report: reads the current file, and replaces it by the approved bytes, once and atomically.
import { hash } from 'node:crypto'
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { diff } from '../../../view/line-diff.ts'
import { readBeforeWrite, replaceSeenFile } from '../../../tools/files/guarded-disk.ts'
import { ToolFailure } from '../../../tools/core/tool-output.ts'
import {
  containsPath,
  type PathGuard,
  createPathGuard,
  hasErrnoCode,
  locatePath,
  type GuardedPath,
} from '../../../tools/files/path-guard.ts'
import type { ToolContext } from '../../../tools/core/tool.ts'
import { clipTrimmed } from './sentences.ts'
import { type ReportPaths, resolveReportPath, reportError } from './report-sources.ts'

/** The write that a person approves: these bytes, at this path, in place of the current file. */
export type WriteProposal = {
  readonly path: string
  readonly bytes: number
  readonly sha256: string
  /** The hash of the current file; null if there is none. */
  readonly replaces: string | null
  readonly diff?: string
}
export type WrittenReport = {
  readonly path: string
  readonly sha256: string
  readonly bytes: number
  readonly changed: boolean
}

const DIFF_CHARS_MAX = 20_000

/** Checks that the file can be written before a person is asked. */
export async function proposeWrite(ground: ReportPaths, out: string, text: string): Promise<WriteProposal> {
  const path = resolveReportPath(ground, out)
  try {
    const { guarded, place } = await locateTarget(ground, path)
    const seen = await readBeforeWrite(guarded, place)
    await access(await nearestFolder(path), constants.W_OK)
    const bytes = Buffer.from(text)
    const before = seen?.bytes.toString() ?? ''
    const change = seen && before !== text ? { diff: clipTrimmed(diff(path, before, text), DIFF_CHARS_MAX) } : {}
    return { path, bytes: bytes.length, sha256: hash('sha256', bytes), replaces: seen?.hash ?? null, ...change }
  } catch (error) {
    throw unwritableError(path, error)
  }
}

/** Whether exactly this text was proposed for this path. */
export function isProposed(ground: ReportPaths, { path, sha256 }: WriteProposal, out: string, text: string): boolean {
  return sha256 === hash('sha256', text) && path === resolveReportPath(ground, out)
}

/**
 * Writes the approved bytes, unless the file has them already. Null: the current file has changed, and nothing is
 * written.
 */
export async function writeReport(
  ground: ReportPaths,
  { path, sha256, replaces, text }: WriteProposal & { readonly text: string },
  context: ToolContext,
): Promise<WrittenReport | null> {
  try {
    if (hash('sha256', text) !== sha256)
      throw reportError(
        'NotApproved',
        'This text has another hash than the one that was approved. Nothing was written.',
      )
    const { guarded, place } = await locateTarget(ground, resolveReportPath(ground, path))
    const seen = await readBeforeWrite(guarded, place)
    const bytes = Buffer.from(text)
    if (seen?.hash === sha256) return { path, sha256, bytes: bytes.length, changed: false }
    if ((seen?.hash ?? null) !== replaces) return null
    await replaceSeenFile({ guarded, place, seen, bytes, after: sha256, context })
    return { path, sha256, bytes: bytes.length, changed: true }
  } catch (error) {
    if (error instanceof ToolFailure && error.metadata['error_type'] === 'Conflict') return null
    throw unwritableError(path, error)
  }
}

async function locateTarget(
  { root }: ReportPaths,
  path: string,
): Promise<{ readonly guarded: PathGuard; readonly place: GuardedPath }> {
  const base = containsPath(root, path) ? root : await nearestFolder(path)
  const guarded = createPathGuard({ root: base, read: [], write: [base] })
  return { guarded, place: await locatePath(guarded, path, 'write') }
}

/** The nearest existing folder of a path. */
async function nearestFolder(path: string): Promise<string> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const found = await stat(folder).catch((error: unknown) => {
      if (hasErrnoCode(error, 'ENOENT')) return null
      throw error
    })
    if (found?.isDirectory()) return folder
    if (found)
      throw reportError('Unwritable', `${folder} is no folder, so ${path} cannot be written. Move it away, and go on.`)
  }
}

const OURS = new Set(['Unwritable', 'NotApproved', 'OutOfBounds'])

function unwritableError(path: string, error: unknown): unknown {
  if (!(error instanceof Error) || OURS.has(error.name) || error.name === 'Interrupted') return error
  const why = error instanceof ToolFailure ? error.message : 'code' in error ? String(error.code) : error.message
  return reportError(
    'Unwritable',
    `${path} cannot be written: ${why.replace(/\.$/, '')}. Make the place writable, and go on.`,
  )
}
