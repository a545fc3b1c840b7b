// A request of the web and its response, as the objects of `node:http` that the answers work with: for hosts that call handlers with a
// `Request`, such as Hono and Next.js. It decides nothing.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable, Writable } from 'node:stream'

type Take = (request: IncomingMessage, response: ServerResponse) => Promise<void>
type Headers_ = Readonly<Record<string, string | number | undefined>>

/** Bytes that wait for a slow reader before a stream is told to wait. */
const WAITING_BYTES_MAX = 64 * 1024

export function answerRequest(request: Request, take: Take): Promise<Response> {
  const incoming = incomingOf(request)
  return new Promise((resolve, reject) => {
    const outgoing = outgoingFor(request.method === 'HEAD', resolve)
    request.signal.addEventListener('abort', () => outgoing.destroy(), { once: true })
    take(incoming, outgoing).catch(reject)
  })
}

function incomingOf(request: Request): IncomingMessage {
  const { pathname, search, host } = new URL(request.url)
  const headers = new Headers(request.headers)
  if (!headers.has('host')) headers.set('host', host)
  // Without a length the parser needs to know that the body is chunked.
  if (request.body && !headers.has('content-length')) headers.set('transfer-encoding', 'chunked')
  const body = request.body ? Readable.fromWeb(request.body) : Readable.from([])
  const about = {
    method: request.method,
    url: `${pathname}${search}`,
    headers: Object.fromEntries(headers),
    rawHeaders: [...headers].flat(),
    complete: true,
  }
  // Sound: the answers read these fields and the stream, and nothing else of a request.
  return Object.assign(body, about) as unknown as IncomingMessage
}

function outgoingFor(isHead: boolean, respond: (response: Response) => void): ServerResponse {
  let pending: (() => void) | null = null
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null
  const body = new ReadableStream<Uint8Array>(
    {
      start: (made) => {
        controller = made
      },
      pull: () => {
        const done = pending
        pending = null
        done?.()
      },
      cancel: () => void outgoing.destroy(),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: WAITING_BYTES_MAX }),
  )
  const head = { status: 200, headers: new Headers(), sent: false }
  const flush = (): void => {
    if (head.sent) return
    head.sent = true
    respond(new Response(isHead ? null : body, { status: head.status, headers: head.headers }))
  }
  const outgoing = new Writable({
    write: (chunk: Uint8Array, _encoding, done) => {
      flush()
      controller?.enqueue(new Uint8Array(chunk))
      if ((controller?.desiredSize ?? 0) > 0) done()
      else pending = () => done()
    },
    final: (done) => {
      flush()
      controller?.close()
      done()
    },
    destroy: (error, done) => {
      try {
        controller?.error(error ?? new Error('The answer broke off.'))
      } catch {
        // It was whole already.
      }
      flush()
      done(error)
    },
  })
  const setHeader = (name: string, value: string | number): void => head.headers.set(name, String(value))
  const writeHead = (status: number, headers: Headers_ = {}): Writable => {
    head.status = status
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) setHeader(name, value)
    return outgoing
  }
  Object.assign(outgoing, { setHeader, writeHead, flushHeaders: flush, socket: null })
  Object.defineProperty(outgoing, 'headersSent', { get: () => head.sent })
  // Sound: the answers use these methods and the stream, and nothing else of a response.
  return outgoing as unknown as ServerResponse
}
