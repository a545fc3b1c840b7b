// The time of the database as this process knows it: a clock that cannot be set, plus the database's offset, measured
// best by the quickest answers. It never goes back.
import { uptimeMs } from '../plan/system-clock.ts'

/** How long answers are compared: two machines' clocks drift apart by less than a millisecond in this time. */
const RECENT_MS = 60_000

type ClockSample = { readonly offset: number; readonly tripMs: number; readonly at: number }

export class DatabaseClock {
  #best: ClockSample | null = null
  #last = 0

  /** The time at which a question is sent, for `heard`. */
  get asked(): number {
    return uptimeMs()
  }

  /** The database answered `time` to a question sent at `asked`. */
  heard(time: number, asked: number): void {
    const at = uptimeMs()
    const tripMs = at - asked
    const best = this.#best
    if (best !== null && at - best.at < RECENT_MS && tripMs >= best.tripMs) return
    this.#best = { offset: time - (asked + at) / 2, tripMs, at }
  }

  now(): number {
    if (this.#best !== null) this.#last = Math.max(this.#last, Math.floor(uptimeMs() + this.#best.offset))
    return this.#last
  }
}
