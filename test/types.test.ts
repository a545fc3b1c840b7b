// The types as a user's program meets them: what a tool costs the compiler (the rule, on made-up counts), and what follows from schemas (the program is types/program.ts). With
// the older compiler that is supported: types.long.test.ts.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { BUDGET, type Cost, type Counts, complaints } from '../scripts/type-budget.ts'
import { BUNDLER, compiled, NODENEXT, root } from './types/compile.ts'

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
})

/** The program of a guide that holds these words. */
function guided(guide: string, words: string): string {
  const text = readFileSync(join(root, 'docs', 'guide', guide), 'utf8')
  const found = [...text.matchAll(/```ts\n([\s\S]*?)```/g)]
    .map(([, code = '']) => code)
    .find((code) => code.includes(words))
  if (found === undefined) throw new Error(`docs/guide/${guide} has no program with: ${words}`)
  return found
}

describe('types follow schemas', () => {
  it.each([[NODENEXT], [BUNDLER]])(
    'B-TYPES-5, B-ERROR2-9: of answers, tools, context, hooks, names of a run and what waits, with %j',
    { timeout: 120_000 },
    async (flags) => {
      const { said, declarations } = await compiled('typescript', flags)
      expect(said).toBe('')
      expect(declarations).toContain('TypedTool<"look", {')
    },
  )

  it('B-TYPES-5: a program that does not fit its schemas does not compile', { timeout: 120_000 }, async () => {
    const wrong = (text: string): string => text.replaceAll(/^\s*\/\/ @ts-expect-error.*$/gm, '')
    const { said } = await compiled('typescript', NODENEXT, wrong)
    expect(said.match(/^\S+: error TS/gm)?.length ?? said).toBeGreaterThan(9)
    expect(said).toContain(`Type '"link"' is not assignable to type '"file" | "folder"'`)
  })

  it('B-TYPES-5: the programs of the guides compile', { timeout: 120_000 }, async () => {
    const tools = guided('tools.md', 'const balance')
    const output = guided('structured-output.md', "orThrow(await harness.run('When")
    const text = `import { z } from 'zod'
import { defineTool, Harness, type Json, orThrow, scripted, type ToolContext } from 'terret'
type Bank = { cents(account: string): Promise<number> }
declare function bankOf(tenant: Json | undefined): Bank
const model = scripted(['done'])
const harness = new Harness({ model })
${tools}
${output}`
    expect((await compiled('typescript', NODENEXT, () => text)).said).toBe('')
  })

  it('B-TYPES-6: no declaration that is shipped says any', () => {
    const all = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' })
    const files = all.filter((name) => name.endsWith('.d.ts'))
    const code = (file: string): string =>
      readFileSync(join(root, 'dist', file), 'utf8').replaceAll(
        /\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|\/\/.*$/gm,
        '',
      )
    expect(files.length).toBeGreaterThan(100)
    // As a type: a field may be called so.
    expect(files.filter((file) => /[:<|&=>[(]\s*any\b|\bany(?:\[\]|>)/.test(code(file)))).toEqual([])
  })
})
