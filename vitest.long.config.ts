// The long proofs: real processes killed many times, the whole chat at a real terminal, the package installed and its examples run.
// `npm run test:long`; .ci/run runs it. Of cases that are all alike it takes a share, another one in each run (test/runs.ts).
// `TERRET_RUNS=all npm run test:long` takes them all, and runs the properties again of which `npm test` looks at a part.
// Not the quick tests of the same areas: those are in `npm test` (vitest.config.ts).
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import quick from './vitest.config.ts'

const root = join(import.meta.dirname, 'test')
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'))
const isAll = process.env['TERRET_RUNS'] === 'all'
const properties = files.filter((name) => isAll && readFileSync(join(root, name), 'utf8').includes("from '../runs.ts'"))

export default defineConfig({
  ...quick,
  test: {
    ...quick.test,
    include: ['test/**/*.long.test.ts', ...properties.map((name) => `test/${name}`)],
    exclude: [],
    // They wait more than they work: for leases, kills and browsers.
    maxWorkers: availableParallelism() + 2,
    // Real processes and browsers, beside whatever else the machine does.
    testTimeout: 180_000,
    hookTimeout: 300_000,
  },
})
