// The manifest of the package, and the index of the pages it brings. What a stranger gets and runs is test/package.long.test.ts.
import { expect, it } from 'vitest'
import { llmsIndex } from '../scripts/llms-index.ts'
import { VERSION } from '../src/index.ts'
import { notLibrary } from './tidy/imports.ts'
import { parse, readSources, readText, repository } from './tidy/source.ts'

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

it("B-LAZY-5: 'terret' leads to nothing that only the demonstration, the command or a test needs", () => {
  expect(notLibrary(readSources(['src']))).toEqual([])
  const later = parse('src/harness.ts', "const a = await import('./testing/index.ts')")
  const first = parse('src/index.ts', "export * from './harness.ts'")
  expect(notLibrary([first, later, parse('src/testing/index.ts', '')])).toEqual(['src/testing/index.ts'])
})
