// A queue between a producer that pushes and one consumer that iterates.
// Not an async generator: handing over one item would cost twice as much, and most items are deltas.

/**
 * A reader that is always a little behind never empties the queue, so read items are dropped once there are this many,
 * and at least as many as unread ones.
 */
const READ_KEPT = 1_024

export class Queue<T> {
  #items: T[] = []
  #at = 0
  #news: { readonly come: Promise<void>; readonly tell: () => void } | null = null
  #ended = false
  #error: { readonly reason: unknown } | null = null

  push(item: T): void {
    if (this.#ended) return
    this.#items.push(item)
    this.#news?.tell()
  }

  end(): void {
    this.#ended = true
    this.#news?.tell()
  }

  fail(reason: unknown): void {
    this.#error = { reason }
    this.end()
  }

  /** `leave` is called when the consumer stops before the end. */
  iterate(leave: () => Promise<void>): AsyncIterableIterator<T> {
    let left = false
    const step = (): Promise<IteratorResult<T, undefined>> => {
      if (left) return Promise.resolve(OVER)
      if (this.#at < this.#items.length) return Promise.resolve({ done: false, value: this.#take() })
      if (!this.#ended) return this.#wait().then(() => step())
      left = true
      return this.#error ? rejectWith(this.#error.reason) : Promise.resolve(OVER)
    }
    const stop = async (): Promise<IteratorResult<T, undefined>> => {
      if (!left) {
        left = true
        await leave()
      }
      return OVER
    }
    const iterator: AsyncIterableIterator<T> = { next: step, return: stop, [Symbol.asyncIterator]: () => iterator }
    return iterator
  }

  #take(): T {
    const item = this.#items[this.#at] as T
    this.#at += 1
    if (this.#at === this.#items.length) {
      this.#items = []
      this.#at = 0
    } else if (this.#at >= READ_KEPT && this.#at * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#at)
      this.#at = 0
    }
    return item
  }

  #wait(): Promise<void> {
    if (this.#news) return this.#news.come
    let tell = (): void => {}
    const come = new Promise<void>((resolve) => {
      tell = () => {
        this.#news = null
        resolve()
      }
    })
    this.#news = { come, tell }
    return come
  }
}

const OVER = { done: true, value: undefined } as const

/** Rejects with the thrown value, whatever it is. */
async function rejectWith(reason: unknown): Promise<never> {
  throw reason
}
