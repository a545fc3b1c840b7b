// Those who use the sessions: they write messages at a given pace to sessions that rest, and allow what is asked. One process for all of
// them, which drives nothing.
import type { Harness } from '../../src/index.ts'
import { ASK, LOOK } from './agent.ts'
import type { Rested } from './child-worker.ts'

const TICK_MS = 10
/** Each so many messages lead to a question. */
const ASK_EVERY = 10

export class People {
  /** Messages a second. */
  pace = 0
  sent = 0
  allowed = 0
  /** Runs that ended. */
  settled = 0
  readonly #harness: Harness
  readonly #onError: (error: unknown) => void
  readonly #ready: string[] = []
  /** Where what somebody wrote stands: the session has not come to rest since. Null: not known yet. */
  readonly #waiting = new Map<string, number | null>()
  readonly #rested = new Map<string, Rested>()
  readonly #timer: NodeJS.Timeout
  #credit = 0
  #last = performance.now()

  constructor(harness: Harness, onError: (error: unknown) => void) {
    this.#harness = harness
    this.#onError = onError
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
  }

  /** How many sessions somebody waits for. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** The question of a parked session is answered. */
  allow(session: string, callId: string): void {
    this.allowed += 1
    this.#wait(session, () => this.#harness.session(session).decide({ callId, allow: true, by: 'load' }))
  }

  told(rested: readonly Rested[]): void {
    for (const each of rested) {
      this.#rested.set(each.session, each)
      this.#look(each.session)
    }
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #tick(): void {
    const now = performance.now()
    // What could not be written because all sessions were busy is not made up for.
    this.#credit = Math.min(this.#credit + (this.pace * (now - this.#last)) / 1_000, Math.max(1, this.pace))
    this.#last = now
    while (this.#credit >= 1) {
      const session = this.#ready.shift()
      if (session === undefined) return
      this.#credit -= 1
      this.sent += 1
      const text = this.sent % ASK_EVERY === 0 ? ASK : LOOK
      this.#wait(session, () => this.#harness.session(session).send(text))
    }
  }

  #wait(session: string, write: () => Promise<{ readonly seq: number }>): void {
    this.#waiting.set(session, null)
    const written = write().then(({ seq }) => {
      this.#waiting.set(session, seq)
      this.#look(session)
    })
    written.catch(this.#onError)
  }

  #look(session: string): void {
    const [written, rested] = [this.#waiting.get(session) ?? null, this.#rested.get(session)]
    if (written === null || !rested || rested.seq <= written) return
    this.#waiting.delete(session)
    if (rested.ask !== null) return this.allow(session, rested.ask)
    this.settled += 1
    this.#ready.push(session)
  }
}
