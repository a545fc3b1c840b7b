// A queue between a producer that pushes and one consumer that iterates.
export class Queue<T> {
  readonly #items: T[] = []
  #wake: (() => void) | null = null
  #ended = false
  #error: { readonly reason: unknown } | null = null

  push(item: T): void {
    if (this.#ended) return
    this.#items.push(item)
    this.#wake?.()
  }

  end(): void {
    this.#ended = true
    this.#wake?.()
  }

  fail(reason: unknown): void {
    this.#error = { reason }
    this.end()
  }

  /** `leave` is called when the consumer stops before the end. */
  async *iterate(leave: () => Promise<void>): AsyncGenerator<T, void, void> {
    let drained = false
    try {
      for (;;) {
        const batch = this.#items.splice(0)
        for (const item of batch) yield item
        if (batch.length > 0) continue
        if (this.#error) throw this.#error.reason
        if (this.#ended) break
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        this.#wake = null
      }
      drained = true
    } finally {
      if (!drained) await leave()
    }
  }
}
