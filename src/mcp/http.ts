// The server over streamable HTTP, for a program that has checked who asks: `fetch(request, caller)`. Host, origin and token are its
// checks, and come before this. A connection of the older revision belongs to the caller that opened it, and to no other.
import {
  type AuthInfo,
  createMcpHandler,
  isLegacyRequest,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { randomUUID } from 'node:crypto'
import { callable, having, needed, optionsOf } from '../options.ts'
import { type Caller, checkCaller } from './caller.ts'
import type { ServerOptions } from './desk.ts'
import { serverFor } from './server.ts'

export type McpHandler = {
  fetch(request: Request, caller: Caller): Promise<Response>
  /** Ends all connections. */
  close(): Promise<void>
}

const BODY_BYTES_MAX = 1024 * 1024
/** Connections of the older revision, which are kept between requests: of all callers, and of one. */
const CONNECTIONS_MAX = 500
const OWN_MAX = 50
const IDLE_MS = 30 * 60_000

type Connection = {
  readonly transport: WebStandardStreamableHTTPServerTransport
  readonly server: McpServer
  readonly caller: Caller
  /** Requests that are not answered to their end. */
  open: number
  used: number
}

const checkOptions = optionsOf<ServerOptions>('mcpHandler', {
  desk: needed(having('give one such as deskOf(harness)', 'session', 'start', 'pending', 'list')),
  more: callable,
})

/** `fetch` throws for a caller that is none; everything else is an answer. */
export function mcpHandler(options: ServerOptions): McpHandler {
  checkOptions(options)
  const connections = new Connections(options)
  const modern = createMcpHandler(({ authInfo }) => serverFor(options, callerOf(authInfo)), {
    legacy: 'reject',
    maxRequestBodySize: BODY_BYTES_MAX,
  })
  return {
    fetch: async (request, caller) => {
      checkCaller(caller)
      if (await isLegacyRequest(request, undefined, { maxRequestBodySize: BODY_BYTES_MAX }))
        return connections.fetch(request, caller)
      return modern.fetch(request, { authInfo: infoOf(caller) })
    },
    close: async () => {
      await modern.close()
      await connections.close()
    },
  }
}

/** What the package hands through to the factory. The token was checked before, and is not handed on. */
function infoOf(caller: Caller): AuthInfo {
  return { token: '', clientId: caller.name, scopes: [], extra: { caller } }
}

function callerOf(info: AuthInfo | undefined): Caller {
  return info?.extra?.['caller'] as Caller
}

class Connections {
  readonly #options: ServerOptions
  readonly #open = new Map<string, Connection>()

  constructor(options: ServerOptions) {
    this.#options = options
  }

  async fetch(request: Request, caller: Caller): Promise<Response> {
    await this.#sweep()
    const id = request.headers.get('mcp-session-id')
    if (id === null) return this.#begin(request, caller)
    const found = this.#open.get(id)
    // What belongs to another caller, or to the same one with other rights, is as good as ended: a client then begins anew.
    if (!found || !isSame(found.caller, caller))
      return refusal(404, -32_001, 'There is no such connection. Initialize again.')
    return this.#answered(found, request)
  }

  async close(): Promise<void> {
    for (const id of this.#open.keys()) await this.#end(id)
  }

  async #begin(request: Request, caller: Caller): Promise<Response> {
    const own = [...this.#open.values()].filter((each) => each.caller.name === caller.name)
    if (own.length >= OWN_MAX || this.#open.size >= CONNECTIONS_MAX)
      return refusal(503, -32_000, 'Too many connections are open. Close one with DELETE, or try again later.')
    const server = serverFor(this.#options, caller)
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      maxRequestBodySize: BODY_BYTES_MAX,
      onsessioninitialized: (id) => void this.#open.set(id, connection),
      onsessionclosed: (id) => void this.#open.delete(id),
    })
    const connection: Connection = { transport, server, caller, open: 0, used: performance.now() }
    await server.connect(transport)
    const response = await this.#answered(connection, request)
    // What was no `initialize` has no connection.
    if (transport.sessionId === undefined) await server.close()
    return response
  }

  async #answered(connection: Connection, request: Request): Promise<Response> {
    connection.used = performance.now()
    connection.open += 1
    const done = (): void => {
      connection.open -= 1
      connection.used = performance.now()
    }
    try {
      return whenRead(await connection.transport.handleRequest(request), done)
    } catch (error) {
      done()
      throw error
    }
  }

  async #sweep(): Promise<void> {
    const oldest = performance.now() - IDLE_MS
    for (const [id, { open, used }] of this.#open) if (open === 0 && used < oldest) await this.#end(id)
  }

  async #end(id: string): Promise<void> {
    const found = this.#open.get(id)
    this.#open.delete(id)
    await found?.server.close()
  }
}

/** Calls `done` once, when the body is read to its end or left. */
function whenRead(response: Response, done: () => void): Response {
  const { body } = response
  if (body === null) {
    done()
    return response
  }
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader()
  let over = false
  const end = (): void => {
    if (!over) done()
    over = true
  }
  const read = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      try {
        const { done: last, value } = await reader.read()
        if (!last) return controller.enqueue(value)
        end()
        controller.close()
      } catch (error) {
        end()
        controller.error(error)
      }
    },
    cancel: async (reason) => {
      end()
      await reader.cancel(reason)
    },
  })
  return new Response(read, response)
}

function isSame(one: Caller, other: Caller): boolean {
  const rights = ({ name, role, approvalRoles = [], reach }: Caller) =>
    JSON.stringify([name, role, approvalRoles, reach])
  return rights(one) === rights(other)
}

function refusal(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status })
}
