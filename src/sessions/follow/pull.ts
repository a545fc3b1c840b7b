// An iterator over something that goes on: each step takes what is there, or waits for news. It ends by its signal, by `return` and
// with the harness, also while it waits. What is taken is follow.ts and cards.ts.
import { Bell } from '../../engine/bell.ts'
import type { Reader, Worker } from '../../engine/worker.ts'
import type { Clock } from '../../ports/system.ts'

/** Where items come from. Opened by the first step. */
export type Source<T> = {
  /** Null: there is nothing by now. Called by one step at a time. */
  take(): Promise<T | null>
  /** When `take` should be called again, also without news. */
  until(): number
  close(): void
}

export type PullOptions<T> = {
  readonly worker: Worker
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
  /** `news` is called when there may be something to take. */
  readonly open: (news: () => void) => Promise<Source<T>>
  /** Called when it is over, also if it was never opened. */
  readonly left?: () => void
}

export class Pull<T> implements AsyncIterableIterator<T> {
  readonly #options: PullOptions<T>
  readonly #bell: Bell
  #reader: Reader | null = null
  #source: Source<T> | null = null
  /** Steps are taken one after the other, also for one who asks for several at once. */
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

  /** From now on it is over when the signal aborts or the harness closes, whether a step is taken or not. */
  attend(): void {
    const { worker, signal } = this.#options
    if (this.#reader || this.#over) return
    if (worker.closed || signal?.aborted) return this.end()
    signal?.addEventListener('abort', this.end, { once: true })
    this.#reader = worker.attend()
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
      // One that was ended meanwhile is over, whatever was still being read.
      if (this.#over) return OVER
      this.end()
      throw error
    } finally {
      this.#stepping = false
      if (this.#over) this.#leave()
    }
  }

  /** Null: it is over. */
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

  /** The store is not closed under a step: only then the harness goes on closing. */
  #leave(): void {
    if (this.#reader) this.#options.worker.leave(this.#reader)
    this.#reader = null
  }
}

const OVER = { done: true, value: undefined } as const
