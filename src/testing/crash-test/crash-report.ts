// What a crash test found, as data and as lines for people.
import { CRASH_RULES, type ComparedRun, type CrashRuleName } from './crash-rules.ts'
import type { CrashPoint } from './points.ts'

/** A rule that did not hold at a point. */
export type CrashFinding = {
  /** Where the first life ended. */
  readonly point: CrashPoint
  /** The rule that did not hold. */
  readonly rule: CrashRuleName
  /** What was seen instead, and how often. */
  readonly why: string
  /** The command that tests this point again. */
  readonly replay: string
}
/** Whether one rule held at all points. */
export type CrashVerdict = {
  /** The name of the rule. */
  readonly rule: CrashRuleName
  /** What the rule demands. */
  readonly says: string
  /** `not tested`: the rule met no case, so nothing is known about it. */
  readonly state: 'held' | 'broken' | 'not tested'
  /** How many cases the rule met, in all runs together. */
  readonly cases: number
}
/** What a crash test found: where it crashed, which rules held there, and what it could not test. */
export type CrashReport = {
  /** No finding, and each point was tested. Rules may still be untested: see `notTested`. */
  readonly passed: boolean
  /** The rules that did not hold, point by point. Empty if all held. */
  readonly findings: readonly CrashFinding[]
  /** All points of the run without a crash, in their order. */
  readonly points: readonly CrashPoint[]
  /** Points that a run did not come to, because it went another way than the run without a crash. */
  readonly missed: readonly CrashPoint[]
  /** Each rule, and whether it held. */
  readonly rules: readonly CrashVerdict[]
  /** The rules that met no case, so nothing is known about them. */
  readonly notTested: readonly CrashRuleName[]
  /** In how many runs the outcome of a call was `unknown`. */
  readonly unknown: number
  /** All of it as lines. */
  readonly text: string
}

/** Collects the findings of one run after the other, and keeps no run. */
export class CrashFindings {
  readonly #clean: ComparedRun
  readonly #replay: (at: number) => string
  readonly #findings: CrashFinding[] = []
  readonly #missed: CrashPoint[] = []
  readonly #cases = new Map<CrashRuleName, number>()
  #unknown = 0

  constructor(clean: ComparedRun, replay: (at: number) => string) {
    this.#clean = clean
    this.#replay = replay
  }

  add(run: ComparedRun): void {
    const { point } = run
    if (!run.reached && run.trouble === null) {
      this.#missed.push(point)
      return
    }
    if (run.isUnknown) this.#unknown += 1
    for (const { rule, check } of CRASH_RULES) {
      const { cases, wrong } = check(run, this.#clean)
      this.#cases.set(rule, (this.#cases.get(rule) ?? 0) + cases)
      const [first, ...others] = wrong
      if (first === undefined) continue
      const why = others.length > 0 ? `${first} (and ${others.length} more)` : first
      this.#findings.push({ point, rule, why, replay: this.#replay(point.n) })
    }
  }

  report(points: readonly CrashPoint[]): CrashReport {
    const findings = this.#findings
    const rules = CRASH_RULES.map(({ rule, says }): CrashVerdict => {
      const cases = this.#cases.get(rule) ?? 0
      const isBroken = findings.some((finding) => finding.rule === rule)
      return { rule, says, state: isBroken ? 'broken' : cases > 0 ? 'held' : 'not tested', cases }
    })
    const notTested = rules.flatMap(({ rule, state }) => (state === 'not tested' ? [rule] : []))
    const passed = findings.length === 0 && this.#missed.length === 0
    const report = { passed, findings, points, missed: this.#missed, rules, notTested, unknown: this.#unknown }
    return { ...report, text: reportLines(report).join('\n') }
  }
}

function reportLines({ findings, points, missed, rules, unknown }: Omit<CrashReport, 'text'>): readonly string[] {
  const found = findings.flatMap(({ point, rule, why, replay }) => [
    `${rule} at point ${point.n}, ${point.name}: ${why}`,
    `   again: ${replay}`,
  ])
  const verdicts = rules.map(({ rule, says, state, cases }) => {
    return `${rule} ${state === 'not tested' ? 'NOT TESTED' : state}: ${says}${cases > 0 ? ` (${countText(cases, 'case')})` : ''}`
  })
  const away = missed.map(({ n, name }) => `Point ${n}, ${name}, was not reached again, so nothing is known about it.`)
  const lost = unknown > 0 ? [`In ${countText(unknown, 'run')} the outcome of a call was unknown, as it must be.`] : []
  const sum = `${countText(points.length, 'point')}, ${findings.length === 0 ? 'no finding' : countText(findings.length, 'finding')}`
  return [...found, ...(found.length > 0 ? [''] : []), ...verdicts, ...lost, ...away, '', sum]
}

function countText(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`
}
