// MCP servers at a URL: what leaves this machine and what is let in. Judged by what the servers on the other end saw.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Fault } from '../../src/kernel/failure.ts'
import { type McpHttpOptions, mcpServer } from '../../src/tools/mcp/mcp-server.ts'
import { call, McpBench, namesOf, toolsOf } from './mcp-bench.ts'
import { done, HttpOdd } from './mcp-http-odd.ts'
import { until } from '../until.ts'

const SECRET = 'token-91f3ab'
const headers = { authorization: `Bearer ${SECRET}`, 'x-key': 'key-77aa01' }

let bench: McpBench
let odd: HttpOdd
let elsewhere: HttpOdd
beforeEach(async () => {
  bench = new McpBench()
  odd = await new HttpOdd().listen()
  elsewhere = await new HttpOdd().listen()
})
afterEach(async () => {
  await bench.close()
  await odd.close()
  await elsewhere.close()
})

function server(options: Partial<McpHttpOptions> = {}) {
  return bench.keep(mcpServer({ name: 'odd', url: odd.url, headers, ...options }))
}

describe('a server at a URL', () => {
  it('B-MCP-70: is connected once, gets the headers it was given each time, and is told when it is over', async () => {
    const one = server()
    expect(await namesOf(one)).toEqual(['odd__do'])
    expect(await call(one, 'odd__do')).toMatchObject({
      output: { content: 'done', metadata: { server: 'odd', tool: 'do' } },
    })
    await one.close()
    expect(odd.methods.filter((method) => method === 'initialize')).toHaveLength(1)
    expect(odd.seen.at(-1)).toMatchObject({ method: 'DELETE', headers: { 'mcp-session-id': 'one' } })
    expect(odd.seen.every((seen) => seen.headers.authorization === `Bearer ${SECRET}`)).toBe(true)
  })

  it('B-MCP-71: only http and https will do, and no credentials in the URL', () => {
    for (const url of ['file:///etc/passwd', 'ftp://a/b', 'nothing', 'http://user:pass@a/', 'javascript:1']) {
      expect(() => server({ url })).toThrow(Fault)
    }
  })

  it('B-MCP-72: a redirect to another host is not followed: it sees no request and no header', async () => {
    odd.before = ({ method }, response) => {
      if (method !== 'POST') return false
      response.writeHead(307, { location: elsewhere.url }).end()
      return true
    }
    const one = server()
    expect(await toolsOf(one)).toEqual([])
    expect(elsewhere.seen).toEqual([])
    expect(one.status().troubles.join()).toMatch(/Redirect to .* not followed/)
    expect(await toolsOf(server({ transport: 'sse' }))).toEqual([])
    expect(elsewhere.seen).toEqual([])
  })

  it('B-MCP-73: a redirect within the same host is followed', async () => {
    odd.before = ({ path }, response) => {
      if (path !== '/mcp') return false
      response.writeHead(308, { location: '/elsewhere' }).end()
      return true
    }
    expect(await namesOf(server())).toEqual(['odd__do'])
  })

  it('B-MCP-74: what was given in headers is in no message, also when the server says it back', async () => {
    odd.before = ({ headers: got, body }, response) => {
      if (!body.includes('initialize')) return false
      response.writeHead(500).end(`no: ${got.authorization} ${String(got['x-key'])}`)
      return true
    }
    const one = server()
    await toolsOf(one)
    expect(one.status().troubles.join()).toMatch(/HTTP 500.*no: \[secret\] \[secret\]/)
    const error: unknown = await toolsOf(server({ required: true })).catch((thrown: unknown) => thrown)
    expect(JSON.stringify([one.status(), error, String(error), (error as Fault).detail])).not.toMatch(/91f3ab|77aa01/)
  })

  it('B-MCP-75: one that wants authorization is told about headers', async () => {
    odd.before = (_seen, response) => {
      response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${elsewhere.url}"` }).end()
      return true
    }
    const one = server()
    expect(await toolsOf(one)).toEqual([])
    expect(one.status().troubles.join()).toMatch(/HTTP 401.*headers/)
    expect(elsewhere.seen).toEqual([])
  })

  it('B-MCP-76: one that is not there is unavailable, and a call never left', async () => {
    const one = server()
    const frozen = await toolsOf(one)
    await odd.close()
    // The first call may still be written to a connection that is just closing: its outcome is unknown.
    expect(await call(frozen, 'odd__do')).toMatchObject({ type: 'failed' })
    const refused = await call(frozen, 'odd__do')
    expect(refused).toMatchObject({ kind: 'Unavailable', output: { metadata: { error_type: 'MCPError', tool: 'do' } } })
    expect(refused.output.content).toMatch(/ECONNREFUSED/)
    expect(await toolsOf(one)).toEqual([])
    odd = await new HttpOdd().listen()
  })

  it('B-MCP-77: one that has forgotten the session is introduced to again at the next use', async () => {
    const one = server()
    const frozen = await toolsOf(one)
    odd.session = 'two'
    expect(await call(frozen, 'odd__do')).toMatchObject({ kind: 'Unavailable' })
    expect(await call(frozen, 'odd__do')).toMatchObject({ output: { content: 'done' } })
  })
})

describe('what comes back', () => {
  it('B-MCP-78: a body over 8 MiB is not read to its end', async () => {
    let sent = 0
    odd.call = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const more = (): void => {
        if (response.destroyed || sent > 200 * 1024 * 1024) return void response.end()
        sent += 1024 * 1024
        if (response.write('x'.repeat(1024 * 1024))) setImmediate(more)
        else response.once('drain', more)
      }
      more()
    }
    expect((await call(server(), 'odd__do')).output.content).toMatch(/message over 8388608 bytes/)
    expect(sent).toBeLessThan(100 * 1024 * 1024)
  })

  it('B-MCP-79: neither is an event, while a stream of small ones may go on', async () => {
    odd.call = (response, { id }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const noise = `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x'.repeat(60_000) } })}\r\n\r\n`
      for (let i = 0; i < 200; i++) response.write(noise)
      response.end(done(id, 'after 12 MB'))
    }
    expect((await call(server(), 'odd__do')).output.content).toBe('after 12 MB')
    odd.call = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let i = 0; i < 200; i++) response.write(`data: ${'x'.repeat(60_000)}\n`)
      response.end('\n')
    }
    expect(await call(server(), 'odd__do')).toMatchObject({ kind: 'Unknown' })
  })

  it('B-MCP-80: a stream that breaks off is taken up where it was, when the server can', async () => {
    odd.call = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('id: first\nretry: 10\ndata: \n\n', () => response.destroy())
    }
    odd.before = ({ method, headers: got }, response) => {
      if (method !== 'GET' || got['last-event-id'] !== 'first') return false
      const asked = odd.seen.findLast(({ body }) => body.includes('tools/call'))
      const { id } = JSON.parse(asked?.body ?? '{}') as { id?: number }
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`id: second\n${done(id, 'resumed')}`)
      return true
    }
    expect((await call(server(), 'odd__do')).output.content).toBe('resumed')
    expect(odd.seen.filter(({ body }) => body.includes('tools/call'))).toHaveLength(1)
  })

  it('B-MCP-81: a stream that breaks off for good ends the call at once, and says what may have happened', async () => {
    odd.call = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(': hello\n\n', () => response.destroy())
    }
    const once = await call(server({ callMs: 60_000 }), 'odd__do')
    expect(once).toMatchObject({ kind: 'Unknown' })
    expect(once.output.content).toMatch(/may have happened.*stream ended/)
    expect(await call(server({ callMs: 60_000, effects: { do: 'read' } }), 'odd__do')).toMatchObject({
      kind: 'Unavailable',
    })
  })
})

describe('the old transport', () => {
  it('B-MCP-82: an endpoint on another host is refused before anything is sent to it', async () => {
    odd.before = ({ method }, response) => {
      if (method !== 'GET') return false
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`event: endpoint\ndata: ${elsewhere.url}\n\n`)
      return true
    }
    const one = server({ transport: 'sse' })
    expect(await toolsOf(one)).toEqual([])
    expect(one.status().troubles.join()).toMatch(/origin/)
    expect(elsewhere.seen).toEqual([])
  })

  it('B-MCP-83: a server that opens a stream and says nothing is given up in time', async () => {
    let closed = 0
    odd.before = ({ method }, response) => {
      if (method !== 'GET') return false
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      response.once('close', () => (closed += 1))
      return true
    }
    const one = server({ transport: 'sse', connectMs: 200 })
    expect(await toolsOf(one)).toEqual([])
    expect(one.status().troubles).toEqual(['It did not answer within 200 ms.'])
    await until(() => expect(closed).toBe(1))
  })
})
