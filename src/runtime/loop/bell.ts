// The one place where an attempt sleeps: until an effect lands, an event is written, or a time comes.
import type { Clock } from '../../ports/system.ts'

const RUNG = Promise.resolve()

export class Bell {
  readonly #clock: Clock
  #rung = false
  #wake: (() => void) | null = null
  #armedAt = Number.POSITIVE_INFINITY
  #cancel: (() => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  readonly ring = (): void => {
    const wake = this.#wake
    this.#wake = null
    if (wake) wake()
    else this.#rung = true
  }

  /** Resolves after a ring, or shortly after `at`. It may resolve early: callers check again anyway. */
  wait(at: number): Promise<void> {
    if (this.#rung) {
      this.#rung = false
      return RUNG
    }
    this.#arm(at)
    return new Promise<void>((resolve) => {
      this.#wake = resolve
    })
  }

  close(): void {
    this.#cancel?.()
    this.#cancel = null
  }

  /** A timer that fires too early costs one check; setting a new timer on every turn would cost more. */
  #arm(at: number): void {
    if (at >= this.#armedAt || at === Number.POSITIVE_INFINITY) return
    this.#cancel?.()
    this.#armedAt = at
    this.#cancel = this.#clock.timer(Math.max(0, at - this.#clock.now()), () => {
      this.#armedAt = Number.POSITIVE_INFINITY
      this.#cancel = null
      this.ring()
    })
  }
}
