// The version of the package, in the code and in its manifest. What a stranger gets and runs is test/package.long.test.ts.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { VERSION } from '../src/index.ts'

it('B-PACK-5: the version in the code is the version of the package', () => {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  expect(manifest).toMatchObject({ version: VERSION })
})
