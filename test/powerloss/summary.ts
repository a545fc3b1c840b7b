// Adds up what the cuts showed, and prints it. No judgement of its own, but one: a run whose control lost nothing shows nothing.
import type { CallLog } from './call-log.ts'
import type { Shown } from './cut.ts'
import { isEvidence } from './evidence-at.ts'
import type { Judgement } from './judge.ts'

const SHOWN_MAX = 20

export class Totals {
  readonly violations: string[] = []
  readonly sums = {
    cuts: 0,
    opened: 0,
    empty: 0,
    promised: 0,
    lost: 0,
    onceTwice: 0,
    open: 0,
    unknown: 0,
    backups: 0,
    archives: 0,
    withLosses: 0,
    lostChanges: 0,
    lostNames: 0,
    recordings: 0,
    calls: 0,
    syncs: 0,
  }
  readonly deaf = { cuts: 0, opened: 0, promised: 0, lost: 0 }
  readonly refused = new Map<string, number>()
  readonly losses = new Map<string, number>()

  /** A recording. `wrong` is what the recorder did not see. */
  take(log: CallLog, wrong: readonly string[]): void {
    const calls = log.calls.filter(({ process, path }) => process !== log.recorded.process && !isEvidence(path))
    this.sums.recordings += 1
    this.sums.calls += calls.length
    this.sums.syncs += calls.filter(({ kind }) => kind === 'sync end' || kind === 'folder sync').length
    for (const text of wrong) this.violations.push(`the recording is not whole: ${text}`)
  }

  add(shown: Shown, again: string): void {
    const { sums } = this
    sums.cuts += 1
    for (const name of ['promised', 'lost', 'onceTwice', 'open', 'unknown', 'backups', 'archives'] as const)
      sums[name] += shown[name]
    sums.lostChanges += shown.lostChanges
    sums.lostNames += shown.lostNames
    if (shown.lostChanges + shown.lostNames > 0) sums.withLosses += 1
    count(this.losses, shown.cut.loss)
    if (shown.refused !== null) count(this.refused, shown.refused)
    else if (shown.isThere) sums.opened += 1
    else sums.empty += 1
    for (const text of shown.wrong)
      this.violations.push(`cut ${shown.cut.number} (after call ${shown.cut.after}, ${shown.cut.loss}): ${text}`)
    if (shown.wrong.length > 0) this.violations.push(`again with: ${again}`)
  }

  addDeaf({ promised, lost, refused, isThere }: Judgement): void {
    this.deaf.cuts += 1
    if (refused === null && isThere) this.deaf.opened += 1
    this.deaf.promised += promised
    this.deaf.lost += lost
  }
}

type Run = {
  readonly kind: 'sqlite' | 'postgres'
  readonly seed: number
  readonly seconds: number
  /** With a control. One cut tried again has none. */
  readonly isWhole: boolean
}

export function printSummary({ violations, sums, deaf, refused, losses }: Totals, run: Run): void {
  const rows: readonly (readonly [string, number, string])[] = [
    ['recordings', sums.recordings, `${sums.calls} calls, ${sums.syncs} of them syncs`],
    ['cuts', sums.cuts, tally(losses)],
    ['with something lost', sums.withLosses, `${sums.lostChanges} writes in whole or in part, ${sums.lostNames} names`],
    ['opened', sums.opened, ''],
    ['refused', total(refused), tally(refused)],
    ['before there was a database', sums.empty, ''],
    ['sessions that went on', sums.open, ''],
    ['calls of unknown outcome', sums.unknown, ''],
    ['backups read', sums.backups, ''],
    ['archives', sums.archives, ''],
    ['acknowledged', sums.promised, ''],
    ['lost', sums.lost, ''],
    ['once twice', sums.onceTwice, ''],
  ]
  console.log(`powerloss on ${run.kind}: ${run.seconds.toFixed(1)} s on node ${process.version}, seed ${run.seed}`)
  for (const [name, value, more] of rows)
    console.log(`  ${name.padEnd(33)}${String(value).padStart(9)}${more === '' ? '' : `   (${more})`}`)
  if (run.isWhole) {
    console.log(`  on a disk that ignores syncs: ${deaf.cuts} cuts, ${deaf.opened} opened`)
    console.log(`  ${'control lost'.padEnd(33)}${String(deaf.lost).padStart(9)}   (of ${deaf.promised} acknowledged)`)
    if (deaf.lost === 0) violations.push('a disk that ignores syncs lost nothing: this run cannot see a loss')
  }
  for (const text of violations.slice(0, SHOWN_MAX)) console.log(`  VIOLATION ${text}`)
  if (violations.length > SHOWN_MAX) console.log(`  and ${violations.length - SHOWN_MAX} more`)
  console.log(`lost ${sums.lost}, once twice ${sums.onceTwice}, violations ${violations.length}`)
  console.log(`again with: npm run powerloss -- --store ${run.kind} --cuts ${sums.cuts} --seed ${run.seed}`)
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

function total(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, each) => sum + each, 0)
}

function tally(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([name, each]) => `${name} ${each}`).join(', ')
}
