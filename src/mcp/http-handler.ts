// The MCP server over streamable HTTP, for a program that has already checked the caller: `fetch(request, caller)`. It
// checks no host, origin or token. A connection of the older protocol revision belongs to the caller that opened it.
import {
  type AuthInfo,
  createMcpHandler,
  isLegacyRequest,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { randomUUID } from 'node:crypto'
import { functionCheck, methodsCheck, requiredCheck, optionsChecker } from '../options.ts'
import { type Caller, checkCaller } from './caller.ts'
import type { ServerOptions } from './mcp-session-host.ts'
import { createCallerServer } from './caller-server.ts'

/** An MCP server over HTTP, to be mounted in a server of yours. */
export type McpHandler = {
  /** Answers one request of this caller. Throws only for an invalid caller. */
  fetch(request: Request, caller: Caller): Promise<Response>
  /** Ends all connections. */
  close(): Promise<void>
}

const BODY_BYTES_MAX = 1024 * 1024
/** The most connections of the older revision, which stay open between requests: in all, and per caller. */
const CONNECTIONS_MAX = 500
const OWN_MAX = 50
const IDLE_MS = 30 * 60_000

type Connection = {
  readonly transport: WebStandardStreamableHTTPServerTransport
  readonly server: McpServer
  readonly caller: Caller
  /** The number of requests that are not fully answered. */
  open: number
  used: number
}

const checkOptions = optionsChecker<ServerOptions>('mcpHandler', {
  desk: requiredCheck(methodsCheck('give one such as deskOf(harness)', 'session', 'start', 'pending', 'list')),
  more: functionCheck,
})

/** `fetch` throws only for an invalid caller; every other outcome is a response. */
export function mcpHandler(options: ServerOptions): McpHandler {
  checkOptions(options)
  const connections = new Connections(options)
  const modern = createMcpHandler(({ authInfo }) => createCallerServer(options, callerOf(authInfo)), {
    legacy: 'reject',
    maxRequestBodySize: BODY_BYTES_MAX,
  })
  return {
    fetch: async (request, caller) => {
      checkCaller(caller)
      if (await isLegacyRequest(request, undefined, { maxRequestBodySize: BODY_BYTES_MAX }))
        return connections.fetch(request, caller)
      return modern.fetch(request, { authInfo: authInfoOf(caller) })
    },
    close: async () => {
      await modern.close()
      await connections.close()
    },
  }
}

/** The package passes this to the server factory. The token was checked before, so it is left out. */
function authInfoOf(caller: Caller): AuthInfo {
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
    // A connection of another caller, or of this one with other rights, counts as ended: the client initializes again.
    if (!found || !isSameCaller(found.caller, caller))
      return jsonRpcRefusal(404, -32_001, 'There is no such connection. Initialize again.')
    return this.#answered(found, request)
  }

  async close(): Promise<void> {
    for (const id of this.#open.keys()) await this.#end(id)
  }

  async #begin(request: Request, caller: Caller): Promise<Response> {
    const own = [...this.#open.values()].filter((each) => each.caller.name === caller.name)
    if (own.length >= OWN_MAX || this.#open.size >= CONNECTIONS_MAX)
      return jsonRpcRefusal(503, -32_000, 'Too many connections are open. Close one with DELETE, or try again later.')
    const server = createCallerServer(this.#options, caller)
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      maxRequestBodySize: BODY_BYTES_MAX,
      onsessioninitialized: (id) => void this.#open.set(id, connection),
      onsessionclosed: (id) => void this.#open.delete(id),
    })
    const connection: Connection = { transport, server, caller, open: 0, used: performance.now() }
    await server.connect(transport)
    const response = await this.#answered(connection, request)
    // Only an `initialize` request makes a connection.
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
      return callWhenRead(await connection.transport.handleRequest(request), done)
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

/** Calls `done` once, when the body is read to its end or abandoned. */
function callWhenRead(response: Response, done: () => void): Response {
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

function isSameCaller(one: Caller, other: Caller): boolean {
  const rights = ({ name, role, approvalRoles = [], reach }: Caller) =>
    JSON.stringify([name, role, approvalRoles, reach])
  return rights(one) === rights(other)
}

function jsonRpcRefusal(status: number, code: number, message: string): Response {
  return Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status })
}
