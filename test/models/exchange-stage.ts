// One exchange at a time, with a client and a clock that do as they are told, or with a real server. Nothing is asserted here.
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { CallContext, Delta, ModelFailure, Reply, Request } from '../../src/ports/model.ts'
import type { Clock } from '../../src/ports/system.ts'
import { type HostConnection, callHost } from '../../src/models/http/exchange.ts'
import type { Deadlines } from '../../src/models/http/deadlines.ts'
import { messagesProtocol } from '../../src/models/protocols/messages/messages-protocol.ts'
import {
  httpTransport,
  type HttpRequest,
  type ResponseHandler,
  type Transport,
} from '../../src/models/http/transport.ts'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { FakeClock, settled } from './fake-clock.ts'

export const KEY = 'sk-test-0123456789abcdef'
export const DEADLINES: Deadlines = { firstByteMs: 1_000, idleMs: 2_000, stalledMs: 5_000 }
export const STREAMED = { 'content-type': 'text/event-stream; charset=utf-8' }

const REQUEST: Request = {
  session: 's',
  seq: 1,
  instructions: 'Be brief.',
  tools: [],
  allow: 'all',
  boost: false,
  messages: [{ role: 'user', seq: 1, parts: [{ type: 'text', text: 'Hello.' }] }],
}

const event = (type: string, fields: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`

/** A whole answer of the Messages API, in the pieces a test may stop between. */
export const START =
  event('message_start', { message: { usage: { input_tokens: 5, output_tokens: 1 } } }) +
  event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
export const PING = event('ping', {})
export const say = (text: string): string =>
  event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
export const END =
  event('content_block_stop', { index: 0 }) +
  event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }) +
  event('message_stop', {})
export const OVERLOADED = event('error', { error: { type: 'overloaded_error', message: 'Overloaded' } })
export const ANSWER = START + say('Hi.') + END
/** A turn that the provider pauses after a search of its own. */
export const PAUSED =
  START +
  say('I search. ') +
  event('content_block_stop', { index: 0 }) +
  event('content_block_start', { index: 1, content_block: { type: 'server_tool_use', id: 's1', name: 'web_search' } }) +
  event('content_block_delta', { index: 1, delta: { type: 'input_json_delta', partial_json: '{"q":1}' } }) +
  event('content_block_stop', { index: 1 }) +
  event('message_delta', { delta: { stop_reason: 'pause_turn' }, usage: { output_tokens: 7 } }) +
  event('message_stop', {})

type Wishes = Partial<Pick<HostConnection<unknown>, 'url' | 'headers' | 'deadlines' | 'transport'>>

function started(wishes: Wishes, clock: Clock) {
  const stop = new AbortController()
  const deltas: Delta[] = []
  const context: CallContext = {
    signal: stop.signal,
    emit: (delta) => deltas.push(delta),
    sleep: () => Promise.resolve(),
    clock,
  }
  const target = { endpoint: 'anthropic', model: 'm', settings: {}, quirks: {} }
  const fixed = { protocol: messagesProtocol, target, url: 'http://host.example', deadlines: DEADLINES }
  const order = { ...fixed, headers: { 'x-api-key': KEY }, transport: httpTransport, ...wishes }
  return { call: () => callHost(order, REQUEST, context), stop, deltas }
}

/** Over real HTTP and by the real clock. */
export function overHttp(url: string, wishes: Wishes = {}): Promise<Reply | ModelFailure> {
  return started(
    { url, deadlines: { firstByteMs: 20_000, idleMs: 20_000, stalledMs: 20_000 }, ...wishes },
    runtimeClock,
  ).call()
}

export type Played = {
  readonly clock: FakeClock
  readonly stop: AbortController
  readonly deltas: readonly Delta[]
  /** What the client was asked to send. */
  readonly orders: readonly HttpRequest[]
  /** The answer's side: head and data come from here. */
  readonly sink: ResponseHandler
  readonly say: (text: string) => void
  readonly end: () => Promise<void>
  readonly fail: (error: unknown) => Promise<void>
  readonly pass: (ms: number) => Promise<void>
  readonly answer: () => Reply | ModelFailure | null
}

/** A client that never looks at its signal: all that happens is what the test does. */
export async function played(wishes: Wishes = {}, { stopped = false } = {}): Promise<Played> {
  const clock = new FakeClock()
  const orders: HttpRequest[] = []
  let sink: ResponseHandler = { head: () => {}, data: () => {} }
  let [resolve, reject]: [() => void, (error: unknown) => void] = [() => {}, () => {}]
  const transport: Transport = (order, given) => {
    orders.push(order)
    sink = given
    return new Promise((end, fail) => {
      ;[resolve, reject] = [end, fail]
    })
  }
  const { call, stop, deltas } = started({ transport, ...wishes }, clock)
  if (stopped) stop.abort()
  let answer: Reply | ModelFailure | null = null
  void call().then((told) => {
    answer = told
  })
  await settled()
  const then = (act: () => void) => (): Promise<void> => {
    act()
    return settled()
  }
  return {
    clock,
    stop,
    deltas,
    orders,
    sink,
    say: (text) => sink.data(Buffer.from(text)),
    end: then(() => resolve()),
    fail: (error) => then(() => reject(error))(),
    pass: (ms) => then(() => clock.advance(ms))(),
    answer: () => answer,
  }
}

/** What a whole answer came to that a client gave at once. */
export async function answered(
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string,
  wishes: Wishes = {},
): Promise<Reply | ModelFailure> {
  const transport: Transport = (_order, sink) => {
    sink.head(status, headers)
    if (body !== '') sink.data(Buffer.from(body))
    return Promise.resolve()
  }
  return started({ transport, ...wishes }, new FakeClock()).call()
}

const bodies = new WeakMap<IncomingMessage, string>()

export function bodyOf(request: IncomingMessage): string {
  return bodies.get(request) ?? ''
}

export type Served = { readonly url: string; readonly requests: readonly IncomingMessage[]; readonly server: Server }

/** A real server. Its connections are closed with the test. */
export async function served(listener: RequestListener): Promise<Served> {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    request.on('data', (chunk: Buffer) => bodies.set(request, (bodies.get(request) ?? '') + chunk.toString()))
    request.on('end', () => listener(request, response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, server }
}
