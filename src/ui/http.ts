// What both protocols need of HTTP: a request body that is bounded and JSON, a refusal as a status with one sentence and a code, and
// an answer as server-sent events. Requests and responses are those of the web, as frameworks have them; Node's own are adapted.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { Fault, type FaultCode } from '../kernel/failure.ts'
import type { Items } from './follow.ts'
import type { Item } from './teller.ts'

export type Handler = (request: Request) => Promise<Response>
export type Fields = Readonly<Record<string, unknown>>

/** One event of a stream. `id` is the position behind it, which a reader hands back to go on. */
export type Frame = { readonly data: object; readonly id?: string }
export type Encoder = {
  readonly headers: Readonly<Record<string, string>>
  begin(): readonly Frame[]
  tell(item: Item): readonly Frame[]
  fail(code: string, message: string): readonly Frame[]
  /** What stands at the end, however the stream ended. */
  last(): string
}

export function answer(items: Items, encoder: Encoder): Response {
  const utf8 = new TextEncoder()
  const text = (frames: readonly Frame[]) => utf8.encode(frames.map(frameText).join(''))
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(text(encoder.begin())),
    pull: async (controller) => {
      try {
        for (;;) {
          const { done, value } = await items.next()
          const frames = done === true ? [] : value.flatMap((item) => encoder.tell(item))
          if (frames.length > 0) return controller.enqueue(text(frames))
          if (done === true) break
        }
      } catch (error) {
        const { code, message } = told(error)
        controller.enqueue(text(encoder.fail(code, message)))
      }
      controller.enqueue(utf8.encode(encoder.last()))
      controller.close()
    },
    cancel: async () => void (await items.return?.()),
  })
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' }
  return new Response(body, { headers: { ...headers, ...encoder.headers } })
}

export function frameText({ id, data }: Frame): string {
  return `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`
}

/** Frames of one item: only the last of them has the position behind the item. */
export function framed(data: readonly object[], position: string): readonly Frame[] {
  return data.map((one, i) => (i === data.length - 1 ? { data: one, id: position } : { data: one }))
}

/** Answers by `handle`, and what it throws with a status and one sentence. */
export function refusing(handle: Handler): Handler {
  return async (request) => {
    try {
      return await handle(request)
    } catch (error) {
      const { code, message, status } = told(error)
      return refusal(status, code, message)
    }
  }
}

/** The message of an unexpected error may hold internals, so it is not sent. */
function told(error: unknown): { readonly code: string; readonly message: string; readonly status: number } {
  if (!(error instanceof Fault)) return { code: 'failed', message: 'The server could not do this.', status: 500 }
  return { code: error.code, message: error.message, status: STATUS[error.code] ?? 503 }
}

const STATUS: Partial<Record<FaultCode, number>> = {
  invalid_input: 400,
  session_missing: 404,
  call_unknown: 404,
  decision_stale: 409,
  cursor_stale: 409,
  id_reused: 409,
  conflict: 409,
  session_busy: 409,
  session_closed: 409,
  session_held: 409,
  session_elsewhere: 409,
  session_exists: 409,
  too_many: 413,
  invalid_config: 500,
}

export function refusal(status: number, code: string, message: string): Response {
  return Response.json({ code, message }, { status })
}

/** The JSON object of a request. A form of another page cannot send this type without being asked first. */
export async function bodyOf(request: Request, bytesMax: number): Promise<Fields> {
  if (!/^application\/json\b/i.test(request.headers.get('content-type') ?? ''))
    throw new Fault('invalid_input', 'Send JSON, with the content type application/json.')
  const chunks: Uint8Array[] = []
  let bytes = 0
  // Not a loop over the body: leaving one would close the connection before the refusal is sent.
  const reader = (request.body as ReadableStream<Uint8Array> | null)?.getReader()
  for (let step = await reader?.read(); step?.done === false; step = await reader?.read()) {
    bytes += step.value.length
    if (bytes > bytesMax) throw new Fault('too_many', `A request may have ${bytesMax} bytes. Send less at once.`)
    chunks.push(step.value)
  }
  const body = parsed(Buffer.concat(chunks).toString('utf8'))
  if (!isFields(body)) throw new Fault('invalid_input', 'The body of the request must be a JSON object.')
  return body
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Fault('invalid_input', 'The body of the request is not JSON.')
  }
}

export function isFields(value: unknown): value is Fields {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

/** Where a reader stands, by the header of server-sent events or in the address. */
export function cursorOf(request: Request): string | null {
  return request.headers.get('last-event-id') ?? new URL(request.url).searchParams.get('after')
}

/** Objects of `node:http`. Their own types would need `@types/node` in every program, also where Node is not used. */
type NodeListener = (incoming: { readonly headers: object }, outgoing: { destroy(): unknown }) => void

/** A handler as a listener of Node's own server: `createServer(nodeListener(handler))`. */
export function nodeListener(handler: Handler): NodeListener {
  return (incoming, outgoing) => {
    serve(handler, incoming as IncomingMessage, outgoing as ServerResponse).catch(() => outgoing.destroy())
  }
}

async function serve(handler: Handler, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const { method = 'GET', url = '/', headers } = incoming
  const pairs = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): [string, string] => [name, one]),
  )
  const body = method === 'GET' || method === 'HEAD' ? null : incoming
  const init = {
    method,
    headers: pairs,
    ...(body ? { body: Readable.toWeb(body), duplex: 'half' } : {}),
  } as RequestInit
  const response = await handler(new Request(new URL(url, 'http://localhost'), init))
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  const reader = (response.body as ReadableStream<Uint8Array> | null)?.getReader()
  const leave = (): void => void reader?.cancel().catch(() => {})
  if (outgoing.closed) return leave()
  outgoing.on('close', leave)
  for (let step = await reader?.read(); step?.done === false; step = await reader?.read())
    if (!outgoing.write(step.value)) await new Promise((go) => outgoing.once('drain', go).once('close', go))
  outgoing.end()
}
