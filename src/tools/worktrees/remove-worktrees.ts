// Removes the worktrees of removed sessions: clean ones go with them, and those with changes stay. The host chooses
// which sessions to remove.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Card, Removal, Store } from '../../ports/store.ts'
import { WORKTREES } from '../files/harness-folders.ts'
import { sweepWorktrees, type Worktree } from './worktree.ts'

/** A session, and the folder in which it may have made worktrees. */
type WorkedFolder = { readonly session: string; readonly folder: string }

const PAGE = 1_000

/** Removes sessions with `remove`, and then their worktrees without changes. */
export async function removeAndSweep(
  store: Pick<Store, 'card' | 'list'>,
  sessions: readonly string[],
  remove: () => Promise<readonly Removal[]>,
): Promise<LeftWorktrees & { readonly removed: readonly Removal[] }> {
  const worked = (await Promise.all(sessions.map((session) => workedFolders(store, session)))).flat()
  const removed = await remove()
  return { removed, ...(await sweepRemoved(store, worked)) }
}

/**
 * Reads, before a session is removed, the folders in which it and its descendants worked. Folders without worktrees are
 * skipped.
 */
async function workedFolders(store: Pick<Store, 'card' | 'list'>, id: string): Promise<readonly WorkedFolder[]> {
  const card = await store.card(id)
  if (card === null || !hasWorktrees(card)) return []
  const found: WorkedFolder[] = []
  for (let after = ''; ; ) {
    const page = await store.list({ root: card.root, after, limit: PAGE })
    for (const one of page)
      if ((one.session === id || one.session.startsWith(`${id}~`)) && hasWorktrees(one)) found.push(one)
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return found
    after = last.session
  }
}

function hasWorktrees(card: Card): card is Card & WorkedFolder {
  return card.folder !== undefined && existsSync(join(card.folder, WORKTREES))
}

type LeftWorktrees = {
  /** Worktrees that stay: they have changes, or another session has them as its folder. */
  readonly worktrees: readonly Worktree[]
  /** Folders that could not be examined, one sentence each. */
  readonly troubles: readonly string[]
}

/** Removes the clean worktrees of removed sessions. Worktrees inside other worktrees go first. */
async function sweepRemoved(
  store: Pick<Store, 'card' | 'list'>,
  worked: readonly WorkedFolder[],
): Promise<LeftWorktrees> {
  const worktrees: Worktree[] = []
  const troubles: string[] = []
  const isUsed = async ({ folder }: Worktree): Promise<boolean> => (await store.list({ folder, limit: 1 })).length > 0
  for (const { session, folder } of worked.toSorted((a, b) => b.session.length - a.session.length)) {
    if ((await store.card(session)) !== null || !existsSync(join(folder, WORKTREES))) continue
    try {
      worktrees.push(...(await sweepWorktrees(folder, session, isUsed)))
    } catch (error) {
      troubles.push(error instanceof Error ? error.message : String(error))
    }
  }
  return { worktrees, troubles }
}
