// The due loop: finds what is due by the store's index and has it looked at, until it is told to stop or has nothing to do.
// It drives nothing and decides nothing about a session: it only knows when to look next.
import { Fault } from '../kernel/failure.ts'
import type { Claim, Store, Taking } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import {
  callable,
  type Check,
  clockCheck,
  count,
  filled,
  flag,
  having,
  listOf,
  ms,
  needed,
  optionsOf,
} from '../options.ts'
import { Bell } from './bell.ts'
import { Peers } from './peers.ts'
import { systemClock } from './platform.ts'
import { systemProcesses } from './processes.ts'
import { BACKOFF_MS_MAX, backoffMs } from './backoff.ts'

export type WorkOptions = {
  /** How many sessions are driven at once. */
  readonly width?: number
  /** End when nothing was due for this long. Default: never. */
  readonly idleMs?: number
  /** Begin nothing more after so many looks at sessions. Default: no bound. */
  readonly looksMax?: number
  /** Only sessions of these agents. Default: of all that the harness has. */
  readonly agents?: readonly string[]
  /** Begin nothing more when it is aborted. What runs comes to its rest. */
  readonly signal?: AbortSignal
}

/** For ever, which is the default, may also be said. */
const idle: Check = (value, name, of) => (value === Number.POSITIVE_INFINITY ? null : ms(value, name, of))
const signal: Check = (value) => (value instanceof AbortSignal ? null : 'must be an AbortSignal')
const names: Check = (value, name, of) =>
  Array.isArray(value) && value.length === 0
    ? 'is empty. Name an agent, or leave it out'
    : listOf(filled)(value, name, of)
export const checkWork = optionsOf<WorkOptions>('work', {
  width: count(1),
  idleMs: idle,
  looksMax: count(1),
  agents: names,
  signal,
})

/** Why it ended, and how often it looked at a session. */
export type Worked = { readonly type: 'idle' | 'stopped' | 'looks_max'; readonly looks: number }

export type DueLoopOptions = {
  readonly store: Store
  readonly clock?: Clock
  readonly width: number
  readonly idleMs: number
  readonly looksMax?: number
  /** Only sessions of these agents. Default: of all. */
  readonly agents?: readonly string[]
  /** How many sessions this worker drives now, also those it was asked to. */
  readonly driving: () => number
  /** Looks at a session, with others at the same time or `alone`. With a `claim` it is this worker's already. Never rejects. */
  readonly look: (session: string, alone: boolean, claim?: Claim) => Promise<LookResult>
  /**
   * The store's `take` as this worker, where the store has it. Without it each session is claimed by `look`. Null for a session that
   * cannot be looked at here: it is left alone for a moment.
   */
  readonly take?: (wanted: Omit<Taking, 'process'>) => Promise<ReadonlyMap<string, Claim | null>>
  /** `take` is told which sessions are due, and chooses among them. */
  readonly chooses?: boolean
  readonly report: (error: unknown) => void
  /** The other workers of this host. Default: those that the system tells of. */
  readonly peers?: Pick<Peers, 'look'>
}

const checkDueLoop = optionsOf<DueLoopOptions>('new DueLoop', {
  store: needed(having('give a store, such as sqlite("file.db")', 'due', 'nextDue', 'watchDue')),
  clock: clockCheck,
  width: needed(count(1)),
  idleMs: needed(idle),
  looksMax: count(1),
  agents: names,
  driving: needed(callable),
  look: needed(callable),
  take: callable,
  chooses: flag,
  report: needed(callable),
  peers: having('leave it out', 'look'),
})

/**
 * `failed`: that failed, and the store does not know, so it must be remembered here. `later`: it failed before and must be looked
 * at alone.
 */
export type LookResult = 'seen' | 'failed' | 'later'

type Backoff = { readonly failures: number; readonly until: number }

/** How long a claim may take before the same session is looked at again. */
const CLAIM_MS = 100
/** The machine's clock may be set, and the machine may sleep: nothing is waited for longer than this at a time. */
const WAIT_MS_MAX = 60_000
const TROUBLE_MS = 1_000
/** For each free place so many due sessions are named, as others take some of them at the same moment. */
const NAMED_PER_PLACE = 8
const NAMED_MAX = 512

export class DueLoop {
  readonly done: Promise<Worked>
  readonly #around: DueLoopOptions
  readonly #clock: Clock
  readonly #bell: Bell
  readonly #peers: Pick<Peers, 'look'>
  readonly #looking = new Map<string, Promise<void>>()
  /** Sessions that could not be looked at, for reasons that are not theirs. */
  readonly #shy = new Map<string, Backoff>()
  /**
   * The one that failed before and is looked at now. One at a time: if it takes the process with it, that is its own doing, and
   * not that of others that happened to be there.
   */
  #suspect: string | null = null
  /** Those that wait for it, and when their cards are read again: one that was sent something waits no more. */
  readonly #suspects = new Set<string>()
  #suspectsUntil = 0
  #looks = 0
  /** How many looks have ended. One that ends while others are looked for may have made room for what was passed over. */
  #ended = 0
  #idleSince = Number.POSITIVE_INFINITY
  #stopped = false

  constructor(around: DueLoopOptions) {
    checkDueLoop(around)
    this.#around = around
    this.#clock = around.clock ?? systemClock
    this.#bell = new Bell(this.#clock)
    const { store } = around
    this.#peers = around.peers ?? new Peers({ store, clock: this.#clock, processes: systemProcesses })
    const unwatch = around.store.watchDue(this.#bell.ring)
    this.done = this.#walk().finally(() => {
      unwatch()
      this.#bell.close()
    })
  }

  /** Look again: something may have changed that no commit tells of, such as a place that became free. */
  readonly ring = (): void => this.#bell.ring()

  /** Nothing more is begun. `done` resolves when what it began has come to its rest. */
  stop(): void {
    this.#stopped = true
    this.#bell.ring()
  }

  async #walk(): Promise<Worked> {
    const { report } = this.#around
    const { looksMax = Number.POSITIVE_INFINITY } = this.#around
    let idle = false
    while (!this.#stopped && !idle && this.#looks < looksMax) {
      try {
        const until = await this.#round()
        idle = until === null
        if (until !== null && this.#looks < looksMax) await this.#bell.wait(until)
      } catch (error) {
        if (error instanceof Fault && error.code === 'store_closed') this.#stopped = true
        else if (error instanceof Fault && error.code === 'store_replaced') {
          // What this process knows is not what the store has: only a new process can go on.
          report(error)
          await Promise.all(this.#looking.values())
          throw error
        } else {
          report(error)
          await this.#bell.wait(this.#clock.now() + TROUBLE_MS)
        }
      }
    }
    await Promise.all(this.#looking.values())
    const why = idle ? 'idle' : this.#stopped ? 'stopped' : 'looks_max'
    return { type: why, looks: this.#looks }
  }

  /** Asks which sessions are due, has each looked at, and says when to ask again; null when there has been nothing to do for long enough. */
  async #round(): Promise<number | null> {
    const { store, agents, width, idleMs, looksMax = Number.POSITIVE_INFINITY, driving } = this.#around
    const free = Math.min(width - driving(), looksMax - this.#looks)
    // A session that comes to rest rings the bell.
    if (free <= 0) return Number.POSITIVE_INFINITY
    const peers = await this.#peers.look()
    if (this.#clock.now() >= this.#suspectsUntil) this.#suspects.clear()
    const ended = this.#ended
    const found = await this.#find(free)
    const now = this.#clock.now()
    const busy = this.#looking.size > 0 || this.#ended > ended
    this.#idleSince = busy ? Number.POSITIVE_INFINITY : Math.min(this.#idleSince, now)
    const idleAt = this.#idleSince + idleMs
    if (now >= idleAt) return null
    const due = (await store.nextDue(agents)) ?? Number.POSITIVE_INFINITY
    if (due === Number.POSITIVE_INFINITY) return Math.min(idleAt, peers.again)
    const next = now + due - store.now()
    // What is due and was not found is being claimed, or is left alone for a moment.
    const soon = now + (found > 0 ? CLAIM_MS : TROUBLE_MS)
    return Math.min(idleAt, peers.again, now + WAIT_MS_MAX, next <= now ? soon : next)
  }

  /** Has what is due looked at, and says how many that were. */
  async #find(free: number): Promise<number> {
    const now = this.#clock.now()
    for (const [session, { until }] of this.#shy) if (until + BACKOFF_MS_MAX < now) this.#shy.delete(session)
    const { take, chooses = false } = this.#around
    if (take && !chooses && this.#shy.size === 0) return this.#take(take, free)
    if (take) return this.#takeAmong(take, free)
    const found = await this.#due(free)
    for (const session of found) await this.#consider(session)
    return found.length
  }

  /** Those that are due are named, so that one that is left alone for a moment is not taken again and again. */
  async #takeAmong(take: NonNullable<DueLoopOptions['take']>, free: number): Promise<number> {
    for (;;) {
      const found = await this.#due(Math.min(free * NAMED_PER_PLACE, NAMED_MAX))
      const took = found.length > 0 ? await this.#take(take, free, found) : 0
      const rest = found.filter(this.#isOpen)
      // What must be looked at alone, and was passed over, makes room for those behind it.
      if (took < free && this.#suspect !== null) for (const session of rest) this.#passOver(session)
      // If none of them is for this process, those behind them may be.
      if (found.length === 0 || took > 0 || rest.length > 0 || this.#stopped) return found.length
    }
  }

  /**
   * The first one whatever it is, so that one that failed before is not passed over for ever; then those that did not fail; and if there
   * are places left, one that did.
   */
  async #take(take: NonNullable<DueLoopOptions['take']>, free: number, among?: readonly string[]): Promise<number> {
    const { agents } = this.#around
    const of = agents ? { agents } : {}
    let left = free
    const taken = async (wanted: Pick<Taking, 'limit' | 'fresh'>): Promise<number> => {
      const before = left
      const named = among ? { among: among.filter(this.#isOpen) } : {}
      if (named.among?.length === 0) return 0
      for (const [session, claim] of this.#stopped ? [] : await take({ ...wanted, ...of, ...named })) {
        if (claim === null) this.#shun(session)
        else if (this.#stopped) await this.#around.store.release(session, claim.epoch)
        else this.#look(session, claim.failed > 0, claim)
        if (claim !== null) left -= 1
      }
      return before - left
    }
    if (this.#suspect === null && (await taken({ limit: 1 })) === 0) return 0
    if (left > 0) await taken({ limit: left, fresh: true })
    if (left > 0 && this.#suspect === null) await taken({ limit: 1 })
    return free - left
  }

  async #due(limit: number): Promise<readonly string[]> {
    const { store, agents } = this.#around
    const found = await store.due(limit + this.#looking.size + this.#shy.size + this.#suspects.size, agents)
    return found.filter(this.#isOpen).slice(0, limit)
  }

  /** It is not looked at now, and not left alone for a moment. */
  readonly #isOpen = (session: string): boolean => {
    if (this.#looking.has(session) || this.#suspects.has(session)) return false
    return (this.#shy.get(session)?.until ?? 0) <= this.#clock.now()
  }

  async #consider(session: string): Promise<void> {
    const failedBefore = (await this.#around.store.card(session))?.trouble !== undefined
    if (this.#stopped) return
    if (!failedBefore) this.#look(session, false)
    else if (this.#suspect === null) this.#look(session, true)
    else this.#passOver(session)
  }

  #passOver(session: string): void {
    if (this.#suspects.size === 0) this.#suspectsUntil = this.#clock.now() + TROUBLE_MS
    this.#suspects.add(session)
  }

  #look(session: string, alone: boolean, claim?: Claim): void {
    this.#looks += 1
    if (alone) this.#suspect = session
    const looked = this.#around.look(session, alone, claim).then((seen) => {
      this.#ended += 1
      // One that was taken after its lease had ended is looked at twice for a moment.
      if (this.#looking.get(session) === looked) this.#looking.delete(session)
      if (alone) {
        this.#suspect = null
        this.#suspects.clear()
      }
      if (seen !== 'failed') this.#shy.delete(session)
      else this.#shun(session)
      this.#bell.ring()
    })
    this.#looking.set(session, looked)
  }

  #shun(session: string): void {
    const failures = (this.#shy.get(session)?.failures ?? 0) + 1
    this.#shy.set(session, { failures, until: this.#clock.now() + backoffMs(failures) })
  }
}
