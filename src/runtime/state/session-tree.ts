// A session and the children below it, seen from outside: driven until they rest. All is read from logs. The kernel
// alone decides what a session does, and family.ts writes what its commits say to others.
import { Fault } from '../../kernel/failure.ts'
import type { Here } from '../../kernel/limits.ts'
import { next, type Waiting } from '../../kernel/next.ts'
import type { CompleteStore } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import type { Session } from '../../kernel/session.ts'
import type { Agent } from './agent.ts'
import { sleep } from './sleep.ts'
import { SessionCache } from './session-cache.ts'
import { outsideOf, type Call } from '../../kernel/ledger.ts'
import { sessionMissingFault } from '../../stores/plan/plan-writes.ts'
import { outsideCalls, childOnCall } from '../../view/pending-calls.ts'
import { gradedAgent } from '../../view/pursuits.ts'

type RestedReport = { readonly type: 'rested'; readonly waiting: Waiting; readonly until: number | null }
type RestReport = RestedReport | { readonly type: 'contended' | 'lost' | 'stopped' } | ElsewhereReport
type ElsewhereReport = { readonly type: 'elsewhere'; readonly why: string }
/** The worker: looks at a session when asked. */
type SessionDriver = { wake(session: string): Promise<RestReport> }

/** Drives a session and its children until they rest: a parent that waits for a child rests only if the child does. */
export async function settleTree(
  worker: SessionDriver,
  store: CompleteStore,
  id: string,
  clock: Clock,
): Promise<RestReport> {
  for (;;) {
    const looked = await worker.wake(id)
    if (looked.type !== 'rested' || looked.waiting !== 'answer') return looked
    const before = await readSessionHead(store, id)
    const waits = outsideCalls(before)
    // The call was answered right after the session came to rest: look again.
    if (waits.length === 0) continue
    const children = awaitedChildren(id, before)
    if (children.length === 0) return looked
    const { until } = looked
    const below = Promise.all(
      children.map((child) => settleTree(worker, store, child, clock).catch((error) => contendedOrThrow(error, until))),
    )
    const rested = until === null ? await below : await raceTimeout(below, until - store.now(), clock)
    // The time of a wait is over: look again.
    if (rested === null) continue
    const stuck = rested.find(({ type }) => type !== 'rested')
    if (stuck) return stuck
    // The child's answer gives the parent something to do: look again.
    const after = await store.card(id)
    if (after?.seq === before.seq && after.due === null)
      return waits.length > children.length ? looked : combineRests(rested as RestedReport[], looked)
  }
}

/**
 * A child whose agent is not in this harness is left to a harness that has it, because the wait for it has an end. Any
 * other error is thrown.
 */
function contendedOrThrow(error: unknown, until: number | null): RestReport {
  if (until !== null && error instanceof Fault && error.code === 'invalid_config') return { type: 'contended' }
  throw error
}

/** Null when the time is over first. The promise goes on. */
async function raceTimeout<T>(promise: Promise<T>, ms: number, clock: Clock): Promise<T | null> {
  const over = new AbortController()
  try {
    return await Promise.race([promise, sleep(clock, Math.max(1, ms), over.signal).then(() => null)])
  } finally {
    over.abort()
  }
}

/**
 * The state of a session for a harness that drives nothing. Open work, and a retry that comes soon, are another
 * worker's.
 */
export async function reportRest(
  heads: SessionHeads,
  id: string,
  here: Pick<Here, 'now'>,
  lingerMs: number,
): Promise<RestReport> {
  const session = await heads.of(id)
  const { now } = here
  const decision = next(session, { now, epoch: session.epoch })
  if (decision.type !== 'rest') return { type: 'contended' }
  const { waiting, until } = decision
  if (waiting === 'retry' && until !== null && until - now <= lingerMs) return { type: 'contended' }
  return { type: 'rested', waiting, until }
}

/** The same for a session and those that it waits for: it rests only if they do. */
export async function reportTreeRest(
  heads: SessionHeads,
  id: string,
  here: Pick<Here, 'now'>,
  lingerMs: number,
): Promise<RestReport> {
  const looked = await reportRest(heads, id, here, lingerMs)
  if (looked.type !== 'rested' || looked.waiting !== 'answer') return looked
  const session = await heads.of(id)
  const { seq } = session
  const waits = outsideCalls(session).length
  const children = awaitedChildren(id, session)
  const seen = await Promise.all(children.map((child) => reportTreeRest(heads, child, here, lingerMs)))
  const working = seen.find(({ type }) => type !== 'rested')
  if (working) return working
  // A child ends in the commit that answers its parent. If that came in between, this session only seemed to wait.
  const isStale = waits === 0 || (children.length > 0 && (await heads.of(id)).seq > seq)
  if (isStale) return reportTreeRest(heads, id, here, lingerMs)
  return children.length === 0 || waits > children.length ? looked : combineRests(seen as RestedReport[], looked)
}

/** Children that only wait for a time, or to be resumed, need nothing: their parent waits with them. */
function combineRests(children: readonly RestedReport[], own: RestedReport): RestedReport {
  if (children.some(({ waiting }) => waiting !== 'retry' && waiting !== 'resume')) return own
  const sleeping = children.filter(({ waiting }) => waiting === 'retry')
  const first = sleeping.sort((a, b) => (a.until ?? 0) - (b.until ?? 0))[0]
  return first ?? children[0] ?? own
}

/**
 * How long a provider has not answered, why, for which sessions, and when the next try is; `until` is null during a
 * try.
 */
export type Outage = {
  readonly lastedMs: number
  readonly reason: string
  readonly sessions: readonly string[]
  readonly until: number | null
}

/** The outage that a session waits for, or that all children it waits for are in. Null: none. */
export async function findOutage(heads: SessionHeads, id: string, now: number): Promise<Outage | null> {
  const session = await heads.of(id)
  const { run, deferred, paused } = session
  if (run?.trouble && !run.fatal && !paused) {
    const { trouble, waitedMs, retryAt } = run
    return { ...outageTimes(waitedMs, retryAt, now), reason: trouble.message, sessions: [id] }
  }
  if (!run && deferred) {
    const { waitedMs, reason, retryAt } = deferred
    return { ...outageTimes(waitedMs, retryAt, now), reason, sessions: [id] }
  }
  const children = awaitedChildren(id, session)
  if (children.length === 0 || outsideCalls(session).length > children.length) return null
  const found = await Promise.all(children.map((child) => findOutage(heads, child, now)))
  const all = found.filter((each) => each !== null)
  const [first] = all.toSorted((a, b) => (a.until ?? 0) - (b.until ?? 0))
  if (first === undefined || all.length < found.length) return null
  const lastedMs = Math.min(...all.map((each) => each.lastedMs))
  return { ...first, lastedMs, sessions: all.flatMap(({ sessions }) => sessions) }
}

/** A planned wait counts as waited when it is planned, so the part that still lies ahead is subtracted. */
function outageTimes(waitedMs: number, retryAt: number, now: number): Pick<Outage, 'lastedMs' | 'until'> {
  const aheadMs = Math.max(0, retryAt - now)
  return { lastedMs: Math.max(0, waitedMs - aheadMs), until: aheadMs > 0 ? retryAt : null }
}

/** The call with which a session asks something outside that is not its own child. */
export function findOutsideQuestion({ run }: Session): Call | undefined {
  return run?.turn?.open.find(({ state, proposal }) => state.type === 'outside' && !isForChild(proposal))
}

function isForChild(proposal: Call['proposal']): boolean {
  const outside = outsideOf(proposal)
  return outside?.child !== undefined || outside?.answers !== undefined || outside?.awaits !== undefined
}

/**
 * A session whose commits may write to others: it has a parent, its agent may start children, its planner leads others,
 * or one of its calls is already for a child. A harness with other agents may have admitted that call.
 */
export function hasRelatives({ parent, run }: Session, { children, starts, planner }: LeadingAgent): boolean {
  if (parent !== null || children.length > 0 || starts !== undefined || planner?.leads) return true
  const isFor = ({ proposal }: Call): boolean => isForChild(proposal) || outsideOf(proposal)?.orders !== undefined
  return run?.turn?.open.some(isFor) === true
}

type LeadingAgent = Pick<Agent, 'children' | 'starts' | 'planner'>

function awaitedChildren(id: string, session: Session): readonly string[] {
  return outsideCalls(session).flatMap((call) => childOnCall(id, call) ?? outsideOf(call.proposal)?.awaits ?? [])
}

/**
 * The open question of a child to this session, and the child's agent. Null if the other session is no child of this
 * one, or asks nothing.
 */
export async function findChildQuestion(
  store: CompleteStore,
  id: string,
  child: string,
): Promise<{ readonly agent: string; readonly call: string; readonly within: Session['within'] } | null> {
  const card = child.startsWith(`${id}~`) ? await store.card(child) : null
  if (card === null) return null
  const session = await readSessionHead(store, child)
  const asked = findOutsideQuestion(session)
  const { agent, within } = session
  return session.parent?.session === id && asked ? { agent, call: asked.key, within } : null
}

const HEADS_KEPT = 32

/** Sessions as their logs are now, for repeated looks at the same ones: only new events are read. */
export class SessionHeads {
  readonly #store: CompleteStore
  readonly #caches = new Map<string, SessionCache>()

  constructor(store: CompleteStore) {
    this.#store = store
  }

  async of(id: string): Promise<Session> {
    const known = this.#caches.get(id)
    this.#caches.delete(id)
    const cache = known && (await this.#isSame(known)) ? known : new SessionCache(id, this.#store, null, false)
    await (cache === known ? cache.catchUp() : cache.open())
    if (cache.session.seq === 0) throw sessionMissingFault(id)
    this.#caches.set(id, cache)
    const [oldest] = this.#caches.keys()
    if (this.#caches.size > HEADS_KEPT && oldest !== undefined) this.#caches.delete(oldest)
    return cache.session
  }

  /** Whether it is the same session: it may have been removed, and its id used again. */
  async #isSame({ id, session: { seq, at } }: SessionCache): Promise<boolean> {
    const [last] = (await this.#store.read(id, seq - 1, 1)).events
    return last?.seq === seq && last.at === at
  }
}

/** A session as its log is now. */
export async function readSessionHead(store: CompleteStore, id: string): Promise<Session> {
  const cache = new SessionCache(id, store)
  await cache.open()
  if (cache.session.seq === 0) throw sessionMissingFault(id)
  return cache.session
}

/**
 * The agent whose budget pays for this session: its root's. A child has no daily budget of its own, and neither has a
 * grader: the agent whose work it grades pays.
 */
export async function rootAgentOf({ agent, parent }: Session, store: Pick<CompleteStore, 'card'>): Promise<string> {
  return gradedAgent(parent === null ? agent : ((await store.card(parent.root))?.agent ?? agent))
}
