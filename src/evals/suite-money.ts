// The money of one run of a suite. What could be spent is set aside before it is spent, so trials that run at the same
// time cannot exceed the amount together. It knows nothing of accounts: the budget of a harness holds a trial to its share.

export class SuiteMoney {
  /** The most that one trial, or one question to a judge, may cost. Null: no limit. */
  readonly share: number | null
  readonly #usd: number
  #spent = 0
  #aside = 0
  #waiting: (() => void)[] = []

  constructor(usd: number | undefined, trialUsd: number | undefined, parallel: number) {
    this.#usd = usd ?? Number.POSITIVE_INFINITY
    this.share = trialUsd ?? (usd === undefined ? null : usd / parallel)
  }

  get spent(): number {
    return this.#spent
  }

  /** What an earlier process spent on the same trials. */
  count(usd: number): void {
    this.#spent += usd
  }

  /** Null: it could exceed the money, and nothing that is still running will give enough of it back. */
  async spend<T extends { readonly usd: number }>(act: () => Promise<T>): Promise<T | null> {
    if (!(await this.#setAside())) return null
    try {
      const done = await act()
      this.#spent += done.usd
      return done
    } finally {
      this.#aside -= this.share ?? 0
      const waiting = this.#waiting
      this.#waiting = []
      for (const wake of waiting) wake()
    }
  }

  async #setAside(): Promise<boolean> {
    const share = this.share ?? 0
    // Dollars are no whole numbers: four quarters of an amount must fit into it.
    while (this.#spent + this.#aside + share > this.#usd + 1e-9) {
      if (this.#aside === 0) return false
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    this.#aside += share
    return true
  }
}
