// Seeded chance for the crash test: the same seed makes the same choices. What the machine makes of them (which
// process runs when) is not in the seed, so a replay meets the same plan and not the same microsecond.
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 up to, but not including, 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }

  between(low: number, high: number): number {
    return low + this.fraction() * (high - low)
  }

  integer(low: number, high: number): number {
    return Math.floor(this.between(low, high + 1))
  }

  happens(probability: number): boolean {
    return this.fraction() < probability
  }

  /** The list must not be empty. */
  pick<T>(list: readonly T[]): T {
    const item = list[Math.floor(this.fraction() * list.length)]
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }

  /** One of the entries, each as likely as its weight says. */
  weighted<T>(entries: readonly (readonly [T, number])[]): T {
    let left = this.fraction() * entries.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [item, weight] of entries) {
      left -= weight
      if (left < 0) return item
    }
    return this.pick(entries)[0]
  }
}
