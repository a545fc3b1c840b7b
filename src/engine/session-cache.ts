// One session as this process has read it: the folded session, and the transcript once a model must read it.
// A cache of the log and nothing more: dropping it loses nothing.
import type { Metadata } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { assert } from '../kernel/failure.ts'
import { type OpenSession, open, take } from '../kernel/fold.ts'
import type { Claim, Snapshot, Store } from '../ports/store.ts'
import { EMPTY, FOLD_VERSION, type Session } from '../kernel/session.ts'
import type { Transcript } from '../kernel/transcript.ts'
import { Fill } from '../context/window.ts'
import { Guard, type SavedGuard } from '../riders/guard/guard.ts'
import { charsTaken, damaged, readTranscript } from '../view/history.ts'
import { mayFill } from '../effects/window.ts'
import type { Sent } from '../effects/prefix.ts'
import { lifeOf } from '../stores/plan/plan.ts'
import type { Services, Varied } from './wiring.ts'
import type { FrozenRun } from '../effects/frozen-run.ts'

export const NO_METADATA: Metadata = {}
/** Small enough that a page's events die young: parsed events that survive cost more than reading them. */
const PAGE = 1_000
/** A log up to this long is read once for both folds; a longer one is read again when a model must read it. */
const KEPT_MAX = 5_000
/** A session that comes to its rest so many events after its last snapshot gets one. A shorter log has none. */
export const SNAPSHOT_FROM = 100

export class SessionCache {
  readonly id: string
  /** Owned by this book and changed in place. */
  session: OpenSession = open(EMPTY)
  /** The time of the attempt that drives it. A reader goes by the store's clock. */
  now: () => number
  /** How far that time is ahead of the clock of this process. */
  aheadMs = 0
  /** Of the last lease under which it was read. */
  epoch = 0
  /** seq of the newest stored snapshot. */
  snapshotSeq = 0
  /** What the open run froze, kept with the run's seq. */
  frame: { readonly run: number; readonly frame: FrozenRun } | null = null
  /** What the open run has instead of what its agent has; kept until another run has other options. */
  varied: Varied | null = null
  /** What the host built for the tools of the attempt that drives it. */
  context: { readonly deps: () => Promise<unknown>; readonly close: () => Promise<void> } | null = null
  /** The start of the last run that was seen here. */
  begun: Extract<Event, { type: 'run.started' }> | null = null
  /** What the last answered request began with, to notice when the next one begins otherwise. */
  sent: Sent | null = null
  /** The request being asked now. */
  started: Extract<Event, { type: 'model.started' }> | null = null
  /** How many characters a model must read of what is in the log; counted only once `count` asked for it. */
  chars = 0
  /** The session whose cached prefix it may share. Known once the transcript was read. */
  tree: string
  readonly #store: Store
  #transcript: Transcript | null = null
  #counts = false
  /** The whole log so far, until a model must read it. */
  #kept: Event[] | null = null
  readonly #newGuard: (() => Guard) | null
  /** A model may have to read it. */
  readonly #keeps: boolean
  #guard: Guard | null = null

  /** A reader needs no guard. */
  constructor(id: string, store: Store, guard: (() => Guard) | null = null, keeps = true) {
    this.id = id
    this.tree = id
    this.#store = store
    this.now = () => store.now()
    this.#newGuard = guard
    this.#keeps = keeps
  }

  /** It has seen every event of the open run that a language model drove. */
  get guard(): Guard {
    assert(this.#guard, 'a book without a guard is driven')
    return this.#guard
  }

  /** How full the context is. It is read from the log if it was not counted so far. */
  async fill(): Promise<Fill> {
    const fill = this.guard.fill ?? new Fill()
    if (fill === this.guard.fill) return fill
    for (let seq = 0; seq < this.session.seq; ) {
      const page = await this.#store.read(this.id, seq, PAGE)
      if (page.damaged) throw damaged(this.id, page.damaged)
      for (const event of page.events) if (event.seq <= this.session.seq) fill.take(event)
      seq = page.events.at(-1)?.seq ?? this.session.seq
    }
    this.guard.fill = fill
    return fill
  }

  /** What each hook of the open run is told. */
  get place(): { readonly session: string; readonly agent: string; readonly metadata: Metadata } {
    const { agent, run, metadata } = this.session
    return { session: this.id, agent, metadata: (run ? run.metadata : metadata) ?? NO_METADATA }
  }

  /** Reads to the end of the log, from the newest usable snapshot on. `seq`: how far the log goes at least, if that is known. */
  async open(seq = SNAPSHOT_FROM): Promise<void> {
    const snapshot = seq < SNAPSHOT_FROM ? null : await this.#store.snapshot(this.id)
    this.#guard = this.#newGuard?.() ?? null
    const folded = snapshot && foldedIn(snapshot)
    if (folded) {
      const { session, guard } = folded
      this.session = open(session)
      this.snapshotSeq = session.seq
      this.#kept = null
      // None was saved where no language model drove the session. If one does now, in the same run, it is watched from here on.
      if (guard) this.#guard?.restore(guard)
    } else {
      this.session = open(EMPTY)
      this.#kept = this.#transcript || !this.#keeps ? null : []
    }
    await this.catchUp()
  }

  async catchUp(): Promise<void> {
    for (;;) {
      const page = await this.#store.read(this.id, this.session.seq, PAGE)
      for (const event of page.events) {
        take(this.session, event)
        this.#guard?.take(event)
        this.keep(event)
      }
      if (page.damaged) throw damaged(this.id, page.damaged)
      if (page.events.length < PAGE) return
    }
  }

  /** All that this process knows of the session, for the next one: the folded session, and what the guard counted. */
  snapshot(): string {
    return JSON.stringify(this.#guard ? { ...this.session, guard: this.#guard.save() } : this.session)
  }

  /** No language model drives it, so nothing has to be watched. */
  unguard(): void {
    this.#guard = null
  }

  /** The first event of the log, while the log is in hand. */
  get first(): Event | undefined {
    return this.#kept?.[0]
  }

  /** The transcript, if it was read already. */
  get shown(): Transcript | null {
    return this.#transcript
  }

  /** From now on `chars` is right. Most sessions have no budget, and pay nothing for one. */
  async count(): Promise<void> {
    if (!this.#counts) this.#transcript = null
    this.#counts = true
    await this.transcript()
  }

  /** The transcript up to now. Its first use reads the whole log; after that it grows with each commit. */
  async transcript(): Promise<Transcript> {
    if (this.#transcript) return this.#transcript
    const wanted = { id: this.id, upTo: this.session.seq, known: this.#kept ?? [], count: this.#counts }
    this.#kept = null
    const { transcript, chars, tree } = await readTranscript(this.#store, wanted)
    this.chars = chars
    this.tree = tree
    this.#transcript = transcript
    return transcript
  }

  /** This event is on disk and in the session. */
  keep(event: Event): void {
    if (event.type === 'model.started') this.started = event
    else if (event.type === 'run.started') this.begun = event
    else if (event.type === 'run.reviewed') this.frame = null
    // What the transcript has read already is counted already.
    else if (this.#counts && this.#transcript && event.seq > this.#transcript.seq)
      this.chars += charsTaken(this.#transcript, event)
    this.#transcript?.take(event)
    if (!this.#kept) return
    this.#kept.push(event)
    if (this.#kept.length > KEPT_MAX) this.#kept = null
  }
}

/** What `snapshot` wrote. */
export function readSnapshot(body: string): { readonly session: Session; readonly guard: SavedGuard | null } {
  const { guard = null, ...session } = JSON.parse(body) as Session & { readonly guard?: SavedGuard }
  return { session, guard }
}

type Folded = ReturnType<typeof readSnapshot>

/** Null for one of an older fold, and for one that is not of the event it says. */
export function foldedIn({ seq, version, body }: Snapshot): Folded | null {
  if (version !== FOLD_VERSION) return null
  try {
    const folded = readSnapshot(body)
    return folded.session.seq === seq ? folded : null
  } catch {
    return null
  }
}

const CACHES_KEPT = 32

/** The sessions that a worker has driven last. */
export class SessionCaches {
  readonly #services: Services
  readonly #fills: (agent: string) => boolean
  readonly #caches = new Map<string, SessionCache>()

  constructor(services: Services) {
    this.#services = services
    this.#fills = (agent) => mayFill(services, services.agent(agent).model)
  }

  /**
   * What this process has read before is only brought up to date: the log never changes behind it. But its session may have
   * been removed, and its id used again: then it is of another one.
   */
  async open(session: string, { epoch, seq }: Claim): Promise<SessionCache> {
    const kept = this.#caches.get(session)
    const known = kept && lifeOf(kept.epoch) === lifeOf(epoch) ? kept : null
    this.#caches.delete(session)
    const { store, clock, breaker } = this.#services
    const cache = known ?? new SessionCache(session, store, () => new Guard({ breaker, fills: this.#fills }))
    cache.epoch = epoch
    // From here on time only goes forward, also when the machine's clock is set.
    const aheadMs = store.now() - clock.now()
    cache.aheadMs = aheadMs
    cache.now = () => clock.now() + aheadMs
    await (known ? cache.catchUp() : cache.open(seq))
    this.#caches.set(session, cache)
    const [oldest] = this.#caches.keys()
    if (this.#caches.size > CACHES_KEPT && oldest !== undefined) this.#caches.delete(oldest)
    return cache
  }

  /** It may have taken what was never committed. */
  drop(session: string): void {
    this.#caches.delete(session)
  }
}
