// The chaos server reads a request in one of three dialects, asks the script and answers, with node:http alone.
// messages-answers.ts, responses-answers.ts and chat-answers.ts build the answers, send-answer.ts sends and damages
// them, and provider-rules.ts checks requests.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Frozen, Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Clock } from '../ports/system.ts'
import {
  clockCheck,
  countCheck,
  nonEmptyCheck,
  flagCheck,
  listCheck,
  requiredCheck,
  optionsChecker,
  orFunction,
} from '../options.ts'
import { systemClock } from '../stores/plan/system-clock.ts'
import { buildAnswer, type ChaosAnswer } from './chaos-answer.ts'
import { chatEncoder } from './chat-answers.ts'
import { IssuedRecord } from './issued.ts'
import { fieldsOf } from './fields.ts'
import { messagesEncoder } from './messages-answers.ts'
import { responsesEncoder } from './responses-answers.ts'
import { findBrokenRule } from './provider-rules.ts'
import {
  type ChaosReply,
  type ChaosRequest,
  type ChaosScript,
  type ChaosTrouble,
  type Dialect,
  isChaosTrouble,
  replyCheck,
  type TroubleName,
  type ChaosDamage,
} from './chaos-script.ts'
import { type ResponseHead, pauseUnlessClosed, sendAnswer } from './send-answer.ts'
import { type ProviderRefusal, type AnswerEncoder, type AnswerFrame, encodeFrame } from './answer-encoder.ts'
import { isObject, parseJson } from '../view/untrusted-json.ts'

/** Options of `startChaos`: the script of answers and troubles, and how strictly requests are looked at. */
export type ChaosOptions = Frozen<{
  /** What each request is answered with. */
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

const checkOptions = optionsChecker<ChaosOptions>('startChaos', {
  script: requiredCheck(orFunction(listCheck(replyCheck))),
  strict: flagCheck,
  port: countCheck(0, 65_535),
  host: nonEmptyCheck,
  clock: clockCheck,
})

/** A stand-in for providers that is running: its address, and what it was asked. */
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
const ENCODERS: Readonly<Record<Dialect, AnswerEncoder>> = {
  messages: messagesEncoder,
  responses: responsesEncoder,
  chat: chatEncoder,
}
const PING_MS = 20
const SECRET = /auth|key|token|secret|cookie/i

/**
 * Starts a server that answers like OpenAI and Anthropic, by a script: with rate limits, broken streams and refusals,
 * without a network or a key.
 */
export async function startChaos(options: ChaosOptions): Promise<Chaos> {
  checkOptions(options)
  const { port = 0, host = '127.0.0.1' } = options
  const desk = new ChaosHandler(options)
  const server = createServer((request, out) => {
    desk.serve(request, out).catch((error: unknown) => out.destroy(error instanceof Error ? error : undefined))
  })
  await startListening(server, port, host)
  const { address, port: given, family } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${given}`,
    requests: desk.requests,
    close: () => closeServer(server),
  }
}

function startListening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const wrong = `The chaos server cannot listen on ${host}:${port}. Choose another port, or leave it out.`
    server.once('error', (error) => reject(new Fault('invalid_config', wrong, error.message)))
    server.listen(port, host, resolve)
  })
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

class ChaosHandler {
  readonly requests: ChaosRequest[] = []
  readonly #script: ChaosScript
  readonly #strict: boolean
  readonly #clock: Clock
  readonly #issued = new IssuedRecord()
  #answered = 0

  constructor({ script, strict = false, clock = systemClock }: ChaosOptions) {
    this.#script = script
    this.#strict = strict
    this.#clock = clock
  }

  async serve(incoming: IncomingMessage, out: ServerResponse): Promise<void> {
    const path = new URL(incoming.url ?? '/', 'http://chaos').pathname
    const dialect = ROUTES[path.replace(/^\/(v1\/)?/, '')]
    const text = await readRequestText(incoming)
    if (dialect === undefined || incoming.method !== 'POST') {
      return this.#tell(out, ENCODERS.chat, {
        status: 404,
        message: `Unknown request URL: ${incoming.method} ${path}.`,
      })
    }
    const headers = publicHeaders(incoming)
    const request = { dialect, path, headers, body: parseJson(text) ?? null, at: this.#clock.now() }
    const refused = this.#refused(request)
    this.requests.push(refused?.rule === undefined ? request : { ...request, refused: refused.rule })
    if (refused !== null) return this.#tell(out, ENCODERS[dialect], refused.refusal)
    const n = this.#answered
    this.#answered += 1
    return this.#answer(out, request, await this.#reply(request, n), n)
  }

  #refused(request: ChaosRequest): { readonly rule?: string; readonly refusal: ProviderRefusal } | null {
    const { dialect, headers, body } = request
    if (!isObject(body)) return { refusal: { message: 'We could not parse the JSON body of your request.' } }
    const found = this.#strict ? findBrokenRule(dialect, { headers, body, issued: this.#issued }) : null
    return found === null ? null : { rule: found.rule.id, refusal: found.refusal }
  }

  async #reply(request: ChaosRequest, n: number): Promise<ChaosReply> {
    const script = this.#script
    const wrong = (message: string): ChaosTrouble => {
      return { status: 400, body: ENCODERS[request.dialect].refused({ message }, n) }
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
    const voice = ENCODERS[request.dialect]
    const said = typeof reply === 'string' ? { text: reply } : reply
    const mischief = said.chaos ?? {}
    const way = { mischief, clock: this.#clock }
    const head = (status: number, type: string, more: Readonly<Record<string, string>> = {}): ResponseHead => ({
      status,
      headers: { 'content-type': type, [voice.requestHeader]: `req_chaos_${n}`, ...more },
    })
    if (mischief.redirectTo !== undefined) {
      return sendAnswer(out, head(307, 'text/plain', { location: mischief.redirectTo }), [], way)
    }
    if (isChaosTrouble(said)) {
      const { status, body } = troubleOf(voice, said, n)
      const after = said.retryAfter === undefined ? {} : { 'retry-after': String(said.retryAfter) }
      const type = typeof said.body === 'string' ? 'text/plain' : 'application/json'
      return sendAnswer(out, head(status, type, { ...after, ...said.headers }), [body], way)
    }
    const answer = buildAnswer(said, request, n)
    this.#issued.note(answer)
    if (fieldsOf(request.body).stream !== true) {
      return sendAnswer(out, head(200, 'application/json'), [JSON.stringify(voice.whole(answer))], way)
    }
    const rest = async (): Promise<boolean> => {
      await pauseUnlessClosed(out, this.#clock, mischief.dripMs ?? PING_MS)
      return !out.destroyed
    }
    const stream = streamPieces(voice, answer, mischief, rest)
    // `dripMs` sets the time between two pings here, so it must not delay the bytes too.
    const { dripMs: _dripMs, ...undripped } = mischief
    const going = mischief.pingsOnly ? { ...way, mischief: undripped } : way
    return sendAnswer(
      out,
      head(200, 'text/event-stream; charset=utf-8', { 'cache-control': 'no-cache' }),
      stream,
      going,
    )
  }

  #tell(out: ServerResponse, voice: AnswerEncoder, refusal: ProviderRefusal): Promise<void> {
    const body = JSON.stringify(voice.refused(refusal, this.requests.length))
    const headers = { 'content-type': 'application/json', [voice.requestHeader]: `req_chaos_${this.requests.length}` }
    return sendAnswer(out, { status: refusal.status ?? 400, headers }, [body], { mischief: {}, clock: this.#clock })
  }
}

const NAMES: Readonly<Record<number, TroubleName>> = {
  401: 'unauthorized',
  404: 'not_found',
  429: 'rate_limited',
  503: 'overloaded',
  529: 'overloaded',
}

function troubleOf(voice: AnswerEncoder, { status, body }: ChaosTrouble, n: number): { status: number; body: string } {
  const byNumber = typeof status === 'number'
  const name = byNumber ? (NAMES[status] ?? (status >= 500 ? 'server_error' : 'bad_request')) : status
  const own = voice.troubles[name]
  const code = byNumber ? status : (own.status ?? 400)
  const sent: Json = body ?? voice.refused({ ...own, status: code }, n)
  return { status: code, body: typeof sent === 'string' ? sent : JSON.stringify(sent) }
}

async function readRequestText(incoming: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of incoming) chunks.push(chunk as Uint8Array)
  return Buffer.concat(chunks).toString('utf8')
}

function publicHeaders({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  const entries = Object.entries(headers).map(([name, value]) => {
    const text = Array.isArray(value) ? value.join(', ') : (value ?? '')
    return [name, SECRET.test(name) ? '[not kept]' : text]
  })
  return Object.fromEntries(entries) as Record<string, string>
}

// The text of a stream in pieces: the events of the answer, with the additions, omissions and repetitions of the
// script.

const HUGE_PIECE_CHARS = 64 * 1024

/** `rest` waits for the time between two pings; false when the client is gone. */
async function* streamPieces(
  voice: AnswerEncoder,
  answer: ChaosAnswer,
  mischief: ChaosDamage,
  rest: () => Promise<boolean>,
): AsyncGenerator<string> {
  const { noEnd, pingsOnly, endless, errorAfter, hugeLine, junk } = mischief
  const frames = voice.frames(answer).filter((frame) => !(noEnd && frame.part === 'end'))
  const said = frames.slice(0, frameCount(frames, mischief))
  for (const [at, frame] of said.entries()) {
    yield encodeFrame(frame)
    if (at === 0 && hugeLine !== undefined) yield* hugeEvent(voice, hugeLine)
    if (junk) yield junkPiece(voice, at)
  }
  if (errorAfter !== undefined) yield encodeFrame(voice.failed(said.length))
  if (pingsOnly) while (await rest()) yield voice.ping
  const again = endless ? said.at(-1) : undefined
  if (again !== undefined) for (;;) yield encodeFrame(again)
}

function frameCount(frames: readonly AnswerFrame[], { pingsOnly, endless, errorAfter }: ChaosDamage): number {
  if (pingsOnly) return 1
  if (errorAfter !== undefined) return errorAfter
  const text = frames.findIndex(({ part }) => part === 'text')
  // An answer without text repeats its last event.
  return endless && text >= 0 ? text + 1 : frames.length
}

function* hugeEvent(voice: AnswerEncoder, bytes: number): Generator<string> {
  const mark = '\u0000'
  const [before = '', after = ''] = encodeFrame(voice.unknown(mark)).split(JSON.stringify(mark).slice(1, -1))
  yield before
  for (let left = bytes; left > 0; left -= HUGE_PIECE_CHARS) yield 'x'.repeat(Math.min(left, HUGE_PIECE_CHARS))
  yield after
}

/** Junk for a client to ignore: a comment, a ping, an unknown event, unknown fields, an event without data. */
function junkPiece(voice: AnswerEncoder, at: number): string {
  const kinds = [
    ': chaos\n\n',
    voice.ping,
    encodeFrame(voice.unknown('')),
    'id: 7\nretry: 10\nchaos: 1\n\n',
    'event: chaos\n\n',
  ]
  return kinds[at % kinds.length] ?? ''
}
