// `/mcp` of the server, used by the official client over HTTP: the same checks, reach and names as under /v1, and the tools of each role.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { OpenedAnswer } from '../../src/server/wire.ts'
import { tool } from '../runtime/scene.ts'
import { until } from '../until.ts'
import { type Served, served } from './served.ts'

type Given = Readonly<Record<string, unknown>>

async function clientOf(one: Served, token: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  const headers = { authorization: `Bearer ${token}` }
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${one.server.url}/mcp`), { requestInit: { headers } }),
  )
  onTestFinished(() => client.close())
  return client
}

async function use(client: Client, name: string, args: object = {}): Promise<Given> {
  const { content } = await client.callTool({ name, arguments: { ...args } })
  const [part] = content as readonly { readonly text: string }[]
  return JSON.parse(part?.text ?? '{}') as Given
}

const pay = { calls: [{ tool: 'pay', args: { n: 7 } }] }
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
}
const accept = { accept: 'application/json, text/event-stream' }

describe('/mcp of the server', () => {
  it('B-SERVE-40: another agent starts a session, follows it and decides by the digest; who did it is the name of the token', async () => {
    const ran: number[] = []
    const execute = ({ n }: { readonly n: number }) => `paid ${ran.push(n)}`
    const paid = tool('pay', { effect: 'once', approval: 'always', execute })
    const one = await served([pay, 'Paid.'], { harness: { tools: [paid] } })
    const otto = await clientOf(one, one.token({ name: 'otto', role: 'operator' }))
    const ana = await clientOf(one, one.token({ name: 'ana', role: 'approver' }))
    const { session } = await use(otto, 'start', { input: 'Pay.', key: 'k' })
    expect(await use(otto, 'start', { input: 'Pay.', key: 'k' })).toMatchObject({ session, duplicate: true })
    const call = await until(async () => {
      const [first] = (await use(ana, 'pending', { session }))['pending'] as readonly Given[]
      expect(first).toMatchObject({ tool: 'pay' })
      return first ?? {}
    })
    const decision = { session, call: call['callId'], allow: true, digest: call['digest'] }
    expect(await use(ana, 'decide', { ...decision, digest: '0'.repeat(64) })).toHaveProperty('error')
    expect(await use(ana, 'decide', decision)).toMatchObject({ allow: true })
    await until(async () =>
      expect(await use(otto, 'events', { session })).toMatchObject({ outcome: { type: 'completed' }, text: 'Paid.' }),
    )
    expect(ran).toEqual([7])
    const { events } = await one.host.store.read(String(session), 0)
    expect(events.find(({ type }) => type === 'user.tool_confirmation')).toMatchObject({ by: 'ana' })
    expect(await one.host.store.card(String(session))).toMatchObject({ labels: { owner: 'otto' } })
  })

  it('B-SERVE-41: each role has its tools, and what is out of reach is not there', async () => {
    const one = await served(['Done.', 'Done.'])
    const names = async (token: string): Promise<readonly string[]> =>
      (await (await clientOf(one, token)).listTools()).tools.map(({ name }) => name).toSorted()
    const viewing = ['events', 'pending']
    const operating = ['answer', 'interrupt', 'send', 'start', ...viewing].toSorted()
    expect(await names(one.token({ name: 'vera', role: 'viewer' }))).toEqual(viewing)
    expect(await names(one.token({ name: 'otto', role: 'operator' }))).toEqual(operating)
    expect(await names(one.token({ name: 'ana', role: 'approver' }))).toEqual(['decide', ...viewing])
    expect(await names(one.tokens.own)).toEqual(['decide', ...operating].toSorted())
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: { input: 'Go.' } })
    const owen = await clientOf(one, one.token({ name: 'owen', role: 'operator', reach: 'own' }))
    const { session: his } = await use(owen, 'start', { input: 'Mine.' })
    const told = async (id: unknown) => JSON.stringify(await use(owen, 'send', { session: id, input: 'x' }))
    expect((await told(session)).replace(session, 'ID')).toBe((await told('not-there')).replace('not-there', 'ID'))
    expect((await owen.listResources()).resources.map(({ name }) => name)).toEqual([`events of ${String(his)}`])
  })

  it('B-SERVE-42: without the token, under another name, from another origin, as another media type or too large it is refused before the protocol is loaded', async () => {
    const one = await served([])
    const statusOf = async (ask: Parameters<Served['ask']>[2]) => (await one.ask('POST', '/mcp', ask)).status
    expect(await statusOf({ token: null, body: initialize })).toBe(401)
    expect(await statusOf({ token: 'x'.repeat(43), body: initialize })).toBe(401)
    expect(await statusOf({ body: initialize, headers: { ...accept, host: 'evil.example' } })).toBe(421)
    expect(await statusOf({ body: initialize, headers: { ...accept, origin: 'http://evil.example' } })).toBe(403)
    expect(await statusOf({ body: initialize, headers: { ...accept, 'sec-fetch-site': 'cross-site' } })).toBe(403)
    expect(await statusOf({ raw: 'a=b', headers: { 'content-type': 'text/plain' } })).toBe(415)
    expect(await statusOf({ raw: `"${'x'.repeat(1024 * 1024)}"` })).toBe(413)
    expect(await statusOf({ raw: `${'['.repeat(65)}${']'.repeat(65)}` })).toBe(400)
    expect((await one.ask('PUT', '/mcp', {})).status).toBe(405)
    expect((await one.ask('GET', '/mcp?token=x', {})).status).toBe(400)
    expect((await one.ask('GET', '/mcp/more', {})).headers['content-type']).toContain('text/plain')
    const good = await one.ask('POST', '/mcp', { body: initialize, headers: accept })
    expect([good.status, good.headers['x-content-type-options']]).toEqual([200, 'nosniff'])
    expect(one.reports).toEqual([])
  })

  it('B-SERVE-43: a connection is that of its token: another one has none of it, and a token that is dropped or a server that closes ends its streams', async () => {
    const one = await served([])
    const otto = one.token({ name: 'otto', role: 'operator' })
    const vera = one.token({ name: 'vera', role: 'operator' })
    const made = await one.ask('POST', '/mcp', { body: initialize, headers: accept, token: otto })
    const id = String(made.headers['mcp-session-id'])
    const headers = { ...accept, 'mcp-session-id': id, 'mcp-protocol-version': '2025-06-18' }
    const list = { jsonrpc: '2.0', id: 2, method: 'tools/list' }
    expect((await one.ask('POST', '/mcp', { body: list, headers, token: vera })).status).toBe(404)
    expect((await one.ask('POST', '/mcp', { body: list, headers, token: otto })).status).toBe(200)
    const stream = one.ask('GET', '/mcp', { headers, token: otto })
    await until(async () => expect(await one.json('GET', '/v1/health')).toMatchObject({ streams: 1 }))
    await one.json('DELETE', '/v1/tokens/otto')
    expect((await stream).status).toBe(200)
    expect((await one.ask('POST', '/mcp', { body: list, headers, token: otto })).status).toBe(401)
    await until(async () => expect(await one.json('GET', '/v1/health')).toMatchObject({ streams: 0 }))
    const mine = await one.ask('POST', '/mcp', { body: initialize, headers: accept })
    const again = { ...headers, 'mcp-session-id': String(mine.headers['mcp-session-id']) }
    const last = one.ask('GET', '/mcp', { headers: again })
    await until(async () => expect(await one.json('GET', '/v1/health')).toMatchObject({ streams: 1 }))
    await one.server.close()
    expect((await last).status).toBe(200)
  })
})
