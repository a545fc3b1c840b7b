// Removes a session for good, with its children and the worktrees that hold no work of their own. The result lists the
// worktrees that stay.
import { Fault } from '../../kernel/failure.ts'
import type { Removal } from '../../ports/store.ts'
import { retryWhileBusy } from '../../runtime/state/store-retry.ts'
import { expireDeadWorkers } from '../../runtime/loop/dead-workers.ts'
import type { Services } from '../../runtime/state/runtime-ports.ts'
import { removeAndSweep } from '../../tools/worktrees/remove-worktrees.ts'
import { CLOCK_SLACK_MS } from '../../stores/plan/plan-writes.ts'
import { compareIds } from '../../stores/plan/store-ids.ts'
import type { Removed } from '../verbs.ts'

export async function removeSession(services: Services, session: string, by = 'the host'): Promise<readonly Removed[]> {
  const { store, report } = services
  await expireDeadWorkers(services)
  const gone = await removeAndSweep(store, [session], () => removeOnce(services, session, by))
  for (const why of gone.troubles) report?.('worktrees', new Error(`A worktree could not be looked at: ${why}`))
  return gone.removed.map((removal) => {
    const left = gone.worktrees.filter(({ parent }) => parent === removal.session)
    return left.length === 0 ? removal : { ...removal, worktrees: left.map(({ path, branch }) => ({ path, branch })) }
  })
}

/** How many past removals are searched for one whose answer was lost: more than are made in a moment. */
const LOOKED_AT = 10_000

/**
 * A retry may find the session gone because of this very request, whose answer was lost. The store's record of the
 * removal is then the answer.
 */
async function removeOnce({ store, clock }: Services, session: string, by: string): Promise<readonly Removal[]> {
  const since = store.now() - CLOCK_SLACK_MS
  return retryWhileBusy(clock, async (before) => {
    try {
      return await store.remove(session, by)
    } catch (error) {
      if (!before || !(error instanceof Fault) || error.code !== 'session_missing') throw error
      const removals = await store.removals(LOOKED_AT)
      const ours = removals.filter((each) => each.by === by && each.at >= since && isInTree(session, each.session))
      if (!ours.some((each) => each.session === session)) throw error
      return ours.toSorted((a, b) => compareIds(a.session, b.session))
    }
  })
}

/** The session itself, or one below it. */
function isInTree(root: string, session: string): boolean {
  return session === root || session.startsWith(`${root}~`)
}
