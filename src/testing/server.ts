// The chaos server: reads a request in one of three dialects, asks the script and answers, on node:http alone. Answers are made in
// messages.ts, responses.ts and chat.ts, sent and damaged in sending.ts, and requests are checked in rules.ts.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Frozen, Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Clock } from '../ports/system.ts'
import { clockCheck, count, filled, flag, listOf, needed, optionsOf, orFunction } from '../options.ts'
import { systemClock } from '../stores/plan/clock.ts'
import { answerOf, type Answer } from './answer.ts'
import { chat } from './chat.ts'
import { Ledger } from './issued.ts'
import { fieldsOf } from './json.ts'
import { messages } from './messages.ts'
import { responses } from './responses.ts'
import { broken } from './rules.ts'
import {
  type ChaosReply,
  type ChaosRequest,
  type ChaosScript,
  type ChaosTrouble,
  type Dialect,
  isTrouble,
  replyCheck,
  type TroubleName,
  type Mischief,
} from './script.ts'
import { type Head, pause, send } from './sending.ts'
import { type Refusal, type Voice, type Frame, framed } from './voice.ts'
import { isObject, parsed } from '../view/json.ts'

export type ChaosOptions = Frozen<{
  script: ChaosScript
  /** Refuses requests that break the provider's published rules. */
  strict?: boolean
  /** Default 0: any free port. */
  port?: number
  /** Default 127.0.0.1: not reachable from the network. */
  host?: string
  /** The clock of stalls and drips. Default: the machine's. */
  clock?: Clock
}>

const checkOptions = optionsOf<ChaosOptions>('startChaos', {
  script: needed(orFunction(listOf(replyCheck))),
  strict: flag,
  port: count(0, 65_535),
  host: filled,
  clock: clockCheck,
})

export interface Chaos {
  /** Without a slash at the end. The client may add `/v1` and a path. */
  readonly url: string
  /** All requests of the three routes, in order. */
  readonly requests: readonly ChaosRequest[]
  /** Resolves when the port is free and every connection is closed. */
  close(): Promise<void>
}

const ROUTES: Readonly<Record<string, Dialect>> = {
  responses: 'responses',
  messages: 'messages',
  'chat/completions': 'chat',
}
const VOICES: Readonly<Record<Dialect, Voice>> = { messages, responses, chat }
const PING_MS = 20
const SECRET = /auth|key|token|secret|cookie/i

export async function startChaos(options: ChaosOptions): Promise<Chaos> {
  checkOptions(options)
  const { port = 0, host = '127.0.0.1' } = options
  const desk = new Desk(options)
  const server = createServer((request, out) => {
    desk.serve(request, out).catch((error: unknown) => out.destroy(error instanceof Error ? error : undefined))
  })
  await listening(server, port, host)
  const { address, port: given, family } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${given}`,
    requests: desk.requests,
    close: () => closed(server),
  }
}

function listening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const wrong = `The chaos server cannot listen on ${host}:${port}. Choose another port, or leave it out.`
    server.once('error', (error) => reject(new Fault('invalid_config', wrong, error.message)))
    server.listen(port, host, resolve)
  })
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

class Desk {
  readonly requests: ChaosRequest[] = []
  readonly #script: ChaosScript
  readonly #strict: boolean
  readonly #clock: Clock
  readonly #issued = new Ledger()
  #answered = 0

  constructor({ script, strict = false, clock = systemClock }: ChaosOptions) {
    this.#script = script
    this.#strict = strict
    this.#clock = clock
  }

  async serve(incoming: IncomingMessage, out: ServerResponse): Promise<void> {
    const path = new URL(incoming.url ?? '/', 'http://chaos').pathname
    const dialect = ROUTES[path.replace(/^\/(v1\/)?/, '')]
    const text = await textIn(incoming)
    if (dialect === undefined || incoming.method !== 'POST') {
      return this.#tell(out, VOICES.chat, { status: 404, message: `Unknown request URL: ${incoming.method} ${path}.` })
    }
    const headers = plain(incoming)
    const request = { dialect, path, headers, body: parsed(text) ?? null, at: this.#clock.now() }
    const refused = this.#refused(request)
    this.requests.push(refused?.rule === undefined ? request : { ...request, refused: refused.rule })
    if (refused !== null) return this.#tell(out, VOICES[dialect], refused.refusal)
    const n = this.#answered
    this.#answered += 1
    return this.#answer(out, request, await this.#reply(request, n), n)
  }

  #refused(request: ChaosRequest): { readonly rule?: string; readonly refusal: Refusal } | null {
    const { dialect, headers, body } = request
    if (!isObject(body)) return { refusal: { message: 'We could not parse the JSON body of your request.' } }
    const found = this.#strict ? broken(dialect, { headers, body, issued: this.#issued }) : null
    return found === null ? null : { rule: found.rule.id, refusal: found.refusal }
  }

  async #reply(request: ChaosRequest, n: number): Promise<ChaosReply> {
    const script = this.#script
    const wrong = (message: string): ChaosTrouble => {
      return { status: 400, body: VOICES[request.dialect].refused({ message }, n) }
    }
    if (typeof script !== 'function') {
      return script[n] ?? wrong(`The script has ${script.length} replies and was asked for one more.`)
    }
    try {
      return await script(request, n)
    } catch (error) {
      return wrong(`The script failed: ${error instanceof Error ? error.message : 'it threw what is no error'}`)
    }
  }

  #answer(out: ServerResponse, request: ChaosRequest, reply: ChaosReply, n: number): Promise<void> {
    const voice = VOICES[request.dialect]
    const said = typeof reply === 'string' ? { text: reply } : reply
    const mischief = said.chaos ?? {}
    const way = { mischief, clock: this.#clock }
    const head = (status: number, type: string, more: Readonly<Record<string, string>> = {}): Head => ({
      status,
      headers: { 'content-type': type, [voice.requestHeader]: `req_chaos_${n}`, ...more },
    })
    if (mischief.redirectTo !== undefined) {
      return send(out, head(307, 'text/plain', { location: mischief.redirectTo }), [], way)
    }
    if (isTrouble(said)) {
      const { status, body } = troubleOf(voice, said, n)
      const after = said.retryAfter === undefined ? {} : { 'retry-after': String(said.retryAfter) }
      const type = typeof said.body === 'string' ? 'text/plain' : 'application/json'
      return send(out, head(status, type, { ...after, ...said.headers }), [body], way)
    }
    const answer = answerOf(said, request, n)
    this.#issued.note(answer)
    if (fieldsOf(request.body).stream !== true) {
      return send(out, head(200, 'application/json'), [JSON.stringify(voice.whole(answer))], way)
    }
    const rest = async (): Promise<boolean> => {
      await pause(out, this.#clock, mischief.dripMs ?? PING_MS)
      return !out.destroyed
    }
    const stream = streamed(voice, answer, mischief, rest)
    // The time between two pings is not the time between two bytes.
    const { dripMs: _dripMs, ...undripped } = mischief
    const going = mischief.pingsOnly ? { ...way, mischief: undripped } : way
    return send(out, head(200, 'text/event-stream; charset=utf-8', { 'cache-control': 'no-cache' }), stream, going)
  }

  #tell(out: ServerResponse, voice: Voice, refusal: Refusal): Promise<void> {
    const body = JSON.stringify(voice.refused(refusal, this.requests.length))
    const headers = { 'content-type': 'application/json', [voice.requestHeader]: `req_chaos_${this.requests.length}` }
    return send(out, { status: refusal.status ?? 400, headers }, [body], { mischief: {}, clock: this.#clock })
  }
}

const NAMES: Readonly<Record<number, TroubleName>> = {
  401: 'unauthorized',
  404: 'not_found',
  429: 'rate_limited',
  503: 'overloaded',
  529: 'overloaded',
}

function troubleOf(voice: Voice, { status, body }: ChaosTrouble, n: number): { status: number; body: string } {
  const byNumber = typeof status === 'number'
  const name = byNumber ? (NAMES[status] ?? (status >= 500 ? 'server_error' : 'bad_request')) : status
  const own = voice.troubles[name]
  const code = byNumber ? status : (own.status ?? 400)
  const sent: Json = body ?? voice.refused({ ...own, status: code }, n)
  return { status: code, body: typeof sent === 'string' ? sent : JSON.stringify(sent) }
}

async function textIn(incoming: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of incoming) chunks.push(chunk as Uint8Array)
  return Buffer.concat(chunks).toString('utf8')
}

function plain({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  const entries = Object.entries(headers).map(([name, value]) => {
    const text = Array.isArray(value) ? value.join(', ') : (value ?? '')
    return [name, SECRET.test(name) ? '[not kept]' : text]
  })
  return Object.fromEntries(entries) as Record<string, string>
}

// The text of a stream in pieces: the events of the answer, with additions, omissions and repetitions of the script.

const HUGE_PIECE_CHARS = 64 * 1024

/** `rest` waits for the time between two pings; false when the client is gone. */
async function* streamed(
  voice: Voice,
  answer: Answer,
  mischief: Mischief,
  rest: () => Promise<boolean>,
): AsyncGenerator<string> {
  const { noEnd, pingsOnly, endless, errorAfter, hugeLine, junk } = mischief
  const frames = voice.frames(answer).filter((frame) => !(noEnd && frame.part === 'end'))
  const said = frames.slice(0, lengthOf(frames, mischief))
  for (const [at, frame] of said.entries()) {
    yield framed(frame)
    if (at === 0 && hugeLine !== undefined) yield* huge(voice, hugeLine)
    if (junk) yield junkAfter(voice, at)
  }
  if (errorAfter !== undefined) yield framed(voice.failed(said.length))
  if (pingsOnly) while (await rest()) yield voice.ping
  const again = endless ? said.at(-1) : undefined
  if (again !== undefined) for (;;) yield framed(again)
}

function lengthOf(frames: readonly Frame[], { pingsOnly, endless, errorAfter }: Mischief): number {
  if (pingsOnly) return 1
  if (errorAfter !== undefined) return errorAfter
  const text = frames.findIndex(({ part }) => part === 'text')
  // An answer without text repeats its last event.
  return endless && text >= 0 ? text + 1 : frames.length
}

function* huge(voice: Voice, bytes: number): Generator<string> {
  const mark = '\u0000'
  const [before = '', after = ''] = framed(voice.unknown(mark)).split(JSON.stringify(mark).slice(1, -1))
  yield before
  for (let left = bytes; left > 0; left -= HUGE_PIECE_CHARS) yield 'x'.repeat(Math.min(left, HUGE_PIECE_CHARS))
  yield after
}

/** A comment, a ping, an unknown event, unknown fields, an event without data. */
function junkAfter(voice: Voice, at: number): string {
  const kinds = [
    ': chaos\n\n',
    voice.ping,
    framed(voice.unknown('')),
    'id: 7\nretry: 10\nchaos: 1\n\n',
    'event: chaos\n\n',
  ]
  return kinds[at % kinds.length] ?? ''
}
