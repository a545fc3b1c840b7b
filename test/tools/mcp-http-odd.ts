// An MCP server over HTTP in this process, spoken by hand: it answers with JSON or with events, forgets sessions, redirects, drops
// its streams and sends too much, as a test wants it. It writes down every request it gets. Not a test.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Request = { readonly id?: number; readonly method: string; readonly params?: { readonly name?: string } }
export type Seen = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}
type Answer = (response: ServerResponse, request: Request) => void

const text = (words: string) => ({ content: [{ type: 'text', text: words }] })

export class HttpOdd {
  readonly seen: Seen[] = []
  /** Comes before everything else; true when it has answered. */
  before: (seen: Seen, response: ServerResponse) => boolean = () => false
  /** How a call is answered. */
  call: Answer = (response, { id }) => json(response, { jsonrpc: '2.0', id, result: text('done') })
  session = 'one'
  readonly #server = createServer((request, response) => void this.#handle(request, response))

  async listen(): Promise<this> {
    await new Promise<void>((ready) => this.#server.listen(0, '127.0.0.1', ready))
    return this
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`
  }

  /** The JSON-RPC methods that came, in order. */
  get methods(): readonly string[] {
    return this.seen.flatMap(({ method, body }) =>
      method === 'POST' ? [(JSON.parse(body) as Request).method] : [method],
    )
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((closed) => this.#server.close(closed))
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const seen = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, body }
    this.seen.push(seen)
    if (this.before(seen, response)) return
    if (request.method === 'GET') return void response.writeHead(405).end()
    if (request.method === 'DELETE') return void response.writeHead(200).end()
    this.#answer(JSON.parse(body) as Request, request.headers['mcp-session-id'], response)
  }

  #answer(message: Request, session: unknown, response: ServerResponse): void {
    const { id, method } = message
    if (method === 'initialize') {
      response.setHeader('mcp-session-id', this.session)
      const serverInfo = { name: 'odd', version: '1' }
      return json(response, {
        jsonrpc: '2.0',
        id,
        result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo },
      })
    }
    if (session !== this.session) return void response.writeHead(404).end('no such session')
    if (id === undefined) return void response.writeHead(202).end()
    if (method === 'tools/call') return this.call(response, message)
    json(response, { jsonrpc: '2.0', id, result: { tools: [{ name: 'do', inputSchema: { type: 'object' } }] } })
  }
}

function json(response: ServerResponse, message: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(message))
}

export function done(id: number | undefined, words: string): string {
  return `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: text(words) })}\n\n`
}
