// `terret blueprint`: an agent's setup, and what a run was given, as documents.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Harness, offline, sqlite } from '../../src/index.ts'
import { blueprintMarkdown, blueprintMermaid } from '../../src/cli/present/blueprint-text.ts'
import { canonicalJson } from '../../src/tools/core/canonical-json.ts'
import { clean } from '../../src/view/clean.ts'
import { sha256 } from '../../src/view/sha256.ts'
import { stageOfEach } from './scripted.ts'
import { lastLine } from './stage.ts'

const { scriptedBy, stage } = stageOfEach()

type Tool = { readonly name: string; readonly effect: string | null; readonly approval: string | null }
type Document = { readonly sha256: string; readonly instructions: string; readonly tools: readonly Tool[] } & {
  readonly [name: string]: unknown
}
const documentOf = async (name: string) => (await stage.json('blueprint', name)) as Document
const toolIn = ({ tools }: Document, name: string) => tools.find((tool) => tool.name === name)

describe('terret blueprint', () => {
  it('B-BLUEPRINT-1: is the setup of an agent of the folder: model, instructions, tools with effect and approval, limits, children', async () => {
    stage.configure({ model: 'offline:any', limits: { modelRequests: 7 }, instructions: 'Be brief.' })
    const found = await documentOf('default')
    expect(found).toMatchObject({ agent: 'default', model: 'offline', planner: 'model', limits: { modelRequests: 7 } })
    expect(found.instructions).toContain('Be brief.')
    expect(toolIn(found, 'read')).toMatchObject({ effect: 'read', approval: 'auto' })
    expect(toolIn(found, 'write')).toMatchObject({ effect: 'idempotent', approval: 'by_arguments' })
    const { sha256: hash, ...document } = found
    expect(hash).toBe(sha256(canonicalJson(document)))
    expect((await documentOf('default')).sha256).toBe(hash)
    const { out } = await stage.terret('blueprint', 'default')
    for (const line of ['# Blueprint of the agent default', `- SHA-256: ${hash}`, '| modelRequests | 7 |'])
      expect(out.split('\n')).toContain(line)
    stage.configure({ model: 'offline:any', limits: { modelRequests: 8 }, instructions: 'Be brief.' })
    expect((await documentOf('default')).sha256).not.toBe(hash)
    expect(await documentOf('critic')).toMatchObject({ agent: 'critic', children: [] })
  })

  it('B-BLUEPRINT-2: of a session is what its last run was given, whatever the agent has become since', async () => {
    await scriptedBy([{ calls: [{ tool: 'list', args: {} }] }, 'Seen.', 'Again.', 'Other.'])
    await stage.terret('run', 'Look.')
    const first = await documentOf('latest')
    expect(first).toMatchObject({ agent: 'default', planner: 'model', run: 3, model: 'fake:m', children: null })
    expect(first.instructions).toContain('Workspace root:')
    expect(toolIn(first, 'list')).toMatchObject({ effect: 'read', approval: 'auto' })
    expect(toolIn(first, 'write')).toMatchObject({ effect: null, approval: null })
    stage.configure({ instructions: 'Everything else.' })
    expect(await documentOf('latest')).toEqual(first)
    const { out } = await stage.terret('blueprint', 'latest')
    expect(out).toContain('| write | not recorded | not recorded |')
    expect(out).toContain(`- Session: ${String(first['session'])}\n- Run: 3\n`)
    expect((await stage.terret('blueprint', 'latest', '--format', 'mermaid')).out).toMatch(
      /^flowchart LR\n {2}agent\(\["default, fake:m"\]\)\n[^]* {2}agent --> t\d+\["list: read"\]\n/,
    )
  })

  it('B-BLUEPRINT-3: of a workflow is drawn as its graph, of the agent and of a session alike', async () => {
    stage.configure({ model: 'offline:any' })
    const drawn = await stage.terret('blueprint', 'report', '--format', 'mermaid')
    expect(drawn.out).toMatch(/^flowchart TD\n {2}n0\(\[START\]\)\n/)
    const documents = join(stage.folder, 'documents')
    mkdirSync(documents)
    writeFileSync(join(documents, 'tulips.md'), 'Tulips are flowers.\n')
    await stage.terret('start', 'tulips', '--documents', documents)
    expect((await stage.terret('blueprint', 'latest', '--format', 'mermaid')).out).toBe(drawn.out)
  })

  it('B-BLUEPRINT-4: hostile names and texts end no fence, no cell, no line and no drawing', () => {
    const odd = 'a|b`c\n# title "x" <b> [l](u) \u001B[31m\u202E'
    const instructions = 'before\n````\n# not a title\n````\nafter'
    const document = {
      agent: odd,
      model: odd,
      planner: 'model',
      instructions,
      tools: [{ name: odd, description: odd.repeat(10_000), effect: 'once', approval: 'ask' }],
      limits: {},
      policy: null,
      children: [odd],
    }
    const blueprint = { title: odd, source: {}, hash: 'h', document }
    const lines = blueprintMarkdown(blueprint)
    expect(lines.filter((line) => line.startsWith('`````'))).toEqual(['`````', '`````', '```json'].slice(0, 2))
    expect(lines.filter((line) => /^#+ /.test(line)).slice(1)).toEqual([
      '## Instructions',
      '# not a title',
      '## Tools',
      '## Approvals',
      '## Limits',
      '## Agents it may start',
      '## Other settings',
    ])
    const [row = ''] = lines.filter((line) => line.startsWith('| a'))
    expect(row.length).toBeLessThan(1_200)
    expect(row.match(/(?<!\\)\|/g)).toHaveLength(5)
    const drawing = blueprintMermaid(blueprint)
    expect(drawing).toHaveLength(4)
    for (const line of [...lines, ...drawing]) expect(line).toBe(clean(line))
    expect(drawing.slice(1).join('\n').match(/"/g)).toHaveLength(6)
  })

  it('B-BLUEPRINT-5: what is not there, a format that is not known and a session without a run are one sentence each', async () => {
    stage.configure({ model: 'offline:any' })
    const missing = await stage.terret('blueprint', 'nobody')
    expect([missing.code, lastLine(missing.err)]).toEqual([
      6,
      expect.stringContaining('no agent and no session "nobody"'),
    ])
    const format = await stage.terret('blueprint', 'default', '--format', 'xml')
    expect([format.code, lastLine(format.err)]).toEqual([2, expect.stringContaining('md, json, mermaid')])
    mkdirSync(stage.home, { recursive: true })
    const store = sqlite(join(stage.home, 'terret.db'))
    const harness = new Harness({ model: offline(), store, program: 'terret' })
    await harness.open({ id: 'empty' })
    await harness.close()
    await store.close()
    const empty = await stage.terret('blueprint', 'empty')
    expect([empty.code, lastLine(empty.err)]).toEqual([6, expect.stringContaining('has had no run yet')])
    stage.configure({})
    const unset = await stage.terret('blueprint', 'default')
    expect([unset.code, lastLine(unset.err)]).toEqual([7, expect.stringContaining('No model is chosen.')])
  })
})
