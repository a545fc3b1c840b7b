// Which built-in tools an agent gets by name.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { Harness, scripted } from '../../src/index.ts'
import { type BuiltInName, builtInTools } from '../../src/tools/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'terret-builtin-'))
const root = join(folder, 'ws')
mkdirSync(root)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const names = async (wanted?: readonly string[], more = {}): Promise<readonly string[]> => {
  const given = wanted === undefined ? {} : { names: wanted as readonly BuiltInName[] }
  return (await builtInTools({ root, ...given, ...more })).map(({ name }) => name)
}

describe('built-in tools', () => {
  it('B-BUILTIN-1: without names there are the six file tools, with an empty list none, else those named, in their order', async () => {
    expect(await names()).toEqual(['read', 'write', 'edit', 'search', 'list', 'glob'])
    expect(await names([])).toEqual([])
    expect(await names(['web_fetch', 'ask_user', 'jsonl_search', 'read'])).toEqual([
      'web_fetch',
      'ask_user',
      'jsonl_search',
      'read',
    ])
  })

  it('B-BUILTIN-2: an unknown or repeated name is refused, and the shell is never a built-in', async () => {
    await expect(names(['reed'])).rejects.toThrow('"reed" is no built-in tool')
    await expect(names(['read', 'read'])).rejects.toThrow('named twice')
    await expect(names(['bash'])).rejects.toThrow('bashTool')
  })

  it('B-BUILTIN-3: a tool that needs settings says which', async () => {
    await expect(names(['parallel_llm'])).rejects.toThrow('parallel: { model }')
    await expect(names(['skill_read'])).rejects.toThrow('skills: { folders }')
    const skills = join(folder, 'skills', 'greet')
    mkdirSync(skills, { recursive: true })
    writeFileSync(join(skills, 'SKILL.md'), '---\nname: greet\ndescription: Greets.\n---\nSay hello.\n')
    const more = { skills: { folders: [join(folder, 'skills')] }, parallel: { model: scripted([]) } }
    expect(await names(['skill_read', 'parallel_llm'], more)).toEqual(['skill_read', 'parallel_llm'])
  })

  it('B-BUILTIN-4: the model is told where the workspace is, and the summary of skills only if it has a tool for them', async () => {
    const told = async (wanted: readonly BuiltInName[]): Promise<string> => {
      let said = ''
      const model = scripted([
        (request) => {
          said = request.instructions
          return 'done'
        },
      ])
      const tools = await builtInTools({ root, names: wanted, skills: { folders: [join(folder, 'skills')] } })
      const harness = new Harness({ model, tools, instructions: 'Be brief.' })
      await harness.run('go')
      await harness.close()
      return said
    }
    expect(await told(['read'])).toMatch(/^Be brief\.\n\nWorkspace root: .*ws$/)
    expect(await told(['read', 'skill_read'])).toContain('Greets.')
    expect(await told(['read', 'skill_run'])).not.toContain('Greets.')
  })
})
