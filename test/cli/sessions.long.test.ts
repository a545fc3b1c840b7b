// Sessions from the outside: ids, lists, decisions, answers, events as they come, files to take along.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { overflowError } from '../../src/testing/index.ts'
import { Harness, scripted, sqlite } from '../../src/index.ts'
import { stageOfEach } from './scripted.ts'
import { chaosOf, hosted } from '../models/hosted-stage.ts'
import { endpoint, lastLine } from './stage.ts'

const { provider, scriptedBy, stage } = stageOfEach()

const write = (path: string, content: string) => ({ calls: [{ tool: 'write', args: { path, content } }] })
type Ran = {
  readonly session: string
  readonly status: string
  readonly pending: readonly { readonly callId: string }[]
}
const offline = ['--model', 'offline:any'] as const

describe('ids and lists', () => {
  it('B-CLI-30: a session is found by its id, by a unique beginning, and as latest; else it is said what to do', async () => {
    const { session } = (await stage.json('run', ...offline, 'One.')) as Ran
    for (const name of [session, session.slice(0, 8), 'latest']) {
      expect(await stage.json('inspect', name)).toMatchObject({ session, task: 'One.', folder: stage.folder })
    }
    const missing = await stage.terret('inspect', 'zzz')
    expect([missing.code, missing.err]).toEqual([
      6,
      'terret: There is no session "zzz". `terret list --all` shows those there are.\n',
    ])
    const elsewhere = await stage.terretIn({ cwd: stage.home }, 'inspect', 'latest')
    expect(elsewhere.code).toBe(6)
  })

  it('B-CLI-31: a beginning that several sessions share is refused, and names them', async () => {
    const file = join(stage.folder, 'out.json')
    await stage.terret('run', ...offline, 'One.')
    await stage.terret('export', 'latest', '--format', 'json', '--out', file)
    await stage.terret('import', file, '--id', 'abc-one')
    await stage.terret('import', file, '--id', 'abc-two')
    const { code, err } = await stage.terret('inspect', 'abc')
    expect(code).toBe(6)
    expect(err).toContain('could mean several sessions: abc-one, abc-two')
    expect(await stage.json('inspect', 'abc-t')).toMatchObject({ session: 'abc-two' })
  })

  it('B-CLI-32: list shows the sessions of this folder, newest first; --all those of every folder', async () => {
    expect(await stage.terret('list')).toMatchObject({ code: 0, out: '' })
    expect(existsSync(stage.home)).toBe(false)
    await stage.terret('run', ...offline, 'First of here.')
    await stage.terret('run', ...offline, 'Second of here.')
    stage.write('other/a.txt', '')
    await stage.terretIn({ cwd: join(stage.folder, '..', 'other') }, 'run', ...offline, 'Elsewhere.')
    const tasks = (out: string): readonly string[] =>
      out
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/\s{2,}/).at(-1) ?? '')
    expect(tasks((await stage.terret('list')).out)).toEqual(['Second of here.', 'First of here.'])
    expect(tasks((await stage.terret('list', '--all')).out)).toEqual([
      'Elsewhere.',
      'Second of here.',
      'First of here.',
    ])
    const limited = await stage.terret('list', '--limit', '1')
    expect([tasks(limited.out), limited.err]).toEqual([['Second of here.'], '… and more: --limit N shows them.\n'])
    expect((await stage.terret('list', '--status', 'requires_action')).out).toBe('')
    const [first] = (await stage.terret('list', '--json')).out.split('\n')
    expect(JSON.parse(first ?? '')).toMatchObject({ status: 'idle', outcome: 'completed', folder: stage.folder })
  })
})

describe('decisions', () => {
  it('B-CLI-33: approve shows the exact action, records who decided, and drives nothing', async () => {
    const { requests } = await scriptedBy([write('a.txt', 'x'), 'Done.'])
    const { session, pending } = (await stage.json('run', 'Write.')) as Ran
    expect(pending).toHaveLength(1)
    const shown = await stage.terret('pending')
    expect(shown.out).toContain('  a.txt\n  │ @@ ')
    const { code, out, err } = await stage.terret('approve', session, '--by', 'ana', '--why', 'fine')
    expect([code, out]).toEqual([0, `Approved write (call ${pending[0]?.callId}) as ana.\n`])
    expect(err).toContain('  │ +x\n')
    expect([requests.length, existsSync(join(stage.folder, 'a.txt'))]).toEqual([1, false])
    expect((await stage.terret('history', session, '--tail', '1')).out).toContain('user.tool_confirmation')
    expect(await stage.terret('pending')).toMatchObject({ code: 0, out: '' })
    expect(await stage.terret('resume', session)).toMatchObject({ code: 0, out: 'Done.\n' })
    expect(readFileSync(join(stage.folder, 'a.txt'), 'utf8')).toBe('x')
  })

  it('B-CLI-34: a second decision is refused with exit code 9, before and after the session went on', async () => {
    await scriptedBy([write('a.txt', 'x'), 'Done.'])
    const { pending } = (await stage.json('run', 'Write.')) as Ran
    const [{ callId } = { callId: '' }] = pending
    expect((await stage.terret('approve', 'latest', callId)).code).toBe(0)
    for (const verb of ['approve', 'reject']) {
      const again = await stage.terret(verb, 'latest', callId)
      expect([again.code, lastLine(again.err)]).toEqual([
        9,
        `terret: Call ${callId} does not wait for an approval any more: it was decided, it expired, or its run was interrupted.`,
      ])
    }
    await stage.terret('resume', 'latest')
    expect((await stage.terret('approve', 'latest')).code).toBe(9)
    expect((await stage.terret('approve', 'latest', '99.0')).code).toBe(6)
    const { out } = await stage.terret('history', 'latest', '--event', 'user.tool_confirmation', '--json')
    expect(out.trimEnd().split('\n')).toHaveLength(1)
  })

  it('B-CLI-35: resume without a decision stays waiting, with exit code 3 (AC-106)', async () => {
    await scriptedBy([write('a.txt', 'x'), 'Done.'])
    await stage.terret('run', 'Write.')
    expect((await stage.terret('resume', 'latest')).code).toBe(3)
    expect((await stage.terret('wake', 'latest')).code).toBe(3)
    expect((await stage.terret('reject', 'latest', '--why', 'no', '--resume')).code).toBe(0)
    expect(existsSync(join(stage.folder, 'a.txt'))).toBe(false)
  })

  it('B-CLI-36: of several calls that wait one must be named', async () => {
    const bash = (command: string) => ({ tool: 'bash', args: { command } })
    await scriptedBy([{ calls: [bash('echo 1'), bash('echo 2')] }, 'Done.'], { bash: true })
    const { pending } = (await stage.json('run', 'Do.')) as Ran
    const [first = '', second = ''] = pending.map(({ callId }) => callId)
    const { code, err } = await stage.terret('approve', 'latest')
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(
        `Several calls wait\\. Name one of them: \\S+ ${first} \\(bash\\), \\S+ ${second} \\(bash\\)`,
      ),
    ])
    expect((await stage.terret('approve', 'latest', second)).code).toBe(0)
    expect((await stage.terret('reject', 'latest', first, '--resume')).code).toBe(0)
  })

  it('B-CLI-37: a question of the model is answered from another process, once', async () => {
    const { requests } = await scriptedBy([
      { calls: [{ tool: 'ask_user', args: { question: 'Which colour?' } }] },
      'Blue it is.',
    ])
    const asked = await stage.terret('run', 'Paint.')
    expect([asked.code, asked.err]).toEqual([3, expect.stringContaining('Which colour?')])
    expect((await stage.apart('answer', 'latest', 'Blue')).code).toBe(0)
    expect((await stage.apart('answer', 'latest', 'Red')).code).toBe(9)
    expect(await stage.apart('resume', 'latest')).toMatchObject({ code: 0, out: 'Blue it is.\n' })
    expect(JSON.stringify(requests[1]?.body)).toContain('Blue')
  })

  it('B-CLI-38: a budget that is used up is raised by approving it', async () => {
    await scriptedBy(['Done.'], { budget: { sessionUsd: 0 } })
    const { url } = provider.chaos ?? { url: '' }
    stage.configure({
      ...endpoint(url),
      model: 'openai:gpt-5.1',
      endpoints: { openai: { baseUrl: `${url}/v1`, protocol: 'chat' } },
      budget: { sessionUsd: 0 },
    })
    stage.write('config/terret/.env', 'OPENAI_API_KEY=sk-0123456789abcdef\n')
    const broke = await stage.terret('run', 'Think.')
    expect(broke.code).toBe(4)
    expect(broke.err).toMatch(
      /^The budget of this session does not cover the next call: \$0\.0000 spent of \$0\.0000, and it needs up to (\$\d\.\d{4}), so at least \1 more\. Allow more with: .*budget --usd 1/m,
    )
    expect((await stage.terret('approve', 'latest', 'budget', '--usd', 'much')).code).toBe(2)
    expect((await stage.terret('approve', 'latest', 'budget', '--usd', '5', '--resume')).code).toBe(0)
    expect((await stage.terret('approve', 'latest', 'budget', '--usd', '5')).code).toBe(9)
  })

  it('B-MONEY-34: pending shows the sessions that wait for money, until a person allows more', async () => {
    await scriptedBy(['Done.'])
    const { url } = provider.chaos ?? { url: '' }
    const paid = { openai: { baseUrl: `${url}/v1`, protocol: 'chat' } }
    stage.configure({ ...endpoint(url), model: 'openai:gpt-5.1', endpoints: paid, budget: { dayUsd: 0 } })
    stage.write('config/terret/.env', 'OPENAI_API_KEY=sk-0123456789abcdef\n')
    const { session } = (await stage.json('run', 'Think.')) as Ran
    const waiting = { callId: 'budget', args: { account: 'day' }, sessionId: session, path: [session] }
    expect(await stage.json('pending')).toMatchObject(waiting)
    const { out } = await stage.terret('pending')
    expect(out).toMatch(/waits for money\. The budget of the day does not cover the next call: .* it needs up to \$\d/)
    expect(out).toContain(`approve ${session.slice(0, 8)} budget --usd 1 --resume`)
    expect((await stage.terret('inspect', 'latest')).out).toContain('waits for money')
    expect((await stage.terret('approve', 'latest', 'budget', '--usd', '5', '--resume')).code).toBe(0)
    expect((await stage.terret('pending')).err).toBe('Nothing waits for you here.\n')
  })

  it('B-HOSTED-33: a context that is full is told, and what can be done: going on would only be refused again', async () => {
    await scriptedBy(() => overflowError())
    const full = await stage.terret('run', 'Think.')
    expect(full.code).toBe(3)
    const id = /session (\S+)\n$/.exec(full.err)?.[1] ?? ''
    expect(full.err).toMatch(/^The context is full: about \d+ tokens\./m)
    expect(full.err).toContain(`fork ${id} --at SEQ`)
    expect(full.err).not.toContain('It is paused')
    const told = await stage.json('resume', 'latest')
    expect(told).toMatchObject({
      stopReason: 'paused',
      reason: expect.stringContaining('The context is full') as string,
    })
  })
})

describe('what happened', () => {
  it('B-CLI-39: inspect counts events, calls by tool and end, tokens and cost from the log (AC-109)', async () => {
    await scriptedBy([
      { calls: [{ tool: 'list', args: {} }], usage: { inputTokens: 10, outputTokens: 2, cachedTokens: 4 } },
      { text: 'Done.', usage: { inputTokens: 20, outputTokens: 3, cachedTokens: 8, reasoningTokens: 1 } },
    ])
    await stage.terret('run', 'Look.')
    expect(await stage.json('inspect', 'latest')).toMatchObject({
      status: 'idle',
      outcome: 'completed',
      summary: {
        runs: 1,
        requests: 2,
        calls: 1,
        inputTokens: 30,
        outputTokens: 5,
        cachedTokens: 12,
        reasoningTokens: 1,
        text: 'Done.',
        tools: { list: { ok: 1 } },
        events: { 'user.message': 1, 'model.started': 2, 'agent.message': 2, 'agent.tool_result': 1, 'run.settled': 1 },
      },
      pending: [],
    })
    const { out } = await stage.terret('inspect', 'latest')
    expect(out).toContain('Tool      list: 1 ok')
    expect(out).toContain('30 tokens in (12 cached), 5 out (1 reasoning)')
  })

  it('B-CLI-39: inspect names the environment and the files that a session was opened with (S4-1)', async () => {
    await stage.terret('run', ...offline, 'x')
    const store = sqlite(join(stage.home, 'terret.db'))
    const harness = new Harness({ model: 'offline:any', store })
    const notes = { type: 'file', media: 'text/plain', data: Buffer.from('hello'), name: 'notes.txt' } as const
    await harness.open({ id: 'placed', environment: 'staging', attachments: [notes] })
    await harness.close()
    await store.close()
    const { out } = await stage.terret('inspect', 'placed')
    expect(out).toContain('Environment staging\nAttached  notes.txt, text/plain, 5 bytes\n')
    expect(await stage.json('inspect', 'placed')).toMatchObject({
      environment: 'staging',
      attachments: [{ name: 'notes.txt', media: 'text/plain', bytes: 5 }],
    })
    expect(await stage.json('inspect', 'latest')).toMatchObject({ environment: null, attachments: [] })
  })

  it('B-SETTLE-4: a halted session is listed and shown with its cause, and the answer of run says it once', async () => {
    await scriptedBy((_request, n) => ({
      ...(n === 0 ? { text: 'I look.' } : {}),
      calls: [{ tool: 'read', args: { path: 'gone.txt' } }],
    }))
    const ran = await stage.terret('run', 'Look.')
    expect(ran.out).toBe('I look.\n')
    expect(ran.err.split('"read" failed 3 times')).toHaveLength(2)
    expect((await stage.terret('list')).out).toMatch(/halted .*"read" failed 3 times/)
    expect((await stage.terret('inspect', 'latest')).out).toMatch(/State +halted: .*gone\.txt/)
  })

  it('B-PREFIX-15: inspect says how often the prefix was made, and each miss with its cause, tokens and price', async () => {
    await stage.terret('run', ...offline, 'x')
    const store = sqlite(join(stage.home, 'terret.db'))
    const chaos = await chaosOf(() => ({ text: 'Fine.', usage: { inputTokens: 1_000, outputTokens: 10 } }))
    const prices = { 'openrouter:*': { input: 3, output: 15, cached: 0.5 } }
    for (const instructions of ['Be short.', 'Be long.', 'Be long.']) {
      const model = hosted(chaos, 'chat', { prices })
      const harness = new Harness({ model, store, instructions, context: { prefix: 'follow' } })
      const session = await harness.open({ id: 'dear', reuse: true })
      await session.run('Go.')
      await harness.close()
    }
    await store.close()
    const { out } = await stage.terret('inspect', 'dear')
    expect(out).toMatch(
      /\nPrefix {4}made 2 times\nMissed {4}event \d+: the instructions changed from character 3 on,\n {10}1000 tokens read again, \$0\.0025\n/,
    )
    const misses = [{ why: 'instructions', tokens: 1_000, cost: 2_500 }]
    expect(await stage.json('inspect', 'dear')).toMatchObject({ summary: { epochs: 2, misses } })
  })

  it('B-CLI-40: history has every event, by type and from the end; --json is the log itself', async () => {
    await stage.terret('run', ...offline, 'One.')
    const lines = (await stage.terret('history', 'latest', '--json')).out.trimEnd().split('\n')
    expect(lines.map((line) => (JSON.parse(line) as { seq: number }).seq)).toEqual(lines.map((_, i) => i + 1))
    expect(lines.at(-1)).toContain('"run.settled"')
    expect((await stage.terret('history', 'latest', '--tail', '1')).out).toMatch(
      new RegExp(`^ +${lines.length} .*run\\.settled +completed\\n$`),
    )
    expect((await stage.terret('history', 'latest', '--tail', 'x')).code).toBe(2)
  })

  it('B-CLI-41: tail shows events of another process as they come', async () => {
    await scriptedBy([write('a.txt', 'x'), 'Done.'])
    await stage.terret('run', 'Write.')
    const tail = stage.start(['tail', 'latest', '--json'])
    await tail.says('"agent.message"')
    await stage.terret('approve', 'latest', '--resume')
    await tail.says('"run.settled"')
    tail.child.kill('SIGINT')
    const { code, out } = await tail.ended
    expect(code).toBe(0)
    const seqs = out
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { seq: number }).seq)
    expect(seqs).toEqual([...seqs.keys()].map((i) => i + 1))
    expect((await stage.terret('tail', 'latest', '--settled', '-n', '1')).out).toContain('run.settled')
  })

  it('B-CLI-42: replay folds and decides the log as it was written', async () => {
    await stage.terret('run', ...offline, 'use list')
    expect(await stage.json('replay', 'latest')).toMatchObject({ same: true, fold: null, decisions: [], unwritten: [] })
  })

  it('B-CLI-43: fork goes on from an event of another session, which stays as it was', async () => {
    const { requests } = await scriptedBy(['One.', 'Two.', 'Other.'])
    await stage.terret('run', 'First.')
    await stage.terret('run', '-c', 'Second.')
    const before = (await stage.terret('history', 'latest', '--json')).out
    const { session } = (await stage.json('fork', 'latest', '--at', '6')) as Ran
    expect(await stage.terret('run', '-c', '--session', session, 'Third.')).toMatchObject({ code: 0, out: 'Other.\n' })
    const body = JSON.stringify(requests[2]?.body)
    expect([body.includes('First.'), body.includes('Second.')]).toEqual([true, false])
    const origin = (
      JSON.parse((await stage.terret('history', session, '--json')).out.split('\n')[0] ?? '') as { fork: Ran }
    ).fork.session
    expect((await stage.terret('history', origin, '--json')).out).toBe(before)
  })
})

describe('files to take along', () => {
  it('B-CLI-44: an exported file is imported into another home, and the session goes on there (AC-109)', async () => {
    await scriptedBy(['One.', 'Two.'])
    await stage.terret('run', 'First.')
    const file = join(stage.folder, 'session.json')
    expect((await stage.terret('export', 'latest', '--format', 'json', '-o', file)).code).toBe(0)
    const log = (await stage.terret('export', 'latest')).out
    const env = { TERRET_HOME: join(stage.folder, '..', 'second') }
    const there = (...args: readonly string[]) => stage.terretIn({ env }, ...args)
    expect((await there('import', file)).code).toBe(0)
    const arrived = (await there('history', 'latest', '--json')).out
    expect(arrived.startsWith(log)).toBe(true)
    expect(arrived.slice(log.length)).toMatch(/^[^\n]*"session.imported"[^\n]*\n$/)
    expect(await there('run', '-c', 'Second.')).toMatchObject({ code: 0, out: 'Two.\n' })
    expect((await there('import', file)).code).toBe(9)
  })

  it('B-PORT-26: import says what the session would do and how to let it; nothing runs before, and then it is asked about here', async () => {
    await scriptedBy([write('a.txt', 'hello'), 'Done.'])
    await stage.terret('run', 'Write it.')
    const { session } = (await stage.json('inspect', 'latest')) as Ran
    await stage.terret('approve', 'latest', '--yes')
    const file = join(stage.folder, 'session.json')
    await stage.terret('export', 'latest', '--format', 'json', '-o', file)
    const env = { TERRET_HOME: join(stage.folder, '..', 'second') }
    const there = (...args: readonly string[]) => stage.terretIn({ env }, ...args)
    const { code, out } = await there('import', file)
    expect(code).toBe(0)
    for (const said of ['is held', 'write (call ', '  a.txt', '│ +hello', `terret resume ${session.slice(0, 8)}`])
      expect(out).toContain(said)
    expect((await there('list')).out).toContain('held')
    expect((await there('inspect', 'latest')).out).toContain('is held')
    expect((await there('pending')).out).toContain('is held')
    const before = (await there('history', 'latest', '--json')).out
    expect((await there('worker', '--idle')).code).toBe(0)
    expect((await there('wake', 'latest')).code).toBe(3)
    expect(await there('approve', 'latest', '--yes')).toMatchObject({ code: 3 })
    expect((await there('history', 'latest', '--json')).out).toBe(before)
    const spoken = await there('run', '-c', 'Something else.')
    expect(spoken.code).toBe(3)
    expect(spoken.err).toContain('was imported and is held')
    expect(existsSync(join(stage.folder, 'a.txt'))).toBe(false)
    const resumed = await there('resume', 'latest')
    expect(resumed.code).toBe(3)
    expect(resumed.err).toContain('wants to run write')
    expect(existsSync(join(stage.folder, 'a.txt'))).toBe(false)
    expect((await there('approve', 'latest', '--yes', '--resume')).code).toBe(0)
    expect(readFileSync(join(stage.folder, 'a.txt'), 'utf8')).toBe('hello')
  })

  it('B-FORK-6: a fork of a session that waits for a yes waits for one of its own', async () => {
    await scriptedBy([write('a.txt', 'hello'), 'Done.', 'Done here.'])
    await stage.terret('run', 'Write it.')
    await stage.terret('approve', 'latest', '--yes')
    const forked = await stage.terret('fork', 'latest')
    expect(forked.out).toContain('asked about again')
    const [id = ''] = forked.out.split('\n')
    const resumed = await stage.terret('resume', id)
    expect(resumed.code).toBe(3)
    expect(existsSync(join(stage.folder, 'a.txt'))).toBe(false)
    expect((await stage.terret('pending', id)).out).toContain('wants to run write')
  })

  it('B-CLI-45: a folder has the state, the trace, the events and the artifacts; nothing is written over', async () => {
    stage.write('work/big.txt', 'old content')
    await scriptedBy([write('big.txt', 'new'), 'Done.'])
    await stage.terret('run', '--mode', 'auto', 'Write.')
    const out = join(stage.folder, '..', 'out')
    expect((await stage.terret('export', 'latest', '--format', 'folder', '--out', out)).code).toBe(0)
    expect(readdirSync(out).toSorted()).toEqual([
      'artifacts',
      'events.jsonl',
      'session.json',
      'state.json',
      'trace.json',
    ])
    const state = JSON.parse(readFileSync(join(out, 'state.json'), 'utf8')) as { artifacts: { file: string }[] }
    expect(state).toMatchObject({ card: { outcome: 'completed' }, summary: { tools: { write: { ok: 1 } } } })
    const texts = state.artifacts.map(({ file }) => readFileSync(join(out, file), 'utf8'))
    expect(texts.some((text) => text.includes('old content'))).toBe(true)
    expect(JSON.parse(readFileSync(join(out, 'trace.json'), 'utf8'))).not.toEqual([])
    expect((await stage.terret('export', 'latest', '--format', 'folder', '--out', out)).code).toBe(9)
  })

  it('B-CLI-46: as JSON lines it is the log, and as a page what was said and done', async () => {
    await stage.terret('run', ...offline, 'use list')
    const [, ...log] = (await stage.terret('history', 'latest', '--json')).out.split('\n')
    const [first = '', ...rest] = (await stage.terret('export', 'latest')).out.split('\n')
    expect([JSON.parse(first), rest]).toMatchObject([{ seq: 1, type: 'session.created' }, log])
    const page = (await stage.terret('export', 'latest', '--format', 'md')).out
    expect(page).toMatch(/## User\n\nuse list\n\n\*Note: Today is [^\n]+\n\n## Agent\n[^]*\*\*list\*\* \(call 6\.0\)/)
    expect((await stage.terret('export', 'latest', '--format', 'pdf')).code).toBe(2)
  })

  it('B-CLI-46: the page of a fork has what was said before it, and not what came after', async () => {
    await scriptedBy(['One.', 'Two.', 'Other.', 'Last.'])
    await stage.terret('run', 'First.')
    await stage.terret('run', '-c', 'Second.')
    const { session } = (await stage.json('fork', 'latest', '--at', '6')) as Ran
    await stage.terret('run', '-c', '--session', session, 'Third.')
    const again = (await stage.json('fork', session)) as Ran
    await stage.terret('run', '-c', '--session', again.session, 'Fourth.')
    const page = (await stage.terret('export', again.session, '--format', 'md')).out
    expect(page).toMatch(
      /First\.[^]*One\.[^]*\*Forked from event 6 of session [^]*Third\.[^]*Other\.[^]*\*Forked [^]*Fourth\.[^]*Last\./,
    )
    expect(page).not.toMatch(/Second\.|Two\./)
  })

  it('B-SERVE-93: a fork of a session that somebody else owns is of the user who made it', async () => {
    await scriptedBy(['One.'])
    await stage.terret('run', 'First.')
    const store = sqlite(join(stage.home, 'terret.db'))
    onTestFinished(() => store.close())
    const harness = new Harness({ model: scripted(() => 'Hello.'), store, worker: { drives: false } })
    await harness.open({ id: 'theirs', labels: { owner: 'bob', team: 'a' }, metadata: { owner: 'bob' } })
    const { session } = (await stage.json('fork', 'theirs')) as Ran
    const { owner, labels } = (await store.card(session)) ?? {}
    expect([owner, labels]).toEqual([userInfo().username, { owner: userInfo().username, team: 'a' }])
    await harness.close()
  })

  it('B-CLI-47: a file that is not there, is no JSON or was changed is refused, and nothing is written', async () => {
    await stage.terret('run', ...offline, 'One.')
    const file = join(stage.folder, 's.json')
    await stage.terret('export', 'latest', '--format', 'json', '-o', file)
    expect((await stage.terret('import', 'missing.json')).code).toBe(6)
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.slice(0, -20))
    expect((await stage.terret('import', file, '--id', 'x')).err).toMatch(
      /^terret: \S+ is not valid JSON: [^\n]+ in line \d+\. Export it again with --format json, or say with --format which other program wrote it\.\n$/,
    )
    writeFileSync(file, `[${'1,\n'.repeat(1_000_000)}s3cret]`)
    expect((await stage.terret('import', file, '--id', 'x')).err).toMatch(
      /^terret: \S+ is not valid JSON: Unexpected token 's' in line 1000001\. Export it again with --format json, or say with --format which other program wrote it\.\n$/,
    )
    writeFileSync(file, text.replace('One.', 'Two.'))
    expect((await stage.terret('import', file, '--id', 'x')).code).toBe(2)
    expect((await stage.terret('inspect', 'x')).code).toBe(6)
  })
})
