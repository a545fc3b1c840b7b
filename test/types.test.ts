// What a tool costs the compiler of a user's program: the rule on made-up counts, and the real counts. What is compiled is in
// scripts/type-budget.ts. Not whether types are right: every other test is compiled too.
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { BUDGET, type Cost, type Counts, complaints, measureTypes } from '../scripts/type-budget.ts'

const root = join(import.meta.dirname, '..')

/** Counts of a program of 1,000 and so many instantiations a tool, more for those after the thirtieth. */
function counts(tool: number, later = tool): Counts {
  return { 10: 1_000 + 10 * tool, 30: 1_000 + 30 * tool, 50: 1_000 + 30 * tool + 20 * later }
}

function cost(terret: Counts, schema = 200): Cost {
  return { terret, control: counts(schema) }
}

describe('the types of a tool', () => {
  it('B-TYPES-1: a tool that costs the compiler what is allowed passes, and one instantiation more fails', () => {
    const { all, own } = BUDGET
    expect(complaints(cost(counts(all), all - own))).toEqual([])
    expect(complaints(cost(counts(all + 1), all))).toEqual([
      `A tool costs ${all + 1} instantiations, and ${all} are allowed.`,
    ])
    expect(complaints(cost(counts(all), all - own - 1))).toEqual([
      `Beside its schema a tool costs ${own + 1} instantiations, and ${own} are allowed.`,
    ])
  })

  it('B-TYPES-2: the fiftieth tool costs what the tenth does, within a tenth', () => {
    expect(complaints(cost(counts(300, 330)))).toEqual([])
    expect(complaints(cost(counts(300, 270)))).toEqual([])
    expect(complaints(cost(counts(300, 332)))).toEqual([expect.stringContaining('not flat')])
    expect(complaints(cost(counts(300, 268)))).toEqual([expect.stringContaining('not flat')])
  })

  it('B-TYPES-3: counts that show nothing of terret fail too', () => {
    expect(complaints(cost(counts(200), 200))).toEqual([expect.stringContaining('not measured')])
    expect(complaints(cost(counts(0), 0))).toEqual([expect.stringContaining('not measured')])
  })

  it('B-TYPES-4: programs with 10, 30 and 50 tools, compiled against the built types, keep the budget', async () => {
    expect(complaints(await measureTypes(root))).toEqual([])
  })
})
