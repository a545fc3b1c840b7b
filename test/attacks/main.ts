// The hostile model suite: `npm run attacks [-- --row N] [--case text] [--share 2/3]`. Each case is played with its defence, where the world
// must stay whole, and without it, where it must be harmed: else the case would prove nothing. Exit 1 if either is not so.
import { argumentsOf, shareOf } from '../../sim/arguments.ts'
import { type Case, playAll, type Row, type Verdict } from './case.ts'
import { ROWS } from './rows.ts'
import { removeWalls } from './walls.ts'

const { values } = argumentsOf('attacks', {
  options: { row: { type: 'string' }, case: { type: 'string' }, share: { type: 'string' } },
})
// A share that is none is refused before anything is played.
shareOf([], values.share)
const begun = performance.now()
const totals = { cases: 0, held: 0, broken: 0, skipped: 0, unconfined: 0 }
console.log(' row  cases   held  controls broken')
for (const row of ROWS) {
  const cases = chosen(row)
  if (cases.length > 0) print(row, await playAll(row, cases))
}
const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
const { cases, held, broken, skipped, unconfined } = totals
console.log(`attacks: ${cases} cases, ${held} held, ${broken} controls broken, ${skipped} skipped, ${seconds} s`)
const forbidden = unconfined > 0 && process.env['TERRET_REQUIRE_SANDBOX'] !== undefined
removeWalls()
// At once: what a control left hanging would be waited for.
process.exit(cases === 0 || held + skipped < cases || broken + skipped < cases || forbidden ? 1 : 0)

function chosen({ row, cases }: Row): readonly Case[] {
  if (values.row !== undefined && Number(values.row) !== row) return []
  return shareOf(
    cases.filter(({ name }) => name.includes(values.case ?? '')),
    values.share,
  )
}

function print({ row, title }: Row, verdicts: readonly Verdict[]): void {
  const count = (which: (verdict: Verdict) => boolean): number => verdicts.filter(which).length
  const sums = {
    cases: verdicts.length,
    held: count((verdict) => verdict.held),
    broken: count((verdict) => verdict.broken),
    skipped: count((verdict) => verdict.skipped !== null),
    unconfined: count((verdict) => verdict.skipped === 'bubblewrap'),
  }
  for (const key of ['cases', 'held', 'broken', 'skipped', 'unconfined'] as const) totals[key] += sums[key]
  const columns = [row, sums.cases, sums.held, sums.broken].map((n, i) => String(n).padStart([4, 7, 7, 17][i] ?? 0))
  console.log(`${columns.join('')}  ${title}`)
  for (const { name, held: whole, broken: harmed, skipped: missing, troubles } of verdicts) {
    if (missing !== null) console.log(`      skipped, ${missing} is missing: ${name}`)
    else if (!whole) console.log(`      DID NOT HOLD: ${name}`)
    else if (!harmed) console.log(`      CONTROL NOT BROKEN: ${name}`)
    for (const trouble of troubles) console.log(`        ${trouble.replaceAll('\n', '\n        ')}`)
  }
}
