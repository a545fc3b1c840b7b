// Turns a web `Request` into the `node:http` objects that the handlers use, and their response back into a `Response`,
// for hosts such as Hono and Next.js. It decides nothing.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable, Writable } from 'node:stream'

type TakeRequest = (request: IncomingMessage, response: ServerResponse) => Promise<void>
type HeaderValues = Readonly<Record<string, string | number | undefined>>

/** The bytes that may wait for a slow reader before the stream pauses. */
const WAITING_BYTES_MAX = 64 * 1024

export function answerWebRequest(request: Request, take: TakeRequest): Promise<Response> {
  const incoming = toIncomingMessage(request)
  return new Promise((resolve, reject) => {
    const outgoing = createServerResponse(request.method === 'HEAD', resolve)
    request.signal.addEventListener('abort', () => outgoing.destroy(), { once: true })
    take(incoming, outgoing).catch(reject)
  })
}

function toIncomingMessage(request: Request): IncomingMessage {
  const { pathname, search, host } = new URL(request.url)
  const headers = new Headers(request.headers)
  if (!headers.has('host')) headers.set('host', host)
  // Without a length the parser must know that the body is chunked.
  if (request.body && !headers.has('content-length')) headers.set('transfer-encoding', 'chunked')
  const body = request.body ? Readable.fromWeb(request.body) : Readable.from([])
  const about = {
    method: request.method,
    url: `${pathname}${search}`,
    headers: Object.fromEntries(headers),
    rawHeaders: [...headers].flat(),
    complete: true,
  }
  // The cast is sound: the handlers read only these fields and the stream.
  return Object.assign(body, about) as unknown as IncomingMessage
}

function createServerResponse(isHead: boolean, respond: (response: Response) => void): ServerResponse {
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
        // The body had already ended.
      }
      flush()
      done(error)
    },
  })
  const setHeader = (name: string, value: string | number): void => head.headers.set(name, String(value))
  const writeHead = (status: number, headers: HeaderValues = {}): Writable => {
    head.status = status
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) setHeader(name, value)
    return outgoing
  }
  Object.assign(outgoing, { setHeader, writeHead, flushHeaders: flush, socket: null })
  Object.defineProperty(outgoing, 'headersSent', { get: () => head.sent })
  // The cast is sound: the handlers use only these methods and the stream.
  return outgoing as unknown as ServerResponse
}
