// The route `/mcp`: the sessions of this server as tools for other agents, over streamable HTTP. Host, origin and token
// are checked as for every route, and the role decides which tools exist. The protocol is loaded with the first
// request.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Caller } from '../mcp/caller.ts'
import type { McpSessionHost } from '../mcp/mcp-session-host.ts'
import type { McpHandler } from '../mcp/http-handler.ts'
import { Fault } from '../kernel/index.ts'
import { readJsonBody } from './request-body.ts'
import { type ServerHost, checkAgentReach, OWNER, type OpenStream, mayReach, type ServerState } from './server-host.ts'
import { SAFE } from './inspector-files.ts'
import { methodRefusal } from './refusals.ts'
import type { Principal } from './wire.ts'

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'DELETE'])

export class McpEndpoint {
  readonly #host: ServerHost
  readonly #server: ServerState
  #handler: Promise<McpHandler> | null = null

  constructor(host: ServerHost, server: ServerState) {
    this.#host = host
    this.#server = server
  }

  async take(request: IncomingMessage, response: ServerResponse, principal: Principal): Promise<void> {
    const { method = '' } = request
    if (!METHODS.has(method)) throw methodRefusal([...METHODS])
    const body = method === 'POST' ? await readJsonBody(request) : null
    this.#handler ??= import('../mcp/http-handler.ts').then(({ mcpHandler }) =>
      mcpHandler({ desk: createMcpSessionHost(this.#host) }),
    )
    const handler = await this.#handler
    const left = new AbortController()
    response.once('close', () => left.abort())
    const asked = new Request('http://localhost/mcp', {
      method,
      headers: headersOf(request),
      body,
      signal: left.signal,
    })
    await this.#write(await handler.fetch(asked, callerOf(principal)), response, principal)
  }

  async #write(given: Response, response: ServerResponse, principal: Principal): Promise<void> {
    response.writeHead(given.status, { ...Object.fromEntries(given.headers), ...SAFE, 'cache-control': 'no-store' })
    if (given.body === null) return void response.end()
    // A stream may stay silent for long, so the headers are sent first.
    response.flushHeaders()
    const { streams } = this.#server
    const stream: OpenStream = { bye: () => void response.end() }
    streams.set(stream, principal)
    // A client that disconnects is not an error: it connects again.
    await pipeline(Readable.fromWeb(given.body), response).catch(() => {})
    streams.delete(stream)
  }

  async close(): Promise<void> {
    await (await this.#handler)?.close()
  }
}

function headersOf({ rawHeaders }: IncomingMessage): [string, string][] {
  return rawHeaders.flatMap((name, i): [string, string][] => (i % 2 === 0 ? [[name, rawHeaders[i + 1] ?? '']] : []))
}

function callerOf({ name, role, roles, reach }: Principal): Caller {
  return { name, role, approvalRoles: roles, reach }
}

/** Reaches and opens the same sessions as the routes under /v1. */
function createMcpSessionHost(host: ServerHost): McpSessionHost {
  const { harness, store } = host
  const own = ({ reach, name }: Caller) => (reach === 'own' ? { where: { [OWNER]: name } } : {})
  return {
    session: async (id, caller) => {
      const card = await store.card(id)
      return card !== null && mayReach(caller, card) ? harness.session(id, { stored: true }) : null
    },
    start: async ({ id, agent }, { name, role, reach, approvalRoles: roles = [] }) => {
      const by = { name, role, reach, roles }
      const begun = await host.begin({ ...(agent === undefined ? {} : { agent }), by })
      checkAgentReach(by, begun.harness, agent)
      const opened = await begun.harness.open({
        ...(id === undefined ? {} : { id, reuse: true }),
        ...(begun.agent === undefined ? {} : { agent: begun.agent }),
        ...(begun.folder === undefined ? {} : { folder: begun.folder }),
        metadata: { [OWNER]: name },
        labels: { [OWNER]: name },
      })
      // Another caller can guess a key, compute its id and open the session first.
      if (id !== undefined && (await store.card(id))?.labels?.[OWNER] !== name)
        throw new Fault('id_reused', 'This key is taken. Choose a new one.')
      return opened
    },
    pending: (caller) => harness.pending(own(caller)),
    list: async (limit, caller) => (await harness.list({ ...own(caller), limit })).cards,
  }
}
