// A session and the children below it, seen from outside: driven until they rest. Read from logs; what a session does is decided by the
// kernel alone, and what its commits write for others is children.ts.
import { Fault } from '../../kernel/failure.ts'
import type { Here } from '../../kernel/limits.ts'
import { next, type Waiting } from '../../kernel/next.ts'
import type { Store } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import type { Session } from '../../kernel/session.ts'
import { sleep } from '../../engine/sleep.ts'
import { SessionCache } from '../../engine/session-cache.ts'
import { outsideOf, type Call } from '../../kernel/ledger.ts'
import { childId } from '../../stores/plan/id.ts'
import { missingSession } from '../../stores/plan/plan.ts'
import { waitsOf } from '../../view/pending.ts'
import { shellCommand } from '../../view/shell.ts'
import { shownId } from '../../view/clean.ts'

type Rested = { readonly type: 'rested'; readonly waiting: Waiting; readonly until: number | null }
type Looked = Rested | { readonly type: 'contended' | 'lost' | 'stopped' } | Elsewhere
type Elsewhere = { readonly type: 'elsewhere'; readonly why: string }
/** Looks at a session when asked: the worker. */
type Driver = { wake(session: string): Promise<Looked> }

/** Drives a session until it rests, and so do its children: a parent that waits for one rests only if that one does. */
export async function settle(worker: Driver, store: Store, id: string, clock: Clock): Promise<Looked> {
  for (;;) {
    const looked = await worker.wake(id)
    if (looked.type !== 'rested' || looked.waiting !== 'answer') return looked
    const before = await headOf(store, id)
    const waits = waitsOf(before)
    // It was answered right after it was left: look again.
    if (waits.length === 0) continue
    const children = childrenOf(id, before)
    if (children.length === 0) return looked
    const { until } = looked
    const below = Promise.all(
      children.map((child) => settle(worker, store, child, clock).catch((error) => elsewhere(error, until))),
    )
    const rested = until === null ? await below : await inTime(below, until - store.now(), clock)
    // The time of a wait is over: look again.
    if (rested === null) continue
    const stuck = rested.find(({ type }) => type !== 'rested')
    if (stuck) return stuck
    // A child that answered is due news for its parent: look again.
    const after = await store.card(id)
    if (after?.seq === before.seq && after.due === null)
      return waits.length > children.length ? looked : restOf(rested as Rested[], looked)
  }
}

/** A child of an agent that is not here is left to a harness that has it: the wait for it has an end. Any other trouble is thrown. */
function elsewhere(error: unknown, until: number | null): Looked {
  if (until !== null && error instanceof Fault && error.code === 'invalid_config') return { type: 'contended' }
  throw error
}

/** Null when the time is over first. The others go on. */
async function inTime<T>(promise: Promise<T>, ms: number, clock: Clock): Promise<T | null> {
  const over = new AbortController()
  try {
    return await Promise.race([promise, sleep(clock, Math.max(1, ms), over.signal).then(() => null)])
  } finally {
    over.abort()
  }
}

/** The state of a session for a harness that drives nothing: open work, and a retry that comes soon, are another worker's. */
export async function seenAt(heads: Heads, id: string, here: Pick<Here, 'now'>, lingerMs: number): Promise<Looked> {
  const session = await heads.of(id)
  const { now } = here
  const decision = next(session, { now, epoch: session.epoch })
  if (decision.type !== 'rest') return { type: 'contended' }
  const { waiting, until } = decision
  if (waiting === 'retry' && until !== null && until - now <= lingerMs) return { type: 'contended' }
  return { type: 'rested', waiting, until }
}

/** The same for a session and those that it waits for: it rests only if they do. */
export async function seenBelow(heads: Heads, id: string, here: Pick<Here, 'now'>, lingerMs: number): Promise<Looked> {
  const looked = await seenAt(heads, id, here, lingerMs)
  if (looked.type !== 'rested' || looked.waiting !== 'answer') return looked
  const session = await heads.of(id)
  const waits = waitsOf(session).length
  const children = childrenOf(id, session)
  const seen = await Promise.all(children.map((child) => seenBelow(heads, child, here, lingerMs)))
  const working = seen.find(({ type }) => type !== 'rested')
  if (working) return working
  return children.length === 0 || waits > children.length ? looked : restOf(seen as Rested[], looked)
}

/** Children that only wait for their time, or to be resumed, need nothing: their parent waits too. */
function restOf(children: readonly Rested[], own: Rested): Rested {
  if (children.some(({ waiting }) => waiting !== 'retry' && waiting !== 'resume')) return own
  const sleeping = children.filter(({ waiting }) => waiting === 'retry')
  const first = sleeping.sort((a, b) => (a.until ?? 0) - (b.until ?? 0))[0]
  return first ?? children[0] ?? own
}

/** How long a provider has not answered, why, whom, and when it is tried again; `until` is null while a try is made. */
export type Outage = {
  readonly lastedMs: number
  readonly reason: string
  readonly sessions: readonly string[]
  readonly until: number | null
}

/** The outage that a session waits for, or that all children wait for that it waits for. Null: it waits for none. */
export async function outageOf(heads: Heads, id: string, now: number): Promise<Outage | null> {
  const session = await heads.of(id)
  const { run, deferred, paused } = session
  if (run?.trouble && !run.fatal && !paused) {
    const { trouble, waitedMs, retryAt } = run
    return { ...timesAt(waitedMs, retryAt, now), reason: trouble.message, sessions: [id] }
  }
  if (!run && deferred) {
    const { waitedMs, reason, retryAt } = deferred
    return { ...timesAt(waitedMs, retryAt, now), reason, sessions: [id] }
  }
  const children = childrenOf(id, session)
  if (children.length === 0 || waitsOf(session).length > children.length) return null
  const found = await Promise.all(children.map((child) => outageOf(heads, child, now)))
  const all = found.filter((each) => each !== null)
  const [first] = all.toSorted((a, b) => (a.until ?? 0) - (b.until ?? 0))
  if (first === undefined || all.length < found.length) return null
  const lastedMs = Math.min(...all.map((each) => each.lastedMs))
  return { ...first, lastedMs, sessions: all.flatMap(({ sessions }) => sessions) }
}

/** The wait that is planned counts as waited when it is planned: what of it lies ahead has not been waited yet. */
function timesAt(waitedMs: number, retryAt: number, now: number): Pick<Outage, 'lastedMs' | 'until'> {
  const aheadMs = Math.max(0, retryAt - now)
  return { lastedMs: Math.max(0, waitedMs - aheadMs), until: aheadMs > 0 ? retryAt : null }
}

/** The child that works on a call of this session, if one does. */
export function childOf(session: string, { key, proposal }: Call): string | null {
  const { child, answers } = outsideOf(proposal) ?? {}
  return answers?.session ?? (child === undefined ? null : childId(session, key))
}

/** The call with which a session asks something outside that is not its own child. */
export function questionIn({ run }: Session): Call | undefined {
  return run?.turn?.open.find(({ state, proposal }) => state.type === 'outside' && !isForChild(proposal))
}

function isForChild(proposal: Call['proposal']): boolean {
  const outside = outsideOf(proposal)
  return outside?.child !== undefined || outside?.answers !== undefined || outside?.awaits !== undefined
}

/**
 * A session whose commits may write to others: it has a parent, its agent may start children, its planner leads others, or a call of it
 * is for a child already, also one that a harness with other agents has admitted.
 */
export function hasFamily({ parent, run }: Session, { children, planner }: Leading): boolean {
  if (parent !== null || children.length > 0 || planner?.leads) return true
  const isFor = ({ proposal }: Call): boolean => isForChild(proposal) || outsideOf(proposal)?.orders !== undefined
  return run?.turn?.open.some(isFor) === true
}

type Leading = { readonly children: readonly string[]; readonly planner: { readonly leads?: true } | null }

function childrenOf(id: string, session: Session): readonly string[] {
  return waitsOf(session).flatMap((call) => childOf(id, call) ?? outsideOf(call.proposal)?.awaits ?? [])
}

/** What is said of a session that came from a file, until a person lets it go on. */
export function heldText(id: string): string {
  return `Session ${shownId(id)} was imported and is held. Look at what it would do, then let it go on: \`${shellCommand`terret resume ${id}`}\`, or steer([{ type: 'resume' }]). What is open in it is asked about then.`
}

/** The question that a child of this session waits with, and which agent it is; null if it is no child or waits for nothing. */
export async function questionOf(
  store: Store,
  id: string,
  child: string,
): Promise<{ readonly agent: string; readonly call: string; readonly within: Session['within'] } | null> {
  const card = child.startsWith(`${id}~`) ? await store.card(child) : null
  if (card === null) return null
  const session = await headOf(store, child)
  const asked = questionIn(session)
  const { agent, within } = session
  return session.parent?.session === id && asked ? { agent, call: asked.key, within } : null
}

const HEADS_KEPT = 32

/** Sessions as their logs are now, for repeated looks at the same ones: only what is new is read. */
export class Heads {
  readonly #store: Store
  readonly #caches = new Map<string, SessionCache>()

  constructor(store: Store) {
    this.#store = store
  }

  async of(id: string): Promise<Session> {
    const known = this.#caches.get(id)
    this.#caches.delete(id)
    const cache = known && (await this.#isSame(known)) ? known : new SessionCache(id, this.#store, null, false)
    await (cache === known ? cache.catchUp() : cache.open())
    if (cache.session.seq === 0) throw missingSession(id)
    this.#caches.set(id, cache)
    const [oldest] = this.#caches.keys()
    if (this.#caches.size > HEADS_KEPT && oldest !== undefined) this.#caches.delete(oldest)
    return cache.session
  }

  /** Its session may have been removed, and its id used again. */
  async #isSame({ id, session: { seq, at } }: SessionCache): Promise<boolean> {
    const [last] = (await this.#store.read(id, seq - 1, 1)).events
    return last?.seq === seq && last.at === at
  }
}

/** A session as its log is now. */
export async function headOf(store: Store, id: string): Promise<Session> {
  const cache = new SessionCache(id, store)
  await cache.open()
  if (cache.session.seq === 0) throw missingSession(id)
  return cache.session
}

/** The agent whose budget pays for this session: its root's. A child has no day of its own. */
export async function rootAgentOf({ agent, parent }: Session, store: Pick<Store, 'card'>): Promise<string> {
  return parent === null ? agent : ((await store.card(parent.root))?.agent ?? agent)
}
