// The hostile model suite: `npm run attacks [-- --surface NAME] [--row N] [--case text] [--share 2/3]`. Each case is played with its
// defence, where the world must stay whole, and without it, where it must be harmed: else the case would prove nothing. Exit 1 if
// either is not so.
import { argumentsOf, refuse, shareOf } from '../../sim/arguments.ts'
import { shellWord } from '../../src/view/shell-command.ts'
import { type Case, playAll, type Row, type Verdict } from './case.ts'
import { SURFACES } from './rows.ts'
import { removeWalls } from './walls.ts'

const { values } = argumentsOf('attacks', {
  options: {
    surface: { type: 'string' },
    row: { type: 'string' },
    case: { type: 'string' },
    share: { type: 'string' },
  },
})
const surfaces = SURFACES.filter(({ name }) => values.surface === undefined || name === values.surface)
if (surfaces.length === 0) refuse(`--surface must be one of: ${SURFACES.map(({ name }) => name).join(', ')}.`)
// A share that is none is refused before anything is played.
shareOf([], values.share)
const begun = performance.now()
type Sums = Record<'cases' | 'held' | 'broken' | 'skipped' | 'unconfined', number>
const none = (): Sums => ({ cases: 0, held: 0, broken: 0, skipped: 0, unconfined: 0 })
const totals = none()
const sums: Readonly<Record<string, Sums>> = Object.fromEntries(surfaces.map(({ name }) => [name, none()]))
console.log(' row  cases   held  controls broken')
for (const { name, rows } of surfaces)
  for (const row of rows) {
    const cases = chosen(row)
    if (cases.length > 0) print(row, await playAll(row, cases), [totals, sums[name] ?? none()])
  }
console.log('\nsurface     cases   held  controls broken')
for (const [name, sum] of Object.entries(sums))
  if (sum.cases > 0) console.log(`${name.padEnd(10)}${columnsOf([sum.cases, sum.held, sum.broken], [7, 7, 17])}`)
const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
const { cases, held, broken, skipped, unconfined } = totals
console.log(`attacks: ${cases} cases, ${held} held, ${broken} controls broken, ${skipped} skipped, ${seconds} s`)
const forbidden = unconfined > 0 && process.env['TERRET_REQUIRE_SANDBOX'] !== undefined
removeWalls()
// At once: what a control left hanging would be waited for.
process.exit(cases === 0 || held + skipped < cases || broken + skipped < cases || forbidden ? 1 : 0)

function chosen({ row, cases }: Row): readonly Case[] {
  if (values.row !== undefined && Number(values.row) !== row) return []
  const exact = cases.filter(({ name }) => name === values.case)
  const named = exact.length > 0 ? exact : cases.filter(({ name }) => name.includes(values.case ?? ''))
  return shareOf(named, values.share)
}

function columnsOf(numbers: readonly number[], widths: readonly number[]): string {
  return numbers.map((n, i) => String(n).padStart(widths[i] ?? 0)).join('')
}

function print({ row, title }: Row, verdicts: readonly Verdict[], into: readonly Sums[]): void {
  const count = (which: (verdict: Verdict) => boolean): number => verdicts.filter(which).length
  const found: Sums = {
    cases: verdicts.length,
    held: count((verdict) => verdict.held),
    broken: count((verdict) => verdict.broken),
    skipped: count((verdict) => verdict.skipped !== null),
    unconfined: count((verdict) => verdict.skipped === 'bubblewrap'),
  }
  for (const sum of into)
    for (const key of ['cases', 'held', 'broken', 'skipped', 'unconfined'] as const) sum[key] += found[key]
  console.log(`${columnsOf([row, found.cases, found.held, found.broken], [4, 7, 7, 17])}  ${title}`)
  for (const { name, held: whole, broken: harmed, skipped: missing, troubles } of verdicts) {
    if (missing !== null) console.log(`      skipped, ${missing} is missing: ${name}`)
    else if (!whole) console.log(`      DID NOT HOLD: ${name}`)
    else if (!harmed) console.log(`      CONTROL NOT BROKEN: ${name}`)
    for (const trouble of troubles) console.log(`        ${trouble.replaceAll('\n', '\n        ')}`)
    if (missing === null && !(whole && harmed))
      console.log(`        replay: npm run attacks -- --row ${row} --case ${shellWord(name)}`)
  }
}
