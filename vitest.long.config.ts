// The long proofs: real processes killed many times, the whole chat at a real terminal, the package installed and its examples run,
// and all cases of the properties of which `npm test` looks at a part. `npm run test:long`; .ci/run runs it.
// Not the quick tests of the same areas: those are in `npm test` (vitest.config.ts).
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import quick from './vitest.config.ts'

const root = join(import.meta.dirname, 'test')
const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'))
const properties = files.filter((name) => readFileSync(join(root, name), 'utf8').includes("from '../runs.ts'"))

export default defineConfig({
  test: {
    ...quick.test,
    include: ['test/**/*.long.test.ts', ...properties.map((name) => `test/${name}`)],
    exclude: [],
    env: { TERRET_RUNS: 'all' },
    // Real processes and browsers, beside whatever else the machine does.
    testTimeout: 120_000,
    hookTimeout: 300_000,
  },
})
