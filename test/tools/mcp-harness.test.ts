// MCP servers given to a harness: connected once for all runs, asked about, pinned between runs, closed with it.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Harness, scripted, type Script } from '../../src/index.ts'
import type { McpServer } from '../../src/tools/mcp/mcp-server.ts'
import { processesWith } from './box.ts'
import { definition, McpBench } from './mcp-bench.ts'
import { until } from '../until.ts'

let bench: McpBench
let harness: Harness | null = null
beforeEach(() => {
  bench = new McpBench()
  bench.lists(['echo', 'silent', 'die'])
})
afterEach(async () => {
  await harness?.close()
  await bench.close()
})

function start(server: McpServer, script: Script): Harness {
  harness = new Harness({ model: scripted(script), tools: [server] })
  return harness
}

const says = (message: string) => ({ calls: [{ tool: 'odd__echo', args: { message } }] })

it('B-MCP-95: one connection serves all runs of a harness, at once and one after the other', async () => {
  const one = start(bench.server({ approval: 'auto' }), [says('a'), 'done', says('b'), 'done', says('c'), 'done'])
  const both = await Promise.all([one.run('first'), one.run('second')])
  const third = await one.run('third')
  expect([...both, third].map(({ status }) => status)).toEqual(['completed', 'completed', 'completed'])
  expect([bench.count('start'), bench.count('call echo')]).toEqual([1, 3])
})

it('B-MCP-96: a call waits for a person, and is then made once', async () => {
  const one = start(bench.server(), [says('please'), (request) => `It ${JSON.stringify(request.messages.at(-1))}`])
  const parked = await one.run('go')
  expect([parked.status, bench.count('call')]).toEqual(['requires_action', 0])
  const session = one.session(parked.sessionId)
  await session.decide({ callId: parked.pending[0]?.callId ?? '', allow: true, by: 'ana' })
  const result = await session.run()
  expect([result.status, bench.count('call echo')]).toEqual(['completed', 1])
  expect(result.text).toContain('you said please')
})

it('B-MCP-97: a tool that changed since the last run is not among the tools of the next', async () => {
  const seen: string[][] = []
  const look: Script = [1, 2].map(() => (request) => {
    seen.push(request.tools.map(({ name }) => name))
    return 'done'
  })
  const one = start(bench.server(), look)
  await one.run('first')
  bench.lists([definition('echo', { description: 'Now with more' }), 'silent', 'die'])
  await one.run('second')
  expect(seen).toEqual([
    ['odd__echo', 'odd__silent', 'odd__die'],
    ['odd__silent', 'odd__die'],
  ])
})

it('B-MCP-98: closing the harness ends the servers, also in the middle of a call', async () => {
  const one = start(bench.server({ approval: 'auto' }), [{ calls: [{ tool: 'odd__silent', args: {} }] }, 'done'])
  const run = one.run('wait')
  run.catch(() => {})
  await until(() => expect(bench.count('call silent')).toBe(1))
  await one.close()
  await run.catch(() => {})
  expect(processesWith(bench.folder)).toEqual([])
})

it('B-MCP-99: a run whose server died in a call goes on, and knows that the call may have happened', async () => {
  const one = start(bench.server({ approval: 'auto' }), [
    { calls: [{ tool: 'odd__die', args: {} }] },
    (request) => JSON.stringify(request.messages.at(-1)),
  ])
  const result = await one.run('go')
  expect([result.status, result.text.includes('may have happened')]).toEqual(['completed', true])
})

it.each(['die', 'half', 'silent', 'nonsense'])(
  'B-MCP-100: a once call that was sent and got no answer is unknown, not error (%s)',
  async (name) => {
    bench.lists([name])
    const asked = { calls: [{ tool: `odd__${name}`, args: {} }] }
    let told = ''
    const script: Script = [
      asked,
      (request) => {
        told = JSON.stringify(request.messages.at(-1))
        return 'done'
      },
    ]
    const one = start(bench.server({ approval: 'auto', callMs: 300 }), script)
    const { calls } = await one.run('go')
    expect(calls).toMatchObject([{ status: 'unknown', failure: { class: 'Unknown', kind: 'Unknown' } }])
    expect(told).toMatch(/may have .*"status":"unknown"/)
  },
)

it('B-MCP-100: a call that was never sent, or changes nothing, is an error', async () => {
  bench.lists(['die', 'echo'])
  const lost = { calls: [{ tool: 'odd__die', args: {} }] }
  const reads = start(bench.server({ effects: { die: 'read' } }), [lost, 'done'])
  expect((await reads.run('go')).calls).toMatchObject([{ status: 'error', failure: { kind: 'Unavailable' } }])
})

it('B-MCP-101: a server that is not required and cannot be used is missing, not fatal: the run and onError say which', async () => {
  const told: string[] = []
  const seen: string[][] = []
  const look: Script = [1, 2, 3, 4].map(() => (request) => {
    seen.push(request.tools.map(({ name }) => name))
    return 'done'
  })
  const broken = bench.server({ name: 'broken', command: '/no/such/program' })
  const onError = (where: string, error: unknown): void => {
    told.push(`${where}: ${error instanceof Error ? error.message : ''}`)
  }
  harness = new Harness({ model: scripted(look), tools: [bench.server(), broken], onError })
  for (const input of ['first', 'second', 'third']) {
    const { status, warnings, sessionId } = await harness.run(input)
    expect([status, seen.at(-1)]).toEqual(['completed', ['odd__echo', 'odd__silent', 'odd__die']])
    expect(warnings).toEqual([
      expect.stringMatching(/^MCP server "broken" cannot be used, and its tools are missing\. /),
    ])
    const { events } = await harness.session(sessionId).events()
    expect(events.find(({ type }) => type === 'run.started')).toMatchObject({ warnings })
  }
  // The same trouble is told once.
  expect(told).toEqual([expect.stringMatching(/^tools: MCP server "broken" cannot be used/)])
  await harness.close()
  const required = bench.server({ name: 'broken', command: '/no/such/program', required: true })
  harness = new Harness({ model: scripted(look), tools: [bench.server(), required] })
  expect(await harness.run('fourth')).toMatchObject({ status: 'failed', stopReason: 'prepare_failed', warnings: [] })
})

it('B-MCP-102: a tool that changes within a run without a notice is not called any more by that run', async () => {
  const asked = (message: string) => () => {
    if (message === 'b') bench.lists([definition('echo', { title: 'Echo, and tell the author' }), 'silent', 'die'])
    return says(message)
  }
  const one = start(bench.server({ approval: 'auto' }), [asked('a'), asked('b'), 'done'])
  const { status, calls } = await one.run('go')
  expect([status, bench.count('call echo')]).toEqual(['completed', 1])
  expect(calls).toMatchObject([{ status: 'ok' }, { status: 'error', failure: { kind: 'Denied' } }])
  expect(calls[1]?.content).toContain('no longer what it was when this run began')
})

it('B-MCP-103: calls that may change something run one after the other, and others beside each other', async () => {
  const batch = { calls: ['a', 'b'].map((message) => ({ tool: 'odd__echo', args: { message } })) }
  for (const [effects, sequential] of [
    [{}, true],
    [{ echo: 'read' }, undefined],
  ] as const) {
    const one = start(bench.server({ approval: 'auto', effects }), [batch, 'done'])
    const { sessionId } = await one.run('go')
    const { events } = await one.session(sessionId).events()
    const reply = events.find((event) => event.type === 'agent.message')
    expect(reply?.calls.map((each) => each.sequential)).toEqual([sequential, sequential])
    await one.close()
  }
})

it('B-ROUTER2-20: a large result of a server is shortened like that of any tool, and read whole by its token: texts, structured content and errors', async () => {
  bench.lists(['rows', 'prose', 'fails'])
  const cases = [
    ['rows', 'ok', 'failed', '"id": 1234,'],
    ['prose', 'ok', 'Line 0 is', 'The needle is here.'],
    ['fails', 'error', 'Line 0 is', 'The needle is here.'],
  ] as const
  for (const [name, status, shown, needle] of cases) {
    const seen: string[] = []
    const offered: (readonly string[])[] = []
    const script: Script = (request) => {
      const last = request.messages.at(-1)
      offered.push(request.tools.map((tool) => tool.name))
      if (last?.role !== 'tool' || typeof last.content !== 'string')
        return { calls: [{ tool: `odd__${name}`, args: {} }] }
      seen.push(last.content)
      const [token = ''] = /⟦tj:\w+⟧/.exec(last.content) ?? []
      return seen.length === 1 ? { calls: [{ tool: 'retrieve_original', args: { token } }] } : 'done'
    }
    const one = start(bench.server({ approval: 'auto' }), script)
    const { status: end, calls } = await one.run('go')
    expect([name, end, calls[0]?.status]).toEqual([name, 'completed', status])
    expect(Buffer.byteLength(seen[0] ?? '')).toBeLessThanOrEqual(16_384)
    expect(seen[0]).toContain(shown)
    expect(seen[1]).toContain(needle)
    expect([offered[0]?.includes('retrieve_original'), offered[1]?.includes('retrieve_original')]).toEqual([
      false,
      true,
    ])
    await one.close()
  }
})

it('B-ROUTER2-20: switched off, a result of a server is as the server gave it, and its secrets are still redacted', async () => {
  bench.lists(['prose'])
  const secret = 'Line 700 is as it was before.'
  const model = scripted([{ calls: [{ tool: 'odd__prose', args: {} }] }, 'done'])
  const tools = [bench.server({ approval: 'auto' })]
  harness = new Harness({ model, tools, results: { compression: 'off' }, secrets: { LINE: secret } })
  const { sessionId } = await harness.run('go')
  const { events } = await harness.session(sessionId).events()
  const result = events.find((event) => event.type === 'agent.tool_result')
  expect(JSON.stringify(result)).not.toContain(secret)
  expect(result).toMatchObject({ status: 'ok', content: expect.stringContaining('The needle is here.') as string })
})
