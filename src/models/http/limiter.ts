// One limiter for each endpoint, key and model, shared by all sessions of a process: when a provider says "not before", no session
// asks that model before. Providers limit each model for itself, so another model of the same key is not held back by it.
import type { CallContext, ModelFailure } from '../../kernel/ports.ts'
import { failure } from './failures.ts'

/** A longer wait is not sat out in a call: the session is given back and looked at again in time. */
const WAIT_MS_MAX = 5_000
/** One answer must not hold back the other sessions of a process for days. The session that got it waits as told. */
const HELD_MS_MAX = 3_600_000

export class Limiter {
  #until = 0

  /** Null when the call may be made, or when nobody wants it any more. */
  async pass(name: string, context: CallContext): Promise<ModelFailure | null> {
    // While this call waited another one may have been told to wait longer.
    for (;;) {
      const waitMs = this.#until - context.clock.now()
      if (waitMs <= 0 || context.signal.aborted) return null
      if (waitMs > WAIT_MS_MAX)
        return {
          ...failure('rate_limit', `${name} asked to wait; other calls are waiting too.`, waitMs),
          unasked: true,
        }
      await context.sleep(waitMs)
    }
  }

  told(answer: ModelFailure, context: CallContext): void {
    if (answer.class !== 'rate_limit' || answer.retryAfterMs === undefined) return
    this.#until = Math.max(this.#until, context.clock.now() + Math.min(answer.retryAfterMs, HELD_MS_MAX))
  }
}
