// The types in many compilations: what a tool really costs the compiler (what is compiled is in scripts/type-budget.ts), and what an
// older compiler reads. The rule for the cost, and the newest compiler: types.test.ts.
import { expect, it } from 'vitest'
import { complaints, measureTypes } from '../scripts/type-budget.ts'
import { BUNDLER, compiled, NODENEXT, root } from './types/compile.ts'

it('B-TYPES-4: programs with 10, 30 and 50 tools, compiled against the built types, keep the budget', async () => {
  expect(complaints(await measureTypes(root))).toEqual([])
})

it.each([[NODENEXT], [BUNDLER]])(
  'B-TYPES-5: types follow schemas with TypeScript 5.9 and %j',
  { timeout: 120_000 },
  async (flags) => {
    const { said, declarations } = await compiled('typescript-5.9', flags)
    expect(said).toBe('')
    expect(declarations).toContain('TypedTool<"look", {')
  },
)
