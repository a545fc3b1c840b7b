// One connection to a server: requests by the table of routes, errors as the library throws them, and retries that
// never make a change twice. It uses nothing of Node, so it runs in a browser too.
import { Fault, type FaultCode } from '../kernel/index.ts'
import { findAnswerMismatch } from '../server/wire-answer-check.ts'
import { type RouteName, ROUTES, type WireError } from '../server/wire.ts'

/** Options of `connect`: the address of the server and the token. */
export type ClientOptions = {
  /** Such as `http://127.0.0.1:4747`. */
  readonly url: string
  /** The token of the server. It is sent in a header, never in an address. */
  readonly token: string
  /** Makes the requests. Default: the `fetch` of the platform. */
  readonly fetch?: typeof fetch
}

/**
 * A refusal that only a server makes: no token, a wrong role, another origin. All other errors are a `Fault`, as in the
 * library.
 */
export class ServerRefusal extends Error {
  /** The status of the answer. */
  readonly status: number
  /** The code of the refusal, for programs. */
  readonly code: string
  constructor(status: number, code: string, message: string) {
    super(message)
    this.name = 'ServerRefusal'
    this.status = status
    this.code = code
  }
}

const OWN = /^(?:bad_(?:target|host|origin)|unauthorized|not_found|forbidden|media_type|too_large|method|internal)$/
/** Temporary statuses: the same request may succeed a little later. */
const PASSING = new Set([502, 503, 504])
const TRIES = 4
const WAIT_MS = 100

export type RouteRequest = {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

export class ServerConnection {
  readonly #url: string
  readonly #token: string
  readonly #fetch: typeof fetch
  readonly #closed = new AbortController()

  constructor({ url, token, fetch: own = fetch }: ClientOptions) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
      throw new Fault('invalid_input', 'The address of a server begins with http:// or https://.')
    this.#url = url.replace(/\/+$/, '')
    this.#token = token
    this.#fetch = own
  }

  /** Ends what is being followed. Every later request is refused. */
  close(): void {
    this.#closed.abort()
  }

  /** Aborts with the caller's signal, and when this client closes. */
  untilClosed(signal?: AbortSignal): AbortSignal {
    return signal ? AbortSignal.any([signal, this.#closed.signal]) : this.#closed.signal
  }

  async json<T>(name: RouteName, request: RouteRequest = {}): Promise<T> {
    const response = await this.ask(name, request)
    const text = await response.text().catch((error: unknown) => {
      throw request.signal?.aborted ? error : badAnswerRefusal(response.status, 'it was cut')
    })
    const value = parseJsonText(text)
    if (value === undefined) throw badAnswerRefusal(response.status, 'it is no JSON')
    const { answer } = ROUTES[name]
    const wrong =
      answer === 'stream' || answer === 'text' || answer === 'bytes' ? null : findAnswerMismatch(answer, value)
    if (wrong !== null) throw badAnswerRefusal(response.status, `${wrong} is missing or has another type`)
    return value as T
  }

  /** Retries only where that is harmless: reads, and requests with a key. */
  async ask(name: RouteName, request: RouteRequest = {}): Promise<Response> {
    const { method, keyed } = ROUTES[name]
    // An id chosen by the caller acts as the key.
    const own = typeof (request.body as { readonly id?: unknown } | undefined)?.id === 'string'
    const key = keyed && !own ? { 'idempotency-key': crypto.randomUUID() } : {}
    const again = method === 'GET' || keyed === true
    for (let tries = 1; ; tries++) {
      const last = !again || tries === TRIES
      try {
        const response = await this.once(name, { ...request, headers: { ...key, ...request.headers } })
        if (response.ok) return response
        if (last || !PASSING.has(response.status)) throw await errorFromResponse(response)
      } catch (error) {
        if (last || error instanceof Fault || error instanceof ServerRefusal || request.signal?.aborted)
          throw explainUnreachable(error)
      }
      await sleepUntilAborted(WAIT_MS * 2 ** tries, request.signal)
    }
  }

  async once(
    name: RouteName,
    { params = {}, query = {}, body, headers = {}, signal }: RouteRequest,
  ): Promise<Response> {
    if (this.#closed.signal.aborted) throw new Fault('harness_closed', 'This client is closed. Connect again to go on.')
    const { method, path, body: takes } = ROUTES[name]
    const where = path.replace(/:(\w+)/g, (_, key: string) => encodeURIComponent(params[key] ?? ''))
    const asked = Object.entries(query).filter(([, value]) => value !== undefined)
    const search = asked.map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`).join('&')
    return this.#fetch(`${this.#url}${where}${search === '' ? '' : `?${search}`}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(takes ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(takes ? { body: JSON.stringify(body ?? {}) } : {}),
      ...(signal ? { signal } : {}),
      redirect: 'error',
    })
  }
}

export async function errorFromResponse(response: Response): Promise<Error> {
  const { status } = response
  const text = await response.text().catch(() => '')
  try {
    const { code, message } = (JSON.parse(text) as WireError).error
    if (!/^[a-z_]{1,64}$/.test(code) || typeof message !== 'string') throw new TypeError('no error of this server')
    return OWN.test(code) ? new ServerRefusal(status, code, message) : new Fault(code as FaultCode, message)
  } catch {
    return new ServerRefusal(status, 'not_found', `What answers there is no terret server (status ${status}).`)
  }
}

/** The response does not match this route: another program listens there, or a server of another version. */
export function badAnswerRefusal(status: number, why: string): ServerRefusal {
  const text = `The answer is not that of a terret server of this version: ${why}. Check the address and both versions.`
  return new ServerRefusal(status, 'bad_answer', text)
}

function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** Replaces the unhelpful errors that `fetch` throws. */
function explainUnreachable(error: unknown): unknown {
  if (!(error instanceof TypeError)) return error
  return new ServerRefusal(0, 'unreachable', 'The server cannot be reached. Is it running, and is the address right?')
}

/** Ends early on abort: the code that follows checks the signal. */
export function sleepUntilAborted(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener(
      'abort',
      () => {
        clearTimeout(timer)
        resolve()
      },
      { once: true },
    )
  })
}
