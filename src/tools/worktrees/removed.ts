// The worktrees of sessions that are removed: clean ones go with them, and those with changes stay. What is removed is the host's choice.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Card, Removal, Store } from '../../ports/store.ts'
import { WORKTREES } from '../files/own-places.ts'
import { sweepWorktrees, type Worktree } from './worktree.ts'

/** A session, and the folder in which it may have made worktrees. */
type Worked = { readonly session: string; readonly folder: string }

const PAGE = 1_000

/** Removes sessions with `remove`, and their worktrees without changes. */
export async function removeWith(
  store: Pick<Store, 'card' | 'list'>,
  sessions: readonly string[],
  remove: () => Promise<readonly Removal[]>,
): Promise<Left & { readonly removed: readonly Removal[] }> {
  const worked = (await Promise.all(sessions.map((session) => workedIn(store, session)))).flat()
  const removed = await remove()
  return { removed, ...(await sweepRemoved(store, worked)) }
}

/** Read before a session is removed: where it and those below it worked. Nothing is read where there are no worktrees. */
async function workedIn(store: Pick<Store, 'card' | 'list'>, id: string): Promise<readonly Worked[]> {
  const card = await store.card(id)
  if (card === null || !hasWorktrees(card)) return []
  const found: Worked[] = []
  for (let after = ''; ; ) {
    const page = await store.list({ root: card.root, after, limit: PAGE })
    for (const one of page)
      if ((one.session === id || one.session.startsWith(`${id}~`)) && hasWorktrees(one)) found.push(one)
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return found
    after = last.session
  }
}

function hasWorktrees(card: Card): card is Card & Worked {
  return card.folder !== undefined && existsSync(join(card.folder, WORKTREES))
}

type Left = {
  /** They have changes, or another session has them as its folder. */
  readonly worktrees: readonly Worktree[]
  /** What could not be looked at, one sentence each. */
  readonly troubles: readonly string[]
}

/** Takes away the clean worktrees of those that are gone. What lies in another worktree goes first. */
async function sweepRemoved(store: Pick<Store, 'card' | 'list'>, worked: readonly Worked[]): Promise<Left> {
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
