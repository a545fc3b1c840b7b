// Waiting by the injected clock; it ends early on abort and leaves no timer behind.
import type { Clock } from '../../ports/system.ts'

export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const cancel = clock.timer(ms, () => {
      signal?.removeEventListener('abort', stop)
      resolve()
    })
    const stop = (): void => {
      cancel()
      resolve()
    }
    signal?.addEventListener('abort', stop, { once: true })
  })
}

/** Retries of sessions at a time of this process's clock: one timer for all of them. */
export class RetryTimers {
  readonly #clock: Clock
  readonly #timers: Clock
  readonly #wake: (session: string) => void
  readonly #until = new Map<string, number>()
  #alarm: { readonly at: number; readonly cancel: () => void } | null = null

  /** `timers` may keep no process alive. */
  constructor(clock: Clock, timers: Clock, wake: (session: string) => void) {
    this.#clock = clock
    this.#timers = timers
    this.#wake = wake
  }

  add(session: string, until: number): void {
    this.#until.set(session, until)
    if (this.#alarm && this.#alarm.at <= until) return
    this.#alarm?.cancel()
    const wait = Math.max(0, until - this.#clock.now())
    this.#alarm = { at: until, cancel: this.#timers.timer(wait, () => this.#rise()) }
  }

  delete(session: string): void {
    this.#until.delete(session)
  }

  stop(): void {
    this.#alarm?.cancel()
  }

  /** Wakes the sessions whose time has come; the others keep waiting. */
  #rise(): void {
    this.#alarm = null
    const now = this.#clock.now()
    const all = [...this.#until]
    this.#until.clear()
    for (const [session, until] of all) {
      if (until > now) this.add(session, until)
      else this.#wake(session)
    }
  }
}
