// The statistics of a suite: how sure a rate is, how sure a difference is, and what trying again gives. Nothing more. Pure.

/** The lower and the upper end of the range that has the true value in 95 of 100 suites. */
export type Interval = {
  /** The lower end. */
  readonly low: number
  /** The upper end. */
  readonly high: number
}

/** Of one case: how many trials were graded, and how many of these passed. */
export type CaseCount = { readonly trials: number; readonly passed: number }

/** Under so many cases nothing can be said about how sure a number is. */
export const CASES_MIN = 5

const Z = 1.959_963_985

/**
 * Wilson's interval for the share of trials that pass. Trials of one case are alike, so they count for less than as many
 * cases would: the effective number is the one that explains how much the cases differ. Null: too few cases.
 */
export function rateInterval(cases: readonly CaseCount[]): Interval | null {
  const graded = cases.filter(({ trials }) => trials > 0)
  if (graded.length < CASES_MIN) return null
  const n = sum(graded.map(({ trials }) => trials))
  const rate = sum(graded.map(({ passed }) => passed)) / n
  return wilson(rate, effectiveTrials(graded, rate, n), studentT(graded.length - 1))
}

/** Between the number of cases and the number of trials. */
function effectiveTrials(cases: readonly CaseCount[], rate: number, n: number): number {
  const k = cases.length
  // The variance of a ratio of sums over cases.
  const spread = (sum(cases.map(({ trials, passed }) => (passed - rate * trials) ** 2)) * (k / (k - 1))) / n ** 2
  const own = rate * (1 - rate)
  return spread === 0 || own === 0 ? k : Math.min(n, Math.max(k - 1, own / spread))
}

function wilson(rate: number, n: number, t: number): Interval {
  const share = t ** 2 / n
  const middle = (rate + share / 2) / (1 + share)
  const half = (t * Math.sqrt((rate * (1 - rate)) / n + share / (4 * n))) / (1 + share)
  return { low: Math.max(0, middle - half), high: Math.min(1, middle + half) }
}

/** The mean of differences and its interval, by the t distribution. Null: too few pairs. */
export function meanInterval(differences: readonly number[]): Interval | null {
  const k = differences.length
  if (k < CASES_MIN) return null
  const mean = meanOf(differences)
  const variance = sum(differences.map((each) => (each - mean) ** 2)) / (k - 1)
  const half = studentT(k - 1) * Math.sqrt(variance / k)
  return { low: mean - half, high: mean + half }
}

export function meanOf(values: readonly number[]): number {
  return values.length === 0 ? Number.NaN : sum(values) / values.length
}

/** The chance that at least one of k trials passes, if `passed` of `trials` did. Null: there were not so many. */
export function passAtK({ trials, passed }: CaseCount, k: number): number | null {
  return trials < k ? null : 1 - chooseRatio(trials - passed, trials, k)
}

/** The chance that all of k trials pass. */
export function passAllK({ trials, passed }: CaseCount, k: number): number | null {
  return trials < k ? null : chooseRatio(passed, trials, k)
}

/** C(some, k) / C(all, k), without the large numbers. */
function chooseRatio(some: number, all: number, k: number): number {
  let ratio = 1
  for (let i = 0; i < k; i++) ratio *= Math.max(0, some - i) / (all - i)
  return ratio
}

/**
 * The 97.5 % point of Student's t, from 4 degrees of freedom on to three digits: the expansion of Cornish and Fisher
 * around the normal distribution.
 */
function studentT(freedom: number): number {
  const z2 = Z ** 2
  const terms = [
    (Z * (z2 + 1)) / 4,
    (Z * ((5 * z2 + 16) * z2 + 3)) / 96,
    (Z * (((3 * z2 + 19) * z2 + 17) * z2 - 15)) / 384,
    (Z * ((((79 * z2 + 776) * z2 + 1_482) * z2 - 1_920) * z2 - 945)) / 92_160,
  ]
  return terms.reduce((t, term, i) => t + term / freedom ** (i + 1), Z)
}

function sum(values: readonly number[]): number {
  return values.reduce((all, each) => all + each, 0)
}
