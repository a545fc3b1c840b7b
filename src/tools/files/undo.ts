// Taking a file change back: the bytes from before return if the file is still what the change left. A later change is never
// overwritten.
import { hash } from 'node:crypto'
import type { Json } from '../../kernel/content.ts'
import { look, remove, replace } from './disk.ts'
import { ToolFailure } from '../core/output.ts'
import { exclusive, type Guard, locate } from './paths.ts'
import type { ToolContext, Undone } from '../core/tool.ts'
import { isObject } from '../../view/json.ts'

/** What a change leaves in its result's metadata, so that it can be taken back. */
export type Change = {
  readonly path: string
  /** sha256 of the file after the change, and before it; `before` is null for a file that was created. */
  readonly hash: string
  readonly before: string | null
  /** The kept bytes, by hash; null for a file that was created. */
  readonly replaced: string | null
}

/** The newest change first: each must find what it left. */
export async function undoChanges(
  guarded: Guard,
  changes: readonly Change[],
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

async function undoChange(guarded: Guard, change: Change, context: ToolContext): Promise<Undone['result']> {
  const place = await locate(guarded, change.path, 'write')
  // A folder on the way became a link: another file stands there.
  if (place.shown !== change.path) return 'changed_since'
  return exclusive(guarded, place, async () => {
    const seen = await look(guarded, place)
    const now = seen?.hash ?? null
    // Taken back already, by another process or by a try that was cut short.
    if (now === change.before) return change.before === null ? 'removed' : 'restored'
    if (now !== change.hash || seen === null) return 'changed_since'
    if (change.before === null) {
      await remove({ guarded, place, seen })
      return 'removed'
    }
    const bytes = await kept(change, context)
    if (bytes === null) return 'not_kept'
    await replace({ guarded, place, seen, bytes, after: change.before, context })
    return 'restored'
  })
}

/** What was no text was kept in base64; the hash tells which. What held a secret was not kept as it was. */
async function kept({ replaced, before }: Change, context: ToolContext): Promise<Buffer | null> {
  const text = replaced === null ? null : await context.recall(replaced)
  if (text === null) return null
  return [Buffer.from(text), Buffer.from(text, 'base64')].find((bytes) => hash('sha256', bytes) === before) ?? null
}

/** The change in a result's metadata, if there is one. */
export function changeIn(value: Json | undefined): readonly Change[] {
  if (!isObject(value)) return []
  const { path, hash: after, before = null, replaced = null } = value as Readonly<Record<string, Json>>
  if (typeof path !== 'string' || typeof after !== 'string' || after === before) return []
  if ((before !== null && typeof before !== 'string') || (replaced !== null && typeof replaced !== 'string')) return []
  return [{ path, hash: after, before, replaced }]
}
