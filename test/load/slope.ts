// Whether a figure that was measured again and again grows: the middle of all slopes between two measurements (Theil and Sen), and how
// sure it is that they rise at all (Mann and Kendall). A few wild measurements move neither. Pure.

/** What a figure may grow by over a run: a share of what it was, or so much, whichever is more. */
export type Allowance = { readonly share: number; readonly amount: number }
export type Slope = {
  readonly measurements: number
  /** In the middle of the first quarter that counts. */
  readonly from: number
  /** Over all measurements that count, by the middle slope. */
  readonly growth: number
  readonly allowed: number
  /** How many standard deviations the count of rising pairs is from chance. */
  readonly certainty: number
  /** Null: there are too few measurements to say. */
  readonly grows: boolean | null
}

/** A process that has just been started fills its caches: that is no growth. */
const WARM_SHARE = 0.2
/** With fewer, even a figure that rises each time could be chance. */
const LEAST = 10
const CERTAIN = 3

export function slopeOf(all: readonly number[], { share, amount }: Allowance): Slope {
  const values = all.slice(Math.ceil(all.length * WARM_SHARE))
  const slopes: number[] = []
  let rising = 0
  for (const [i, from] of values.entries()) {
    for (const [j, to] of values.slice(i + 1).entries()) {
      slopes.push((to - from) / (j + 1))
      rising += Math.sign(to - from)
    }
  }
  const n = values.length
  const spread = Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18)
  const certainty = spread === 0 ? 0 : Math.max(0, rising - 1) / spread
  const growth = middleOf(slopes) * Math.max(0, n - 1)
  const from = middleOf(values.slice(0, Math.max(1, n >> 2)))
  const allowed = Math.max(share * from, amount)
  const grows = n < LEAST ? null : certainty > CERTAIN && growth > allowed
  return { measurements: n, from, growth, allowed, certainty, grows }
}

export function middleOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? 0
}
