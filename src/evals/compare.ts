// Two runs of a suite side by side: the mean difference of the cases that both have, and whether it is one. Pure.
import type { Frozen } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { countCase, type EvalReport, readReport } from './report.ts'
import { CASES_MIN, type Interval, meanInterval, meanOf } from './statistics.ts'

/** What two reports say together. `no difference seen` is not a proof that there is none. */
export type DifferenceWord = 'better' | 'worse' | 'no difference seen'

/** The difference of two reports, with how sure it is, and case by case. */
export type ReportComparison = Frozen<{
  /** What the difference comes to, by its interval. */
  word: DifferenceWord
  /** How much more of the trials of a case pass in the second, in the mean. */
  difference: number
  /** Null: fewer than five cases were graded in both. */
  interval: Interval | null
  /** All of it in one line. */
  text: string
  /** How many cases were graded in both. */
  shared: number
  /** The share of trials that passed, before and after. Null where a report graded no trial of the case. */
  cases: readonly Frozen<{ id: string; before: number | null; after: number | null }>[]
  /** What both cost with their judges, in dollars. */
  cost: Frozen<{ before: number; after: number }>
}>

type Compared = Pick<EvalReport, 'version' | 'suite' | 'cases' | 'counts' | 'cost'>

/** Both must be reports of one suite. A paired t test on the means of the cases says whether there is a difference. */
export function compare(before: Compared, after: Compared): ReportComparison {
  for (const each of [before, after]) readReport(each)
  if (before.suite !== after.suite)
    throw new Fault('invalid_input', `"${before.suite}" and "${after.suite}" are two suites, and cannot be compared.`)
  const earlier = ratesOf(before)
  const later = ratesOf(after)
  const ids = [...new Set([...earlier.keys(), ...later.keys()])]
  const cases = ids.map((id) => ({ id, before: earlier.get(id) ?? null, after: later.get(id) ?? null }))
  const differences = cases.flatMap((each) =>
    each.before === null || each.after === null ? [] : [each.after - each.before],
  )
  const difference = differences.length === 0 ? 0 : meanOf(differences)
  const interval = meanInterval(differences)
  const word = wordOf(interval)
  const cost = { before: before.cost.usd + before.cost.judgeUsd, after: after.cost.usd + after.cost.judgeUsd }
  const sure =
    interval === null
      ? `(fewer than ${CASES_MIN} cases in both)`
      : `(${signedText(interval.low)} … ${signedText(interval.high)})`
  const text = `${signedText(difference)} ${sure}, ${word}`
  return { word, difference, interval, text, shared: differences.length, cases, cost }
}

/** The rate of each case. Null: none of its trials was graded. */
function ratesOf({ cases }: Compared): ReadonlyMap<string, number | null> {
  return new Map(
    cases.map((each) => {
      const { trials, passed } = countCase(each)
      return [each.id, trials === 0 ? null : passed / trials]
    }),
  )
}

function wordOf(interval: Interval | null): DifferenceWord {
  if (interval === null || (interval.low <= 0 && interval.high >= 0)) return 'no difference seen'
  return interval.low > 0 ? 'better' : 'worse'
}

/** With a minus that is as wide as a plus. */
function signedText(value: number): string {
  const text = Math.abs(value).toFixed(2)
  return value < 0 && Number(text) > 0 ? `−${text}` : text
}
