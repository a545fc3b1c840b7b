// Removing a session for good, with its children and the worktrees that hold nothing of their own. What stays of them is said.
import { Fault } from '../../kernel/failure.ts'
import type { Removal } from '../../ports/store.ts'
import { again } from '../../engine/again.ts'
import { endDead } from '../../engine/peers.ts'
import type { Services } from '../../engine/wiring.ts'
import { removeWith } from '../../tools/worktrees/removed.ts'
import { CLOCK_SLACK_MS } from '../../stores/plan/plan.ts'
import { compareIds } from '../../stores/plan/id.ts'
import type { Removed } from '../verbs.ts'

export async function removed(services: Services, session: string, by = 'the host'): Promise<readonly Removed[]> {
  const { store, report } = services
  await endDead(services)
  const gone = await removeWith(store, [session], () => surely(services, session, by))
  for (const why of gone.troubles) report?.('worktrees', new Error(`A worktree could not be looked at: ${why}`))
  return gone.removed.map((removal) => {
    const left = gone.worktrees.filter(({ parent }) => parent === removal.session)
    return left.length === 0 ? removal : { ...removal, worktrees: left.map(({ path, branch }) => ({ path, branch })) }
  })
}

/** How far back a removal is looked for whose answer was lost: more than are made in a moment. */
const LOOKED_AT = 10_000

/** It may be gone because of this very request, whose answer was lost: then what the store kept of it is the answer. */
async function surely({ store, clock }: Services, session: string, by: string): Promise<readonly Removal[]> {
  const since = store.now() - CLOCK_SLACK_MS
  return again(clock, async (before) => {
    try {
      return await store.remove(session, by)
    } catch (error) {
      if (!before || !(error instanceof Fault) || error.code !== 'session_missing') throw error
      const removals = await store.removals(LOOKED_AT)
      const ours = removals.filter((each) => each.by === by && each.at >= since && isOf(session, each.session))
      if (!ours.some((each) => each.session === session)) throw error
      return ours.toSorted((a, b) => compareIds(a.session, b.session))
    }
  })
}

/** The session itself, or a part of it. */
function isOf(root: string, session: string): boolean {
  return session === root || session.startsWith(`${root}~`)
}
