// The HTTP server: takes a request through the checks, in their order, and to the answer of its route. What a route does is in answers/;
// how the server is started from the command line is in cli/commands/serve.ts.
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Fault } from '../kernel/index.ts'
import { type AccessEntry, SignIns } from './access.ts'
import { ANSWERS } from './answers/answers.ts'
import { readBody, readQuery } from './body.ts'
import { checkHost, checkOrigin, checkRole, routeFor, type Target, targetOf, tokenIn } from './checks.ts'
import { COMPRESSED_BYTES_MIN, compress, encodingFor, type Encoding } from './compress.ts'
import type { Given, Host, OpenStream, ServerState } from './host.ts'
import { InFlight, keyOf } from './keys.ts'
import { Mcp } from './mcp.ts'
import { Pages, SAFE } from './pages.ts'
import { bodyOf, Refused, refusalOf } from './refusals.ts'
import type { SseOptions } from './sse.ts'
import type { Tokens } from './tokens.ts'
import { type Principal, ROUTES } from './wire.ts'

/** What is answered, and to whom. */
export type DeskOptions = {
  readonly host: Host
  readonly tokens: Tokens
  /** The folder of the built inspector. */
  readonly pages?: string | null
  /** Where it is mounted, for the links of the inspector. */
  readonly base?: string
  /** How often streams beat, and when a reader that takes nothing is left. */
  readonly sse?: Partial<SseOptions>
  /** Told of sign-ins and refusals. */
  readonly onAccess?: (entry: AccessEntry) => void
  /** Told of what nobody expected. It is not told what was in the request. */
  readonly report: (where: string, error: unknown) => void
}

export type ServeOptions = DeskOptions & {
  /** Port 0 takes any port that is free. */
  readonly port: number
  /** Default: only this machine. */
  readonly address?: string
  /** The names under which it is reached, with their ports, besides those of this machine. */
  readonly names?: readonly string[]
}

export type Server = {
  readonly url: string
  readonly port: number
  readonly hosts: readonly string[]
  /** Takes nothing more, says `bye` on every stream, and waits for answers that are being written, up to a bound. */
  close(): Promise<void>
}

const LOCAL = '127.0.0.1'
const HEADER_BYTES_MAX = 16 * 1024
const HEADERS_MS = 10_000
const REQUEST_MS = 40_000
const CLOSE_MS = 2_000
/** How soon a stream ends whose token another process dropped. */
const TOKENS_MS = 1_000
/** Longer than a hidden tab is silent: Node takes one new connection in each turn of its loop, so a busy server is long at them. */
const KEPT_MS = 30_000

export async function serve(options: ServeOptions): Promise<Server> {
  await options.host.store.open()
  const desk = new Desk(options)
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
  // What is no HTTP, or two kinds of it at once.
  http.on('clientError', (_, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
    else socket.destroy()
  })
  const { address = LOCAL, names = [] } = options
  const port = await listening(http, options.port, address)
  const local = address === LOCAL || address === '::1'
  desk.hosts = new Set([
    `127.0.0.1:${port}`,
    `localhost:${port}`,
    `[::1]:${port}`,
    ...names.map((name) => named(name, port)),
  ])
  const shown = local ? `127.0.0.1:${port}` : named(names[0] ?? address, port)
  const { hosts } = desk
  desk.isHost = (host) => hosts.has(host)
  return { url: `http://${shown}`, port, hosts: [...hosts], close: () => desk.close(http) }
}

/** `Host` has the port unless it is the one of the scheme. */
function named(name: string, port: number): string {
  return /:\d+$/.test(name) || port === 80 ? name : `${name}:${port}`
}

function listening(http: HttpServer, port: number, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    http.once('error', (error: NodeJS.ErrnoException) => {
      const next = error.code === 'EADDRINUSE' ? 'Stop what uses it, or choose another with --port (0: any).' : ''
      const what = error.code === 'EADDRINUSE' ? 'is in use' : `cannot be opened (${error.code ?? error.message})`
      reject(new Fault('invalid_config', `Port ${port} of ${address} ${what}. ${next}`.trim()))
    })
    http.listen({ port, host: address, exclusive: true }, () => resolve((http.address() as AddressInfo).port))
  })
}

/** Takes requests, wherever they come from. Until `isHost` is set it answers to no name. */
export class Desk implements ServerState {
  readonly startedAt: number
  readonly streams = new Map<OpenStream, Principal>()
  readonly closing: AbortSignal
  readonly base: string
  readonly sse: Partial<SseOptions>
  readonly #options: DeskOptions
  readonly #pages: Pages
  readonly #flights = new InFlight()
  readonly #mcp: Mcp
  readonly #closing = new AbortController()
  readonly #watch: NodeJS.Timeout
  readonly #signIns = new SignIns()
  hosts: ReadonlySet<string> = new Set()
  isHost: (host: string) => boolean = () => false

  constructor(options: DeskOptions) {
    this.#options = options
    this.#pages = new Pages(options.pages ?? null, options.base)
    this.#mcp = new Mcp(options.host, this)
    this.startedAt = options.host.store.now()
    this.sse = options.sse ?? {}
    this.base = options.base ?? ''
    this.closing = this.#closing.signal
    this.#watch = setInterval(() => this.#endStale(), TOKENS_MS).unref()
  }

  /** A token may be dropped, or made anew with fewer rights, by another server of this folder. */
  #endStale(): void {
    const { tokens, host } = this.#options
    try {
      const now = host.store.now()
      for (const [stream, principal] of this.streams) if (!tokens.knows(principal, now)) stream.bye('token')
    } catch (error) {
      // A file of tokens that cannot be used lets nobody in, and keeps nobody.
      this.report('tokens', error)
      for (const stream of this.streams.keys()) stream.bye('token')
    }
  }

  report(where: string, error: unknown): void {
    this.#options.report(where, error)
  }

  async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let where = 'request'
    const seen: Seen = { route: null, principal: null }
    try {
      const target = targetOf(request.url)
      const host = checkHost(request, this.isHost, this.hosts)
      const isMcp = target.path === '/mcp'
      const isPage = target.segments[0] !== 'v1' && target.path !== ROUTES.metrics.path && !isMcp
      checkOrigin(request, host, isPage)
      if (this.closing.aborted) throw new Refused(503, 'closing', 'The server is closing. Connect again.', 1)
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

  /** An access log that fails stops no request. */
  #tell(entry: Omit<AccessEntry, 'at' | 'name' | 'role'>, principal: Principal | null): void {
    const { name = null, role = null } = principal ?? {}
    try {
      this.#options.onAccess?.({ at: this.#options.host.store.now(), ...entry, name, role })
    } catch (error) {
      this.report('access', error)
    }
  }

  #principalOf(request: IncomingMessage, seen: Seen): Principal {
    const token = tokenIn(request)
    const { tokens, host } = this.#options
    const from = addressOf(request)
    try {
      const now = host.store.now()
      const principal = tokens.principalOf(token, now)
      seen.principal = principal
      if (this.#signIns.isNew(principal, from, now))
        this.#tell({ type: 'signed_in', from, route: seen.route }, principal)
      return principal
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      // The caller has not shown a valid token yet. So the file's path goes to the server's own output, not into the answer.
      this.report('tokens', error)
      throw new Refused(503, 'io_error', 'The tokens of this server cannot be used now. Its own output says why.', 5)
    }
  }

  async #page({ path }: Target, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const head = request.method === 'HEAD'
    if (request.method !== 'GET' && !head) throw new Refused(404, 'not_found', 'There is nothing here but pages.')
    await this.#pages.answer(path, response, head, encodingFor(request.headers['accept-encoding']))
  }

  async #answer(
    target: Target,
    request: IncomingMessage,
    response: ServerResponse,
    seen: Seen,
    found: (name: string) => void,
  ): Promise<string> {
    const { host, tokens } = this.#options
    const principal = this.#principalOf(request, seen)
    const where = routeFor(request.method, target)
    found(where.name)
    seen.route = where.name
    checkRole(principal, where.route.role)
    const body = await readBody(request, where.route)
    const query = readQuery(where.route, target.query)
    const key = keyOf(request, principal, where, body)
    const asked = { ...where, host, tokens, principal, query, body, key, request, response, server: this }
    const given = await this.#flights.run(key, () => ANSWERS[where.name](asked))
    const encoding = encodingFor(request.headers['accept-encoding'])
    if (given) await send(response, where.route.status, given, encoding)
    return where.name
  }

  #refuse(where: string, error: unknown, request: IncomingMessage, response: ServerResponse, seen: Seen): void {
    const { refused, unexpected } = refusalOf(error)
    if (unexpected) this.report(where, error)
    const { status, code } = refused
    if (NOT_LET_IN.has(status))
      this.#tell({ type: 'refused', from: addressOf(request), route: seen.route, status, code }, seen.principal)
    if (response.headersSent) return void response.destroy()
    const again = refused.retryAfterS === null ? {} : { 'retry-after': String(refused.retryAfterS) }
    // What was not read must not be taken for the next request.
    const close = request.complete ? {} : { connection: 'close' }
    const bearer = refused.status === 401 ? { 'www-authenticate': 'Bearer' } : {}
    const allow = refused.allow === null ? {} : { allow: refused.allow }
    const headers = { ...again, ...close, ...bearer, ...allow }
    void send(response, refused.status, { json: bodyOf(refused), headers }, null)
  }

  /** Takes nothing more, and ends every stream. */
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

/** How far the checks came with a request. */
type Seen = { route: string | null; principal: Principal | null }

/** A request was not let in: its name or page, its token, or its role. */
const NOT_LET_IN: ReadonlySet<number> = new Set([401, 403, 421])

/** Null behind a host that does not say it. */
function addressOf({ socket }: IncomingMessage): string | null {
  return (socket as IncomingMessage['socket'] | undefined)?.remoteAddress ?? null
}

async function send(
  response: ServerResponse,
  status: number,
  { json, headers = {} }: NonNullable<Given>,
  encoding: Encoding | null,
): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(json))
  const isCompressed = encoding !== null && bytes.length >= COMPRESSED_BYTES_MIN
  const sent = isCompressed ? await compress(bytes, encoding) : bytes
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
