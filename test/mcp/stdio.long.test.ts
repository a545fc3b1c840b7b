// `terret mcp serve` as a client starts it: the official client over the pipes of a real process, on a real file.
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { describe, expect, it, onTestFinished } from 'vitest'
import { stageOfEach } from '../cli/scripted.ts'
import { until } from '../until.ts'

const { scriptedBy, stage } = stageOfEach()
const write = (path: string, content: string) => ({ calls: [{ tool: 'write', args: { path, content } }] })

type Answer = Readonly<Record<string, unknown>>
type Served = { readonly client: Client; readonly transport: StdioClientTransport; readonly err: () => string }

async function serve(args: readonly string[] = [], cwd = stage.folder): Promise<Served> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [stage.command, 'mcp', 'serve', ...args],
    cwd,
    env: { ...stage.env },
    stderr: 'pipe',
  })
  let err = ''
  transport.stderr?.on('data', (text: Buffer) => {
    err += text.toString()
  })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport)
  onTestFinished(() => client.close())
  return { client, transport, err: () => err }
}

async function use({ client }: Served, name: string, args: Record<string, unknown> = {}): Promise<Answer> {
  const { content } = await client.callTool({ name, arguments: args })
  const [part] = content as readonly { readonly text: string }[]
  return JSON.parse(part?.text ?? '{}') as Answer
}

describe('terret mcp serve', () => {
  it('B-MCPS-13: a client starts a session here, and may decide only with a role that says so', async () => {
    await scriptedBy([write('a.txt', 'x'), 'Written.'])
    const usual = await serve()
    expect((await usual.client.listTools()).tools.map(({ name }) => name)).not.toContain('decide')
    const { session } = await use(usual, 'start', { input: 'Write it.' })
    await until(async () => expect(await use(usual, 'pending')).toMatchObject({ pending: [{ tool: 'write' }] }))
    expect(existsSync(join(stage.folder, 'a.txt'))).toBe(false)
    await usual.client.close()

    const admin = await serve(['--role', 'admin'])
    const { pending } = (await use(admin, 'pending')) as unknown as { pending: { callId: string; digest: string }[] }
    const [asked] = pending
    await use(admin, 'decide', { session, call: asked?.callId, allow: true, digest: asked?.digest })
    await until(async () =>
      expect(await use(admin, 'events', { session })).toMatchObject({ phase: 'idle', text: 'Written.' }),
    )
    expect(existsSync(join(stage.folder, 'a.txt'))).toBe(true)
    const { out } = await stage.apart('history', String(session), '--event', 'user.tool_confirmation', '--json')
    expect(JSON.parse(out)).toMatchObject({ by: expect.stringMatching(/ \(mcp\)$/) as string })
  })

  it('B-MCPS-14: after kill -9 the same start is the same session, and it goes on', async () => {
    const { requests } = await scriptedBy([
      { text: 'Half. '.repeat(100), deltas: 50, chaos: { stallAfterBytes: 1_000 } },
      'Whole.',
    ])
    const first = await serve()
    const { session } = await use(first, 'start', { input: 'Tell.', key: 'k' })
    await until(() => expect(requests).toHaveLength(1))
    process.kill(first.transport.pid ?? 0, 'SIGKILL')
    const second = await serve()
    expect(await use(second, 'start', { input: 'Tell.', key: 'k' })).toMatchObject({ session, duplicate: true })
    await until(async () =>
      expect(await use(second, 'events', { session })).toMatchObject({ phase: 'idle', text: 'Whole.' }),
    )
  })

  it('B-MCPS-15: sessions of another folder are not there', async () => {
    await scriptedBy(['Done.', 'Done.'])
    const here = await serve()
    const { session } = await use(here, 'start', { input: 'Hello.' })
    const other = join(dirname(stage.folder), 'other')
    mkdirSync(other)
    const there = await serve([], other)
    expect(await use(there, 'events', { session })).toMatchObject({ error: { code: 'session_missing' } })
    expect((await there.client.listResources()).resources).toEqual([])
    expect((await here.client.listResources()).resources).toHaveLength(1)
  })

  it('B-MCPS-16: flags of other verbs, unknown roles and agents are refused, and nothing is on standard output', async () => {
    await scriptedBy([])
    for (const [args, hint] of [
      [['mcp', 'serve', '--rol', 'admin'], '--role'],
      [['mcp', 'serve', '--role', 'admim'], 'admin'],
      [['mcp', 'serve', '--url', 'http://x'], '--url'],
      [['mcp', 'list', '--role', 'admin'], '--role'],
      [['mcp', 'serve', '--agent', 'nobody-has-this'], 'nobody-has-this'],
    ] as const) {
      const { code, out, err } = await stage.apart(...args)
      expect([code === 0, out]).toEqual([false, ''])
      expect(err).toContain(hint)
    }
  })
})
