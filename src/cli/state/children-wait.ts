// Waits for children that work for a session while it rests: a command that drives the session waits for them, and for
// the runs that their reports start.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Harness, Pending, Result, SessionHandle } from '../../index.ts'
import type { Card, CompleteStore } from '../../kernel/index.ts'
import { cardsBelow } from '../../stores/plan/tree-cost.ts'
import type { ChildWatcher } from '../chat/child-watcher.ts'
import { terretCommand } from '../present/print.ts'
import type { ProgressView } from '../present/run-progress.ts'
import { WORKTREES } from '../../tools/files/harness-folders.ts'
import { readPending } from './read-log.ts'
import { lookAt } from '../../worker.ts'

const LOOK_MS = 200
/** Reports wait this long for those of siblings. A later wake is not waited for. */
const SOON_MS = 5_000

type WaitContext = {
  readonly store: CompleteStore
  readonly harness: Harness
  readonly session: SessionHandle
  readonly view: ProgressView
}

/** Only after a run that ended well may other runs follow. */
export function mayGoOn({ status }: Result): boolean {
  return status === 'completed' || status === 'sleeping' || status === 'requires_action'
}

export class ChildrenWait {
  readonly #with: WaitContext
  readonly #ending: AbortSignal
  readonly #looked = new Set<string>()
  readonly #since: number
  #children: ChildWatcher | null = null

  constructor(waiting: WaitContext, ending: AbortSignal) {
    this.#with = waiting
    this.#since = waiting.store.now()
    this.#ending = ending
  }

  /** Waits until the session has events after `seq`. False if no child works, or if the command is to end. */
  async report(result: Result, seq: number): Promise<boolean> {
    const { store, session, view } = this.#with
    if (!mayGoOn(result) || !(await hasChildren(store, session.id))) return false
    const { ChildWatcher, childLine } = await import('../chat/child-watcher.ts')
    const children = (this.#children ??= new ChildWatcher(store, this.#since))
    try {
      for (;;) {
        const card = await store.card(session.id)
        if (card === null || this.#ending.aborted) return false
        for (const child of await children.look(card)) view.note(childLine(child, view.paint, Number.POSITIVE_INFINITY))
        if (card.seq > seq) return true
        const working = children.working.filter((child) => hasWork(child.card))
        if (working.length === 0 && !isDueSoon(card, store.now())) return false
        this.#drive(working.map((child) => child.card))
        view.waits(working.map(({ name, agent, doing }) => `${name} ${agent}: ${doing}`))
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
      }
    } finally {
      view.close()
    }
  }

  /** The last result of the session: reports may have opened runs while the followed one ended. */
  async last(result: Result): Promise<Result> {
    const { store, session } = this.#with
    const isOver = !mayGoOn(result) || this.#ending.aborted || !(await hasChildren(store, session.id))
    return isOver ? result : session.run()
  }

  /** Drives children that another process left. Children that this process started are driven already. */
  #drive(cards: readonly Card[]): void {
    for (const { session } of cards) {
      if (this.#looked.has(session)) continue
      this.#looked.add(session)
      lookAt(this.#with.harness, session, false).catch(() => {})
    }
  }
}

/** True if the session has work to do. A session that waits for a person has none. */
function hasWork({ status, due }: Card): boolean {
  return due !== null || status === 'running'
}

export function isDueSoon({ due }: Card, now: number): boolean {
  return due !== null && due <= now + SOON_MS
}

async function hasChildren(store: CompleteStore, id: string): Promise<boolean> {
  const [next] = await store.list({ after: `${id}~`, limit: 1 })
  return next?.session.startsWith(`${id}~`) === true
}

/** The pending calls of the children of a session. */
export async function pendingBelow(store: CompleteStore, id: string): Promise<readonly Pending[]> {
  if (!(await hasChildren(store, id))) return []
  return (await readPending(store, id)).filter(({ sessionId }) => sessionId !== id)
}

/** The children that still have work to do. */
export async function workingBelow(store: CompleteStore, id: string): Promise<readonly Card[]> {
  const card = await store.card(id)
  return card === null ? [] : (await cardsBelow(store, card)).filter(hasWork)
}

/** The worktrees with changes that children of this session left in its folder, one line each. */
export async function unmergedWorktrees(folder: string, id: string): Promise<readonly string[]> {
  if (!existsSync(join(folder, WORKTREES))) return []
  const { changesOf, describeFiles, listWorktrees } = await import('../../tools/worktrees/worktree.ts')
  const own = (await listWorktrees(folder)).filter(({ parent }) => parent === id)
  const lines = own.map(async (one) => {
    const { files } = await changesOf(folder, one)
    if (files.length === 0) return []
    return [`Not merged yet: ${one.branch}, with changes in ${describeFiles(files)}. See: ${terretCommand`worktree`}`]
  })
  return (await Promise.all(lines)).flat()
}
