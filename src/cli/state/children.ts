// The children that work for a session while it rests: a command that drives the session waits for them, and for what it makes of
// their reports.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Harness, Pending, Result, SessionHandle } from '../../index.ts'
import type { Card, Store } from '../../kernel/index.ts'
import { cardsBelow } from '../../stores/plan/tree-cost.ts'
import type { Children } from '../chat/children.ts'
import { typed } from '../present/print.ts'
import type { Progress } from '../present/progress.ts'
import { WORKTREES } from '../../tools/files/own-places.ts'
import { pendingIn } from './log.ts'

const LOOK_MS = 200
/** Reports wait so long for those of siblings. A wake later than this is the session's own business. */
const SOON_MS = 5_000

type Waiting = {
  readonly store: Store
  readonly harness: Harness
  readonly session: SessionHandle
  readonly view: Progress
}

/** Only a run that ended well is followed by others. */
export function goesOn({ status }: Result): boolean {
  return status === 'completed' || status === 'sleeping' || status === 'requires_action'
}

export class ChildrenWait {
  readonly #with: Waiting
  readonly #ending: AbortSignal
  readonly #looked = new Set<string>()
  readonly #since: number
  #children: Children | null = null

  constructor(waiting: Waiting, ending: AbortSignal) {
    this.#with = waiting
    this.#since = waiting.store.now()
    this.#ending = ending
  }

  /** Waits until the session has events after `seq`. False if none of its children works, or it is to end. */
  async report(result: Result, seq: number): Promise<boolean> {
    const { store, session, view } = this.#with
    if (!goesOn(result) || !(await hasChildren(store, session.id))) return false
    const { Children, childLine } = await import('../chat/children.ts')
    const children = (this.#children ??= new Children(store, this.#since))
    try {
      for (;;) {
        const card = await store.card(session.id)
        if (card === null || this.#ending.aborted) return false
        for (const child of await children.look(card)) view.note(childLine(child, view.paint, Number.POSITIVE_INFINITY))
        if (card.seq > seq) return true
        const working = children.working.filter((child) => isDue(child.card))
        if (working.length === 0 && !isSoon(card, store.now())) return false
        this.#drive(working.map((child) => child.card))
        view.waits(working.map(({ name, agent, doing }) => `${name} ${agent}: ${doing}`))
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
      }
    } finally {
      view.close()
    }
  }

  /** What the session said last: reports may have opened runs while the one that was followed ended. */
  async last(result: Result): Promise<Result> {
    const { store, session } = this.#with
    const isOver = !goesOn(result) || this.#ending.aborted || !(await hasChildren(store, session.id))
    return isOver ? result : session.run()
  }

  /** Those that another process left. What this one started, it drives already. */
  #drive(cards: readonly Card[]): void {
    for (const { session } of cards) {
      if (this.#looked.has(session)) continue
      this.#looked.add(session)
      this.#with.harness.look(session, false).catch(() => {})
    }
  }
}

/** It has work to do. One that waits for a person has none. */
function isDue({ status, due }: Card): boolean {
  return due !== null || status === 'running'
}

export function isSoon({ due }: Card, now: number): boolean {
  return due !== null && due <= now + SOON_MS
}

async function hasChildren(store: Store, id: string): Promise<boolean> {
  const [next] = await store.list({ after: `${id}~`, limit: 1 })
  return next?.session.startsWith(`${id}~`) === true
}

/** What the children of a session wait for. */
export async function waitingBelow(store: Store, id: string): Promise<readonly Pending[]> {
  if (!(await hasChildren(store, id))) return []
  return (await pendingIn(store, id)).filter(({ sessionId }) => sessionId !== id)
}

/** The children that still have something to do. */
export async function workingBelow(store: Store, id: string): Promise<readonly Card[]> {
  const card = await store.card(id)
  return card === null ? [] : (await cardsBelow(store, card)).filter(isDue)
}

/** The worktrees with changes that children of this session left in its folder, one line each. */
export async function unmergedBelow(folder: string, id: string): Promise<readonly string[]> {
  if (!existsSync(join(folder, WORKTREES))) return []
  const { changesOf, listed, worktreesOf } = await import('../../tools/worktrees/worktree.ts')
  const own = (await worktreesOf(folder)).filter(({ parent }) => parent === id)
  const lines = own.map(async (one) => {
    const { files } = await changesOf(folder, one)
    if (files.length === 0) return []
    return [`Not merged yet: ${one.branch}, with changes in ${listed(files)}. See: ${typed`worktree`}`]
  })
  return (await Promise.all(lines)).flat()
}
