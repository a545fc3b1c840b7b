// One request to one provider and its outcome: exactly one Reply or ModelFailure within the deadlines. It never throws,
// whatever the provider or the HTTP client does, and it retries nothing. It continues a turn that the provider pauses.
import type { Usage } from '../../kernel/content.ts'
import type { CallContext, Delta, ModelFailure, Reply, Request } from '../../ports/model.ts'
import { secretInHeader } from './endpoints.ts'
import { readErrorBody, failure, failureFromTrouble, readRetryAfter, readTrouble } from './failures.ts'
import { isEventStream, parseEvents, type Framing, UNFRAMED } from './framing.ts'
import { unwrapParallel } from '../protocols/parallel.ts'
import type { ProtocolAnswer, Protocol, ModelTarget, WireEvent } from '../protocols/protocol.ts'
import type { Transport } from './transport.ts'
import { type Deadlines, DeadlineError, closeAfterEnd, DeadlineTimer } from './deadlines.ts'

const ANSWER_BYTES_MAX = 64 * 1024 * 1024
const ERROR_BYTES_MAX = 64 * 1024
/** The most bytes of a body after the provider's own end. */
const LEAVE_BYTES_MAX = 64 * 1024
/** Enough characters to tell a stream of events from any other body. */
const START_CHARS = 16
/** No turn has more pauses than this: then it counts as cut off. */
const PAUSES_MAX = 16

export type HostConnection<State> = {
  readonly protocol: Protocol<State>
  readonly target: ModelTarget
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly transport: Transport
  readonly deadlines: Deadlines
}

export async function callHost<State>(
  order: HostConnection<State>,
  request: Request,
  context: CallContext,
): Promise<Reply | ModelFailure> {
  const answer = await sendUntilDone(order, request, context)
  return answer.type === 'reply' ? unwrapParallel(answer, request.tools) : answer
}

/** The whole turn, however often the provider pauses it. */
async function sendUntilDone<State>(
  order: HostConnection<State>,
  request: Request,
  context: CallContext,
): Promise<Reply | ModelFailure> {
  let answer = await sendOnce(order, request, context)
  for (let pauses = 0; answer.type === 'reply' && answer.paused !== undefined; pauses++) {
    const { paused, ...said } = answer
    if (pauses === PAUSES_MAX) return said
    const rest = await sendOnce({ ...order, target: { ...order.target, paused } }, request, context)
    // The part before the pause is paid for.
    answer = rest.type === 'failure' ? { ...rest, broken: true } : addSpent(rest, said)
  }
  return answer
}

/** The rest of a turn includes everything before it. Its usage and cost are those of both parts. */
function addSpent({ cost: later, ...rest }: Reply, { usage, cost }: Reply): ProtocolAnswer {
  const both = usage === null || rest.usage === null ? null : addUsage(usage, rest.usage)
  const paid = cost === undefined || later === undefined ? {} : { cost: cost + later }
  return { ...rest, usage: both, ...paid }
}

function addUsage(one: Usage, other: Usage): Usage {
  const sum: Record<string, number> = { ...one }
  for (const [name, count] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + count
  // Each request includes all before it, so the last one is the longest.
  return { ...(sum as Usage), contextTokens: other.contextTokens ?? other.inputTokens }
}

async function sendOnce<State>(
  order: HostConnection<State>,
  request: Request,
  context: CallContext,
): Promise<ProtocolAnswer> {
  const { protocol, target, transport } = order
  const begun = context.clock.now()
  const stop = new AbortController()
  // Do not wait for a client that ignores the signal.
  const { promise: stopped, reject } = newRejectable()
  const end = (why: unknown): void => {
    stop.abort(why)
    reject(why)
  }
  const onAbort = (): void => end(context.signal.reason)
  context.signal.addEventListener('abort', onAbort, { once: true })
  const watch = new DeadlineTimer(context.clock, order.deadlines, end)
  const answer = new AnswerReader(order, watch, context.emit)
  try {
    if (context.signal.aborted) return failure('other', 'The call was stopped before it was made.')
    const { path, headers, body } = protocol.encode(request, target)
    const url = new URL(order.url + path)
    const all = { 'content-type': 'application/json', accept: 'text/event-stream', 'accept-encoding': 'identity' }
    const traced = {
      ...all,
      ...traceHeader(context),
      ...headers,
      ...order.headers,
      ...joinBetas(headers, order.headers),
    }
    const sent = { url, headers: traced, body, signal: stop.signal }
    const sending = transport(sent, answer)
    await Promise.race([sending, stopped, answer.over])
    closeAfterEnd(sending, context.clock, stop)
    return answer.result()
  } catch (error) {
    stop.abort(error)
    return answer.broken(error, { elapsedMs: context.clock.now() - begun, stopped: context.signal.aborted })
  } finally {
    watch.end()
    answer.close()
    context.signal.removeEventListener('abort', onAbort)
  }
}

/** Joins both lists: a beta that the caller requests must not switch off one that a tool needs. */
function joinBetas(...all: readonly HostConnection<unknown>['headers'][]): { readonly [BETA]?: string } {
  const lists = all.flatMap((headers) => headers[BETA] ?? [])
  return lists.length > 1 ? { [BETA]: lists.join(',') } : {}
}

const BETA = 'anthropic-beta'

function traceHeader({ traceparent }: CallContext): { readonly traceparent?: string } {
  return traceparent === undefined ? {} : { traceparent }
}

/** Reads the answer as it arrives. */
class AnswerReader<State> {
  readonly #protocol: Protocol<State>
  readonly #target: ModelTarget
  readonly #watch: DeadlineTimer
  readonly #emit: (delta: Delta) => void
  readonly #sent: HostConnection<State>['headers']
  #status = 0
  #headers: Readonly<Record<string, string>> = {}
  /** Null until enough of the body has arrived to tell whether it is a stream. */
  #streams: boolean | null = null
  #start = ''
  #framing: Framing = UNFRAMED
  #state: State
  #bytes = 0
  #chunks: Uint8Array[] = []
  #closed = false
  #left = 0
  #isOver = false
  #resolve: () => void = () => {}
  /** Resolves when the provider's own end has arrived. */
  readonly over = new Promise<void>((resolve) => {
    this.#resolve = resolve
  })

  constructor(
    { protocol, target, headers }: HostConnection<State>,
    watch: DeadlineTimer,
    emit: (delta: Delta) => void,
  ) {
    this.#sent = headers
    this.#protocol = protocol
    this.#target = target
    this.#watch = watch
    this.#emit = emit
    this.#state = protocol.begin(target)
  }

  readonly head = (status: number, headers: Readonly<Record<string, string>>): void => {
    this.#watch.noteData(false)
    this.#status = status
    this.#headers = headers
    if (status !== 200) this.#streams = false
  }

  readonly data = (chunk: Uint8Array): void => {
    if (this.#isOver) this.#left += chunk.length
    if (this.#isOver && this.#left <= LEAVE_BYTES_MAX) return
    if (this.#closed) throw new Error('The call is over.')
    this.#bytes += chunk.length
    const most = this.#status === 200 ? ANSWER_BYTES_MAX : ERROR_BYTES_MAX
    if (this.#bytes > most) throw new RangeError(`The answer is longer than ${most} bytes.`)
    const coding = this.#headers['content-encoding'] ?? 'identity'
    // A gateway that compresses answers always does so: a retry would cost money and not help.
    if (coding !== 'identity') throw new RangeError(`The answer is packed as ${coding}, which was not asked for.`)
    const body = this.#streams ? chunk : this.#taken(chunk)
    if (body === null) return
    const [framing, events] = parseEvents(this.#framing, body)
    this.#framing = framing
    this.#watch.noteData(events.some((event) => !isPing(event)))
    for (const event of events) {
      // By index: destructuring the pair is the largest cost here until it is compiled.
      const stepped = this.#protocol.step(this.#state, event)
      this.#state = stepped[0]
      for (const delta of stepped[1]) this.#emit(delta)
    }
    if (!this.#protocol.over(this.#state)) return
    this.#isOver = true
    this.#resolve()
  }

  /**
   * Keeps the chunks until the form of the body is known. A stream is recognized by its beginning: hosts and proxies
   * send it under any type.
   */
  #taken(chunk: Uint8Array): Uint8Array | null {
    this.#chunks.push(chunk)
    if (this.#streams === null) {
      this.#start = (this.#start + latin1TextOf(chunk)).trimStart().slice(0, START_CHARS)
      this.#streams = isEventStream(this.#start, this.#saysStream)
    }
    if (this.#streams) return this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks.splice(0))
    this.#watch.noteData(this.#streams === false)
    return null
  }

  get #saysStream(): boolean {
    return (this.#headers['content-type'] ?? '').toLowerCase().includes('event-stream')
  }

  /** Later output of an abandoned client is ignored. */
  close(): void {
    this.#closed = true
  }

  result(): ProtocolAnswer {
    if (this.#streams ?? this.#saysStream) return this.#told(this.#protocol.finish(this.#state))
    const body = new TextDecoder().decode(Buffer.concat(this.#chunks))
    if (this.#status === 200) return this.#told(this.#whole(body))
    if (this.#status >= 300 && this.#status < 400) {
      const where = hostOf(this.#headers['location'])
      return failure(
        'bad_request',
        `HTTP ${this.#status}: the provider sends requests on to ${where}, which is not followed. Set its address.`,
      )
    }
    // Remove keys before the text is shortened: half a key is still a secret.
    const trouble = readTrouble(withoutKeys(body, this.#sent))
    return failureFromTrouble({ status: this.#status, ...trouble, ...readRetryAfter(this.#headers) })
  }

  /** A body that is neither an answer nor an error of the protocol may still name an error. */
  #whole(body: string): ProtocolAnswer {
    const answer = this.#protocol.whole(body, this.#target)
    const said = answer.type === 'failure' && answer.class === 'network' ? readErrorBody(body) : null
    return said ?? answer
  }

  /** The connection broke. An end or error event that came before counts for more. */
  broken(
    error: unknown,
    { elapsedMs, stopped }: { readonly elapsedMs: number; readonly stopped: boolean },
  ): ProtocolAnswer {
    const told = this.#streams ? this.#protocol.finish(this.#state) : null
    const partial = told?.type !== 'failure' || told.partial === undefined ? {} : { partial: told.partial }
    if (stopped) return { ...failure('other', 'The call was stopped.'), ...partial }
    if (this.#status !== 0 && this.#status !== 200) return this.result()
    if (told && (told.type === 'reply' || told.class !== 'network')) return this.#told(told)
    const why = error instanceof Error ? error.message || errorCodeOf(error) || error.name : 'The connection failed'
    const cause =
      error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message || error.cause.name})` : ''
    const end = /[.!?)]$/.test(why + cause) ? '' : '.'
    const kind = error instanceof DeadlineError ? 'timeout' : 'network'
    const failed = failure(kind, `${why}${cause}${end} After ${elapsedMs} ms.`)
    // A retry of an endless answer would be endless too.
    return this.#told({ ...failed, ...partial, retryable: !(error instanceof RangeError) })
  }

  /** After output this call is not retried: the session ends the attempt and makes a new request. */
  #told(answer: ProtocolAnswer): ProtocolAnswer {
    if (answer.type === 'reply') return answer
    const told = { ...answer, message: withoutKeys(answer.message, this.#sent) }
    return this.#status === 200 && answer.class === 'network' ? { ...told, broken: true } : told
  }
}

/** Decodes one character per byte, without a copy of the chunk. */
function latin1TextOf({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('latin1')
}

/** An AggregateError of several addresses has a code and no message. */
function errorCodeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** Some hosts repeat the key in their error message. */
export function withoutKeys(text: string, headers: HostConnection<unknown>['headers']): string {
  return Object.entries(headers).reduce((said, [name, value]) => {
    const secret = secretInHeader(name, value)
    return secret ? said.replaceAll(secret, '[key]') : said
  }, text)
}

function isPing({ event, data }: WireEvent): boolean {
  return event === 'ping' || data === ''
}

function hostOf(location: string | undefined): string {
  try {
    return new URL(location ?? '').host
  } catch {
    return 'another address'
  }
}

function newRejectable(): { readonly promise: Promise<never>; readonly reject: (why: unknown) => void } {
  let reject = (_why: unknown): void => {}
  const promise = new Promise<never>((_resolve, fail) => {
    reject = fail
  })
  return { promise, reject }
}
