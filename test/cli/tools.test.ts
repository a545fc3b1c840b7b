// What a person may look up at the command line: tools with their schema and risk, one call of an MCP tool, who gave work to whom, and
// a report from a list of sources.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { ProgressView } from '../../src/cli/present/run-progress.ts'
import { Screen } from '../../src/cli/present/screen.ts'
import { stageOfEach } from './scripted.ts'
import { lastLine } from './stage.ts'
import { until } from '../until.ts'

const { scriptedBy, stage } = stageOfEach()
const ODD = fileURLToPath(new URL('../tools/mcp-servers/odd.mjs', import.meta.url))

/** The names of the tools in a request to a provider. */
function toolsIn(body: unknown): readonly string[] {
  const { tools = [] } = body as { readonly tools?: readonly { readonly function: { readonly name: string } }[] }
  return tools.map((tool) => tool.function.name)
}

describe('terret tools', () => {
  it('B-CLI-210: lists the tools of this folder with what they may do, and of one its schema (S3-10, S3-20)', async () => {
    const few = { board: false, subagents: false, memory: false, worktrees: false }
    stage.configure({ model: 'offline:any', tools: ['read', 'write'], bash: {}, ...few })
    const { code, out } = await stage.terret('tools')
    const rows = out.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3))
    const own = [
      ['read', 'read', 'auto'],
      ['write', 'idempotent', 'by arguments'],
      ['bash', 'once', 'by arguments'],
    ]
    expect([code, rows]).toEqual([0, [...own, ['retrieve_original', 'read', 'auto'], ['']]])
    const one = await stage.json('tools', 'write', '--mode', 'auto')
    expect(one).toMatchObject({ name: 'write', approval: 'by arguments', risky: true, kind: 'user', sequential: true })
    expect(one).toMatchObject({ parameters: { properties: { path: { type: 'string' } } } })
    expect((await stage.terret('tools', 'read')).out).toContain('"properties"')
    const missing = await stage.terret('tools', 'nothing')
    expect([missing.code, lastLine(missing.err)]).toEqual([
      6,
      expect.stringContaining('There is no tool "nothing" here.'),
    ])
  })

  it('B-SMALL-25: columns stay in line however long the names are', async () => {
    const long = { name: `${'very_long_'.repeat(4)}name`, inputSchema: { type: 'object' } }
    const folder = dirname(stage.write('server/tools.json', JSON.stringify({ tools: [long] })))
    stage.configure({ model: 'offline:any', mcp: { odd: { command: process.execPath, args: [ODD, folder] } } })
    const { code, out } = await stage.terret('tools')
    const rows = out.trimEnd().split('\n')
    expect([code, rows.some((row) => row.startsWith('odd__very_long_'))]).toEqual([0, true])
    const columns = rows.map((row) => row.search(/ (?:read|idempotent|once) +(?:auto|ask|deny|by arguments) /))
    expect(new Set(columns).size).toBe(1)
  })

  it('B-NAMES-1: names exactly the tools that the model of a run is offered, in each mode, also without a key', async () => {
    const echo = { name: 'echo', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }
    const folder = dirname(stage.write('server/tools.json', JSON.stringify({ tools: [echo] })))
    stage.write('skills/greet/SKILL.md', '---\nname: greet\ndescription: Greets.\n---\nSay hello.\n')
    stage.write('work/.git/HEAD', 'ref: refs/heads/main\n')
    const skills = [join(dirname(stage.folder), 'skills')]
    const mcp = { odd: { command: process.execPath, args: [ODD, folder] } }
    const chaos = await scriptedBy(['One.', 'Two.', 'Three.'], { skills, mcp, bash: {}, context: { compaction: {} } })
    for (const mode of ['ask', 'plan', 'auto']) {
      expect((await stage.terret('run', '--mode', mode, 'Say one.')).code).toBe(0)
      const offered = toolsIn(chaos.requests.at(-1)?.body)
      expect(offered.includes('odd__echo')).toBe(mode !== 'plan')
      const named = (await stage.terret('tools', '--json', '--mode', mode)).out.trim().split('\n')
      const names = named.map((line) => (JSON.parse(line) as { readonly name: string }).name)
      expect(names.toSorted()).toEqual(offered.toSorted())
      expect((await stage.terret('policy', '--mode', mode)).out).toMatch(/^Tools .*retrieve_original/m)
    }
    for (const [tool, args] of [
      ['retrieve_original', '{"token":"x"}'],
      ['odd__echo', '{}'],
    ] as const)
      expect((await stage.terret('policy', 'test', tool, args)).out).toMatch(/^(allow|ask)$/m)
    stage.configure({ model: 'openai:gpt-5.1', mcp })
    expect((await stage.terret('tools')).out).toContain('odd__echo')
    expect((await stage.terret('tools', '--no-mcp')).out).not.toContain('odd__echo')
  })

  it('B-CLI-211: lists those of the MCP servers, and calls one of them once, outside of any session (S3-13)', async () => {
    const echo = {
      name: 'echo',
      inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
    }
    const tools = stage.write('server/tools.json', JSON.stringify({ tools: [echo] }))
    const mcp = { odd: { command: process.execPath, args: [ODD, dirname(tools)] } }
    stage.configure({ model: 'offline:any', tools: ['read'], board: false, subagents: false, memory: false, mcp })
    const listed = await stage.terret('tools', '--mcp', '--json')
    const rows = listed.out.trim().split('\n')
    expect(rows.map((line) => JSON.parse(line) as object)).toMatchObject([
      { name: 'read', kind: 'user', risky: false },
      { name: 'retrieve_original' },
      { name: 'odd__echo', kind: 'mcp', approval: 'ask', risky: true, mcp: { server: 'odd', tool: 'echo' } },
    ])
    const call = (tool: string, args: string) => stage.terret('mcp', 'call', 'odd', tool, args)
    expect(await call('echo', '{"message":"hello"}')).toMatchObject({ code: 0, out: 'you said hello\n' })
    const wrong = await call('odd__echo', '{"message":1}')
    expect([wrong.code, lastLine(wrong.err)]).toEqual([2, expect.stringContaining('Invalid arguments for odd__echo')])
    expect((await call('echo', '[]')).code).toBe(2)
    const policy = stage.write('policy.json', JSON.stringify({ rules: [{ effect: 'deny', tool: 'odd__*' }] }))
    stage.configure({ model: 'offline:any', approvals: { policy }, mcp })
    expect((await call('echo', '{"message":"no"}')).err).toContain('denied by policy')
    expect((await stage.terret('list')).out).toBe('')
  })
})

describe('terret handoffs', () => {
  it('B-CLI-212: shows which agent gave which task to which other, and what came of it (S3-13, S3-20)', async () => {
    stage.write('work/docs/a.md', 'Clean air is what a sick-room needs first of all.\n')
    const plan = JSON.stringify({ questions: [{ text: 'What about air?', terms: ['air'] }] })
    const review = JSON.stringify({ passed: true, findings: [] })
    await scriptedBy([plan, 'Air matters. [docs/a.md:1]', review, 'x', 'x'])
    await stage.terret('start', 'Air?', '--documents', 'docs', '--out', 'r.md')
    const { code, out } = await stage.terret('handoffs', 'latest')
    expect(code).toBe(0)
    const lines = out.split('\n').filter((line) => line.includes('→'))
    expect(lines[0]).toMatch(/^\S+ {2}report_with_model → report_planner ~\S+ {2}task {2}sha256 [0-9a-f]{12}…$/)
    const [first, second] = (await stage.terret('handoffs', 'latest', '--json')).out.trim().split('\n')
    const ends = { from: 'report_with_model', to: 'report_planner' }
    expect(JSON.parse(first ?? '')).toMatchObject({ ...ends, kind: 'task' })
    const report = { from: ends.to, to: ends.from, kind: 'report', status: 'completed', text: plan }
    expect(JSON.parse(second ?? '')).toMatchObject(report)
  })
})

describe('terret start --source-file', () => {
  it('B-REPORT-60: makes a report of a JSON list of sources, cites them by name, and keeps who planned and what the review said (S3-20)', async () => {
    const sources = [
      { name: 'notes', text: 'Light is what a sick-room needs.\n' },
      { title: 'air', content: 'Clean air is what a sick-room needs.\n' },
      { name: 'empty' },
      { name: 'air', text: 'The same name again, about air.\n' },
    ]
    stage.write('work/sources.json', JSON.stringify(sources))
    const start = ['start', 'What does a sick-room need: light, clean air?', '--source-file', 'sources.json']
    const begun = await stage.terret(...start, '--out', 'r.md', '--model', 'offline:any')
    expect([begun.code, begun.err]).toEqual([0, expect.stringContaining('✓ search    2 of 2 documents')])
    const shown = (await stage.json('inspect', 'latest')) as {
      workflow: { artifacts: { name: string }[]; state: object }
    }
    expect(shown.workflow.state).toMatchObject({ planner: 'rules', review: '{"findings":[]}' })
    expect(shown.workflow.artifacts.map(({ name }) => name)).toEqual(['draft 1', 'report'])
    await stage.terret('approve', 'latest', '--resume', '--yes')
    expect(readFileSync(join(stage.folder, 'r.md'), 'utf8')).toContain('[notes:1]')
    expect((await stage.refused('start', 'x', '--source-file', 'nowhere.json')).code).toBe(6)
    expect((await stage.refused('start', 'x', '--source-file', 'a.txt')).code).toBe(2)
    expect((await stage.refused('start', 'x', '--source-file', 'sources.json', '--documents', '.')).code).toBe(2)
    stage.write('work/bad.json', '{"a": 1}')
    const bad = await stage.terret('start', 'Air?', '--source-file', 'bad.json', '--model', 'offline:any')
    expect(bad.err).toContain('bad.json is not a JSON list of sources')
  })
})

describe('what a command prints', () => {
  it('B-CLI-213: is shown while it runs, also when another process runs it (S1-39)', async () => {
    const out = Object.assign(new PassThrough(), { columns: 80 })
    const view = new ProgressView(new Screen(out as unknown as NodeJS.WriteStream, { colours: false }))
    const source = { agent: 'default', run: 1, parent: null }
    const delta = { type: 'delta', kind: 'output', seq: 4, part: 0, offset: 0, text: 'halfway\n', call: '4.0' } as const
    view.see({ ...delta, session: 's', sequence: 1, source })
    await until(() => expect(String(out.read() ?? '')).toContain('bash: halfway'))
    view.close()
  })
})
