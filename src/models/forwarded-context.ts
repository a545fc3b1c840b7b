// The context of a call for a model that another model calls, with an `emit` of its own.
import type { CallContext } from '../ports/model.ts'

export class ForwardedContext implements CallContext {
  readonly #context: CallContext
  readonly emit: CallContext['emit']

  constructor(context: CallContext, emit: CallContext['emit']) {
    this.#context = context
    this.emit = emit
  }

  get signal(): AbortSignal {
    return this.#context.signal
  }

  get clock(): CallContext['clock'] {
    return this.#context.clock
  }

  get traceparent(): string | undefined {
    return this.#context.traceparent
  }

  readonly sleep = (ms: number): Promise<void> => this.#context.sleep(ms)
}
