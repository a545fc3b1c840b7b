// `terret start` and `terret workflow`: the report workflow from a command line, over several processes.
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, it } from 'vitest'
import type { ChaosScript } from '../../src/testing/index.ts'
import { stageOfEach } from './scripted.ts'
import { lastLine, MAIN } from './stage.ts'

const NURSING = fileURLToPath(new URL('../../src/cli/demo/documents/nursing', import.meta.url))
const TOPIC = 'What does a sick-room need: light, clean air, tea, a good bed and variety?'

const { scriptedBy, stage } = stageOfEach()
beforeEach(() => cpSync(NURSING, join(stage.folder, 'docs'), { recursive: true }))

const OFFLINE = ['start', TOPIC, '--documents', 'docs', '--out', 'r.md', '--model', 'offline:any'] as const
const offline = () => stage.terret(...OFFLINE)
const report = (): string => readFileSync(join(stage.folder, 'r.md'), 'utf8')

type Shown = {
  status: string
  folder: string
  pending: unknown[]
  workflow: {
    nodes: { node: string; status: string; attempts: number; durationMs: number | null }[]
    artifacts: unknown[]
    state: object
  }
}
const inspected = async (): Promise<Shown> => (await stage.json('inspect', 'latest')) as Shown

describe('terret start', () => {
  it('B-CLI-120: shows each node as it is done, stops with the path and the exact bytes, and names the command that approves; that is exit code 0', async () => {
    const { code, out, err } = await offline()
    expect([code, out]).toEqual([0, ''])
    const lines = err.split('\n')
    expect(lines.slice(0, 7).map((line) => line.replace(/\d{4} bytes/, 'N bytes'))).toEqual([
      expect.stringMatching(/^Report [0-9a-f]{8}: What does a sick-room need/),
      '✓ plan      5 questions',
      '✓ search    6 of 6 documents',
      '✓ extract   24 passages from 5 documents',
      '✓ draft     N bytes',
      '✓ review    passed',
      `✓ propose   ${join(stage.folder, 'r.md')}, a new file`,
    ])
    expect(err).toContain(`  │ path: ${join(stage.folder, 'r.md')}\n`)
    expect(existsSync(join(stage.folder, 'r.md'))).toBe(false)
    const shown = lines.filter((line) => line.startsWith('  │ │ ')).map((line) => line.slice(6))
    const command = /Allow it: {3}terret (approve [0-9a-f]{8} --resume)\n/.exec(err)?.[1] ?? ''
    const done = await stage.terret(...command.split(' '))
    expect(done).toMatchObject({ code: 0, out: `${join(stage.folder, 'r.md')}\n` })
    expect(done.err).toContain('✓ finalize')
    expect(shown.join('\n')).toBe(report())
  })

  it('B-CLI-121: a report is started by one process, approved by a second and finished by a third, without a model or a key', async () => {
    await stage.apart(...OFFLINE)
    expect(await inspected()).toMatchObject({ status: 'requires_action', pending: [{ tool: 'finalize' }] })
    expect(await stage.apart('resume', 'latest')).toMatchObject({ code: 3 })
    expect(await stage.apart('approve', 'latest', '--by', 'ana')).toMatchObject({ code: 0 })
    expect(existsSync(join(stage.folder, 'r.md'))).toBe(false)
    expect(await stage.apart('resume', 'latest')).toMatchObject({ code: 0, out: `${join(stage.folder, 'r.md')}\n` })
    expect(report()).toMatch(/^# What does a sick-room need/)
    expect(await stage.apart('approve', 'latest')).toMatchObject({ code: 9 })
  })

  it('B-CLI-122: a worker and a wake go on with it as well', async () => {
    await offline()
    await stage.terret('approve', 'latest')
    expect((await stage.terret('worker', '--idle')).code).toBe(0)
    expect(report()).toContain('without a language model')
    rmSync(join(stage.folder, 'r.md'))
    await offline()
    await stage.terret('approve', 'latest')
    expect((await stage.terret('wake', 'latest')).code).toBe(0)
    expect(existsSync(join(stage.folder, 'r.md'))).toBe(true)
  })

  it('B-CLI-133: a report can be forked, interrupted, replayed and taken up again like any session', async () => {
    await offline()
    const { session } = (await stage.json('inspect', 'latest')) as { session: string }
    const { out } = await stage.terret('history', session, '--event', 'agent.message', '--json')
    const replies = out.trimEnd().split('\n')
    const { seq } = JSON.parse(replies.at(-3) ?? '') as { seq: number }
    const forked = (await stage.json('fork', session, '--at', String(seq))) as { session: string }
    expect(await stage.terret('resume', forked.session)).toMatchObject({ code: 3 })
    expect((await stage.terret('interrupt', session)).code).toBe(0)
    expect(await stage.terret('wake', session)).toMatchObject({ code: 0 })
    expect(await stage.terret('resume', session)).toMatchObject({ code: 3 })
    expect((await stage.terret('replay', session)).code).toBe(0)
    expect(await stage.terret('approve', session, '--resume')).toMatchObject({ code: 0 })
    expect(await stage.terret('undo', session)).toMatchObject({
      code: 0,
      err: 'The file of a report is not taken back.\n',
    })
    expect(report()).toMatch(/^# /)
  })

  it('B-CLI-123: refused, nothing is written and the run has failed; resume asks again', async () => {
    await offline()
    const refused = await stage.terret('reject', 'latest', '--resume', '--by', 'ana', '--why', 'not yet')
    expect(refused.code).toBe(1)
    expect(refused.err).toMatch(/✗ finalize .*not yet/)
    expect(existsSync(join(stage.folder, 'r.md'))).toBe(false)
    expect((await stage.terret('inspect', 'latest')).out).toMatch(/^State {5}failed: .*not yet$/m)
    expect(await stage.terret('resume', 'latest')).toMatchObject({ code: 3 })
    expect((await stage.terret('inspect', 'latest')).out).toMatch(/^State {5}requires_action$/m)
    expect(await stage.terret('approve', 'latest', '--resume')).toMatchObject({ code: 0 })
    expect(report()).toMatch(/^# /)
  })

  it('B-CLI-124: the printed command is one that runs: by the name of the command, or as the file it is', async () => {
    const { err } = await stage.start(OFFLINE, { main: MAIN }).ended
    const [, file = '', words = ''] = /Allow it: {3}node (\S+) (.*)\n/.exec(err) ?? []
    expect(file).toBe(MAIN)
    expect(await stage.start(words.split(' '), { main: file }).ended).toMatchObject({ code: 0 })
    const repository = fileURLToPath(new URL('../../', import.meta.url))
    const inside = await stage.start(
      ['start', TOPIC, '--documents', NURSING, '--out', join(stage.folder, 'other.md'), '--model', 'offline:any'],
      { main: MAIN, cwd: repository },
    ).ended
    expect(inside.err).toMatch(/Allow it: {3}node dist\/cli\/main\.js approve [0-9a-f]{8} --resume\n/)
  })

  it('B-CLI-125: inspect tells how the nodes went, what was made and the state apart; the log is history, and a folder has all of it', async () => {
    await offline()
    await stage.terret('approve', 'latest', '--resume')
    const { workflow } = await inspected()
    expect(workflow.nodes.map(({ node, status, attempts }) => `${node} ${status} ${attempts}`)).toEqual(
      ['plan', 'search', 'extract', 'draft', 'review', 'propose', 'finalize'].map((name) => `${name} ok 1`),
    )
    expect(workflow.artifacts).toHaveLength(2)
    const { out } = await stage.terret('inspect', 'latest')
    expect(out).toMatch(/^Task {6}report: What does a sick-room need/m)
    expect(out).toMatch(/^Node {6}review {4}ok {6}1 attempt +\d+ ms {2}passed$/m)
    expect(out).toMatch(/^Artifact {2}report +\d+ bytes, sha256 [0-9a-f]{16}…, for .*r\.md$/m)
    expect(out).not.toContain('"state"')
    expect((await stage.terret('list')).out).toContain('report: What does')
    await stage.terret('export', 'latest', '--format', 'folder', '--out', 'x')
    const state = JSON.parse(readFileSync(join(stage.folder, 'x/state.json'), 'utf8')) as {
      workflow: Shown['workflow']
      artifacts: { file: string; media: string }[]
    }
    expect(state.workflow.nodes).toHaveLength(7)
    const kept = state.artifacts.filter(({ media }) => media.startsWith('text/markdown'))
    expect(kept.map(({ file }) => readFileSync(join(stage.folder, 'x', file), 'utf8'))).toEqual([report()])
    expect(existsSync(join(stage.folder, 'x/trace.json'))).toBe(true)
  })

  it('B-CLI-126: without a model, and without documents, nothing is begun and one line says what to do', async () => {
    const none = await stage.terret('start', TOPIC, '--documents', 'docs')
    expect(none).toMatchObject({ code: 7, out: '' })
    expect(lastLine(none.err)).toMatch(/terret init .*--model PROVIDER:MODEL.*offline:any/)
    const wrong = async (...args: readonly string[]) => {
      const { code, err } = await stage.terret('start', ...args)
      return `${code} ${lastLine(err)}`
    }
    expect(await wrong(TOPIC)).toBe(
      '2 terret: Name a topic, and either a folder of documents or a file with sources. Usage: terret start TOPIC --documents DIR, or: terret start TOPIC --source-file FILE.json',
    )
    expect(await wrong(TOPIC, '--documents', 'nowhere', '--model', 'offline:any')).toBe(
      '6 terret: There is no folder nowhere. Check the path.',
    )
    expect(await wrong(TOPIC, '--documents', 'docs', '--model', 'offline:any', '--model', 'x:y')).toMatch(
      /^2 .*cannot be combined/,
    )
    expect((await stage.terret('list', '--all')).out).toBe('')
    stage.configure({ model: 'offline:any' })
    expect((await stage.terret('start', TOPIC, '--documents', 'docs')).code).toBe(0)
    expect(await inspected()).toMatchObject({ agent: 'report', status: 'requires_action' })
  })

  it('B-CLI-127: a report that nothing can be made of says so in one line, and goes on when that was mended', async () => {
    stage.write('work/empty/readme.html', '')
    const failed = await stage.terret(
      'start',
      'Dragons',
      '--documents',
      'empty',
      '--out',
      'r.md',
      '--model',
      'offline:any',
    )
    expect(failed.code).toBe(1)
    expect(failed.err).toMatch(/NoDocuments: The folder empty has no \.txt or \.md document that can be read\./)
    expect(failed.err).toMatch(/Go on with: terret resume [0-9a-f]{8}\n/)
    stage.write('work/empty/dragons.txt', 'Dragons\n\nThe last of the dragons sleeps under the hill.\n')
    expect(await stage.terret('resume', 'latest')).toMatchObject({ code: 3 })
    const spoken = await stage.terret('resume', 'latest', '{"edit": ')
    expect(spoken.code).toBe(3)
    const done = await stage.terret('approve', 'latest', '--resume')
    // What was said meanwhile was no JSON: it is told, and nothing is lost.
    expect([done.code, done.err]).toEqual([1, expect.stringMatching(/InvalidMessage/)])
    expect(report()).toContain('> The last of the dragons sleeps under the hill. [dragons.txt:3]')
  })

  it('B-CLI-128: a policy that denies the file is a recorded denial, and nothing is written (AC-107)', async () => {
    stage.configure({
      approvals: { policy: stage.write('policy.json', JSON.stringify({ rules: [], writeRoots: ['elsewhere'] })) },
    })
    const denied = await offline()
    expect(denied.code).toBe(1)
    expect(denied.err).toMatch(/✗ finalize .*denied by policy: it may write only in/)
    expect(existsSync(join(stage.folder, 'r.md'))).toBe(false)
    const { workflow } = await inspected()
    expect(workflow.nodes.at(-1)).toMatchObject({ node: 'finalize', status: 'denied', attempts: 0 })
  })

  it('B-CLI-129: with --json there is one object of the same shape as of a run', async () => {
    const parked = (await stage.json(...OFFLINE)) as object
    expect(parked).toMatchObject({
      status: 'requires_action',
      text: '',
      pending: [{ tool: 'finalize', args: { bytes: expect.any(Number) as unknown } }],
    })
    const done = (await stage.json('approve', 'latest', '--resume')) as object
    expect(done).toMatchObject({ status: 'completed', text: join(stage.folder, 'r.md') })
  })

  it('B-CLI-130: with a model, planning, drafting and reviewing are given to it, and a review in a fence is read', async () => {
    const plan = JSON.stringify({ questions: [{ text: 'What of tea?', terms: ['tea'] }] })
    const body = '## What of tea?\n\nIt is craved [what-food.txt:172].'
    const script: ChaosScript = [plan, body, '```json\n{"passed": true, "findings": []}\n```']
    const { requests } = await scriptedBy(script)
    const { code, err } = await stage.terret('start', 'Tea', '--documents', 'docs', '--out', 'r.md')
    expect([code, err]).toEqual([0, expect.stringContaining('✓ review    passed')])
    expect(await stage.terret('approve', 'latest', '--resume')).toMatchObject({ code: 0 })
    expect(report()).toContain(body)
    expect(requests).toHaveLength(3)
  })
})

describe('terret workflow', () => {
  it('B-CLI-131: draws the workflows with their gate, one or all, or gives them as JSON (AC-109)', async () => {
    const { code, out } = await stage.terret('workflow', 'report')
    expect(code).toBe(0)
    expect(out).toMatch(/^%% report\nflowchart TD\n/)
    expect(out).toContain('{{"finalize<br/>approval"}}')
    expect((await stage.terret('workflow')).out.match(/flowchart TD/g)).toHaveLength(2)
    const named = (await stage.json('workflow', 'report_with_model', '--format', 'json')) as {
      name: string
      nodes: object[]
    }
    expect([named.name, named.nodes.length]).toEqual(['report_with_model', 7])
  })

  it('B-CLI-132: a workflow or a format that is not there is refused in one line', async () => {
    expect(await stage.terret('workflow', 'nothing')).toEqual({
      code: 6,
      out: '',
      err: 'terret: There is no workflow "nothing". Choose one of: report, report_with_model.\n',
    })
    expect(await stage.terret('workflow', '--format', 'png')).toMatchObject({ code: 2 })
  })
})
