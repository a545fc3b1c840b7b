// A server at a URL: the SDK's transports behind a fetch that bounds what comes back. Redirects within the origin are followed by
// the SDK, and no others, so no header ever goes to another host. There is no OAuth here.
import type * as client from '@modelcontextprotocol/client'
import type { Clock } from '../../kernel/ports.ts'
import type { McpHttpOptions } from './options.ts'
import { MESSAGE_BYTES_MAX } from './stdio.ts'

export type Sdk = typeof client

/** A server that says `retry: 0` and hangs up must not keep us busy. */
const RESUME_MS_MIN = 100
const [LF, CR] = [10, 13]
const RECONNECT = {
  initialReconnectionDelay: 500,
  maxReconnectionDelay: 10_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 3,
}

export function httpTransport(options: McpHttpOptions, sdk: Sdk, clock: Clock): client.Transport {
  const url = new URL(options.url)
  const common = { fetch: boundedFetch, requestInit: { headers: { ...options.headers } } }
  // oxlint-disable-next-line typescript/no-deprecated -- for servers that have no other; the user names it
  if (options.transport === 'sse') return new sdk.SSEClientTransport(url, common)
  return new sdk.StreamableHTTPClientTransport(url, {
    ...common,
    reconnectionOptions: RECONNECT,
    reconnectionScheduler: (reconnect, delay) => clock.timer(Math.max(delay, RESUME_MS_MIN), reconnect),
  })
}

async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init)
  if (response.body === null) return response
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
  const body = response.body.pipeThrough(bounded(MESSAGE_BYTES_MAX, isStream))
  const { status, statusText, headers } = response
  return new Response(body, { status, statusText, headers })
}

/** A body may be this long; in a stream of events, each event may be. */
function bounded(bytesMax: number, isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0
  let lineBytes = 0
  let last = 0
  const count = (byte: number): void => {
    bytes += 1
    const isEnd = byte === LF || byte === CR
    // An empty line ends an event. CR LF is one line end.
    if (isEnd && lineBytes === 0 && !(byte === LF && last === CR)) bytes = 0
    lineBytes = isEnd ? 0 : lineBytes + 1
    last = byte
  }
  return new TransformStream({
    transform(chunk, controller) {
      if (isStream) chunk.forEach(count)
      else bytes += chunk.length
      if (bytes > bytesMax) controller.error(new Error(`The server sent a message over ${bytesMax} bytes.`))
      else controller.enqueue(chunk)
    },
  })
}
