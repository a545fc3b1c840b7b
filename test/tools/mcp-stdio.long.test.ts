// MCP servers as child processes, and what hostile ones do on a pipe. Judged by the process table and by what arrived.
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import type { Clock } from '../../src/ports/system.ts'
import { findPidNamespace } from '../../src/tools/mcp/stdio-transport.ts'
import { processesWith } from './box.ts'
import { toolContext } from './context.ts'
import { call, HandClock, McpBench, namesOf, toolsOf } from './mcp-bench.ts'
import { until } from '../until.ts'

let bench: McpBench
beforeEach(() => {
  bench = new McpBench()
  bench.lists(['echo'])
})
afterEach(async () => {
  vi.restoreAllMocks()
  await bench.close()
})

/** Only root gets one, and not in every container. */
const apart = (await findPidNamespace(runtimeClock)) !== null

/** A server that is deaf to its end is waited for a tenth as long. */
const quick: Clock = {
  now: () => runtimeClock.now(),
  timer: (ms, fire) => runtimeClock.timer(ms > 3_000 ? ms : ms / 10, fire),
}

const gone = (mark: string) => until(() => expect(processesWith(mark)).toEqual([]))

describe('the process', () => {
  it('B-MCP-40: it gets a short list of variables and those it was given, and nothing else', async () => {
    bench.lists(['env'])
    process.env['ODD_SECRET'] = 'canary-7a31'
    try {
      const { output } = await call(bench.server({ env: { MINE: 'yes' } }), 'odd__env')
      expect(output.content).not.toContain('canary-7a31')
      const env = JSON.parse(output.content) as Record<string, string>
      expect(env['MINE']).toBe('yes')
      const known = [
        'PATH',
        'HOME',
        'LANG',
        'LC_ALL',
        'LC_CTYPE',
        'TERM',
        'TZ',
        'TMPDIR',
        'PWD',
        'MINE',
        'TERRET_MCP_CHILD',
      ]
      expect(Object.keys(env).filter((name) => !known.includes(name))).toEqual([])
    } finally {
      delete process.env['ODD_SECRET']
    }
  })

  it('B-MCP-41: closing it ends all it started: in its group, out of it, and deaf to signals', async () => {
    const mark = `brood-${process.pid}-close`
    bench.lists(['breed'], { mark, deaf: true })
    const server = bench.server()
    await call(await toolsOf(server, quick), 'odd__breed')
    await until(() => expect(processesWith(mark)).toHaveLength(4))
    await server.close()
    expect([processesWith(mark), processesWith(bench.folder)]).toEqual([[], []])
  })

  it('B-MCP-104: a server that leaves when its input ends is closed without waiting by the clock', async () => {
    const still: Clock = { now: () => runtimeClock.now(), timer: () => () => {} }
    // Its exit and the end of its pipes come in any order, so one time shows little.
    for (let i = 0; i < 5; i++) {
      const server = bench.server()
      expect(await namesOf(server, still)).toEqual(['odd__echo'])
      await server.close()
      expect(processesWith(bench.folder)).toEqual([])
    }
  })

  it.skipIf(!apart)('B-MCP-65: in a pid namespace nothing gets away, whatever environment it has', async () => {
    const mark = `brood-${process.pid}-apart`
    bench.lists(['breed', 'die'], { mark, deaf: true, strangers: ['child', 'orphan'] })
    const server = bench.server()
    await call(await toolsOf(server, quick), 'odd__breed')
    await until(() => expect(processesWith(mark)).toHaveLength(6))
    await server.close()
    expect([processesWith(mark), processesWith(bench.folder)]).toEqual([[], []])
    await call(server, 'odd__breed')
    await until(() => expect(processesWith(mark)).toHaveLength(6))
    await call(server, 'odd__die')
    await gone(mark)
  })

  it('B-MCP-65: without one, the descendants of the server end too when it is closed', async () => {
    const mark = `brood-${process.pid}-plain`
    bench.lists(['breed'], { mark, strangers: ['child'] })
    vi.spyOn(process, 'getuid').mockReturnValue(1_000)
    vi.resetModules()
    // The next file must not get the modules that were loaded for this user.
    onTestFinished(() => void vi.resetModules())
    const { mcpServer } = await import('../../src/tools/mcp/mcp-server.ts')
    const odd = join(import.meta.dirname, 'mcp-servers', 'odd.mjs')
    const server = bench.keep(mcpServer({ name: 'odd', command: process.execPath, args: [odd, bench.folder] }))
    await call(server, 'odd__breed')
    await until(() => expect(processesWith(mark)).toHaveLength(5))
    await server.close()
    await gone(mark)
    expect(processesWith(bench.folder)).toEqual([])
  })

  it('B-MCP-66: what keeps it from starting is said', async () => {
    const nowhere = bench.server({ cwd: '/no/such' })
    expect([await toolsOf(nowhere), nowhere.status().troubles]).toEqual([
      [],
      ['There is no folder /no/such to start it in.'],
    ])
    const nothing = bench.server({ command: 'no-such-program' })
    expect([await toolsOf(nothing), nothing.status().troubles.join()]).toEqual([
      [],
      expect.stringMatching(/ended with code 127.*no-such-program.*not found/),
    ])
    const killed = bench.server({ command: 'sh', args: ['-c', 'kill -KILL $$'] })
    expect([await toolsOf(killed), killed.status().troubles]).toEqual([[], ['It was ended by SIGKILL.']])
  })

  it('B-MCP-42: a server that ends by itself takes along what it started', async () => {
    const mark = `brood-${process.pid}-exit`
    bench.lists(['breed', 'die'], { mark })
    const server = bench.server()
    await call(server, 'odd__breed')
    await until(() => expect(processesWith(mark)).toHaveLength(4))
    await call(server, 'odd__die')
    await gone(mark)
  })

  it.each([
    ['', ['child', 'orphan'].slice(0, apart ? 2 : 1)],
    ['without a pid namespace ', ['child']],
  ])('B-MCP-43: when the harness is killed %sthe server and all it started end', async (how, strangers) => {
    const mark = `brood-${process.pid}-orphan`
    bench.lists(['breed'], { mark, deaf: true, strangers })
    // The same transport in a process of its own, which is then killed without a chance to do anything.
    const built = (path: string): string => JSON.stringify(new URL(`../../.build/${path}`, import.meta.url).href)
    const script = `
      import { call } from ${built('test/tools/mcp-bench.js')}
      import { mcpServer } from ${built('src/tools/mcp/mcp-server.js')}
      ${how === '' ? '' : 'process.getuid = () => 1000'}
      const server = mcpServer({ name: 'odd', command: process.execPath, args: [${JSON.stringify(join(import.meta.dirname, 'mcp-servers', 'odd.mjs'))}, ${JSON.stringify(bench.folder)}] })
      await call(server, 'odd__breed')
      process.send('born')`
    const harness = spawn(process.execPath, ['--input-type=module', '-e', script], {
      cwd: resolve(import.meta.dirname, '../..'),
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    await new Promise((born) => harness.once('message', born))
    await until(() => expect(processesWith(mark)).toHaveLength(4 + strangers.length))
    harness.kill('SIGKILL')
    await gone(mark)
    await gone(bench.folder)
  })

  it('B-MCP-44: a connection that fails or is stopped leaves no process', async () => {
    bench.lists([], { silent: true, deaf: true })
    expect(await toolsOf(bench.server({ connectMs: 2_000 }), quick)).toEqual([])
    expect(processesWith(bench.folder)).toEqual([])
    // On a busy machine the first one was stopped before it could say that it started.
    const started = bench.count('start')
    const [server, stop] = [bench.server(), new AbortController()]
    const asked = toolsOf(server, quick, stop.signal)
    await until(() => expect(bench.count('start')).toBe(started + 1))
    stop.abort(new Error('enough'))
    await expect(asked).rejects.toThrow('enough')
    await gone(bench.folder)
    expect(server.status().troubles).toEqual([])
  })

  it('B-MCP-45: a run that is stopped does not take the connection from another that waits for it', async () => {
    const [server, stop] = [bench.server(), new AbortController()]
    const [first, second] = [toolsOf(server, undefined, stop.signal), toolsOf(server)]
    stop.abort(new Error('enough'))
    await expect(first).rejects.toThrow('enough')
    expect((await second).map(({ name }) => name)).toEqual(['odd__echo'])
    expect(bench.count('start')).toBe(1)
  })

  it('B-MCP-45: a run that begins while a stopped one is cleaned up gets a connection of its own', async () => {
    bench.lists(['echo'], { silent: true })
    const [server, stop] = [bench.server(), new AbortController()]
    const first = toolsOf(server, undefined, stop.signal)
    await until(() => expect(bench.count('start')).toBe(1))
    bench.lists(['echo'])
    stop.abort(new Error('enough'))
    await expect(first).rejects.toThrow('enough')
    expect(await namesOf(server)).toEqual(['odd__echo'])
    expect(bench.count('start')).toBe(2)
  })

  it('B-MCP-46: it is closed while it connects', async () => {
    bench.lists([], { silent: true })
    const server = bench.server()
    const asked = toolsOf(server)
    await until(() => expect(bench.count('start')).toBe(1))
    await server.close()
    expect([await asked, processesWith(bench.folder)]).toEqual([[], []])
  })
})

describe('a server that dies in a call', () => {
  it.each(['die', 'half'])('B-MCP-47: makes it unknown for once and unavailable for others (%s)', async (name) => {
    bench.lists([name, 'echo'])
    const once = await call(bench.server(), `odd__${name}`)
    expect(once).toMatchObject({
      kind: 'Unknown',
      output: { metadata: { error_type: 'MCPError', server: 'odd', tool: name } },
    })
    expect(once.output.content).toMatch(/may have happened.*ended with code/)
    const read = await call(bench.server({ effects: { [name]: 'read' } }), `odd__${name}`)
    expect(read).toMatchObject({ kind: 'Unavailable', output: { ok: false } })
    expect(read.output.content).not.toContain('may have happened')
    expect('retry' in read.output.metadata).toBe(false)
  })

  it('B-MCP-48: is started anew for the next call, and other servers do not notice', async () => {
    bench.lists(['die', 'echo'])
    const [server, other] = [bench.server(), bench.server({ name: 'other' })]
    const [frozen, others] = [await toolsOf(server), await toolsOf(other)]
    await call(frozen, 'odd__die')
    expect(await call(others, 'other__echo', { message: 'a' })).toMatchObject({ type: 'ok' })
    expect(await call(frozen, 'odd__echo', { message: 'b' })).toMatchObject({ output: { content: 'you said b' } })
    expect(bench.count('start')).toBe(3)
  })

  it('B-MCP-49: again and again is given time, more each time', async () => {
    const [clock, server] = [
      new HandClock(),
      bench.server({ command: 'sh', args: ['-c', `echo start >> ${bench.folder}/log`] }),
    ]
    const tries = async (): Promise<number> => {
      expect(await toolsOf(server, clock)).toEqual([])
      return bench.count('start')
    }
    expect([await tries(), await tries(), await tries()]).toEqual([1, 2, 2])
    expect(server.status().troubles.join()).toMatch(/tried again in 1 s/)
    clock.advance(1_000)
    expect([await tries(), await tries()]).toEqual([3, 3])
    clock.advance(1_000)
    expect(await tries()).toBe(3)
    clock.advance(1_000)
    expect(await tries()).toBe(4)
  })

  it('B-MCP-50: what it said last is in the message, without the secrets it was given', async () => {
    bench.lists(['die'])
    const { output } = await call(bench.server({ env: { ODD_KEY: 'key-5d20c1' } }), 'odd__die')
    expect(output.content).toMatch(/hello, my key is \[secret\]/)
  })
})

describe('what comes through the pipe', () => {
  it('B-MCP-51: lines that are no messages and lines in pieces do no harm', async () => {
    bench.lists(['junk'])
    const server = bench.server()
    expect(await call(server, 'odd__junk')).toMatchObject({ output: { content: 'clean' } })
    expect(server.status()).toMatchObject({ state: 'connected', dropped: 5 })
  })

  it('B-MCP-52: answers that come twice, late, or to no request are dropped and counted', async () => {
    bench.lists(['double', 'silent', 'echo'])
    const server = bench.server({ callMs: 200 })
    expect(await call(server, 'odd__double')).toMatchObject({ output: { content: 'the first' } })
    await until(() => expect(server.status().dropped).toBe(4))
    await call(server, 'odd__silent')
    expect(await call(server, 'odd__echo', { message: 'c' })).toMatchObject({ output: { content: 'you said c' } })
    expect(server.status()).toMatchObject({ state: 'connected', dropped: 5 })
  })

  it('B-MCP-53: a message over 8 MiB ends the connection, not the harness', async () => {
    bench.lists(['huge', 'echo'])
    const server = bench.server()
    const { kind, output } = (await call(server, 'odd__huge')) as Extract<
      Awaited<ReturnType<typeof call>>,
      { type: 'failed' }
    >
    expect([kind, output.content]).toEqual(['Unknown', expect.stringMatching(/message over 8388608 bytes/)])
    expect(await call(server, 'odd__echo', { message: 'd' })).toMatchObject({ type: 'ok' })
  })

  it('B-MCP-54: a list without end, or of too many tools, is refused', async () => {
    bench.lists(['echo'], { endless: true })
    const endless = bench.server()
    expect(await toolsOf(endless)).toEqual([])
    expect([bench.count('list'), endless.status().troubles]).toEqual([
      50,
      ['Its list of tools has more than 50 pages.'],
    ])
    bench.lists(['echo'], { many: 500 })
    const many = bench.server()
    expect(await toolsOf(many)).toEqual([])
    expect(many.status().troubles).toEqual(['It lists more than 500 tools.'])
    bench.lists(['echo'], { many: 499 })
    expect(await namesOf(bench.server())).toHaveLength(500)
  })

  it('B-MCP-55: a flood of notifications passes, and asks for no list each', async () => {
    bench.lists(['flood', 'echo'])
    const server = bench.server()
    const frozen = await toolsOf(server)
    expect(await call(frozen, 'odd__flood')).toMatchObject({ output: { content: 'dry' } })
    expect(await call(frozen, 'odd__echo', { message: 'e' })).toMatchObject({ type: 'ok' })
    // Once for the run and once before each call.
    expect(bench.count('list')).toBe(3)
  })

  it('B-MCP-56: a server that asks without end and reads no answer does not fill our memory', async () => {
    bench.lists(['nag'])
    const before = process.memoryUsage().rss
    const { kind } = (await call(bench.server({ callMs: 1_500 }), 'odd__nag')) as { kind: string }
    expect(['Timeout', 'Unknown']).toContain(kind)
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024)
  })

  it('B-MCP-57: what a server asks of us is refused, and a ping is answered', async () => {
    bench.lists(['ask'])
    const { output } = await call(bench.server(), 'odd__ask')
    const refused = -32_601
    expect(JSON.parse(output.content)).toEqual({
      'sampling/createMessage': refused,
      'elicitation/create': refused,
      'roots/list': refused,
      ping: {},
    })
  })
})

describe('a call', () => {
  it('B-MCP-58: without an answer in time it is unknown for once, and says what may have happened; else a timeout', async () => {
    bench.lists(['silent'])
    const once = await call(bench.server({ callMs: 150 }), 'odd__silent')
    expect(once).toMatchObject({ kind: 'Unknown', output: { metadata: { error_type: 'MCPError' } } })
    expect(once.output.content).toMatch(/within 150 ms. It may have happened/)
    const read = await call(bench.server({ callMs: 150, effects: { silent: 'read' } }), 'odd__silent')
    expect(read).toMatchObject({ kind: 'Timeout' })
    expect(read.output.content).not.toMatch(/may have happened/)
    await until(() => expect(bench.count('cancelled')).toBe(2))
  })

  it('B-MCP-59: that is stopped is cancelled at the server, and the connection stays', async () => {
    bench.lists(['silent', 'echo'])
    const [server, stop] = [bench.server(), new AbortController()]
    const done = call(server, 'odd__silent', {}, toolContext({ signal: stop.signal }))
    await until(() => expect(bench.count('call silent')).toBe(1))
    stop.abort()
    expect(await done).toMatchObject({ kind: 'Interrupted' })
    await until(() => expect(bench.count('cancelled')).toBe(1))
    expect(await call(server, 'odd__echo', { message: 'f' })).toMatchObject({ type: 'ok' })
    expect(bench.count('start')).toBe(1)
  })
})

describe('a result', () => {
  it('B-MCP-60: an error of the tool is one to try again, and no answer is ever empty', async () => {
    bench.lists(['error', 'empty'])
    const server = bench.server()
    expect(await call(server, 'odd__error')).toMatchObject({
      type: 'failed',
      retryKind: 'ModelRetry',
      output: {
        content: 'The disk is full.',
        metadata: { retry: true, error_type: 'MCPToolError', server: 'odd', tool: 'error' },
      },
    })
    expect((await call(server, 'odd__empty')).output.content).toBe('(nothing)')
  })

  it('B-MCP-61: an error of the protocol, or a result that is none, is a failure that names the server', async () => {
    bench.lists(['refuse', 'nonsense'])
    const server = bench.server()
    const refused = await call(server, 'odd__refuse')
    expect(refused).toMatchObject({ kind: 'Failed', output: { metadata: { error_type: 'MCPError', server: 'odd' } } })
    expect(refused.output.content).toMatch(/"odd" refused "refuse".*Not today/)
    expect((await call(server, 'odd__nonsense')).output.content).toMatch(/no result. It may have run/)
    expect(server.status().state).toBe('connected')
  })

  it('B-MCP-62: structured content comes before its texts; bytes are kept beside the log, named, and parts of the result where a model may see or hear them', async () => {
    bench.lists(['structured', 'parts'])
    const server = bench.server()
    expect((await call(server, 'odd__structured')).output.content).toBe('{\n  "a": 1,\n  "b": 2\n}')
    const kept = new Map<string, string>()
    const { content, metadata, parts } = (await call(server, 'odd__parts', {}, toolContext({ kept }))).output
    expect(parts?.map(({ media }) => media)).toEqual(['image/png', 'audio/wav'])
    const [hash] = [...kept.keys()]
    expect(content.split('\n')).toEqual([
      'look:',
      `[image, image/png, 10 bytes, kept as blob:${hash}]`,
      `[audio, audio/wav, 10 bytes, kept as blob:${hash}]`,
      '[resource a://b]',
      'inside',
      `[resource a://c: file, application/zip, 10 bytes, kept as blob:${hash}]`,
      '[resource elsewhere: a://d]',
    ])
    expect(kept.get(hash ?? '')).toBe('some bytes')
    expect(metadata).toMatchObject({
      server: 'odd',
      tool: 'parts',
      attachments: [{ type: 'image' }, {}, { type: 'file' }],
    })
  })

  it('B-MCP-63: a long one is whole, for the stages that make results shorter; what hides text is taken out and counted', async () => {
    bench.lists(['long', 'hidden'])
    const server = bench.server()
    const { content } = (await call(server, 'odd__long')).output
    expect([content.startsWith('first'), content.endsWith('last'), content.length]).toEqual([true, true, 200_011])
    expect((await call(server, 'odd__hidden')).output).toMatchObject({ content: 'plaintext', metadata: { hidden: 5 } })
  })
})

it('B-MCP-64: a program that does not use it does not load the SDK', () => {
  const folder = resolve(import.meta.dirname, '../../src/tools/mcp')
  const parts = readdirSync(folder)
  expect(parts).toContain('mcp-connection.ts')
  const loading = /^(import|export) (?!type)[^;]*?from '@modelcontextprotocol/m
  expect(parts.filter((part) => loading.test(readFileSync(join(folder, part), 'utf8')))).toEqual([])
})
