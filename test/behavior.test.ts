// The page of behaviours is made from the names of these tests and no other way, and each promise of the contract has a test.
// That the tests themselves hold is their own matter.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { behaviourPage, behavioursOf, citedNowhere, contractProblems } from '../scripts/behavior-page.ts'
import { readTests } from '../scripts/test-names.ts'
import { readSources } from './tidy/source.ts'

const root = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** In pieces: a number that stands here would be cited. */
const id = (area: string, number: number) => ['B', area, number].join('-')
const made = (...names: readonly string[]) => behavioursOf([{ path: 'test/a.test.ts', text: names.join('\n') }])

const tests = readTests(root)
const behaviours = behavioursOf(tests)

describe('the page of behaviours', () => {
  it('B-REF-13: is what the names of the tests say: run `npm run behavior` if this fails', () => {
    expect(read('docs/behavior.md')).toBe(behaviourPage(behaviours))
  })

  it('B-REF-13: has every number that a test or the simulator cites', () => {
    expect(citedNowhere([...tests, ...readSources(['sim'])], behaviours)).toEqual([])
  })

  it('and a number that is in no name is reported', () => {
    const file = { path: 'test/a.test.ts', text: `// ${id('RUN', 1)}\nit('${id('RUN', 2)}: x', f)` }
    expect(citedNowhere([file], behavioursOf([file]))).toEqual([
      `test/a.test.ts cites ${id('RUN', 1)}, which is in the name of no test`,
    ])
  })

  it('B-REF-13: has sections in their order, numbers in order, and areas without a section at the end', () => {
    const page = behaviourPage(
      made(
        `it('${id('STORE', 10)}: ten', f)`,
        `it('${id('NOWHERE', 1)}: x', f)`,
        `it('${id('STORE', 9)}: nine', f)`,
        `it('${id('LOSS', 1)}, ${id('KERNEL', 1)}: both', f)`,
      ),
    )
    expect(page.slice(page.indexOf('\n## '))).toBe(`
## Kernel: deciding

- **${id('KERNEL', 1)}** both
- **${id('LOSS', 1)}** both

## Stores

- **${id('STORE', 9)}** nine
- **${id('STORE', 10)}** ten

## NOWHERE

- **${id('NOWHERE', 1)}** x
`)
  })

  it('B-REF-13: says what several tests show as a list, with their subjects and dots for what is computed', () => {
    const name = id('STORE', 1)
    const page = behaviourPage(
      made(
        `describe('a store', () => { it('${name}: keeps *all*', f) })`,
        `it.each(x)('${name}: holds %s', f)`,
        `it(\`${name}: holds \${what}\`, f)`,
      ),
    )
    expect(page).toContain(`- **${name}**\n  - *a store:* keeps \\*all\\*\n  - holds …\n`)
  })
})

describe('the contract', () => {
  it('B-REF-14: has a test for each of its sentences', () => {
    expect(contractProblems(read('docs/contract.md'), behaviours)).toEqual([])
  })

  it('B-REF-14: has about three hundred of them', () => {
    const promises = read('docs/contract.md').match(/^- /gm) ?? []
    expect(promises.length).toBeGreaterThan(250)
    expect(promises.length).toBeLessThan(400)
  })

  it('B-REF-14: and a sentence without a test, without a number, written twice or cut off is reported', () => {
    const one = made(`it('${id('RUN', 1)}: x', f)`)
    const page = [`- **${id('RUN', 1)}** Holds.`, '- Holds.', `- **${id('RUN', 1)}, ${id('RUN', 2)}** Holds`].join('\n')
    expect(contractProblems(page, one)).toEqual([
      'docs/contract.md:2 names no behaviour: begin with - **B-STORE-1** and then say what holds',
      `docs/contract.md:3 names ${id('RUN', 2)}, which no test's name cites`,
      `docs/contract.md:3 names ${id('RUN', 1)} a second time`,
      'docs/contract.md:3 is no whole sentence: it ends without a full stop',
    ])
  })
})
