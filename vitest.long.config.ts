// The long proofs: real processes killed many times, the whole chat at a real terminal, the package installed and its examples run.
// `npm run test:long`; .ci/run runs it. Not the quick tests of the same areas: those are in `npm test` (vitest.config.ts).
import { defineConfig } from 'vitest/config'
import quick from './vitest.config.ts'

export default defineConfig({ test: { ...quick.test, include: ['test/**/*.long.test.ts'], exclude: [] } })
