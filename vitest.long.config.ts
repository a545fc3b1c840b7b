// The long proofs: real processes killed many times, the whole chat at a real terminal, the package installed and its examples run.
// `npm run test:long`; .ci/run runs it. Not the quick tests of the same areas: those are in `npm test` (vitest.config.ts).
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.long.test.ts'],
    environment: 'node',
    pool: 'forks',
    maxWorkers: '100%',
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000,
    reporters: ['default'],
    passWithNoTests: false,
  },
})
