// One session as this process has read it: the folded session, and the transcript once a model must read it. It is only
// a cache of the log: dropping it loses nothing.
import type { Metadata } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { assert } from '../../kernel/failure.ts'
import { type OpenSession, open, take } from '../../kernel/fold.ts'
import type { Claim, Snapshot, CompleteStore } from '../../ports/store.ts'
import { EMPTY, FOLD_VERSION, type Session } from '../../kernel/session.ts'
import type { Message, Transcript } from '../../kernel/transcript.ts'
import { WindowFill } from '../../context/window-fill.ts'
import { GuardFold, type SavedGuard } from '../guard/guard.ts'
import { addedChars, damagedFault, readTranscript } from '../../view/session-history.ts'
import { mayLearnWindow } from './model-window.ts'
import { lifeOf } from '../../stores/plan/plan-writes.ts'
import type { Services } from './runtime-ports.ts'
import type { RunVariant } from './agent.ts'
import type { FrozenRun } from './frozen-run.ts'

export const NO_HOOK_METADATA: Metadata = {}
/** Small enough that a page's events are soon garbage: parsed events that survive cost more than reading them. */
const PAGE = 1_000
/** A log up to this long is read once for both folds; a longer one is read again when a model must read it. */
const KEPT_EVENTS_MAX = 5_000
/** A session that rests this many events after its last snapshot gets a new one. A shorter log has none. */
export const SNAPSHOT_FROM = 100

export class SessionCache {
  readonly id: string
  /** Owned by this cache and changed in place. */
  session: OpenSession = open(EMPTY)
  /** The time of the attempt that drives the session. A reader uses the store's clock. */
  now: () => number
  /** How far that time is ahead of this process's clock. */
  aheadMs = 0
  /** The epoch of the last lease under which it was read. */
  epoch = 0
  /** seq of the newest stored snapshot. */
  snapshotSeq = 0
  /** The tools and instructions of the open run, with the run's seq. */
  frozenRun: { readonly run: number; readonly frozen: FrozenRun } | null = null
  /** The agent of the open run, where its options change it; kept until another run has other options. */
  varied: RunVariant | null = null
  /** The `deps` that the host built for the tools of this attempt. */
  context: { readonly deps: () => Promise<unknown>; readonly close: () => Promise<void> } | null = null
  /** The start of the last run that this process has seen. */
  begun: Extract<Event, { type: 'run.started' }> | null = null
  /** The beginning of the last answered request, to notice when the next one begins otherwise. */
  sent: RequestPrefix | null = null
  /** The request that is being asked now. */
  started: Extract<Event, { type: 'model.started' }> | null = null
  /** How many characters of the log a model must read; counted only after `count` was called. */
  chars = 0
  /** The session whose cached prefix it may share. Known once the transcript was read. */
  tree: string
  readonly #store: CompleteStore
  #transcript: Transcript | null = null
  #counts = false
  /** The whole log so far, until a model must read it. */
  #kept: Event[] | null = null
  readonly #newGuard: (() => GuardFold) | null
  /** Whether a model may have to read the log. */
  readonly #keeps: boolean
  #guard: GuardFold | null = null

  /** A cache that only reads needs no guard. */
  constructor(id: string, store: CompleteStore, guard: (() => GuardFold) | null = null, keeps = true) {
    this.id = id
    this.tree = id
    this.#store = store
    this.now = () => store.now()
    this.#newGuard = guard
    this.#keeps = keeps
  }

  /** The guard has seen every event of the open run if a language model drives it. */
  get guard(): GuardFold {
    assert(this.#guard, 'a book without a guard is driven')
    return this.#guard
  }

  /** How full the context is. Reads the log if that was not counted so far. */
  async fill(): Promise<WindowFill> {
    const fill = this.guard.fill ?? new WindowFill()
    if (fill === this.guard.fill) return fill
    for (let seq = 0; seq < this.session.seq; ) {
      const page = await this.#store.read(this.id, seq, PAGE)
      if (page.damaged) throw damagedFault(this.id, page.damaged)
      for (const event of page.events) if (event.seq <= this.session.seq) fill.take(event)
      seq = page.events.at(-1)?.seq ?? this.session.seq
    }
    this.guard.fill = fill
    return fill
  }

  /** The fields that each hook event of the open run has. */
  get runIdentity(): { readonly session: string; readonly agent: string; readonly metadata: Metadata } {
    const { agent, run, metadata } = this.session
    return { session: this.id, agent, metadata: (run ? run.metadata : metadata) ?? NO_HOOK_METADATA }
  }

  /** Reads to the end of the log, from the newest usable snapshot on. `seq`: the least length of the log, if known. */
  async open(seq = SNAPSHOT_FROM): Promise<void> {
    const snapshot = seq < SNAPSHOT_FROM ? null : await this.#store.snapshot(this.id)
    this.#guard = this.#newGuard?.() ?? null
    const folded = snapshot && readUsableSnapshot(snapshot)
    if (folded) {
      const { session, guard } = folded
      this.session = open(session)
      this.snapshotSeq = session.seq
      this.#kept = null
      // No guard was saved where no language model drove the session. If one does now, in the same run, it is watched
      // from here on.
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
      if (page.damaged) throw damagedFault(this.id, page.damaged)
      if (page.events.length < PAGE) return
    }
  }

  /** All that this process knows of the session, for the next process: the folded session, and the guard's counts. */
  snapshot(): string {
    return JSON.stringify(this.#guard ? { ...this.session, guard: this.#guard.save() } : this.session)
  }

  /** No language model drives the session, so nothing has to be watched. */
  unguard(): void {
    this.#guard = null
  }

  /** The first event of the log, while the log is in memory. */
  get firstEvent(): Event | undefined {
    return this.#kept?.[0]
  }

  /** The transcript, if it was read already. */
  get loadedTranscript(): Transcript | null {
    return this.#transcript
  }

  /** Makes `chars` right from now on. Most sessions have no budget, and pay nothing for it. */
  async count(): Promise<void> {
    if (!this.#counts) this.#transcript = null
    this.#counts = true
    await this.transcript()
  }

  /** The transcript up to now. Its first use reads the whole log; after that it grows with each commit. */
  async transcript(): Promise<Transcript> {
    if (this.#transcript) return this.#transcript
    const wanted = {
      id: this.id,
      upTo: this.session.seq,
      known: this.#kept ?? [],
      count: this.#counts,
      session: this.session,
    }
    this.#kept = null
    const { transcript, chars, tree } = await readTranscript(this.#store, wanted)
    this.chars = chars
    this.tree = tree
    this.#transcript = transcript
    return transcript
  }

  /** Takes an event that is on disk and in the session. */
  keep(event: Event): void {
    if (event.type === 'model.started') this.started = event
    else if (event.type === 'run.started') this.begun = event
    else if (event.type === 'run.reviewed') this.frozenRun = null
    // Events that the transcript has read are counted already.
    else if (this.#counts && this.#transcript && event.seq > this.#transcript.seq)
      this.chars += addedChars(this.#transcript, event)
    this.#transcript?.take(event)
    if (!this.#kept) return
    this.#kept.push(event)
    if (this.#kept.length > KEPT_EVENTS_MAX) this.#kept = null
  }
}

/** Parses the text that `snapshot` wrote. */
export function parseSnapshot(body: string): { readonly session: Session; readonly guard: SavedGuard | null } {
  const { guard = null, ...session } = JSON.parse(body) as Session & { readonly guard?: SavedGuard }
  return { session, guard }
}

type ParsedSnapshot = ReturnType<typeof parseSnapshot>

/** Null for a snapshot of an older fold, and for one whose session is not at its seq. */
export function readUsableSnapshot({ seq, version, body }: Snapshot): ParsedSnapshot | null {
  if (version !== FOLD_VERSION) return null
  try {
    const folded = parseSnapshot(body)
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
    this.#fills = (agent) => mayLearnWindow(services, services.agent(agent).model)
  }

  /**
   * A cached session is only brought up to date, because the log never changes behind it. But the session may have been
   * removed, and its id used again: then the cache is of another session.
   */
  async open(session: string, { epoch, seq }: Claim): Promise<SessionCache> {
    const kept = this.#caches.get(session)
    const known = kept && lifeOf(kept.epoch) === lifeOf(epoch) ? kept : null
    this.#caches.delete(session)
    const { store, clock, breaker } = this.#services
    const cache = known ?? new SessionCache(session, store, () => new GuardFold({ breaker, fills: this.#fills }))
    cache.epoch = epoch
    // From here on time only goes forward, even if the machine's clock is set back.
    const aheadMs = store.now() - clock.now()
    cache.aheadMs = aheadMs
    cache.now = () => clock.now() + aheadMs
    await (known ? cache.catchUp() : cache.open(seq))
    this.#caches.set(session, cache)
    const [oldest] = this.#caches.keys()
    if (this.#caches.size > CACHES_KEPT && oldest !== undefined) this.#caches.delete(oldest)
    return cache
  }

  /** Drops a cache that may hold events that were never committed. */
  drop(session: string): void {
    this.#caches.delete(session)
  }
}

/** The beginning of a request. */
export type RequestPrefix = {
  readonly frame: FrozenRun
  readonly messages: readonly Message[]
  /** The model that answered, and the number of tokens of the beginning. */
  readonly route: string | undefined
  readonly inputTokens: number
  /** No tool was allowed. Null if that changes nothing that is cached. */
  readonly barred: boolean | null
}
