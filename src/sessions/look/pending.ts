// What waits for people: in one session and below it, or in all sessions of the store. The one place that looks for it. All of it is
// read from the store, but for the preview of a call, which also looks at the files that the call would change.
import type { Frozen, Labels } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import type { Session } from '../../kernel/session.ts'
import type { Card, Status, Store } from '../../ports/store.ts'
import { cloneJson } from '../../effects/clone-json.ts'
import { headOf } from '../../riders/children/tree.ts'
import { cardsBelow, withTreeUsd } from '../../stores/plan/tree-cost.ts'
import type { Preview } from '../../tools/files/preview.ts'
import { saidBefore } from '../../tools/policy/covered.ts'
import { mayWait, type OwnPending, type Pending, waitingIn } from '../../view/pending.ts'

/** What waits for a person, whole: enough to show it and to decide it with `decide({ ...pending, allow, by })`. */
export type PendingCall = Pending &
  Frozen<{
    agent: string
    labels: Labels
    /** What the call would change in the folder of its session, as the command line shows it. */
    preview: Preview
  }>

/** What a session waits for, and what those below it do: people decide at the top. Each `path` begins with this session. */
export async function pendingOf(store: Store, id: string): Promise<readonly Pending[]> {
  const heads = headsOf(store)
  const own = await waitingIn(id, heads, saidBefore)
  const card = await store.card(id)
  const below = card === null ? [] : (await cardsBelow(store, card)).filter(mayWait).toSorted(inOrder)
  const all = [...own, ...(await waitingBy(heads, below))]
  if (all.length === 0) return []
  return withTreeUsd(
    store,
    all.map((each) => ({ ...each, path: each.path.slice(each.path.indexOf(id)) })),
  )
}

/** A child before its own children, and siblings by the calls that started them. */
function inOrder(a: Card, b: Card): number {
  const [left, right] = [a, b].map(({ session }) => session.split(/[~.]/).map(Number)) as [number[], number[]]
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const apart = (left[i] ?? 0) - (right[i] ?? 0)
    if (apart !== 0 && !Number.isNaN(apart)) return apart
  }
  return left.length - right.length
}

/** What waits in all sessions of the store, or in those with these labels, by their ids. */
export async function pendingIn(store: Store, where: Labels | undefined): Promise<readonly PendingCall[]> {
  const found: OwnPending[] = []
  const filter = where === undefined ? {} : { where }
  for (const status of STATUSES) {
    for (let after = ''; ; ) {
      const cards = await store.list({ ...filter, status, after, limit: PAGE })
      found.push(...(await waitingBy(headsOf(store), cards.filter(mayWait))))
      const last = cards.at(-1)
      if (last === undefined || cards.length < PAGE) break
      after = last.session
    }
  }
  return pendingCalls(store, await withTreeUsd(store, found))
}

/** Those that may wait. One that is closed waits for nothing. */
const STATUSES: readonly Status[] = ['requires_action', 'running', 'rescheduling', 'idle']
const PAGE = 1_000

/** With what shows them. Copies: a store in memory hands out what the worker goes on with. */
export async function pendingCalls(store: Store, pending: readonly Pending[]): Promise<readonly PendingCall[]> {
  if (pending.length === 0) return []
  const { previewOf } = await import('../../tools/files/preview.ts')
  const calls = pending.map(async (each) => {
    const card = await store.card(each.sessionId)
    // Children work where their root does, unless they have a folder of their own.
    const root = card === null || card.root === card.session ? card : await store.card(card.root)
    const preview = await previewOf(card?.folder ?? root?.folder ?? null, each)
    return { ...each, agent: card?.agent ?? '', labels: card?.labels ?? {}, preview }
  })
  return cloneJson(await Promise.all(calls))
}

type HeadOf = (session: string) => Promise<Session>

/** A session that is damaged, or was removed meanwhile, has nothing that could be decided: `list` says what is wrong with it. */
async function waitingBy(heads: HeadOf, cards: readonly Card[]): Promise<readonly OwnPending[]> {
  const found: OwnPending[] = []
  for (const { session } of cards) {
    try {
      found.push(...(await waitingIn(session, heads, saidBefore)))
    } catch (error) {
      const gone = error instanceof Fault && (error.code === 'session_damaged' || error.code === 'session_missing')
      if (!gone) throw error
    }
  }
  return found
}

/** Each session is read once for one look: its children ask how it stands, too. */
function headsOf(store: Store): HeadOf {
  const heads = new Map<string, Promise<Session>>()
  return (session) => {
    const known = heads.get(session) ?? headOf(store, session)
    heads.set(session, known)
    return known
  }
}
