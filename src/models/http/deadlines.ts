// The deadlines of one call, by the caller's clock: until the first byte, between two bytes, and without a real event.
import type { Clock } from '../../ports/system.ts'

export type Deadlines = {
  /** Until the first byte of the answer. */
  readonly firstByteMs: number
  /** Between two bytes. */
  readonly idleMs: number
  /** With bytes but without a real event: pings keep a connection alive, not a reply. */
  readonly stalledMs: number
}

export const DEADLINES: Deadlines = { firstByteMs: 60_000, idleMs: 60_000, stalledMs: 180_000 }

/** A local server may load a model and read a long prompt before its first byte. */
export const OWN_DEADLINES: Deadlines = { firstByteMs: 300_000, idleMs: 300_000, stalledMs: 300_000 }

/** A deadline that ran out. Its message is for people. */
export class DeadlineError extends Error {}

export class DeadlineTimer {
  readonly #clock: Clock
  readonly #deadlines: Deadlines
  readonly #fire: (why: DeadlineError) => void
  #cancel: () => void = () => {}
  #byteAt: number | null = null
  #eventAt = 0
  readonly #begun: number

  constructor(clock: Clock, deadlines: Deadlines, fire: (why: DeadlineError) => void) {
    this.#clock = clock
    this.#deadlines = deadlines
    this.#fire = fire
    this.#begun = clock.now()
    this.#arm(deadlines.firstByteMs)
  }

  /** Only stores a number, since chunks come by the thousand. The timer reads the number when it fires. */
  noteData(event: boolean): void {
    const now = this.#clock.now()
    const first = this.#byteAt === null
    if (first || event) this.#eventAt = now
    this.#byteAt = now
    if (!first) return
    // From now on other deadlines apply, and they may be nearer.
    this.#cancel()
    this.#arm(Math.min(this.#deadlines.idleMs, this.#deadlines.stalledMs))
  }

  end(): void {
    this.#cancel()
  }

  #arm(ms: number): void {
    this.#cancel = this.#clock.timer(ms, () => this.#look())
  }

  #look(): void {
    const now = this.#clock.now()
    const { firstByteMs, idleMs, stalledMs } = this.#deadlines
    const dues: readonly (readonly [number, string])[] =
      this.#byteAt === null
        ? [[this.#begun + firstByteMs, `No answer within ${firstByteMs} ms.`]]
        : [
            [this.#byteAt + idleMs, `The stream was silent for ${idleMs} ms.`],
            [this.#eventAt + stalledMs, `The stream said nothing for ${stalledMs} ms.`],
          ]
    const late = dues.find(([due]) => due <= now)
    if (late) this.#fire(new DeadlineError(late[1]))
    else this.#arm(Math.max(1, Math.min(...dues.map(([due]) => due)) - now))
  }
}

/** How long a body may go on after the provider's own end. */
const LEAVE_MS = 1_000

/**
 * Does not wait for the end of the body after the provider's own end. If the body ends soon, the connection can be used
 * again.
 */
export function closeAfterEnd(body: Promise<unknown>, clock: Clock, stop: AbortController): void {
  const cancel = clock.timer(LEAVE_MS, () => stop.abort(new Error('The call is over.')))
  body.then(cancel, cancel)
}
