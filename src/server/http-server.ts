// The HTTP server: takes each request through the checks in their order, then to the handler of its route. The handlers
// are in answers/. The command that starts the server is cli/commands/serve.ts.
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Fault } from '../kernel/index.ts'
import { type AccessEntry, SignIns } from './access.ts'
import { ROUTE_HANDLERS } from './answers/route-handlers.ts'
import { readBody, readQuery } from './request-body.ts'
import {
  checkHost,
  checkRequestOrigin,
  checkRole,
  findSignedRoute,
  matchRoute,
  type RequestTarget,
  parseTarget,
  readRequestToken,
} from './request-checks.ts'
import { COMPRESSED_BYTES_MIN, compressBytes, chooseEncoding, type AnswerEncoding } from './compress-answer.ts'
import type { ApiAnswer, ServerHost, OpenStream, ServerState } from './server-host.ts'
import { InFlightRequests, readIdempotencyKey } from './idempotency-keys.ts'
import { McpEndpoint } from './mcp-endpoint.ts'
import { InspectorFiles, SAFE } from './inspector-files.ts'
import { refusalBody, HttpRefusal, refusalFromError } from './refusals.ts'
import { type SseOptions, STREAMS_LIMIT, type StreamsLimit } from './sse.ts'
import type { TokenRegistry } from './token-registry.ts'
import { type Principal, ROUTES } from './wire.ts'

/** The sessions, tokens and pages that the request handler serves. */
export type RequestHandlerOptions = {
  readonly host: ServerHost
  readonly tokens: TokenRegistry
  /** The folder of the built inspector. */
  readonly pages?: string | null
  /** The mount path, for the inspector's links. */
  readonly base?: string
  /** How often streams send heartbeats, and when a stalled reader is closed. */
  readonly sse?: Partial<SseOptions>
  readonly streamsLimit?: StreamsLimit
  /** Called for sign-ins and refusals. */
  readonly onAccess?: (entry: AccessEntry) => void
  /** Called with unexpected errors. It is not given the request's content. */
  readonly report: (where: string, error: unknown) => void
}

export type HttpServeOptions = RequestHandlerOptions & {
  /** Port 0 takes any free port. */
  readonly port: number
  /** Default: this machine only. */
  readonly address?: string
  /** Further host names, with their ports, besides those of this machine. */
  readonly names?: readonly string[]
}

export type ListeningServer = {
  readonly url: string
  readonly port: number
  readonly hosts: readonly string[]
  /** Takes no more requests, sends `bye` on every stream, and waits a bounded time for answers in progress. */
  close(): Promise<void>
}

const LOCAL = '127.0.0.1'
const HEADER_BYTES_MAX = 16 * 1024
const HEADERS_MS = 10_000
const REQUEST_MS = 40_000
const CLOSE_MS = 2_000
/** How often streams are checked for dropped tokens. */
const TOKENS_MS = 1_000
/**
 * Longer than the interval in which a hidden tab polls. Node accepts one connection per turn of its loop, so
 * reconnecting to a busy server is slow.
 */
const KEPT_MS = 30_000

export async function startHttpServer(options: HttpServeOptions): Promise<ListeningServer> {
  await options.host.store.open()
  const desk = new RequestHandler(options)
  const http = createServer(
    {
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: HEADERS_MS,
      requestTimeout: REQUEST_MS,
      connectionsCheckingInterval: 1_000,
      keepAliveTimeout: KEPT_MS,
    },
    (request, response) => void desk.take(request, response),
  )
  // The input is not HTTP, or is ambiguous HTTP.
  http.on('clientError', (_, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
    else socket.destroy()
  })
  const { address = LOCAL, names = [] } = options
  const port = await listenOnPort(http, options.port, address)
  const local = address === LOCAL || address === '::1'
  desk.hosts = new Set([
    `127.0.0.1:${port}`,
    `localhost:${port}`,
    `[::1]:${port}`,
    ...names.map((name) => hostWithPort(name, port)),
  ])
  const shown = local ? `127.0.0.1:${port}` : hostWithPort(names[0] ?? address, port)
  const { hosts } = desk
  desk.isHost = (host) => hosts.has(host)
  return { url: `http://${shown}`, port, hosts: [...hosts], close: () => desk.close(http) }
}

/** `ServerHost` includes the port unless it is the scheme's default port. */
function hostWithPort(name: string, port: number): string {
  return /:\d+$/.test(name) || port === 80 ? name : `${name}:${port}`
}

function listenOnPort(http: HttpServer, port: number, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    http.once('error', (error: NodeJS.ErrnoException) => {
      const next = error.code === 'EADDRINUSE' ? 'Stop what uses it, or choose another with --port (0: any).' : ''
      const what = error.code === 'EADDRINUSE' ? 'is in use' : `cannot be opened (${error.code ?? error.message})`
      reject(new Fault('invalid_config', `Port ${port} of ${address} ${what}. ${next}`.trim()))
    })
    http.listen({ port, host: address, exclusive: true }, () => resolve((http.address() as AddressInfo).port))
  })
}

/** Handles requests from any HTTP server. Until `isHost` is set it refuses every host. */
export class RequestHandler implements ServerState {
  readonly startedAt: number
  readonly streams = new Map<OpenStream, Principal>()
  readonly closing: AbortSignal
  readonly base: string
  readonly sse: Partial<SseOptions>
  readonly streamsLimit: StreamsLimit
  readonly #options: RequestHandlerOptions
  readonly #pages: InspectorFiles
  readonly #flights = new InFlightRequests()
  readonly #mcp: McpEndpoint
  readonly #closing = new AbortController()
  readonly #watch: NodeJS.Timeout
  readonly #signIns = new SignIns()
  hosts: ReadonlySet<string> = new Set()
  isHost: (host: string) => boolean = () => false

  constructor(options: RequestHandlerOptions) {
    this.#options = options
    this.#pages = new InspectorFiles(options.pages ?? null, options.base)
    this.#mcp = new McpEndpoint(options.host, this)
    this.startedAt = options.host.store.now()
    this.sse = options.sse ?? {}
    this.streamsLimit = options.streamsLimit ?? STREAMS_LIMIT
    this.base = options.base ?? ''
    this.closing = this.#closing.signal
    this.#watch = setInterval(() => this.#endStale(), TOKENS_MS).unref()
  }

  /** Another server of this folder may have dropped a token, or made it again with fewer rights. */
  #endStale(): void {
    const { tokens, host } = this.#options
    try {
      const now = host.store.now()
      for (const [stream, principal] of this.streams) if (!tokens.knows(principal, now)) stream.bye('token')
    } catch (error) {
      // If the token file cannot be used, every request is refused and every stream ends.
      this.report('tokens', error)
      for (const stream of this.streams.keys()) stream.bye('token')
    }
  }

  report(where: string, error: unknown): void {
    this.#options.report(where, error)
  }

  async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let where = 'request'
    const seen: RequestProgress = { route: null, principal: null }
    try {
      const target = parseTarget(request.url)
      const host = checkHost(request, this.isHost, this.hosts)
      const isMcp = target.path === '/mcp'
      const isPage = target.segments[0] !== 'v1' && target.path !== ROUTES.metrics.path && !isMcp
      checkRequestOrigin(request, host, isPage)
      if (this.closing.aborted) throw new HttpRefusal(503, 'closing', 'The server is closing. Connect again.', 1)
      if (isPage) {
        seen.route = 'page'
        return await this.#page(target, request, response)
      }
      if (isMcp) {
        where = 'mcp'
        seen.route = where
        return await this.#mcp.take(request, response, this.#principalOf(request, seen))
      }
      where = await this.#answer(target, request, response, seen, (name) => {
        where = name
      })
    } catch (error) {
      this.#refuse(where, error, request, response, seen)
    }
  }

  /** An access log that throws must not stop a request. */
  #tell(entry: Omit<AccessEntry, 'at' | 'name' | 'role'>, principal: Principal | null): void {
    const { name = null, role = null } = principal ?? {}
    try {
      this.#options.onAccess?.({ at: this.#options.host.store.now(), ...entry, name, role })
    } catch (error) {
      this.report('access', error)
    }
  }

  #principalOf(request: IncomingMessage, seen: RequestProgress): Principal {
    const token = readRequestToken(request)
    const { tokens, host } = this.#options
    const from = remoteAddress(request)
    try {
      const now = host.store.now()
      const principal = tokens.principalOf(token, now)
      seen.principal = principal
      if (this.#signIns.isNew(principal, from, now))
        this.#tell({ type: 'signed_in', from, route: seen.route }, principal)
      return principal
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      // The caller has not shown a valid token yet, so the file's path goes to the server's own output, not into the
      // answer.
      this.report('tokens', error)
      throw new HttpRefusal(
        503,
        'io_error',
        'The tokens of this server cannot be used now. Its own output says why.',
        5,
      )
    }
  }

  async #page({ path }: RequestTarget, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const head = request.method === 'HEAD'
    if (request.method !== 'GET' && !head) throw new HttpRefusal(404, 'not_found', 'There is nothing here but pages.')
    await this.#pages.answer(path, response, head, chooseEncoding(request.headers['accept-encoding']))
  }

  async #answer(
    target: RequestTarget,
    request: IncomingMessage,
    response: ServerResponse,
    seen: RequestProgress,
    found: (name: string) => void,
  ): Promise<string> {
    const { host, tokens } = this.#options
    const signed = findSignedRoute(request.method, target)
    const principal = signed ? UNNAMED_SENDER : this.#principalOf(request, seen)
    const where = signed ?? matchRoute(request.method, target)
    found(where.name)
    seen.route = where.name
    checkRole(principal, where.route.role)
    // A signature is over the bytes as they came, so the handler reads them.
    const body = signed ? {} : await readBody(request, where.route)
    const query = readQuery(where.route, target.query)
    const key = readIdempotencyKey(request, principal, where, body)
    const asked = { ...where, host, tokens, principal, query, body, key, request, response, server: this }
    const given = await this.#flights.run(key, () => ROUTE_HANDLERS[where.name](asked))
    const encoding = chooseEncoding(request.headers['accept-encoding'])
    if (given) await sendJsonAnswer(response, given.status ?? where.route.status, given, encoding)
    return where.name
  }

  #refuse(
    where: string,
    error: unknown,
    request: IncomingMessage,
    response: ServerResponse,
    seen: RequestProgress,
  ): void {
    const { refused, unexpected } = refusalFromError(error)
    if (unexpected) this.report(where, error)
    const { status, code } = refused
    if (NOT_LET_IN.has(status))
      this.#tell({ type: 'refused', from: remoteAddress(request), route: seen.route, status, code }, seen.principal)
    if (response.headersSent) return void response.destroy()
    const again = refused.retryAfterS === null ? {} : { 'retry-after': String(refused.retryAfterS) }
    // An unread body must not be parsed as the next request.
    const close = request.complete ? {} : { connection: 'close' }
    const bearer = refused.status === 401 && seen.route !== 'trigger' ? { 'www-authenticate': 'Bearer' } : {}
    const allow = refused.allow === null ? {} : { allow: refused.allow }
    const headers = { ...again, ...close, ...bearer, ...allow }
    void sendJsonAnswer(response, refused.status, { json: refusalBody(refused), headers }, null)
  }

  /** Takes no more requests, and ends every stream. */
  async leave(): Promise<void> {
    this.#closing.abort()
    clearInterval(this.#watch)
    for (const stream of this.streams.keys()) stream.bye('closing')
    await this.#mcp.close()
  }

  async close(http: HttpServer): Promise<void> {
    const closed = new Promise<void>((resolve) => void http.close(() => resolve()))
    await this.leave()
    http.closeIdleConnections()
    const late = setTimeout(() => http.closeAllConnections(), CLOSE_MS)
    await closed
    clearTimeout(late)
  }
}

/** The sender of a signed delivery. It reaches nothing else. */
const UNNAMED_SENDER: Principal = { name: 'webhook', role: 'viewer', roles: [], reach: 'own' }

/** The route and principal that the checks have found so far. */
type RequestProgress = { route: string | null; principal: Principal | null }

/** Statuses of requests that were not let in, by host, origin, token or role. */
const NOT_LET_IN: ReadonlySet<number> = new Set([401, 403, 421])

/** Null if the host does not provide the address. */
function remoteAddress({ socket }: IncomingMessage): string | null {
  return (socket as IncomingMessage['socket'] | undefined)?.remoteAddress ?? null
}

async function sendJsonAnswer(
  response: ServerResponse,
  status: number,
  { json, headers = {} }: NonNullable<ApiAnswer>,
  encoding: AnswerEncoding | null,
): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(json))
  const isCompressed = encoding !== null && bytes.length >= COMPRESSED_BYTES_MIN
  const sent = isCompressed ? await compressBytes(bytes, encoding) : bytes
  response
    .writeHead(status, {
      ...SAFE,
      'content-type': 'application/json; charset=utf-8',
      'content-length': sent.length,
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
      vary: 'accept-encoding',
      ...(isCompressed ? { 'content-encoding': encoding } : {}),
      ...headers,
    })
    .end(sent)
}
