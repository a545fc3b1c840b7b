// `terret run` and what follows it: list, inspect, pending, approve, resume, undo. The built command on a real file.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { json } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { noBubblewrap } from '../tools/box.ts'
import { stageOfEach } from './scripted.ts'
import { endpoint, lastLine } from './stage.ts'

const { provider, scriptedBy, stage } = stageOfEach()

const write = (path: string, content: string) => ({ tool: 'write', args: { path, content } })

describe('terret run', () => {
  it('B-CLI-1: a task gives its answer on stdout, how it went on stderr, and exit code 0', async () => {
    stage.write('work/a.txt', 'hello')
    const { code, out, err } = await stage.terret('run', '--model', 'offline:any', 'read', 'a.txt')
    expect(code).toBe(0)
    expect(out).toContain('hello')
    expect(err).toMatch(/^ {2}· read a\.txt\n {2}✓ read a\.txt · 1 line · [\d.]+ s$/m)
    expect(lastLine(err)).toMatch(/^completed · 2 requests · 1 call · session [0-9a-f]{8}$/)
    expect(statSync(stage.home).mode & 0o777).toBe(0o700)
  })

  it('B-CLI-2: with --json there is one object of a stable shape on stdout, and nothing else', async () => {
    const { code, out, err } = await stage.terret('run', '--json', '--model', 'offline:any', 'Say hello.')
    expect([code, err]).toEqual([0, ''])
    const fields = 'session status stopReason text output usage costUsd treeCostUsd pending calls'
    expect(Object.keys(JSON.parse(out) as object)).toEqual(fields.split(' '))
  })

  const piped = (stdin: string | Uint8Array, ...args: readonly string[]) =>
    stage.start(['run', ...args], { stdin }).ended

  it('B-STDIN-1: what is piped in is told with the task as a file; B-STDIN-2: with - it is the task, or is waited for', async () => {
    await scriptedBy(['One.', 'Two.', 'Three.', 'Four.'])
    const sent = (at: number): string => JSON.stringify(provider.chaos?.requests[at]?.body)
    expect(await piped('line one\nline two\n', 'explain', 'this')).toMatchObject({ code: 0, out: 'One.\n' })
    expect(sent(0)).toContain('explain this\\n\\n<file name=\\"standard input\\">\\nline one\\nline two\\n</file>')
    expect(await piped('Say hello to é.\n', '-')).toMatchObject({ code: 0, out: 'Two.\n' })
    expect(sent(1)).toContain('"Say hello to é."')
    expect(await piped('tail', 'explain', '-')).toMatchObject({ code: 0 })
    expect(sent(2)).toContain('explain\\n\\n<file')
    expect(await piped('', 'explain')).toMatchObject({ code: 0, out: 'Four.\n' })
    expect(sent(3)).not.toContain('<file')
  })

  it.each([
    ['image/png', Buffer.from('\x89PNG\r\n\x1a\n0000', 'latin1')],
    ['gzip', Buffer.from('\x1f\x8b\x08\x00', 'latin1')],
    ['binary', Buffer.from('a\0b')],
    ['binary', Buffer.from([0x61, 0xff, 0x01])],
    ['more than 1 MB', Buffer.alloc(1024 * 1024 + 1, 'a')],
  ])('B-STDIN-3: %s that is piped in is refused in one sentence, and no session is made', async (kind, bytes) => {
    const { code, err } = await piped(bytes, 'explain')
    expect([code, err.trim().split('\n').length]).toEqual([2, 1])
    expect(err).toContain(kind)
    expect(err).toContain('Save it as a file')
    expect((await stage.terret('list')).out).not.toMatch(/[0-9a-f]{8}/)
  })

  it('B-STDIN-2: an empty standard input is no task; B-STDIN-4: a pipe that nothing comes from holds nothing up', async () => {
    expect(await piped('', '-')).toMatchObject({ code: 2 })
    await scriptedBy(['Done.'])
    const { code, out, err } = await stage.start(['run', 'Go.'], { stdin: null }).ended
    expect([code, out]).toEqual([0, 'Done.\n'])
    expect(err).toContain('going on without it')
  })

  it('B-CLI-165: an answer that was cut or refused says so, also with --quiet and in --json', async () => {
    await scriptedBy([
      { text: 'Half a sent', finish: 'length' },
      { text: 'Half a sent', finish: 'length' },
      { text: 'No.', finish: 'refusal' },
    ])
    const cut = await stage.terret('run', '--quiet', 'Tell.')
    expect(cut).toMatchObject({ code: 0, out: 'Half a sent\n' })
    expect(cut.err).toMatch(/The answer was cut: .*outputTokensMax/)
    expect(JSON.parse((await stage.terret('run', '--json', 'Tell.')).out)).toMatchObject({ stopReason: 'max_tokens' })
    expect((await stage.terret('run', 'Tell.')).err).toContain('The model refused to answer.')
  })

  it('B-CLI-166: the user may set what a model takes, and a value that is none is refused', async () => {
    const set = {
      outputTokensMax: 1_234,
      reasoning: 'low',
      temperature: 0.5,
      topP: 0.9,
      seed: 7,
      stop: ['END'],
      toolChoice: 'required',
      parallelToolCalls: false,
      cache: false,
      serviceTier: 'flex',
      headers: { 'x-team': 'blue' },
      body: { user: 'me' },
    }
    const { requests } = await scriptedBy(['Fine.'], set)
    expect(await stage.terret('run', 'Hello.')).toMatchObject({ code: 0 })
    expect(requests[0]?.body).toMatchObject({
      max_completion_tokens: 1_234,
      reasoning_effort: 'low',
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      stop: ['END'],
      tool_choice: 'required',
      parallel_tool_calls: false,
      service_tier: 'flex',
      user: 'me',
    })
    expect(requests[0]?.headers).toMatchObject({ 'x-team': 'blue' })
    for (const wrong of [
      { outputTokensMax: 0 },
      { outputTokensMax: 'many' },
      { reasoning: 'much' },
      { temperature: 3 },
      { topP: '1' },
      { seed: -1 },
      { stop: 'END' },
      { toolChoice: 'any' },
      { parallelToolCalls: 1 },
      { cache: 'long' },
      { serviceTier: '' },
      { headers: [] },
      { body: [] },
    ]) {
      stage.configure({ model: 'offline:any', ...wrong })
      const { code, err } = await stage.terret('run', 'Hello.')
      expect([code, err]).toEqual([7, expect.stringContaining(`"${Object.keys(wrong)[0]}" must be`)])
    }
  })

  it('B-CLI-214: tools of the provider stand in the configuration, and one that is none or that the host lacks is refused', async () => {
    const bodies: unknown[] = []
    const server = createServer((request, response) => {
      void json(request).then((body) => {
        bodies.push(body)
        response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}')
      })
    })
    await new Promise<void>((up) => server.listen(0, '127.0.0.1', up))
    onTestFinished(() => void server.close())
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const host = { model: 'openai:gpt-5.1', endpoints: { openai: { baseUrl, keys: [] } } }
    const tools = ['code_execution', { type: 'web_search', contextSize: 'low' }]
    stage.configure({ ...host, providerTools: tools })
    await stage.terret('run', 'Hello.')
    const [first] = bodies as readonly { readonly tools: readonly { readonly type: string }[] }[]
    expect(first?.tools).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: 'code_interpreter' }),
        expect.objectContaining({ type: 'web_search', search_context_size: 'low' }),
      ]),
    )
    for (const [providerTools, said] of [
      ['web_search', '"providerTools" must be a list'],
      [['web_serch'], '"providerTools[0]" must be web_search, web_fetch'],
      [[{ maxUses: 1 }], '"providerTools[0]" must be web_search, web_fetch'],
      [['web_search', 'web_search'], 'lists web_search twice'],
      [[{ type: 'web_search', contxtSize: 'low' }], 'contextSize'],
      [['web_fetch'], 'openai:gpt-5.1 has no web_fetch of its own'],
    ] as const) {
      stage.configure({ ...host, providerTools })
      const { code, err } = await stage.terret('run', 'Hello.')
      expect([code, err]).toEqual([7, expect.stringContaining(said)])
    }
    expect(bodies).toHaveLength(1)
  })

  it('B-CLI-3: without a model, and without a key, nothing is begun and the ways to give one are named', async () => {
    const none = await stage.terret('run', 'Hello.')
    expect(none).toMatchObject({ code: 7, out: '' })
    expect(lastLine(none.err)).toMatch(/terret init .*--model PROVIDER:MODEL.*offline:any/)
    const keyless = await stage.terret('run', '--model', 'anthropic:claude-x', 'Hello.')
    expect(keyless.code).toBe(7)
    expect(lastLine(keyless.err)).toContain(
      `Set ANTHROPIC_API_KEY, or put ANTHROPIC_API_KEY=… into ${stage.config}/.env`,
    )
    expect((await stage.terret('list', '--all')).out).toBe('')
  })

  it('B-CLI-4: by default reads run and each write is asked; a yes to one is no yes to the next, in whatever process the session goes on', async () => {
    await scriptedBy([
      { calls: [{ tool: 'list', args: { path: '.' } }] },
      { calls: [write('one.txt', '1')] },
      { calls: [write('two.txt', '2'), write('three.txt', '3')] },
      { calls: [{ tool: 'write', args: { content: '3', path: './three.txt' } }] },
      'Done.',
    ])
    const parked = await stage.terret('run', 'Write three files.')
    expect(parked.code).toBe(3)
    expect(existsSync(join(stage.folder, 'one.txt'))).toBe(false)
    expect((await stage.apart('approve', 'latest', '--by', 'ana')).code).toBe(0)
    expect((await stage.apart('resume', 'latest')).code).toBe(3)
    await stage.apart('worker', '--idle')
    expect(existsSync(join(stage.folder, 'two.txt'))).toBe(false)
    const [two, three] = (await stage.terret('pending', '--json')).out.trimEnd().split('\n')
    const callOf = (line = '{}'): string => (JSON.parse(line) as { callId: string }).callId
    await stage.terret('approve', 'latest', callOf(two), '--by', 'ana')
    // The no: the model repeats the call in another spelling, and is asked about again.
    expect((await stage.terret('reject', 'latest', callOf(three), '--by', 'ana', '--resume')).code).toBe(3)
    expect((await stage.terret('pending')).out).toContain('the same call was refused before in this run')
    expect([existsSync(join(stage.folder, 'two.txt')), existsSync(join(stage.folder, 'three.txt'))]).toEqual([
      true,
      false,
    ])
    expect((await stage.terret('reject', 'latest', '--by', 'ana', '--resume')).code).not.toBe(3)
    expect(existsSync(join(stage.folder, 'three.txt'))).toBe(false)
    const { out } = await stage.terret('history', 'latest', '--event', 'user.tool_confirmation')
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => line.replace(/^.*confirmation\s+\S+ /, '')),
    ).toEqual(['allowed by ana', 'allowed by ana', 'refused by ana', 'refused by ana'])
  })

  it('B-CLI-5: a later run asks anew, and a rule of the policy asks each time', async () => {
    stage.write('policy.json', JSON.stringify({ rules: [{ effect: 'ask', tool: 'write', path: 'sharp/**' }] }))
    await scriptedBy(
      [
        { calls: [write('one.txt', '1')] },
        { calls: [write('sharp/two.txt', '2')] },
        'Done.',
        { calls: [write('three.txt', '3')] },
      ],
      { approvals: { policy: join(stage.folder, '..', 'policy.json') } },
    )
    await stage.terret('run', 'Write.')
    const sharp = await stage.terret('approve', 'latest', '--resume')
    expect(sharp.code).toBe(3)
    expect(sharp.err).toContain('  sharp/two.txt\n')
    expect((await stage.terret('approve', 'latest', '--resume')).code).toBe(0)
    expect((await stage.terret('run', '--continue', 'One more.')).code).toBe(3)
    expect(existsSync(join(stage.folder, 'three.txt'))).toBe(false)
  })

  it('B-CLI-6: bash is there only if configured, and asks each time, also in a run where a write was allowed', async () => {
    const bash = (command: string) => ({ calls: [{ tool: 'bash', args: { command } }] })
    await scriptedBy([bash('echo one > one'), 'There is none.'])
    expect((await stage.terret('run', 'Try.')).err).toContain('unknown tool "bash"')
    await provider.chaos?.close()
    await scriptedBy([{ calls: [write('a', 'a')] }, bash('echo one'), bash('echo two'), 'Done.'], { bash: true })
    await stage.terret('run', 'Try.')
    expect((await stage.terret('approve', 'latest', '--resume')).code).toBe(3)
    expect((await stage.terret('approve', 'latest', '--resume')).code).toBe(3)
    expect((await stage.terret('approve', 'latest', '--resume')).code).toBe(0)
  })

  it.skipIf(noBubblewrap)(
    'B-CLI-159: neither bash nor a script of a skill sees the keys of the command line',
    async () => {
      // Not in /tmp, which is another folder in there.
      const config = mkdtempSync('/var/tmp/terret-config-')
      const file = join(config, 'terret', '.env')
      try {
        const look = (tool: string, args: object) => ({ calls: [{ tool, args: args as Record<string, string> }] })
        const server = await scriptedBy([
          look('bash', { command: `cat ${file}` }),
          look('skill_run', { name: 'a', script: 'look.sh' }),
          'Done.',
        ])
        const skills = dirname(dirname(stage.write('skills/a/look.sh', `cat ${file}; echo looked`)))
        stage.write('skills/a/SKILL.md', '---\nname: a\n---\nLook.\n')
        mkdirSync(dirname(file))
        writeFileSync(file, 'ODD_KEY=canary-4711\n')
        const settings = { ...endpoint(server.url), bash: true, skills: [skills], tools: ['skill_read', 'skill_run'] }
        writeFileSync(join(config, 'terret', 'config.json'), JSON.stringify(settings))
        const { ended } = stage.start(['run', '--mode', 'auto', 'Look.'], { env: { XDG_CONFIG_HOME: config } })
        expect((await ended).code).toBe(0)
        const said = JSON.stringify(server.requests.map(({ body }) => body))
        expect(said).toContain('looked')
        expect(said).not.toContain('ODD_KEY')
      } finally {
        rmSync(config, { recursive: true })
      }
    },
  )

  it('B-CLI-7: in plan mode nothing that changes anything is offered; in auto mode writes run unasked', async () => {
    const { requests } = await scriptedBy([{ calls: [write('a', 'a')] }, 'No.', { calls: [write('a', 'a')] }, 'Done.'])
    expect((await stage.terret('run', '--mode', 'plan', 'Write.')).code).toBe(0)
    expect(existsSync(join(stage.folder, 'a'))).toBe(false)
    expect(JSON.stringify(requests[0]?.body)).not.toContain('"name":"write"')
    expect((await stage.terret('run', '--mode', 'auto', 'Write.')).code).toBe(0)
    expect(readFileSync(join(stage.folder, 'a'), 'utf8')).toBe('a')
    expect((await stage.terret('run', '--mode', 'yolo', 'x')).err).toMatch(/terret: --mode must be plan, ask or auto/)
  })

  it('B-CLI-8: with --on-ask deny a question counts as a no, and the run goes on', async () => {
    await scriptedBy([{ calls: [write('a', 'a')] }, 'Then not.'])
    expect(await stage.terret('run', '--on-ask', 'deny', 'Write.')).toMatchObject({ code: 0, out: 'Then not.\n' })
    expect(existsSync(join(stage.folder, 'a'))).toBe(false)
  })

  it('B-CLI-9: --continue goes on with the last session of the folder, and the model sees what was said before', async () => {
    const { requests } = await scriptedBy(['First.', 'Second.'])
    await stage.terret('run', 'My name is Ana.')
    expect(await stage.terret('run', '-c', 'What is my name?')).toMatchObject({ code: 0, out: 'Second.\n' })
    expect(JSON.stringify(requests[1]?.body)).toContain('My name is Ana.')
    expect((await stage.terret('list', '--json')).out.trimEnd().split('\n')).toHaveLength(1)
  })

  it('B-CLI-10: --verbose shows the address and the body as sent, and no key', async () => {
    await scriptedBy(['Done.'], {})
    const { url } = provider.chaos ?? { url: '' }
    stage.configure({ model: 'fake:m', endpoints: { fake: { baseUrl: `${url}/v1`, keys: ['FAKE_API_KEY'] } } })
    const secret = 'sk-0123456789abcdef'
    stage.write('config/terret/.env', `FAKE_API_KEY=${secret}\n`)
    const { code, err, out } = await stage.terret('run', '--verbose', `Never say ${secret}.`)
    expect(code).toBe(0)
    expect(err).toContain(`POST ${url}/v1/chat/completions`)
    expect(err).toContain('"stream":true')
    expect(err).toContain('⟦secret:FAKE_API_KEY⟧')
    expect(err + out).not.toContain(secret)
  })

  it('B-CLI-11: a limit, a failed run and an unreachable model have exit codes of their own, and say what to do', async () => {
    await scriptedBy([{ calls: [{ tool: 'list', args: {} }] }, 'x'], { limits: { modelRequests: 1 } })
    expect(await stage.terret('run', 'Look.')).toMatchObject({ code: 4 })
    await provider.chaos?.close()
    await scriptedBy([{ status: 'unauthorized' }, { status: 'unauthorized' }])
    const refused = await stage.terret('run', 'Look.')
    expect(refused.code).toBe(1)
    expect(refused.err.match(/HTTP 401/g)).toHaveLength(1)
    expect(refused.err).toMatch(/^Check the key and the account, then try again\.$/m)
    expect((await stage.terret('run', '--quiet', 'Look.')).err.match(/HTTP 401/g)).toHaveLength(1)
    expect(refused.err).toMatch(/Go on with: terret resume [0-9a-f]{8}/)
    const { url } = provider.chaos ?? { url: '' }
    await provider.chaos?.close()
    stage.configure({ ...endpoint(url), limits: { modelAttempts: 1 } })
    const unreachable = await stage.terret('run', 'Look.')
    expect(unreachable.code).toBe(1)
    expect(unreachable.err).toMatch(/Given up after 1 try\./)
    // Nothing was lost: the same session goes on when the model is back.
    await scriptedBy(['Back.'])
    expect(await stage.terret('resume', 'latest')).toMatchObject({ code: 0, out: 'Back.\n' })
  })

  it('B-CLI-12: undo takes back what a run wrote, and leaves alone what was changed since', async () => {
    stage.write('work/kept.txt', 'old')
    await scriptedBy([{ calls: [write('kept.txt', 'new'), write('made.txt', 'x')] }, 'Done.'])
    await stage.terret('run', '--mode', 'auto', 'Write.')
    stage.write('work/made.txt', 'mine')
    const undone = await stage.terret('undo', 'latest')
    expect(undone.code).toBe(9)
    expect(undone.out.trimEnd().split('\n').toSorted()).toEqual([
      'kept.txt: put back as it was',
      'made.txt: left alone: it was changed since',
    ])
    expect(readFileSync(join(stage.folder, 'kept.txt'), 'utf8')).toBe('old')
    expect(readFileSync(join(stage.folder, 'made.txt'), 'utf8')).toBe('mine')
  })
})
