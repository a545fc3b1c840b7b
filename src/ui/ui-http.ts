// The HTTP parts that both protocols share: a bounded JSON body, refusals with a status, a code and one sentence, and
// responses as server-sent events. Requests and responses are web objects; those of Node are adapted.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { CODES } from '../kernel/codes.ts'
import { Fault } from '../kernel/failure.ts'
import type { ItemStream } from './follow-items.ts'
import type { PositionedItem } from './item-builder.ts'

/** A handler for any framework with web requests and responses. */
export type Handler = (request: Request) => Promise<Response>
export type JsonFields = Readonly<Record<string, unknown>>

/** One event of a stream. `id` is the position after it, which a reader hands back to continue. */
export type SseFrame = { readonly data: object; readonly id?: string }
export type ItemEncoder = {
  readonly headers: Readonly<Record<string, string>>
  begin(): readonly SseFrame[]
  tell(item: PositionedItem): readonly SseFrame[]
  fail(code: string, message: string): readonly SseFrame[]
  /** The last text of the stream, however it ended. */
  last(): string
}

export function streamAnswer(items: ItemStream, encoder: ItemEncoder): Response {
  const utf8 = new TextEncoder()
  const text = (frames: readonly SseFrame[]) => utf8.encode(frames.map(frameText).join(''))
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
        const { code, message } = describeFault(error)
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

export function frameText({ id, data }: SseFrame): string {
  return `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`
}

/** The frames of one item. Only the last frame carries the position after the item. */
export function framesWithPosition(data: readonly object[], position: string): readonly SseFrame[] {
  return data.map((one, i) => (i === data.length - 1 ? { data: one, id: position } : { data: one }))
}

/** Runs `handle`, and turns an error into a response with a status and one sentence. */
export function answerFaults(handle: Handler): Handler {
  return async (request) => {
    try {
      return await handle(request)
    } catch (error) {
      const { code, message, status } = describeFault(error)
      return refusalResponse(status, code, message)
    }
  }
}

/** The message of an unexpected error may contain internals, so it is not sent. */
function describeFault(error: unknown): { readonly code: string; readonly message: string; readonly status: number } {
  if (!(error instanceof Fault)) return { code: 'failed', message: 'The server could not do this.', status: 500 }
  const { status, chatStatus = status } = CODES[error.code]
  return { code: error.code, message: error.message, status: chatStatus }
}

export function refusalResponse(status: number, code: string, message: string): Response {
  return Response.json({ code, message }, { status })
}

/**
 * Reads the JSON object of a request. The content type is required, because a form of another site cannot send it
 * without a preflight.
 */
export async function readJsonObject(request: Request, bytesMax: number): Promise<JsonFields> {
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
  const body = parseJsonObject(Buffer.concat(chunks).toString('utf8'))
  if (!isJsonFields(body)) throw new Fault('invalid_input', 'The body of the request must be a JSON object.')
  return body
}

function parseJsonObject(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Fault('invalid_input', 'The body of the request is not JSON.')
  }
}

export function isJsonFields(value: unknown): value is JsonFields {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}

/** The reader's position, from the header of server-sent events or from the address. */
export function readCursor(request: Request): string | null {
  return request.headers.get('last-event-id') ?? new URL(request.url).searchParams.get('after')
}

/** Objects of `node:http`. Their own types would require `@types/node` in every program, even without Node. */
type NodeListener = (incoming: { readonly headers: object }, outgoing: { destroy(): unknown }) => void

/** Adapts a handler to Node's server: `createServer(nodeListener(handler))`. */
export function nodeListener(handler: Handler): NodeListener {
  return (incoming, outgoing) => {
    serveNodeRequest(handler, incoming as IncomingMessage, outgoing as ServerResponse).catch(() => outgoing.destroy())
  }
}

async function serveNodeRequest(handler: Handler, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
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
