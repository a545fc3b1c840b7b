// Servers that are killed, stopped, restarted on another file, or out of disk; and readers that do not read. Real processes.
import { copyFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { STREAMS_LIMIT } from '../../src/server/sse.ts'
import type { Event } from '../../src/kernel/index.ts'
import type {
  EventsAnswer,
  OpenedAnswer,
  ResultAnswer,
  SessionAnswer,
  SessionPage,
  WireReceipt,
} from '../../src/server/wire.ts'
import { stageOfEach } from '../cli/scripted.ts'
import { TABLE } from '../../src/cli/table.ts'
import { until } from '../until.ts'
import { type Serving, serving } from './process.ts'
import { type Frame, served, type Served, streamed } from './served.ts'

const { scriptedBy, stage } = stageOfEach()

const auth = ({ token }: Pick<Serving, 'token'>, more = {}): Record<string, string> => ({
  authorization: `Bearer ${token}`,
  ...more,
})
const seqsOf = (frames: readonly Frame[]): readonly number[] =>
  frames.filter(({ event }) => event === 'event').map(({ data }) => data['seq'] as number)
const saidIn = (frames: readonly Frame[]): string =>
  frames
    .filter(({ event }) => event === 'delta')
    .map(({ data }) => data['text'] as string)
    .join('')

async function opened(one: Serving, ask = {}): Promise<string> {
  return (await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: { input: 'Go.' }, ...ask })).session
}

async function logOf(one: Serving, session: string): Promise<readonly Event[]> {
  return (await one.json<EventsAnswer>('GET', `/v1/sessions/${session}/events?limit=1000`)).events
}

describe('a server that', () => {
  it('B-SERVE-33: is killed in the middle of a reply and started again: the stream goes on, the run too, the lost attempt is in the log, and no text is doubled', async () => {
    const text = 'Once upon a time there was a log. '.repeat(40)
    await scriptedBy([
      { text, deltas: 200, chaos: { stallAfterBytes: 9_000 } },
      { text, deltas: 200 },
    ])
    const one = await serving(stage)
    const session = await opened(one)
    const first = streamed(one.port, `/v1/sessions/${session}/stream`, auth(one))
    await until(() => expect(saidIn(first.frames).length).toBeGreaterThan(100))
    const seen = seqsOf(first.frames)
    one.child.kill('SIGKILL')
    await one.ended
    const two = await serving(stage)
    const startedAt = Date.now()
    const stream = streamed(
      two.port,
      `/v1/sessions/${session}/stream?store=${String(first.frames[0]?.data['store'])}`,
      auth(two, { 'last-event-id': String(seen.at(-1)) }),
    )
    await until(() => expect(stream.frames[0]?.event).toBe('hello'))
    const liveMs = Date.now() - startedAt
    await until(() => expect(seqsOf(stream.frames).length).toBeGreaterThan(0))
    const goesOnMs = Date.now() - startedAt
    await until(() => expect(stream.frames.at(-1)).toMatchObject({ event: 'event', data: { type: 'run.settled' } }))
    const log = await logOf(two, session)
    expect([...seen, ...seqsOf(stream.frames)]).toEqual(log.map(({ seq }) => seq))
    expect(log.filter(({ type }) => type === 'model.failed')).toMatchObject([{ class: 'lost' }])
    const replies = log.filter((event) => event.type === 'agent.message')
    expect(replies.map(({ parts }) => parts)).toEqual([[{ type: 'text', text }]])
    expect(text.startsWith(saidIn(stream.frames)) || saidIn(stream.frames) === '').toBe(true)
    console.log(`after the restart: live in ${liveMs} ms, the run goes on in ${goesOnMs} ms`)
  })

  it('B-SERVE-34: is told to stop while a hundred sessions run: every stream hears bye, it ends within ten seconds, and another server brings all to their end', async () => {
    const count = 100
    const stalls = Array.from({ length: count }, () => ({ text: 'Slow.', chaos: { stallAfterBytes: 0 } }))
    await scriptedBy([...stalls, ...Array.from({ length: count }, () => 'Done.')])
    const one = await serving(stage, '--width', '100')
    const sessions: string[] = []
    for (let n = 0; n < count; n++) sessions.push(await opened(one))
    await until(async () => {
      const { driving } = await one.json<{ readonly driving: number }>('GET', '/v1/health')
      expect(driving).toBe(count)
    })
    const stream = streamed(one.port, `/v1/sessions/${sessions[0]}/stream`, auth(one))
    await until(() => expect(stream.frames.length).toBeGreaterThan(0))
    const from = Date.now()
    one.child.kill('SIGTERM')
    expect((await one.ended).code).toBe(0)
    console.log(`told to stop with ${count} runs: ended in ${Date.now() - from} ms`)
    expect(stream.frames.at(-1)).toMatchObject({ event: 'bye', data: { reason: 'closing' } })
    const two = await serving(stage, '--width', '100')
    for (const session of sessions)
      await until(async () => {
        const { result } = await two.json<ResultAnswer>('GET', `/v1/sessions/${session}/result`)
        expect(result).toMatchObject({ status: 'completed', text: 'Done.' })
      })
  })

  it('B-SERVE-35: is restarted: the same Idempotency-Key is the same receipt', async () => {
    await scriptedBy(['Done.', 'Done.'])
    const one = await serving(stage)
    const headers = { 'idempotency-key': 'once' }
    const session = await opened(one, { headers })
    const send = (of: Serving) =>
      of.json<WireReceipt>('POST', `/v1/sessions/${session}/messages`, {
        headers: { 'idempotency-key': 'twice' },
        body: { input: 'More.' },
      })
    const receipt = await send(one)
    one.child.kill('SIGKILL')
    await one.ended
    const two = await serving(stage)
    expect(await opened(two, { headers })).toBe(session)
    expect(await send(two)).toMatchObject({ eventId: receipt.eventId, seq: receipt.seq, duplicate: true })
    expect((await logOf(two, session)).filter(({ type }) => type === 'user.message')).toHaveLength(2)
  })

  it('B-SERVE-45: is restarted: the same Idempotency-Key with another body is 422, for a session, a message, a stop and a fork', async () => {
    await scriptedBy(['Done.', 'Done.', 'Done.'])
    const one = await serving(stage)
    const headers = { 'idempotency-key': 'open' }
    const session = await opened(one, { headers })
    const asks: readonly (readonly [string, object, object])[] = [
      ['messages', { input: 'More.' }, { input: 'Less.' }],
      ['interrupt', { mode: 'stop' }, { mode: 'pause' }],
      ['fork', { at: 1 }, { at: 2 }],
    ]
    const statusOf = async (of: Serving, path: string, body: object): Promise<number> =>
      (await of.ask('POST', `/v1/sessions/${session}/${path}`, { headers: { 'idempotency-key': path }, body })).status
    const first: number[] = []
    for (const [path, body] of asks) first.push(await statusOf(one, path, body))
    expect(first.every((status) => status < 300)).toBe(true)
    one.child.kill('SIGKILL')
    await one.ended
    const two = await serving(stage)
    expect((await two.ask('POST', '/v1/sessions', { headers, body: { input: 'Other.' } })).status).toBe(422)
    const cards = await two.json<SessionPage>('GET', '/v1/sessions')
    for (const [i, [path, same, other]] of asks.entries())
      expect([path, await statusOf(two, path, same), await statusOf(two, path, other)]).toEqual([path, first[i], 422])
    expect((await two.json<SessionPage>('GET', '/v1/sessions')).sessions.length).toBe(cards.sessions.length)
  })

  it('B-SERVE-36: finds an older copy of its file: it does not start, and once that is accepted a reader who saw more is told that the store changed', async () => {
    await scriptedBy(['Done.', 'Done.'])
    const database = join(stage.home, 'terret.db')
    const one = await serving(stage)
    const session = await opened(one)
    await until(async () => expect((await logOf(one, session)).at(-1)?.type).toBe('run.settled'))
    one.child.kill('SIGTERM')
    await one.ended
    copyFileSync(database, `${database}.old`)
    const two = await serving(stage)
    await two.json('POST', `/v1/sessions/${session}/messages`, { body: { input: 'More.' } })
    await until(async () =>
      expect((await logOf(two, session)).filter(({ type }) => type === 'run.settled')).toHaveLength(2),
    )
    const head = (await logOf(two, session)).length
    two.child.kill('SIGTERM')
    await two.ended
    copyFileSync(`${database}.old`, database)
    for (const end of ['-wal', '-shm']) rmSync(`${database}${end}`, { force: true })
    const refused = await stage.apart('serve', '--port', '0')
    expect([refused.code, refused.err]).toEqual([8, expect.stringContaining('older')])
    await stage.apart('doctor', '--accept-store')
    rmSync(`${database}-mark`, { force: true })
    const three = await serving(stage)
    const answer = await three.ask('GET', `/v1/sessions/${session}/stream`, {
      headers: { 'last-event-id': String(head) },
    })
    expect([answer.status, answer.text]).toEqual([409, expect.stringContaining('store changed')])
  })

  it('B-SERVE-37: drives a session that was opened by the command line, and one that a worker drives is only read', async () => {
    await scriptedBy([{ calls: [{ tool: 'ask_user', args: { question: 'Well?' } }] }, 'Done.'])
    const asked = await stage.terret('run', 'Ask me.', '--json')
    const { session } = JSON.parse(asked.out) as { readonly session: string }
    const one = await serving(stage)
    const { pending } = await one.json<SessionAnswer>('GET', `/v1/sessions/${session}`)
    const [call] = pending
    expect(call).toMatchObject({ needs: 'answer', tool: 'ask_user' })
    await one.json('POST', `/v1/sessions/${session}/answers`, { body: { callId: call?.callId, content: 'Yes.' } })
    expect(await one.json('GET', `/v1/sessions/${session}/result?wait=20`)).toMatchObject({
      result: { status: 'completed' },
    })
  })
})

describe('the command line with --server', () => {
  it('B-SERVE-31, B-SERVE-92: the command line with --server reads and says what it does locally: list, inspect, pending, approve, answer, fork, interrupt, export, delete; and its own token goes to no other address', async () => {
    await scriptedBy([{ calls: [{ tool: 'write', args: { path: 'a.txt', content: 'hello' } }] }, 'Done.'])
    const one = await serving(stage)
    const far = (...args: readonly string[]) => stage.terret('--server', one.url, ...args)
    const started = await far('run', 'Write it.', '--json')
    expect([started.code, JSON.parse(started.out)]).toMatchObject([
      3,
      { status: 'requires_action', pending: [{ tool: 'write' }] },
    ])
    const { session } = JSON.parse(started.out) as { readonly session: string }
    for (const args of [
      ['list'],
      ['list', '--json'],
      ['inspect', session],
      ['pending', session],
      ['history', session],
      ['tail', session, '--settled'],
      ['export', session],
    ]) {
      const [here, there] = [await stage.terret(...args), await far(...args)]
      expect([args, there.code, withoutServer(there.out, one.url)]).toEqual([args, here.code, here.out])
    }
    expect((await far('approve', session)).code).toBe(0)
    await until(async () => {
      const { card } = await one.json<SessionAnswer>('GET', `/v1/sessions/${session}`)
      expect(card.outcome).toBe('completed')
    })
    expect((await far('approve', session)).code).toBe(9)
    const forked = JSON.parse((await far('fork', session, '--json')).out) as { readonly session: string }
    expect((await stage.terret('inspect', forked.session)).code).toBe(0)
    expect((await far('interrupt', forked.session)).code).toBe(0)
    expect((await far('undo', session)).out).toContain('removed')
    // B-SCHED-16: the same line schedules and cancels there.
    const wake = await far('wake', session, '--in', '2h', '--key', 'a', '--json')
    expect([wake.code, JSON.parse(wake.out)]).toMatchObject([0, { session, key: 'a', duplicate: false }])
    expect((await far('wake', session, '--cancel', 'a')).out).toBe('Cancelled "a".\n')
    // B-TITLE-12: and gives a title there.
    expect((await far('rename', session, 'From', 'afar')).out).toBe(`${session.slice(0, 8)} is now "From afar".\n`)
    expect((await stage.terret('list')).out).toContain('From afar')
    expect((await far('delete', forked.session, '--yes')).code).toBe(0)
    expect((await far('inspect', forked.session)).code).toBe(6)
    expect((await far('doctor')).err).toContain('leave out --server')
    const wrong = await stage.terretIn({ env: { TERRET_TOKEN: 'x'.repeat(43) } }, '--server', one.url, 'list')
    expect([wrong.code, wrong.err]).toEqual([7, expect.stringContaining('token')])
    const stranger = await stage.terret('--server', 'http://127.0.0.1:1', 'list')
    expect([stranger.code, stranger.err]).toEqual([7, expect.stringContaining('your own token is not sent to it')])
    const nobody = await stage.terretIn(
      { env: { TERRET_TOKEN: 'x'.repeat(43) } },
      '--server',
      'http://127.0.0.1:1',
      'list',
    )
    expect([nobody.code, nobody.err]).toEqual([8, expect.stringContaining('cannot be reached')])
  })
})

describe('several servers of one data folder', () => {
  it('B-SERVE-103: each is known until it ends, whichever was started last, and one that was killed is not', async () => {
    const end = async ({ child, ended }: Serving, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> => {
      child.kill(signal)
      await ended
    }
    const listed = async ({ url }: Serving) => (await stage.terret('--server', url, 'list')).code
    const records = () => readdirSync(stage.home).filter((name) => name.startsWith('server'))
    const first = await serving(stage)
    const second = await serving(stage)
    expect([await listed(first), await listed(second)]).toEqual([0, 0])
    await end(second)
    expect([await listed(first), await listed(second)]).toEqual([0, 7])
    const third = await serving(stage)
    await end(third, 'SIGKILL')
    expect(await listed(third)).toBe(7)
    const fourth = await serving(stage)
    await fourth.says(
      `Another server drives the sessions of this data folder too: ${first.url} (process ${first.child.pid})`,
    )
    expect(records()).toEqual([`server-${first.child.pid}.json`, `server-${fourth.child.pid}.json`].toSorted())
    await end(fourth)
    const { err } = await end(first).then(() => first.ended)
    expect([err, records()]).toEqual(['', []])
  })

  it('B-SERVE-104: --server without an address is the server of the data folder that was started last and runs', async () => {
    const none = await stage.terret('--server', 'list')
    expect([none.code, none.err]).toEqual([7, expect.stringContaining('No server of this data folder runs.')])
    await scriptedBy(['Hello.'])
    const first = await serving(stage)
    expect((await stage.terret('--server', first.url, 'run', 'Say hello.')).code).toBe(0)
    const second = await serving(stage)
    const newest = await stage.terret('--server', 'delete', 'latest')
    expect(newest.err).toContain(`terret --server ${second.url} delete `)
    expect((await stage.terret('list', '--server')).out).toContain('Say hello.')
    second.child.kill('SIGTERM')
    await second.ended
    const left = await stage.terret('--server', '--data', stage.home, 'delete', 'latest')
    expect(left.err).toContain(`terret --server ${first.url} delete `)
    expect((await stage.refused('--server=', 'list')).err).toContain('--server needs a value')
  })
})

/** What is printed names the server in each command to paste. */
const withoutServer = (text: string, url: string): string => text.replaceAll(` --server ${url}`, '')

describe('commands that are printed with --server', () => {
  it('B-NAMES-2: each of them names the server too, so that it can be pasted', async () => {
    const calls = [{ tool: 'write', args: { path: 'a.txt', content: 'hello' } }]
    await scriptedBy([{ calls }, 'Done.', { calls }, 'Done.'])
    const one = await serving(stage)
    const far = (...args: readonly string[]) => stage.terret('--server', one.url, ...args)
    const started = await far('run', 'Write it.')
    const { session } = JSON.parse((await far('list', '--json')).out.split('\n')[0] ?? '') as {
      readonly session: string
    }
    const said = [
      started,
      await far('list'),
      await far('pending'),
      await far('inspect', session),
      await far('delete', 'latest'),
    ]
    said.push(await far('inspect', 'bogus'), await far('approve', session, 'bogus'), await far('interrupt', session))
    const commands = said.flatMap(
      ({ out, err }) => `${out}\n${err}`.match(/terret (?!:)(?:--\S+ )?[a-z]+[^`]*?(?= {3}|`|$)/gm) ?? [],
    )
    expect(commands.length).toBeGreaterThan(7)
    expect(commands.filter((command) => !command.startsWith(`terret --server ${one.url} `))).toEqual([])
    const approve = /terret (--server \S+ approve [^\n]*?)(?: {3}|\n|$)/.exec(said[2]?.out ?? '')?.[1]
    expect(approve).toBeDefined()
  })
})

describe('pending with --server', () => {
  it('B-SERVE-102: shows what waits there, whichever folder it is run in', async () => {
    await scriptedBy([{ calls: [{ tool: 'write', args: { path: 'a.txt', content: 'hello' } }] }, 'Done.'])
    const one = await serving(stage)
    await stage.terret('--server', one.url, 'run', 'Write it.')
    const elsewhere = join(stage.folder, 'elsewhere')
    mkdirSync(elsewhere)
    const { out, err } = await stage.terretIn({ cwd: elsewhere }, '--server', one.url, 'pending')
    expect(err).not.toContain('Nothing waits')
    expect(out).toContain('approve')
  })
})

describe('list with --server', () => {
  it('B-CLI-302: --status requires_action has a session of which only a child waits for a person', async () => {
    const has = ({ body }: { readonly body: unknown }, text: string) => JSON.stringify(body).includes(text)
    await scriptedBy((request) => {
      if (!has(request, 'Lead them.')) return { calls: [{ tool: 'write', args: { path: 'a.txt', content: 'Gold.' } }] }
      return has(request, 'spawned_new')
        ? 'I started it.'
        : { calls: [{ tool: 'spawn_subagent', args: { prompt: 'Dig here.' } }] }
    })
    const one = await serving(stage)
    const far = (...args: readonly string[]) => stage.terret('--server', one.url, ...args)
    await far('run', 'Lead them.')
    await until(async () => expect((await far('pending')).out).toContain('a.txt'))
    for (const more of [[], ['--all']]) {
      const { out, err } = await far('list', '--status', 'requires_action', ...more)
      expect([out, err]).toEqual([expect.stringContaining('Lead them.'), expect.stringContaining('waits for you')])
    }
  })
})

describe('resume with --server', () => {
  it('B-SERVE-96: tells a run that was stopped to go on, and refuses a session that had no run, as it does here', async () => {
    await scriptedBy([{ calls: [{ tool: 'write', args: { path: 'a.txt', content: 'hello' } }] }, 'Done.', 'Done.'])
    const one = await serving(stage)
    const far = (...args: readonly string[]) => stage.terret('--server', one.url, ...args)
    const session = await opened(one)
    await until(async () => {
      const { card } = await one.json<SessionAnswer>('GET', `/v1/sessions/${session}`)
      expect(card.status).toBe('requires_action')
    })
    expect((await far('interrupt', session)).code).toBe(0)
    await until(async () => expect((await logOf(one, session)).at(-1)?.type).toBe('run.settled'))
    expect(await far('resume', session)).toMatchObject({ code: 0, out: 'Done.\n' })
    expect((await logOf(one, session)).filter(({ type }) => type === 'run.started')).toHaveLength(2)
    const unused = await opened(one, { body: {} })
    const there = await far('resume', unused)
    expect([there.code, there.err]).toEqual([9, expect.stringContaining('has had no run yet')])
    expect(await stage.terret('resume', unused)).toEqual({ ...there, err: withoutServer(there.err, one.url) })
    expect((await far('resume', unused, 'Now', 'go.')).out).toBe('Done.\n')
  })
})

/** Those that take a session, with words after it that make sense. */
const LINES: Readonly<Record<string, readonly string[]>> = {
  answer: ['1.0', 'Yes.'],
  approve: ['--by', 'ana'],
  reject: ['--by', 'ana'],
  tail: ['--settled'],
}

describe('every command', () => {
  it('B-SERVE-48: with --server prints what it prints here, or is refused in one sentence that says what to do', async () => {
    await scriptedBy(Array.from({ length: 20 }, () => 'Done.'))
    const one = await serving(stage)
    const session = await opened(one)
    await one.json('GET', `/v1/sessions/${session}/result?wait=20`)
    const taking = Object.keys(TABLE)
      .filter((name) => /\bID\b/.test(TABLE[name]?.words ?? '') && !TABLE[name]?.words.includes('|'))
      // Nothing is left for those after it.
      .toSorted((a, b) => Number(a === 'delete') - Number(b === 'delete'))
    expect(taking.length).toBeGreaterThan(15)
    const equal: string[] = []
    const refused: string[] = []
    for (const name of taking) {
      const args = [name, session, ...(LINES[name] ?? [])]
      const there = await stage.terret('--server', one.url, ...args)
      if (there.err.includes('works on this machine only')) {
        expect([name, there.code, there.out, there.err]).toEqual([
          name,
          2,
          '',
          `terret: \`terret ${name}\` works on this machine only: leave out --server.\n`,
        ])
        refused.push(name)
        continue
      }
      // What changes something is not done twice.
      if (CHANGING.has(name)) expect([name, there.err.split('\n').length <= 3]).toEqual([name, true])
      else {
        const here = await stage.terret(...args)
        expect([name, there.code, withoutServer(there.out, one.url)]).toEqual([name, here.code, here.out])
      }
      equal.push(name)
    }
    expect(equal).toEqual(
      expect.arrayContaining(['inspect', 'history', 'tail', 'export', 'fork', 'interrupt', 'delete']),
    )
    console.log(`as here: ${equal.join(', ')}; refused: ${refused.join(', ')}`)
  })
})

const CHANGING: ReadonlySet<string> = new Set('fork interrupt undo delete wake resume'.split(' '))

describe('readers', () => {
  it('B-SERVE-27: that do not read hold up nobody, and cost no more than what their sockets take (F53)', async () => {
    const one: Served = await served([], { harness: { worker: { drives: false } } })
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: { input: 'Go.' } })
    const { store } = one.host
    const large = 'x'.repeat(200_000)
    const parts = [{ type: 'text', text: large }] as const
    for (let n = 0; n < 40; n++)
      await store.commit([
        { session, lane: 'inbox', events: [{ type: 'user.message', id: `m${n}`, parts, when: 'after' }] },
      ])
    const head = `Host: 127.0.0.1:${one.server.port}\r\nAuthorization: Bearer ${one.tokens.own}`
    const dead = Array.from({ length: 50 }, () => {
      const socket = connect(one.server.port, '127.0.0.1')
      socket.pause()
      socket.write(`GET /v1/sessions/${session}/stream HTTP/1.1\r\n${head}\r\n\r\n`)
      socket.on('error', () => {})
      return socket
    })
    await until(async () => expect(await one.json('GET', '/v1/health')).toMatchObject({ streams: 50 }))
    const before = process.memoryUsage().rss
    const honest = streamed(one.server.port, `/v1/sessions/${session}/stream?deltas=0`, {
      authorization: `Bearer ${one.tokens.own}`,
    })
    await until(() => expect(seqsOf(honest.frames).length).toBeGreaterThan(40))
    // Fifty whole logs would be 400 MB.
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024)
    honest.cut()
    for (const socket of dead) socket.destroy()
    await until(async () => expect(await one.json('GET', '/v1/health')).toMatchObject({ streams: 0 }))
  })

  it('B-SERVE-85: of one principal cannot take the streams of all', async () => {
    const one = await served(['Hello.'], { serve: { streamsLimit: { all: 400, own: 300 } } })
    const [vera, otto] = ['vera', 'otto'].map((name) => one.token({ name, role: 'viewer' }))
    const open = (token = '') => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      return streamed(one.server.port, '/v1/stream', headers, '{}')
    }
    const many: ReturnType<typeof open>[] = []
    for (let i = 0; i < 3; i++) {
      many.push(...Array.from({ length: 101 }, () => open(vera)))
      await until(() => expect(many.every((each) => each.status() > 0)).toBe(true))
    }
    expect(many.filter((each) => each.status() === 200)).toHaveLength(300)
    const other = open(otto)
    await until(() => expect(other.status()).toBe(200))
    for (const each of [...many, other]) each.cut()
    expect(STREAMS_LIMIT).toEqual({ all: 10_000, own: 7_500 })
  })
})
