// What a crash run prints. No judgement of its own: it repeats what strike.ts and verify.ts found.
import type { Strikes, Struck } from './strike.ts'
import type { TreeReport } from './tree-check.ts'
import type { Verdict } from './verify.ts'
import type { Storms } from './weather.ts'

export type Summary = {
  readonly rounds: number
  /** The command that does the same again. */
  readonly again: string
  readonly seconds: number
  /** Of workers. */
  readonly kills: number
  /** What else happened to the store's server and the way to it. */
  readonly storms: Storms
  readonly strikes: Strikes
  readonly leasesLost: number
  readonly verdict: Verdict
  readonly violations: readonly string[]
}

const SHOWN_MAX = 20

export function printSummary(summary: Summary): void {
  const { rounds, again, seconds, storms, leasesLost, strikes, verdict, violations } = summary
  const { kills, sessions, effects: hit, commits, idle } = strikes.struck
  const { journal, effects, trees } = verdict
  const rows: readonly Row[] = [
    ['kills before intent', kills.before, `${sessions.before} sessions struck`],
    ['kills between intent and result', kills.between, `${sessions.between} sessions struck; ${hitText(hit)}`],
    ['kills after result', kills.after, `${sessions.after} sessions struck`],
    [
      'kills during a commit',
      kills.commit,
      `${share(kills.commit, summary.kills)} of all; commits then on disk ${commits.whole}, not on disk ${commits.none}`,
    ],
    ['kills with nothing in hand', idle, ''],
    ...stormRows(storms),
    [
      'sessions',
      verdict.sessions,
      `${verdict.events} events, ${verdict.calls} calls; runs: ${tally(verdict.outcomes)}`,
    ],
    ['acknowledged', journal.acknowledged + strikes.acknowledged, who(journal.acknowledged, strikes.acknowledged)],
    ['lost', journal.lost + strikes.lost, who(journal.lost, strikes.lost)],
    ['duplicated', journal.duplicated, ''],
    ['effects run', effects.ran.read + effects.ran.idempotent + effects.ran.once, tally(effects.ran)],
    ['repeated with the same key', effects.repeated, 'read and idempotent only'],
    ['once twice', effects.onceTwice, ''],
    ['unknown', effects.unknown, `of which the effect had run to its end ${effects.unknownDone}`],
    [
      'children',
      sum(Object.fromEntries(trees.children.entries())),
      `by depth ${trees.children.join(', ')}; detached ${trees.detached}`,
    ],
    ['reports of detached children', trees.reports, reportsText(trees)],
    ['leases lost without a kill', leasesLost, 'the more of them, the busier the machine'],
    ['faults met by workers', sum(verdict.faults), tally(verdict.faults)],
  ]
  console.log(`crash: ${rounds} rounds in ${seconds.toFixed(1)} s on node ${process.version}`)
  printRows(rows)
  printVerdict({ strikes, verdict, violations, again })
}

export type Row = readonly [name: string, value: number, more: string]

export function printRows(rows: readonly Row[]): void {
  for (const [name, value, more] of rows)
    console.log(`  ${name.padEnd(33)}${String(value).padStart(7)}${more === '' ? '' : `   (${more})`}`)
}

/** Only what happened. */
export function stormRows({ serverKills, partitions, latePackets, locks }: Storms): readonly Row[] {
  const rows: readonly Row[] = [
    ['kills of the server', serverKills, ''],
    ['networks that were dark', partitions, `late packets ${latePackets}`],
    ['rows locked by another program', locks, ''],
  ]
  return rows.filter(([, value]) => value > 0)
}

export function share(part: number, whole: number): string {
  return whole === 0 ? '0 %' : `${((100 * part) / whole).toFixed(1)} %`
}

/** The last lines of every program that hurts processes, servers and networks. */
export function printVerdict({
  strikes,
  verdict,
  violations,
  again,
}: Pick<Summary, 'strikes' | 'verdict' | 'violations' | 'again'>): void {
  const { journal, effects } = verdict
  for (const text of violations.slice(0, SHOWN_MAX)) console.log(`  VIOLATION ${text}`)
  if (violations.length > SHOWN_MAX) console.log(`  and ${violations.length - SHOWN_MAX} more`)
  const settled = violations.some((text) => /not settled|still open|never taken up/.test(text))
    ? 'NOT all settled'
    : 'all settled'
  const lost = journal.lost + strikes.lost
  console.log(`lost ${lost}, doubled ${journal.duplicated}, once twice ${effects.onceTwice}, ${settled}`)
  console.log(`violations ${violations.length}; again with: ${again}`)
}

function who(client: number, workers: number): string {
  return `to the client ${client}, to workers ${workers}`
}

function hitText({ not, begun, ended }: Struck['effects']): string {
  return `effect not begun ${not}, begun ${begun}, ended ${ended}`
}

function reportsText({ shown, lost, twice, stopped }: TreeReport): string {
  return `shown ${shown}, lost ${lost}, twice ${twice}; runs stopped from above, by depth ${stopped.join(', ')}`
}

export function tally(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
}

export function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}
