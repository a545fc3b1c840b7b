// The leases of one worker: one heartbeat for all sessions it drives, and none while it drives nothing. The store
// decides what a lease is and when it has ended. This file only decides how long this worker may still believe that it
// holds them.
import { Fault } from '../../kernel/failure.ts'
import type { CompleteStore } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import type { StopSignal } from '../state/effect.ts'

/** A session that this worker drives. */
type DrivenSession = { readonly stopSignal: StopSignal; readonly epoch: number }

export type LeaseOptions = {
  readonly worker: string
  readonly leaseMs: number
  readonly store: CompleteStore
  readonly clock: Clock
  readonly driven: ReadonlyMap<string, DrivenSession>
  /** The host chose the worker's name, so other processes may have the same one. */
  readonly named: boolean
}

export class Leases {
  readonly #options: LeaseOptions
  #until = 0
  #cancel: (() => void) | null = null
  #extending = false
  /**
   * The last heartbeat found the disk full. No other worker can claim anything then, so an attempt that waits for room
   * is not given up.
   */
  #full = false
  /** Sessions that the last heartbeat found held by this worker but not driven, with their epochs. */
  #idle: ReadonlyMap<string, number> = new Map()
  /** Sessions with a claim that was not answered yet. */
  readonly #asked = new Set<string>()

  constructor(options: LeaseOptions) {
    this.#options = options
  }

  /** Whether the leases are certainly ours at this time of the clock. */
  held(at: number): boolean {
    return at < this.#until
  }

  /** Whether the leases have ended. Another worker may have the sessions by now. */
  lapsed(at: number): boolean {
    return !this.held(at) && !this.#full
  }

  renew(until: number): void {
    this.#until = Math.max(this.#until, until)
  }

  startHeartbeat(): void {
    if (this.#cancel) return
    const { clock, leaseMs, driven } = this.#options
    this.#cancel = clock.timer(leaseMs / 3, () => {
      this.#cancel = null
      if (driven.size === 0) return
      // Do not wait for a heartbeat that does not get through: the lease ends by the clock.
      if (this.lapsed(clock.now())) this.#lose(() => true)
      else this.#extend()
      this.startHeartbeat()
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
    // A claim that is answered during the heartbeat may be missing in the heartbeat's result.
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
        // The lease ends by the clock if no heartbeat gets through.
        this.#full = error instanceof Fault && error.code === 'disk_full'
      })
      .finally(() => {
        this.#extending = false
      })
  }

  /**
   * Claims and releases whose answers were lost: the store believes that this worker has these sessions, and each
   * heartbeat would keep them from all other workers. They are given back at the second heartbeat, because at the first
   * the answer may only be late.
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

  /**
   * Another process with this worker's name may drive a session that the name holds. So a worker with a chosen name
   * gives back only sessions that it asked for itself.
   */
  noteClaim(session: string): void {
    if (this.#options.named) this.#asked.add(session)
  }

  forgetClaim(session: string): void {
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
