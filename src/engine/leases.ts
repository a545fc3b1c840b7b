// The leases of one worker: one heartbeat for all sessions it drives, and none while it drives nothing. What a lease is, and when it has
// ended, is decided by the store; here is only how long this worker may still believe that it holds them.
import { Fault } from '../kernel/failure.ts'
import type { Store } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'

/** The end of an attempt from outside: the lease is lost, or the process wants to stop. */
export type StopSignal = { reason: 'lost' | 'stopped' | null; ring: () => void }

/** A session that is driven. */
type Driven = { readonly stopSignal: StopSignal; readonly epoch: number }

export type LeaseOptions = {
  readonly worker: string
  readonly leaseMs: number
  readonly store: Store
  readonly clock: Clock
  readonly driven: ReadonlyMap<string, Driven>
  /** Other processes may have the same name. */
  readonly named: boolean
}

export class Leases {
  readonly #options: LeaseOptions
  #until = 0
  #cancel: (() => void) | null = null
  #extending = false
  /** The last heartbeat found the disk full: no other worker can claim anything then, so what waits for room is not given up. */
  #full = false
  /** Sessions that the last heartbeat found held and not driven, with their epochs. */
  #idle: ReadonlyMap<string, number> = new Map()
  /** Claims that were asked for and not answered. */
  readonly #asked = new Set<string>()

  constructor(options: LeaseOptions) {
    this.#options = options
  }

  /** Are they surely ours at this time of the clock? */
  held(at: number): boolean {
    return at < this.#until
  }

  /** They have ended, and another worker may have the sessions by now. */
  lapsed(at: number): boolean {
    return !this.held(at) && !this.#full
  }

  renew(until: number): void {
    this.#until = Math.max(this.#until, until)
  }

  beat(): void {
    if (this.#cancel) return
    const { clock, leaseMs, driven } = this.#options
    this.#cancel = clock.timer(leaseMs / 3, () => {
      this.#cancel = null
      if (driven.size === 0) return
      // A heartbeat that does not come through must not be waited for: the lease ends by the clock.
      if (this.lapsed(clock.now())) this.#lose(() => true)
      else this.#extend()
      this.beat()
    })
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = null
  }

  #extend(): void {
    if (this.#extending) return
    this.#extending = true
    const { store, clock, worker, leaseMs } = this.#options
    const begun = clock.now()
    // A claim that is answered while the heartbeat is under way may be missing in what the heartbeat found.
    const before = new Map([...this.#options.driven].map(([session, { epoch }]) => [session, epoch]))
    store
      .extend(worker, leaseMs)
      .then((held) => {
        this.#full = false
        this.renew(begun + leaseMs)
        this.#lose((session, epoch) => epoch !== 0 && before.get(session) === epoch && held.get(session) !== epoch)
        this.#giveBack(held)
      })
      .catch((error: unknown) => {
        // The lease ends by the clock if no heartbeat comes through.
        this.#full = error instanceof Fault && error.code === 'disk_full'
      })
      .finally(() => {
        this.#extending = false
      })
  }

  /**
   * Claims and releases whose answers were lost: the store believes that this worker has these sessions, and each heartbeat would keep
   * them from all others. Given back at the second heartbeat, because at the first the answer may only be late.
   */
  #giveBack(held: ReadonlyMap<string, number>): void {
    const { store, driven, named } = this.#options
    const ours = (session: string): boolean => !driven.has(session) && (!named || this.#asked.has(session))
    const idle = new Map([...held].filter(([session]) => ours(session)))
    for (const [session, epoch] of idle) {
      if (this.#idle.get(session) !== epoch) continue
      this.#asked.delete(session)
      store.release(session, epoch).catch(() => {})
    }
    this.#idle = idle
  }

  /** Another process of this name may drive what it holds: of such a worker only what it asked for itself is given back. */
  asked(session: string): void {
    if (this.#options.named) this.#asked.add(session)
  }

  answered(session: string): void {
    this.#asked.delete(session)
  }

  #lose(lost: (session: string, epoch: number) => boolean): void {
    for (const [session, { stopSignal, epoch }] of this.#options.driven) {
      if (!lost(session, epoch)) continue
      stopSignal.reason ??= 'lost'
      stopSignal.ring()
    }
  }
}
