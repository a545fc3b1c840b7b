// The time of the database, as this process knows it: a clock that cannot be set, plus how far the database's is from it. The quickest
// answers tell that best. It never goes back.
import { upMs } from '../plan/clock.ts'

/** Answers are compared for so long: two machines' clocks drift apart by less than a millisecond in it. */
const RECENT_MS = 60_000

type Sample = { readonly offset: number; readonly tripMs: number; readonly at: number }

export class ServerClock {
  #best: Sample | null = null
  #last = 0

  /** When a question is asked: for `heard`. */
  get asked(): number {
    return upMs()
  }

  /** The database answered that it is `time`, to what was asked then. */
  heard(time: number, asked: number): void {
    const at = upMs()
    const tripMs = at - asked
    const best = this.#best
    if (best !== null && at - best.at < RECENT_MS && tripMs >= best.tripMs) return
    this.#best = { offset: time - (asked + at) / 2, tripMs, at }
  }

  now(): number {
    if (this.#best !== null) this.#last = Math.max(this.#last, Math.floor(upMs() + this.#best.offset))
    return this.#last
  }
}
