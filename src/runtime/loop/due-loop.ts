// The due loop: it finds due sessions in the store's index and has them looked at, until it is told to stop or nothing
// is left to do. It drives nothing and decides nothing about a session: it only knows when to look next.
import { Fault, type FaultCode } from '../../kernel/failure.ts'
import type { Claim, CompleteStore, Store, TakeOptions } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import {
  functionCheck,
  type Check,
  clockCheck,
  countCheck,
  nonEmptyCheck,
  flagCheck,
  methodsCheck,
  listCheck,
  msCheck,
  requiredCheck,
  optionsChecker,
} from '../../options.ts'
import { Bell } from './bell.ts'
import { Peers } from './dead-workers.ts'
import { runtimeClock } from '../state/machine.ts'
import { systemProcesses } from '../state/processes.ts'
import { backoffMs } from './attempt-trouble.ts'
import { BACKOFF_MS_MAX } from '../state/outages.ts'
import { completeStore } from '../../stores/plan/complete-store.ts'

/** Options of `work`: how many sessions at once, of which agents, and until when. */
export type WorkOptions = {
  /** How many sessions are driven at once. */
  readonly width?: number
  /** End when nothing was due for this long. Default: never. */
  readonly idleMs?: number
  /** Start nothing more after this many looks at sessions. Default: no bound. */
  readonly looksMax?: number
  /** Only sessions of these agents. Default: all agents of the harness. */
  readonly agents?: readonly string[]
  /** Start nothing more once this is aborted. Runs in progress go on until they rest. */
  readonly signal?: AbortSignal
}

/** `Infinity`, which is the default, may also be given. */
const idleCheck: Check = (value, name, of) => (value === Number.POSITIVE_INFINITY ? null : msCheck(value, name, of))
const abortSignalCheck: Check = (value) => (value instanceof AbortSignal ? null : 'must be an AbortSignal')
const agentNamesCheck: Check = (value, name, of) =>
  Array.isArray(value) && value.length === 0
    ? 'is empty. Name an agent, or leave it out'
    : listCheck(nonEmptyCheck)(value, name, of)
export const checkWorkOptions = optionsChecker<WorkOptions>('work', {
  width: countCheck(1),
  idleMs: idleCheck,
  looksMax: countCheck(1),
  agents: agentNamesCheck,
  signal: abortSignalCheck,
})

/** Why the work ended, and how often a session was looked at. */
export type WorkResult = {
  /** Why the work ended: nothing was due for long enough, it was stopped, or it looked as often as it may. */
  readonly type: 'idle' | 'stopped' | 'looks_max'
  /** How often a session was looked at. */
  readonly looks: number
}

/** Options of a `DueLoop`: the store it looks at, how many sessions at once, and who drives one. */
export type DueLoopOptions = {
  /** The store whose due sessions are looked at. */
  readonly store: Store
  /** The clock that the loop sleeps by. Default: the clock of the machine. */
  readonly clock?: Clock
  /** How many sessions are driven at once. */
  readonly width: number
  /** The loop ends when nothing was due for so long, in ms. */
  readonly idleMs: number
  /** The loop ends after so many looks. */
  readonly looksMax?: number
  /** Only sessions of these agents. Default: of all. */
  readonly agents?: readonly string[]
  /** How many sessions this worker drives now, including those it was asked to drive. */
  readonly driving: () => number
  /**
   * Looks at a session: together with others, or `alone`. With a `claim` the session is already this worker's. It never
   * rejects.
   */
  readonly look: (session: string, alone: boolean, claim?: Claim) => Promise<LookResult>
  /**
   * The store's `take` for this worker, where the store has it. Without it `look` claims each session. Null stands for
   * a session that cannot be looked at here: it is skipped for a moment.
   */
  readonly take?: (wanted: Omit<TakeOptions, 'process'>) => Promise<ReadonlyMap<string, Claim | null>>
  /** `take` receives the names of the due sessions and chooses among them. */
  readonly chooses?: boolean
  /** Called with trouble of the store. The loop waits and goes on. */
  readonly report: (error: unknown) => void
  /** The other workers of this host. Default: those that the operating system reports. */
  readonly peers?: Pick<Peers, 'look'>
}

const checkDueLoop = optionsChecker<DueLoopOptions>('new DueLoop', {
  store: requiredCheck(methodsCheck('give a store, such as sqlite("file.db")', 'due', 'release')),
  clock: clockCheck,
  width: requiredCheck(countCheck(1)),
  idleMs: requiredCheck(idleCheck),
  looksMax: countCheck(1),
  agents: agentNamesCheck,
  driving: requiredCheck(functionCheck),
  look: requiredCheck(functionCheck),
  take: functionCheck,
  chooses: flagCheck,
  report: requiredCheck(functionCheck),
  peers: methodsCheck('leave it out', 'look'),
})

/**
 * `failed`: the look failed and the store does not know it, so the loop must remember it. `later`: the session failed
 * before and must be looked at alone.
 */
export type LookResult = 'seen' | 'failed' | 'later'

type LookBackoff = { readonly failures: number; readonly until: number }

/** How long a claim may take before the same session is looked at again. */
const CLAIM_MS = 100
/** The machine's clock may be set, and the machine may sleep. So no single wait is longer than this. */
const WAIT_MS_MAX = 60_000
const TROUBLE_MS = 1_000
/** Why a store cannot be opened by this program. Waiting mends none of them. */
const UNOPENABLE: ReadonlySet<FaultCode> = new Set(['store_damaged', 'store_newer', 'store_unsupported'])
/** This many due sessions are named for each free place, because other workers take some of them at the same moment. */
const CANDIDATES_PER_SLOT = 8
const CANDIDATES_MAX = 512

/**
 * The loop of a worker: it looks for sessions that are due and hands them out, so many at once. For hosts of several
 * harnesses; a single one has `work`.
 */
export class DueLoop {
  /** Resolves when the loop has ended, with the reason. Rejects if the store cannot be used any more. */
  readonly done: Promise<WorkResult>
  readonly #around: DueLoopOptions & { readonly store: CompleteStore }
  readonly #clock: Clock
  readonly #bell: Bell
  readonly #peers: Pick<Peers, 'look'>
  readonly #looking = new Map<string, Promise<void>>()
  /** Sessions that could not be looked at for reasons that are not their own. */
  readonly #shy = new Map<string, LookBackoff>()
  /**
   * The session that failed before and is looked at now. Only one at a time: if it kills the process, it is to blame,
   * and not another session that was driven at the same time.
   */
  #suspect: string | null = null
  /**
   * Failed sessions that wait for the suspect, and when their cards are read again: a session that received a message
   * waits no more.
   */
  readonly #suspects = new Set<string>()
  #suspectsUntil = 0
  #looks = 0
  /**
   * How many looks have ended. One that ends while the loop searches may have made room for sessions that were passed
   * over.
   */
  #ended = 0
  #idleSince = Number.POSITIVE_INFINITY
  #stopped = false

  constructor(options: DueLoopOptions) {
    checkDueLoop(options)
    const around = { ...options, store: completeStore(options.store) }
    this.#around = around
    this.#clock = around.clock ?? runtimeClock
    this.#bell = new Bell(this.#clock)
    const { store } = around
    this.#peers = around.peers ?? new Peers({ store, clock: this.#clock, processes: systemProcesses })
    const unwatch = around.store.watchDue(this.#bell.ring)
    this.done = this.#walk().finally(() => {
      unwatch()
      this.#bell.close()
    })
  }

  /** Checks again. Something may have changed without a commit, such as a place that became free. */
  readonly ring = (): void => this.#bell.ring()

  /** Starts nothing more. `done` resolves when all that it started has come to rest. */
  stop(): void {
    this.#stopped = true
    this.#bell.ring()
  }

  async #walk(): Promise<WorkResult> {
    const { report } = this.#around
    const { looksMax = Number.POSITIVE_INFINITY } = this.#around
    let idle = false
    let wasOpen = false
    while (!this.#stopped && !idle && this.#looks < looksMax) {
      try {
        const until = await this.#round()
        wasOpen = true
        idle = until === null
        if (until !== null && this.#looks < looksMax) await this.#bell.wait(until)
      } catch (error) {
        if (error instanceof Fault && error.code === 'store_closed') this.#stopped = true
        else if (
          error instanceof Fault &&
          (error.code === 'store_replaced' || (!wasOpen && UNOPENABLE.has(error.code)))
        ) {
          // The process's knowledge no longer matches the store, or there is none. Only a new process can go on.
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

  /**
   * Finds due sessions and has each looked at. Returns when to check again; null when there was nothing to do for long
   * enough.
   */
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
    const due = (await store.due(0, agents)).next ?? Number.POSITIVE_INFINITY
    if (due === Number.POSITIVE_INFINITY) return Math.min(idleAt, peers.again)
    const next = now + due - store.now()
    // A session that is due and was not found is being claimed, or is skipped for a moment.
    const soon = now + (found > 0 ? CLAIM_MS : TROUBLE_MS)
    return Math.min(idleAt, peers.again, now + WAIT_MS_MAX, next <= now ? soon : next)
  }

  /** Has due sessions looked at, and returns how many. */
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

  /** Names the due sessions, so that one that is skipped for a moment is not taken again and again. */
  async #takeAmong(take: NonNullable<DueLoopOptions['take']>, free: number): Promise<number> {
    for (;;) {
      const found = await this.#due(Math.min(free * CANDIDATES_PER_SLOT, CANDIDATES_MAX))
      const took = found.length > 0 ? await this.#take(take, free, found) : 0
      const rest = found.filter(this.#isOpen)
      // Sessions that must be looked at alone, and were passed over, make room for those behind them.
      if (took < free && this.#suspect !== null) for (const session of rest) this.#passOver(session)
      // If none of them is for this process, those behind them may be.
      if (found.length === 0 || took > 0 || rest.length > 0 || this.#stopped) return found.length
    }
  }

  /**
   * Takes the first session in any case, so that one that failed before is not passed over for ever; then sessions that
   * did not fail; and, if there are places left, one that did.
   */
  async #take(take: NonNullable<DueLoopOptions['take']>, free: number, among?: readonly string[]): Promise<number> {
    const { agents } = this.#around
    const of = agents ? { agents } : {}
    let left = free
    const taken = async (wanted: Pick<TakeOptions, 'limit' | 'fresh'>): Promise<number> => {
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
    const asked = limit + this.#looking.size + this.#shy.size + this.#suspects.size
    const { sessions } = await store.due(asked, agents)
    return sessions.filter(this.#isOpen).slice(0, limit)
  }

  /** Whether the session is neither being looked at nor skipped for a moment. */
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
      // A session taken after its lease had ended is in two looks for a moment.
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
