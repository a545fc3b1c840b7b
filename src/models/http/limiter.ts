// One limiter per endpoint, key and model, shared by all sessions of a process: after a rate limit, no session calls
// that model too early. Providers limit each model separately, so other models of the same key go on.
import type { CallContext, ModelFailure } from '../../ports/model.ts'
import type { Clock } from '../../ports/system.ts'
import { failure } from './failures.ts'

/** A call does not wait longer than this: the session is released and woken again in time. */
const WAIT_MS_MAX = 5_000
/**
 * One answer must not block the other sessions of a process for days. The session that got it waits for the full time.
 */
const HELD_MS_MAX = 3_600_000

export class Limiter {
  /**
   * Keyed by clock, since a time has no meaning on another clock: harnesses of one process may have different clocks.
   */
  readonly #until = new WeakMap<Clock, number>()

  /** Null when the call may be made, or when it was aborted. */
  async pass(name: string, context: CallContext): Promise<ModelFailure | null> {
    // Another call may have been told to wait longer in the meantime.
    for (;;) {
      const waitMs = (this.#until.get(context.clock) ?? 0) - context.clock.now()
      if (waitMs <= 0 || context.signal.aborted) return null
      if (waitMs > WAIT_MS_MAX)
        return {
          ...failure('rate_limit', `${name} asked to wait; other calls are waiting too.`, waitMs),
          unasked: true,
        }
      await context.sleep(waitMs)
    }
  }

  noteFailure(answer: ModelFailure, context: CallContext): void {
    if (answer.class !== 'rate_limit' || answer.retryAfterMs === undefined) return
    const { clock } = context
    const until = clock.now() + Math.min(answer.retryAfterMs, HELD_MS_MAX)
    this.#until.set(clock, Math.max(this.#until.get(clock) ?? 0, until))
  }
}
