// The relay tells Restate about each due session that no worker drives. So a message wakes its session whichever
// process wrote it, and wakes lost in a crash are sent again. It drives nothing, and Restate drops duplicates.
import { Bell } from '../runtime/loop/bell.ts'
import { Peers } from '../runtime/loop/dead-workers.ts'
import { systemProcesses } from '../runtime/state/processes.ts'
import { Fault } from '../kernel/failure.ts'
import type { CompleteStore } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import type { Ingress } from './ingress.ts'

export type RelayOptions = {
  readonly store: CompleteStore
  readonly clock: Clock
  readonly ingress: Pick<Ingress, 'send'>
  readonly report: (error: unknown) => void
}

type SentWake = { readonly tries: number; readonly again: number }

const AT_ONCE_MAX = 256
const AGAIN_MS = 1_000
const AGAIN_MS_MAX = 5_000
/** The longest single wait, since the machine's clock may be set and the machine may sleep. */
const WAIT_MS_MAX = 60_000

export class Relay {
  readonly #options: RelayOptions
  readonly #bell: Bell
  readonly #peers: Peers
  /** The sessions that were due in the last round, and when each wake is sent again if it still is due. */
  readonly #sent = new Map<string, SentWake>()
  readonly #done: Promise<void>
  #stopped = false
  /** An outage is reported only once. */
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

  /** Sends the due wakes, and returns the time of the next round. */
  async #round(): Promise<number> {
    const { store, clock } = this.#options
    // First expire the leases of dead processes: their sessions become due.
    const peers = await this.#peers.look()
    const asked = AT_ONCE_MAX + this.#sent.size
    const found = new Set((await store.due(asked)).sessions)
    for (const session of this.#sent.keys()) if (!found.has(session)) this.#sent.delete(session)
    const begun = clock.now()
    await Promise.all([...found].filter((session) => this.#againAt(session) <= begun).map(this.#send))
    const now = clock.now()
    // The store may have more due sessions.
    if (found.size === asked) return now
    const dueMs = ((await store.due(0)).next ?? Number.POSITIVE_INFINITY) - store.now()
    // Sessions that are already due were sent, or are being claimed.
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
