// A clock that stands still until it is moved: every timer that is due fires in its order, at its own time.
import type { Clock } from '../../src/ports/system.ts'

export class FakeClock implements Clock {
  #now = 0
  readonly #timers = new Set<{ readonly due: number; readonly fire: () => void }>()

  /** How many timers are set. */
  get waiting(): number {
    return this.#timers.size
  }

  now(): number {
    return this.#now
  }

  timer(ms: number, fire: () => void): () => void {
    const timer = { due: this.#now + ms, fire }
    this.#timers.add(timer)
    return () => {
      this.#timers.delete(timer)
    }
  }

  advance(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      const [next] = [...this.#timers].filter(({ due }) => due <= end).toSorted((a, b) => a.due - b.due)
      if (next === undefined) break
      this.#timers.delete(next)
      this.#now = next.due
      next.fire()
    }
    this.#now = end
  }
}

/** Promises that are ready have run. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
