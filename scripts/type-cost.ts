// `npm run types:cost`: prints what a tool costs the compiler, and fails when that is over the budget or not flat.
// What is compiled and what is allowed is type-budget.ts. It needs dist/: `npm run build` comes first.
import { BUDGET, type Counts, complaints, measureTypes, ownOf, slopeOf } from './type-budget.ts'

const cost = await measureTypes(process.cwd())

console.log(line('instantiations', ['10 tools', '30 tools', '50 tools', 'a tool: 10→30', '30→50', '10→50']))
console.log(line('terret and zod', cells(cost.terret)))
console.log(line('the same by hand, zod alone', cells(cost.control)))
console.log(
  `\nA tool costs ${slopeOf(cost.terret).whole}, at most ${BUDGET.all}. Beside its schema ${ownOf(cost)}, at most ${BUDGET.own}.`,
)

const found = complaints(cost)
for (const complaint of found) console.error(complaint)
if (found.length > 0) process.exitCode = 1

function cells(counts: Counts): readonly string[] {
  const { early, late, whole } = slopeOf(counts)
  return [counts[10], counts[30], counts[50], early, late, whole].map((value) => value.toLocaleString('en'))
}

function line(name: string, values: readonly string[]): string {
  return name.padEnd(28) + values.map((value) => value.padStart(14)).join('')
}
