// The leases of a store that only one process uses: the replacement for `workers` in a store without them. A lease has
// no end. It lives until it is released, and the next process that opens the store finds none.
import type { Claim, Store, Workers, Write } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'

type ProcessLease = { readonly worker: string; readonly epoch: number }

export class ProcessLeases implements Pick<Workers, 'reach' | 'now' | 'extend' | 'holders' | 'expire'> {
  readonly reach = 'process'
  readonly #store: Store
  readonly #clock: Clock
  readonly #held = new Map<string, ProcessLease>()

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** How many sessions are held. */
  get count(): number {
    return this.#held.size
  }

  now(): number {
    return this.#clock.now()
  }

  async claim(...wanted: Parameters<Store['claim']>): Promise<Claim | null> {
    const claim = await this.#store.claim(...wanted)
    const [session, worker] = wanted
    if (claim) this.#held.set(session, { worker, epoch: claim.epoch })
    return claim
  }

  async release(...given: Parameters<Store['release']>): Promise<void> {
    await this.#store.release(...given)
    const [session, epoch] = given
    this.#end(session, epoch)
  }

  /** After a commit: some writes give their lease back. */
  noteCommit(writes: readonly Write[]): void {
    for (const write of writes) if (write.lane === 'owner' && write.release) this.#end(write.session, write.epoch)
  }

  noteRemoved(session: string): void {
    this.#held.delete(session)
  }

  async extend(worker: string): Promise<ReadonlyMap<string, number>> {
    const own = [...this.#held].filter(([, lease]) => lease.worker === worker)
    return new Map(own.map(([session, { epoch }]) => [session, epoch]))
  }

  async holders(): Promise<readonly []> {
    return []
  }

  async expire(): Promise<false> {
    return false
  }

  #end(session: string, epoch: number): void {
    if (this.#held.get(session)?.epoch === epoch) this.#held.delete(session)
  }
}
