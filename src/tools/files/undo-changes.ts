// Undoes a file change: the old bytes return if the file is still as the change left it. A later change is never
// overwritten.
import { hash } from 'node:crypto'
import type { Json } from '../../kernel/content.ts'
import { readBeforeWrite, removeFile, replaceSeenFile } from './guarded-disk.ts'
import { ToolFailure } from '../core/tool-output.ts'
import { runExclusive, type PathGuard, locatePath } from './path-guard.ts'
import type { ToolContext, Undone } from '../core/tool.ts'
import { isObject } from '../../view/untrusted-json.ts'

/** The metadata of a change, from which it can be undone. */
export type RecordedChange = {
  readonly path: string
  /** sha256 of the file after the change, and before it; `before` is null for a file that was created. */
  readonly hash: string
  readonly before: string | null
  /** The hash of the kept old bytes; null for a file that was created. */
  readonly replaced: string | null
}

/** Undoes the newest change first: each one must find the file as it left it. */
export async function undoChanges(
  guarded: PathGuard,
  changes: readonly RecordedChange[],
  context: ToolContext,
): Promise<readonly Undone[]> {
  const undone: Undone[] = []
  for (const change of [...changes].reverse()) {
    const result = await undoChange(guarded, change, context).catch((error: unknown) => {
      if (error instanceof ToolFailure) return 'changed_since' as const
      throw error
    })
    undone.push({ what: change.path, result })
  }
  return undone
}

async function undoChange(guarded: PathGuard, change: RecordedChange, context: ToolContext): Promise<Undone['result']> {
  const place = await locatePath(guarded, change.path, 'write')
  // A folder on the way became a link: another file stands there.
  if (place.shown !== change.path) return 'changed_since'
  return runExclusive(guarded, place, async () => {
    const seen = await readBeforeWrite(guarded, place)
    const now = seen?.hash ?? null
    // The change was already undone, by another process or by an interrupted try.
    if (now === change.before) return change.before === null ? 'removed' : 'restored'
    if (now !== change.hash || seen === null) return 'changed_since'
    if (change.before === null) {
      await removeFile({ guarded, place, seen })
      return 'removed'
    }
    const bytes = await readKeptBytes(change, context)
    if (bytes === null) return 'not_kept'
    await replaceSeenFile({ guarded, place, seen, bytes, after: change.before, context })
    return 'restored'
  })
}

/**
 * Old bytes that were not text were kept in base64; the hash shows which form it is. A text with a secret was kept
 * redacted, so its hash does not match.
 */
async function readKeptBytes({ replaced, before }: RecordedChange, context: ToolContext): Promise<Buffer | null> {
  const text = replaced === null ? null : await context.recall(replaced)
  if (text === null) return null
  return [Buffer.from(text), Buffer.from(text, 'base64')].find((bytes) => hash('sha256', bytes) === before) ?? null
}

/** Reads the change in a result's metadata, if there is one. */
export function changeIn(value: Json | undefined): readonly RecordedChange[] {
  if (!isObject(value)) return []
  const { path, hash: after, before = null, replaced = null } = value as Readonly<Record<string, Json>>
  if (typeof path !== 'string' || typeof after !== 'string' || after === before) return []
  if ((before !== null && typeof before !== 'string') || (replaced !== null && typeof replaced !== 'string')) return []
  return [{ path, hash: after, before, replaced }]
}
