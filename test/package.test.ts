// The manifest of the package, and the index of the pages it brings. What a stranger gets and runs is test/package.long.test.ts.
import { expect, it } from 'vitest'
import { llmsIndex } from '../scripts/llms-index.ts'
import { VERSION } from '../src/index.ts'
import { readText, repository } from './tidy/source.ts'

const manifest: unknown = JSON.parse(readText('package.json'))

it('B-PACK-5: the version in the code is the version of the package', () => {
  expect(manifest).toMatchObject({ version: VERSION })
})

it('B-PACK-10: llms.txt has every guide, recipe and example. If this fails, run: npm run llms', () => {
  expect(readText('llms.txt')).toBe(llmsIndex(repository))
})

it('B-PACK-13: its manifest says where the project lives, by addresses of the web', () => {
  expect(manifest).toMatchObject({
    homepage: expect.stringMatching(/^https:\/\//) as string,
    repository: { type: 'git', url: expect.stringMatching(/^git\+https:\/\/.*\.git$/) as string },
  })
})
