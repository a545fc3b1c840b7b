// One POST or GET and its answer, byte by byte, over node:http with kept connections or over a fetch of the caller. It
// has no deadline for the answer, no retry and no interpretation: exchange.ts has those. Redirects are not followed.
import type { Agent, request } from 'node:http'
import type { Socket } from 'node:net'

export type HttpRequest = {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Null: a GET. */
  readonly body: string | null
  readonly signal: AbortSignal
}

export type ResponseHandler = {
  readonly head: (status: number, headers: Readonly<Record<string, string>>) => void
  readonly data: (chunk: Uint8Array) => void
}

/** Resolves when the answer is complete. Rejects if there is none, if it breaks off, and if it is aborted. */
export type Transport = (order: HttpRequest, sink: ResponseHandler) => Promise<void>

const CONNECT_MS = 15_000
const KEEP_ALIVE_MS = 60_000

type HttpClient = { readonly request: typeof request; readonly agent: Agent }
const httpClients = new Map<string, HttpClient>()

/**
 * Created by the first call: many processes only name a model. It does not use `import`, which would also load Node's
 * own fetch.
 */
function httpClientFor(protocol: string): HttpClient {
  const known = httpClients.get(protocol)
  if (known) return known
  const http = process.getBuiltinModule(protocol === 'http:' ? 'node:http' : 'node:https')
  const door = { request: http.request, agent: new http.Agent({ keepAlive: true, timeout: KEEP_ALIVE_MS }) }
  httpClients.set(protocol, door)
  return door
}

export const httpTransport: Transport = ({ url, headers, body, signal }, sink) => {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const door = httpClientFor(url.protocol)
    const sent = door.request(url, { method: body === null ? 'GET' : 'POST', headers, agent: door.agent })
    const end = (settle: () => void): void => {
      signal.removeEventListener('abort', stop)
      settle()
    }
    const fail = (error: unknown): void => {
      end(() => reject(asError(error)))
      sent.destroy()
    }
    const stop = (): void => fail(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    sent.on('error', fail)
    sent.once('socket', (socket) => boundConnecting(socket, fail))
    sent.once('response', (response) => {
      sink.head(response.statusCode ?? 0, flattenHeaders(response.headers))
      response.on('data', (chunk: Buffer) => {
        try {
          sink.data(chunk)
        } catch (error) {
          fail(error)
        }
      })
      response.on('error', () => fail(new Error('The connection was closed before the answer was complete.')))
      response.on('end', () => end(resolve))
    })
    if (body === null) sent.end()
    else sent.end(body)
  })
}

/** Connecting has a shorter deadline than waiting for an answer. */
function boundConnecting(socket: Socket, fail: (error: Error) => void): void {
  if (!socket.connecting) return
  const late = (): void => fail(new Error(`No connection within ${CONNECT_MS} ms.`))
  socket.setTimeout(CONNECT_MS, late)
  socket.once('connect', () => socket.setTimeout(KEEP_ALIVE_MS).off('timeout', late))
}

/** The caller's own fetch: a proxy, a recorder, another runtime. */
export function fetchTransport(send: typeof fetch): Transport {
  return async ({ url, headers, body, signal }, sink) => {
    const method = body === null ? 'GET' : 'POST'
    const response = await send(url, { method, headers, body, signal, redirect: 'manual' })
    // fetch has decompressed the body already, but keeps the header.
    sink.head(response.status, { ...Object.fromEntries(response.headers), 'content-encoding': 'identity' })
    if (response.body === null) return
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    try {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        sink.data(value)
      }
    } finally {
      await reader.cancel().catch(() => {})
    }
  }
}

function flattenHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const entries = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : (value ?? ''),
  ])
  return Object.fromEntries(entries) as Record<string, string>
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('The request was stopped.')
}
