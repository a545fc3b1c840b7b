// What a bench is: which figures it prints, and which cases are measured for them. Types and two small readings.
// It measures nothing itself: each family has a file of its own, and families.ts is the table of them.

/** What one process measured, by name. */
export type Sample = Readonly<Record<string, number>>

/** Measured in a fresh process, so that the JIT starts from nothing. `folder` is shared by the cases of one family. */
export type Case = (folder: string) => Promise<Sample>

/** The median over all repetitions of what a case measured, by `case.name`. */
export type Median = (key: string) => number

export type Figure = {
  readonly name: string
  readonly unit: string
  readonly target: number
  /** The value must reach the target instead of staying below it. */
  readonly atLeast?: boolean
  readonly value: (median: Median) => number
  /** The same job, written by hand with nothing around it. */
  readonly floor: (median: Median) => number
  /** What else is worth seeing in the table. */
  readonly note?: (median: Median) => string
}

export type Family = {
  readonly figures: readonly Figure[]
  readonly repetitions: number
  /** Runs once, before the first repetition, and leaves files in the folder. */
  readonly fixture?: Case
  /** Each repetition runs each of these once, one after the other, so that a busy moment of the machine hits them alike. */
  readonly cases: Readonly<Record<string, Case>>
  /** The cases of a repetition run at the same time: for those that only wait. */
  readonly together?: boolean
  /** Run by a case, in a process of its own, as the other side of what it measures. */
  readonly parts?: Readonly<Record<string, Case>>
  /** It needs what a machine may not have (a package registry): trouble is shown as skipped, and is no error. */
  readonly mayFail?: boolean
  /** What this machine has not and the family cannot be measured without: its figures are shown as skipped. */
  readonly lacks?: string | null
}

/** CPU time of this process so far: user and system, all threads. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const [low = Number.NaN, high = Number.NaN] = [sorted[middle - 1], sorted[middle]]
  return sorted.length % 2 === 1 ? high : (low + high) / 2
}
