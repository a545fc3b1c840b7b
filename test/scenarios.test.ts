// The acceptance scenarios as a test: each one of the inventory has a row, and tests where it is built, the generated page is current, and what
// is open is exactly what is said to be open. That the tests themselves hold is their own matter.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { readScenarios, type Scenarios, scenariosOf, type Source } from '../scripts/scenario-table.ts'

/** All of the inventory: what is not built has a row that says so. */
const IDS = new Set(Array.from({ length: 120 }, (_, i) => `AC-${i + 1}`))

/** In pieces: no test may cite what is not written. */
const MISSING = ['B', 'LIMIT', '99'].join('-')
const root = new URL('..', import.meta.url).pathname

describe('the scenarios', () => {
  const source = readScenarios(root)
  const scenarios = scenariosOf(source)

  it('are all in the table, and no row names what is not there', () => {
    expect(scenarios.problems).toEqual([])
    const shown = new Set(scenarios.rows.map(({ id }) => id))
    expect([...IDS].filter((id) => !shown.has(id))).toEqual([])
  })

  it('have at least one test each, or are said to be open', () => {
    const open = Object.keys(source.data.open)
    console.log(`scenarios open: ${open.length === 0 ? 'none' : open.join(', ')}`)
    expect(scenarios.open).toEqual(open)
  })

  it('are in docs/scenarios.md as they are', () => {
    expect(readFileSync(`${root}docs/scenarios.md`, 'utf8')).toBe(scenarios.page)
  })
})

describe('the table of scenarios', () => {
  const inventory = (rows: string) => `# The inventory\n\n| id | shown by |\n|---|---|\n${rows}\n`
  const make = (rows: string, test: string, more: Partial<Source['data']> = {}): Scenarios =>
    scenariosOf({
      inventory: inventory(rows),
      tests: [{ path: 'test/a.test.ts', text: test }],
      data: { scenarios: { 'AC-1': 'One | holds.' }, open: {}, ...more },
    })

  it('finds tests by the scenario and by the behaviours of its row, and not those of another scenario', () => {
    const test = `it('B-LIMIT-1: by behaviour', f)\nit.each(x)(\n  'B-LIMIT-2: %s (AC-1)', f)\nit(\`B-LIMIT-3: \${n} in a range\`, f)\nit('B-LIMIT-1: other (AC-2)', f)\nit('no name', f)`
    const { rows, open } = make('| AC-1 | B-LIMIT-1, B-LIMIT-2 to B-LIMIT-3 |', test)
    expect(rows[0]?.behaviours).toEqual(['B-LIMIT-1', 'B-LIMIT-2', 'B-LIMIT-3'])
    expect(rows[0]?.tests.map(({ name }) => name)).toEqual([
      'B-LIMIT-2: %s (AC-1)',
      'B-LIMIT-1: by behaviour',
      'B-LIMIT-3: … in a range',
    ])
    expect(open).toEqual([])
  })

  it('knows what is open: no test, or a part that is still to come', () => {
    expect(make('| AC-1 | it is later |', '').open).toEqual(['AC-1'])
    expect(make('| AC-1 | B-LIMIT-1; hooks are later |', "it('B-LIMIT-1: x', f)").open).toEqual(['AC-1'])
    expect(make('| AC-1 | nothing more |', '').open).toEqual(['AC-1'])
  })

  it('reports what is not there, not cited, written twice or left out', () => {
    const test = "it('B-LIMIT-1: x', f)"
    expect(make(`| AC-1 | B-LIMIT-1, ${MISSING} |`, test).problems).toEqual([
      `AC-1 names ${MISSING}, which no test's name cites`,
    ])
    expect(make(`| S0-1 | ${MISSING} |\n| AC-1 | B-LIMIT-1 |`, test).problems).toEqual([
      `a row names ${MISSING}, which no test's name cites`,
    ])
    expect(make('| AC-1 | B-LIMIT-1 |\n| AC-1 | B-LIMIT-1 |', test).problems).toEqual(['AC-1 has two rows'])
    expect(make('', test).problems).toEqual(['AC-1 has a sentence and no row'])
    expect(make('| AC-1, AC-2 | B-LIMIT-1 |', test).problems).toEqual([
      'AC-2 has no sentence in scripts/scenarios.json',
    ])
    expect(make('| AC-1 | B-LIMIT-1 |', "it('B-LIMIT-1: x (AC-7)', f)").problems).toEqual([
      'a test cites AC-7, which has no row',
    ])
  })

  it('is the same page every time, with what is open', () => {
    const { page } = make('| AC-1 | B-LIMIT-1 |', "it('B-LIMIT-1: a | b', f)", { open: { 'AC-1': 'hooks' } })
    expect(page).toContain('0 of 1 are shown in full.')
    expect(page).toContain(
      '| AC-1 | One \\| holds. | B-LIMIT-1 | `test/a.test.ts`: B-LIMIT-1: a \\| b<br>**open:** hooks |',
    )
  })
})
