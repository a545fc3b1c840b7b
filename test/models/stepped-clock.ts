// A clock that goes on by itself: when everything that can happen without it has happened, it jumps to its next timer. An hour takes as
// long as what happens in it. Nothing is asserted here.
import type { Clock } from '../../src/ports/system.ts'
// What is loaded when it is first needed would take its time while the clock is stepped.
import '../../src/runtime/turn/model-failure.ts'
import '../../src/runtime/commit/charges.ts'

type Timer = { readonly due: number; readonly fire: () => void }

/** Rounds without any timer that fired or was set, after which nothing happens without the clock. */
const QUIET_ROUNDS = 12

export class SteppedClock implements Clock {
  #now: number
  #stopped = false
  #stirred = 0
  #outside = 0
  readonly #timers = new Set<Timer>()

  /** `beginsAt` is no round number of days: an account of a day must not end in the middle of a test. */
  constructor(beginsAt = Date.UTC(2026, 0, 5, 1)) {
    this.#now = beginsAt
  }

  now(): number {
    return this.#now
  }

  timer(ms: number, fire: () => void): () => void {
    this.#stirred += 1
    const timer = { due: this.#now + Math.max(0, ms), fire }
    this.#timers.add(timer)
    return () => {
      this.#timers.delete(timer)
    }
  }

  /** This happens outside of the clock, which stands still until it is done. */
  async outside<T>(work: Promise<T>): Promise<T> {
    this.#outside += 1
    try {
      return await work
    } finally {
      this.#outside -= 1
      this.#stirred += 1
    }
  }

  /** Goes on until this is done. */
  async during<T>(work: Promise<T>): Promise<T> {
    const going = this.#go()
    try {
      return await work
    } finally {
      this.#stopped = true
      await going
      this.#stopped = false
    }
  }

  /** Sets the clock forward, or back with less than 0. Timers fire when they would have fired. */
  set(ms: number): void {
    this.#now += ms
    const timers = [...this.#timers]
    this.#timers.clear()
    for (const { due, fire } of timers) this.#timers.add({ due: due + ms, fire })
  }

  /** Passes this much time. */
  async pass(ms: number): Promise<void> {
    await this.during(new Promise<void>((resolve) => void this.timer(ms, resolve)))
  }

  async #go(): Promise<void> {
    while (!this.#stopped) {
      const before = this.#stirred
      for (let i = 0; i < QUIET_ROUNDS; i++) await new Promise((resolve) => setImmediate(resolve))
      if (this.#stirred !== before || this.#outside > 0) continue
      let next: Timer | null = null
      for (const timer of this.#timers) if (next === null || timer.due < next.due) next = timer
      if (next === null || this.#stopped) continue
      this.#timers.delete(next)
      this.#now = Math.max(this.#now, next.due)
      next.fire()
    }
  }
}
