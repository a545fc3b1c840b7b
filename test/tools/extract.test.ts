// Reading on in a long result without any tool for files.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, scripted } from '../../src/index.ts'
import { builtInTools, extractTool } from '../../src/tools/index.ts'
import { toolContext } from './context.ts'

const long = Array.from(
  { length: 30_000 },
  (_, i) => `line ${i + 1}${i === 20_000 ? ' with a Needle in it' : ''}`,
).join('\n')

describe('extract_from_result', () => {
  it('B-TOOL-34: an agent without files reads on in a long result: what a cut result names is what it takes (TA-35)', async () => {
    const dump = defineTool({
      name: 'dump',
      description: 'All of it.',
      input: z.object({}),
      effect: 'read',
      execute: () => long,
    })
    let path = ''
    const model = scripted(({ messages }, n) => {
      if (n === 0) return { calls: [{ tool: 'dump' }] }
      const last = messages.at(-1)
      const said = last?.role === 'tool' && typeof last.content === 'string' ? last.content : ''
      if (n > 1) return said
      path = /read on with extract_from_result, path "(blob:[0-9a-f]+)"/.exec(said)?.[1] ?? ''
      return { calls: [{ tool: 'extract_from_result', args: { path, query: 'needle' } }] }
    })
    const harness = new Harness({ model, tools: [dump, extractTool()], results: { compression: 'off' } })
    expect((await harness.run('Find it.')).text).toBe('20001\tline 20001 with a Needle in it')
    await harness.close()
  })

  it('B-TOOL-34: it shows a bounded part, says how to go on, and refuses what was not kept', async () => {
    const kept = new Map<string, string>()
    const context = toolContext({ kept })
    const { hash } = context.keep(`${long}\n${'y'.repeat(50_000)}needle`)
    const said = async (args: object): Promise<string> => {
      const result = (await extractTool().execute({ path: `blob:${hash}`, ...args }, context)) as { content: string }
      return result.content
    }
    const first = await said({})
    expect(first.split('\n')).toHaveLength(201)
    expect(first).toMatch(/\[there is more: go on with offset 201\]$/)
    expect(await said({ offset: 201, limit: 1 })).toBe('201\tline 201\n[there is more: go on with offset 202]')
    const end = await said({ query: 'NEEDLE', offset: 25_000 })
    expect([end.length < 2_100, end.endsWith('needle')]).toEqual([true, true])
    expect(await said({ query: 'nothing' })).toBe('[no line from 1 on holds this text]')
    expect((await said({ limit: 30_000 })).length).toBeLessThan(40_000)
    const missing = extractTool().execute({ path: 'blob:nowhere' }, context)
    await expect(missing).rejects.toThrow('There is no kept result "blob:nowhere"')
    expect((await builtInTools({ root: '.', names: ['extract_from_result'] })).map(({ name }) => name)).toEqual([
      'extract_from_result',
    ])
  })
})
