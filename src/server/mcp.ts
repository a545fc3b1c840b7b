// `/mcp`: the sessions of this server as tools for other agents, by streamable HTTP. Host, origin and token were checked as for every
// route; which tools there are is a matter of the role. The protocol is loaded with the first request for it.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Caller } from '../mcp/caller.ts'
import type { Desk } from '../mcp/desk.ts'
import type { McpHandler } from '../mcp/http.ts'
import { Fault } from '../kernel/index.ts'
import { readJson } from './body.ts'
import { type Host, OWNER, type OpenStream, reaches, type ServerState } from './host.ts'
import { SAFE } from './pages.ts'
import { wrongMethod } from './refusals.ts'
import type { Principal } from './wire.ts'

const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'DELETE'])

export class Mcp {
  readonly #host: Host
  readonly #server: ServerState
  #handler: Promise<McpHandler> | null = null

  constructor(host: Host, server: ServerState) {
    this.#host = host
    this.#server = server
  }

  async take(request: IncomingMessage, response: ServerResponse, principal: Principal): Promise<void> {
    const { method = '' } = request
    if (!METHODS.has(method)) throw wrongMethod([...METHODS])
    const body = method === 'POST' ? await readJson(request) : null
    this.#handler ??= import('../mcp/http.ts').then(({ mcpHandler }) => mcpHandler({ desk: deskOf(this.#host) }))
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
    // A stream may have nothing to say for long.
    response.flushHeaders()
    const { streams } = this.#server
    const stream: OpenStream = { bye: () => void response.end() }
    streams.set(stream, principal)
    // Who leaves in the middle is no trouble of ours: it asks again.
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

/** The same sessions in reach as under /v1, and opened in the same way. */
function deskOf(host: Host): Desk {
  const { harness, store } = host
  const own = ({ reach, name }: Caller) => (reach === 'own' ? { where: { [OWNER]: name } } : {})
  return {
    session: async (id, caller) => {
      const card = await store.card(id)
      return card !== null && reaches(caller, card) ? harness.session(id, { stored: true }) : null
    },
    start: async ({ id, agent }, { name, role, reach, approvalRoles: roles = [] }) => {
      const begun = await host.begin({ ...(agent === undefined ? {} : { agent }), by: { name, role, reach, roles } })
      const opened = await begun.harness.open({
        ...(id === undefined ? {} : { id, reuse: true }),
        ...(begun.agent === undefined ? {} : { agent: begun.agent }),
        ...(begun.folder === undefined ? {} : { folder: begun.folder }),
        metadata: { [OWNER]: name },
        labels: { [OWNER]: name },
      })
      // Others can work out the id of a key that they guess, and be there first.
      if (id !== undefined && (await store.card(id))?.labels?.[OWNER] !== name)
        throw new Fault('id_reused', 'This key is taken. Choose a new one.')
      return opened
    },
    pending: (caller) => harness.pending(own(caller)),
    list: async (limit, caller) => (await harness.page({ ...own(caller), limit })).cards,
  }
}
