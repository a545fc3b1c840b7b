// The relay: tells Restate of each session that is due in the store and not driven. So a message wakes its session whichever process
// wrote it, and a wake that a crash lost is sent again. It drives nothing, and Restate takes a wake that it has already for the same.
import { Bell } from '../engine/bell.ts'
import { Peers } from '../engine/peers.ts'
import { systemProcesses } from '../engine/processes.ts'
import { Fault } from '../kernel/failure.ts'
import type { Store } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import type { Ingress } from './ingress.ts'

export type RelayOptions = {
  readonly store: Store
  readonly clock: Clock
  readonly ingress: Pick<Ingress, 'send'>
  readonly report: (error: unknown) => void
}

type Sent = { readonly tries: number; readonly again: number }

const AT_ONCE_MAX = 256
const AGAIN_MS = 1_000
const AGAIN_MS_MAX = 5_000
/** The machine's clock may be set, and the machine may sleep: nothing is waited for longer than this at a time. */
const WAIT_MS_MAX = 60_000

export class Relay {
  readonly #options: RelayOptions
  readonly #bell: Bell
  readonly #peers: Peers
  /** What was due in the last round, and when its wake is sent again if it still is. */
  readonly #sent = new Map<string, Sent>()
  readonly #done: Promise<void>
  #stopped = false
  /** An outage is reported once. */
  #isDown = false

  constructor(options: RelayOptions) {
    const { store, clock } = options
    this.#options = options
    this.#bell = new Bell(clock)
    this.#peers = new Peers({ store, clock, processes: systemProcesses })
    const unwatch = store.watchDue(this.#bell.ring)
    this.#done = this.#walk().finally(() => {
      unwatch()
      this.#bell.close()
    })
  }

  async close(): Promise<void> {
    this.#stopped = true
    this.#bell.ring()
    await this.#done
  }

  async #walk(): Promise<void> {
    const { clock } = this.#options
    while (!this.#stopped) {
      let until = clock.now() + AGAIN_MS
      try {
        until = await this.#round()
      } catch (error) {
        if (error instanceof Fault && error.code === 'store_closed') return
        this.#failed(error)
      }
      if (!this.#stopped) await this.#bell.wait(until)
    }
  }

  /** Sends what is due, and says when to look again. */
  async #round(): Promise<number> {
    const { store, clock } = this.#options
    // The leases of dead processes first: what they drove is due then.
    const peers = await this.#peers.look()
    const asked = AT_ONCE_MAX + this.#sent.size
    const found = new Set(await store.due(asked))
    for (const session of this.#sent.keys()) if (!found.has(session)) this.#sent.delete(session)
    const begun = clock.now()
    await Promise.all([...found].filter((session) => this.#againAt(session) <= begun).map(this.#send))
    const now = clock.now()
    // There may be more of them.
    if (found.size === asked) return now
    const dueMs = ((await store.nextDue()) ?? Number.POSITIVE_INFINITY) - store.now()
    // What is due already was sent, or is being claimed.
    let until = Math.min(now + WAIT_MS_MAX, peers.again, now + (dueMs > 0 ? dueMs : AGAIN_MS))
    for (const { again } of this.#sent.values()) until = Math.min(until, again)
    return until
  }

  #againAt(session: string): number {
    return this.#sent.get(session)?.again ?? Number.NEGATIVE_INFINITY
  }

  readonly #send = async (session: string): Promise<void> => {
    const { clock, ingress } = this.#options
    const tries = (this.#sent.get(session)?.tries ?? 0) + 1
    try {
      await ingress.send({ session, key: 'relay' })
      this.#isDown = false
    } catch (error) {
      this.#failed(error)
    }
    const waitMs = Math.min(AGAIN_MS_MAX, AGAIN_MS * 2 ** Math.min(tries - 1, 10))
    this.#sent.set(session, { tries, again: clock.now() + waitMs })
  }

  #failed(error: unknown): void {
    if (!this.#isDown && !this.#stopped) this.#options.report(error)
    this.#isDown = true
  }
}
