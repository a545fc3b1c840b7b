// Writes docs/scenarios.md: `node .build/scripts/scenarios.js`. With --check it writes nothing and fails when the page is out of date.
import { readFileSync, writeFileSync } from 'node:fs'
import { readScenarios, scenariosOf } from './scenario-table.ts'

const PAGE = 'docs/scenarios.md'

const { page, problems, rows, open } = scenariosOf(readScenarios('.'))
for (const problem of problems) console.error(problem)
if (problems.length > 0) process.exitCode = 1
if (!process.argv.includes('--check')) {
  writeFileSync(PAGE, page)
  console.log(`${PAGE}: ${rows.length} scenarios, ${open.length} of them open`)
} else if (readFileSync(PAGE, 'utf8') !== page) {
  console.error(`${PAGE} is out of date. Run: npm run build:all && node .build/scripts/scenarios.js`)
  process.exitCode = 1
}
