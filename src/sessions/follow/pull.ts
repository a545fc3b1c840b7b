// An iterator over an endless source: each step takes the next item or waits for news. It ends by its signal, by
// `return` and with the harness, even while it waits. follow.ts and cards.ts are the sources.
import { Bell } from '../../runtime/loop/bell.ts'
import type { RestWaiter, Worker } from '../../runtime/loop/worker.ts'
import type { Clock } from '../../ports/system.ts'

/** The source of the items. The first step opens it. */
export type PullSource<T> = {
  /** Null: there is no item now. Only one step calls it at a time. */
  take(): Promise<T | null>
  /** The time at which `take` should be called again even without news. */
  until(): number
  close(): void
}

export type PullOptions<T> = {
  readonly worker: Worker
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
  /** `news` is called when there may be something to take. */
  readonly open: (news: () => void) => Promise<PullSource<T>>
  /** Called at the end, even if the source was never opened. */
  readonly left?: () => void
}

export class PullIterator<T> implements AsyncIterableIterator<T> {
  readonly #options: PullOptions<T>
  readonly #bell: Bell
  #reader: RestWaiter | null = null
  #source: PullSource<T> | null = null
  /** Steps run one after the other, even if a caller asks for several at once. */
  #last: Promise<unknown> = Promise.resolve()
  #stepping = false
  #over = false

  constructor(options: PullOptions<T>) {
    this.#options = options
    this.#bell = new Bell(options.clock)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const step = this.#last.then(() => this.#step())
    this.#last = step.catch(() => {})
    return step
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.end()
    return OVER
  }

  /** From now on the iterator ends when the signal aborts or the harness closes, whether a step is taken or not. */
  attend(): void {
    const { worker, signal } = this.#options
    if (this.#reader || this.#over) return
    if (worker.closed || signal?.aborted) return this.end()
    signal?.addEventListener('abort', this.end, { once: true })
    this.#reader = worker.addWaiter()
    this.#reader.wake = this.end
  }

  readonly end = (): void => {
    this.#over = true
    this.#options.signal?.removeEventListener('abort', this.end)
    this.#options.left?.()
    this.#source?.close()
    this.#bell.close()
    this.#bell.ring()
    if (!this.#stepping) this.#leave()
  }

  async #step(): Promise<IteratorResult<T, undefined>> {
    this.attend()
    this.#stepping = true
    try {
      const value = this.#over ? null : await this.#take()
      return value === null ? OVER : { done: false, value }
    } catch (error) {
      // If the iterator was ended meanwhile, a failed read no longer matters.
      if (this.#over) return OVER
      this.end()
      throw error
    } finally {
      this.#stepping = false
      if (this.#over) this.#leave()
    }
  }

  /** Returns null at the end. */
  async #take(): Promise<T | null> {
    this.#source ??= await this.#options.open(this.#bell.ring)
    const source = this.#source
    while (!this.#over) {
      const item = await source.take()
      if (this.#over) break
      if (item !== null) return item
      await this.#bell.wait(source.until())
    }
    source.close()
    return null
  }

  /** Leaves the worker only outside of a step: the harness waits for that before it closes the store. */
  #leave(): void {
    if (this.#reader) this.#options.worker.removeWaiter(this.#reader)
    this.#reader = null
  }
}

const OVER = { done: true, value: undefined } as const
