// How the tests run. Not what they check: the suites are in test/, and test/tidy.test.ts checks the house itself.
// `npm test` runs all but test/**/*.long.test.ts: those are `npm run test:long` (vitest.long.config.ts), which .ci/run runs too.
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

// The CI runs the store suite under a second Node. A wrong one must fail there, not pass unseen.
const expected = process.env['TERRET_EXPECT_NODE']
if (expected !== undefined) {
  console.log(`vitest runs on node ${process.version}, SQLite ${process.versions['sqlite'] ?? 'not built in'}`)
  if (!process.version.startsWith(`v${expected}.`)) throw new Error(`expected node ${expected}, got ${process.version}`)
}

export default defineConfig({
  // The store of the examples keeps the contract with the source, whose Fault is another class than that of dist.
  resolve: { alias: { 'terret/store': new URL('src/stores/index.ts', import.meta.url).pathname } },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/**/*.long.test.ts'],
    environment: 'node',
    // Separate processes: tests open files, spawn children and send signals.
    pool: 'forks',
    // A process runs one file after another with the modules it has loaded: loading them anew is most of a short file's time.
    // So a stage registers what it undoes in the test (`onTestFinished`), and a test that changes a global puts it back.
    isolate: false,
    // One more than there are cores: tests also wait for clocks, disks and other processes.
    maxWorkers: availableParallelism() + 1,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 50_000 } },
    teardownTimeout: 10_000,
    reporters: ['default'],
    passWithNoTests: false,
    coverage: { provider: 'v8', include: ['src/**/*.ts'] },
  },
})
