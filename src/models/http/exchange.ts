// One request to one provider and its outcome: exactly one Reply or ModelFailure within the deadlines. It never throws, whatever the
// provider or the HTTP client does, and it retries nothing. A turn that the provider pauses is gone on with.
import type { Usage } from '../../kernel/content.ts'
import type { CallContext, Delta, ModelFailure, Reply, Request } from '../../ports/model.ts'
import { secretIn } from './endpoints.ts'
import { errorIn, failure, failureOf, retryAfter, troubleIn } from './failures.ts'
import { begins, frame, type Framing, UNFRAMED } from './framing.ts'
import { unwrapped } from '../protocols/parallel.ts'
import type { Answered, Protocol, Target, WireEvent } from '../protocols/protocol.ts'
import type { Transport } from './transport.ts'
import { type Deadlines, Late, leave, Watch } from './watch.ts'

const ANSWER_BYTES_MAX = 64 * 1024 * 1024
const ERROR_BYTES_MAX = 64 * 1024
/** How many bytes of a body may follow the provider's own end. */
const LEAVE_BYTES_MAX = 64 * 1024
/** Enough to tell a stream of events from anything else. */
const START_CHARS = 16
/** More pauses than any turn has: then it counts as cut off. */
const PAUSES_MAX = 16

export type Exchange<State> = {
  readonly protocol: Protocol<State>
  readonly target: Target
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly transport: Transport
  readonly deadlines: Deadlines
}

export async function exchange<State>(
  order: Exchange<State>,
  request: Request,
  context: CallContext,
): Promise<Reply | ModelFailure> {
  const answer = await continued(order, request, context)
  return answer.type === 'reply' ? unwrapped(answer, request.tools) : answer
}

/** The whole turn, however often the provider pauses it. */
async function continued<State>(
  order: Exchange<State>,
  request: Request,
  context: CallContext,
): Promise<Reply | ModelFailure> {
  let answer = await once(order, request, context)
  for (let pauses = 0; answer.type === 'reply' && answer.paused !== undefined; pauses++) {
    const { paused, ...said } = answer
    if (pauses === PAUSES_MAX) return said
    const rest = await once({ ...order, target: { ...order.target, paused } }, request, context)
    // What was answered before the pause is paid for.
    answer = rest.type === 'failure' ? { ...rest, broken: true } : withSpent(rest, said)
  }
  return answer
}

/** The rest of a turn has all that was said before. What it cost comes to both. */
function withSpent({ cost: later, ...rest }: Reply, { usage, cost }: Reply): Answered {
  const both = usage === null || rest.usage === null ? null : added(usage, rest.usage)
  const paid = cost === undefined || later === undefined ? {} : { cost: cost + later }
  return { ...rest, usage: both, ...paid }
}

function added(one: Usage, other: Usage): Usage {
  const sum: Record<string, number> = { ...one }
  for (const [name, count] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + count
  // Each request had all that was said before: the last one is the longest.
  return { ...(sum as Usage), contextTokens: other.contextTokens ?? other.inputTokens }
}

async function once<State>(order: Exchange<State>, request: Request, context: CallContext): Promise<Answered> {
  const { protocol, target, transport } = order
  const begun = context.clock.now()
  const stop = new AbortController()
  // Do not wait for a client that ignores the signal.
  const { promise: stopped, reject } = rejectable()
  const end = (why: unknown): void => {
    stop.abort(why)
    reject(why)
  }
  const onAbort = (): void => end(context.signal.reason)
  context.signal.addEventListener('abort', onAbort, { once: true })
  const watch = new Watch(context.clock, order.deadlines, end)
  const answer = new Answer(order, watch, context.emit)
  try {
    if (context.signal.aborted) return failure('other', 'The call was stopped before it was made.')
    const { path, headers, body } = protocol.encode(request, target)
    const url = new URL(order.url + path)
    const all = { 'content-type': 'application/json', accept: 'text/event-stream', 'accept-encoding': 'identity' }
    const traced = { ...all, ...traceOf(context), ...headers, ...order.headers, ...betasOf(headers, order.headers) }
    const sent = { url, headers: traced, body, signal: stop.signal }
    const sending = transport(sent, answer)
    await Promise.race([sending, stopped, answer.over])
    leave(sending, context.clock, stop)
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

/** Both lists: a beta that the caller asks for must not switch off one that a tool needs. */
function betasOf(...all: readonly Exchange<unknown>['headers'][]): { readonly [BETA]?: string } {
  const lists = all.flatMap((headers) => headers[BETA] ?? [])
  return lists.length > 1 ? { [BETA]: lists.join(',') } : {}
}

const BETA = 'anthropic-beta'

function traceOf({ traceparent }: CallContext): { readonly traceparent?: string } {
  return traceparent === undefined ? {} : { traceparent }
}

/** The answer so far. */
class Answer<State> {
  readonly #protocol: Protocol<State>
  readonly #target: Target
  readonly #watch: Watch
  readonly #emit: (delta: Delta) => void
  readonly #sent: Exchange<State>['headers']
  #status = 0
  #headers: Readonly<Record<string, string>> = {}
  /** Null until the body has begun: only then is it known what it is. */
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
  /** Resolves when the provider has said its own end. */
  readonly over = new Promise<void>((resolve) => {
    this.#resolve = resolve
  })

  constructor({ protocol, target, headers }: Exchange<State>, watch: Watch, emit: (delta: Delta) => void) {
    this.#sent = headers
    this.#protocol = protocol
    this.#target = target
    this.#watch = watch
    this.#emit = emit
    this.#state = protocol.begin(target)
  }

  readonly head = (status: number, headers: Readonly<Record<string, string>>): void => {
    this.#watch.heard(false)
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
    // A gateway that packs answers does so each time: asking again would cost money and help nothing.
    if (coding !== 'identity') throw new RangeError(`The answer is packed as ${coding}, which was not asked for.`)
    const body = this.#streams ? chunk : this.#taken(chunk)
    if (body === null) return
    const [framing, events] = frame(this.#framing, body)
    this.#framing = framing
    this.#watch.heard(events.some((event) => !isPing(event)))
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

  /** Kept until it is known what the body is. A stream is told by how it begins: hosts and proxies send it under any type. */
  #taken(chunk: Uint8Array): Uint8Array | null {
    this.#chunks.push(chunk)
    if (this.#streams === null) {
      this.#start = (this.#start + textOf(chunk)).trimStart().slice(0, START_CHARS)
      this.#streams = begins(this.#start, this.#saysStream)
    }
    if (this.#streams) return this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks.splice(0))
    this.#watch.heard(this.#streams === false)
    return null
  }

  get #saysStream(): boolean {
    return (this.#headers['content-type'] ?? '').toLowerCase().includes('event-stream')
  }

  /** Later output of an abandoned client is ignored. */
  close(): void {
    this.#closed = true
  }

  result(): Answered {
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
    // Before the text is shortened: half a key is still a secret.
    const trouble = troubleIn(withoutKeys(body, this.#sent))
    return failureOf({ status: this.#status, ...trouble, ...retryAfter(this.#headers) })
  }

  /** What is neither an answer nor an error of the protocol may still say what is wrong. */
  #whole(body: string): Answered {
    const answer = this.#protocol.whole(body, this.#target)
    const said = answer.type === 'failure' && answer.class === 'network' ? errorIn(body) : null
    return said ?? answer
  }

  /** The connection broke. An end or error event that came before counts for more. */
  broken(error: unknown, { elapsedMs, stopped }: { readonly elapsedMs: number; readonly stopped: boolean }): Answered {
    const told = this.#streams ? this.#protocol.finish(this.#state) : null
    const partial = told?.type !== 'failure' || told.partial === undefined ? {} : { partial: told.partial }
    if (stopped) return { ...failure('other', 'The call was stopped.'), ...partial }
    if (this.#status !== 0 && this.#status !== 200) return this.result()
    if (told && (told.type === 'reply' || told.class !== 'network')) return this.#told(told)
    const why = error instanceof Error ? error.message || codeOf(error) || error.name : 'The connection failed'
    const cause =
      error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message || error.cause.name})` : ''
    const end = /[.!?)]$/.test(why + cause) ? '' : '.'
    const kind = error instanceof Late ? 'timeout' : 'network'
    const failed = failure(kind, `${why}${cause}${end} After ${elapsedMs} ms.`)
    // An endless answer would be endless again.
    return this.#told({ ...failed, ...partial, retryable: !(error instanceof RangeError) })
  }

  /** After output a call is not retried here: the session ends this attempt and makes a new request. */
  #told(answer: Answered): Answered {
    if (answer.type === 'reply') return answer
    const told = { ...answer, message: withoutKeys(answer.message, this.#sent) }
    return this.#status === 200 && answer.class === 'network' ? { ...told, broken: true } : told
  }
}

/** One character a byte. Without a copy of the chunk. */
function textOf({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('latin1')
}

/** An AggregateError of several addresses has a code and no message. */
function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** Some hosts repeat the key in their error message. */
export function withoutKeys(text: string, headers: Exchange<unknown>['headers']): string {
  return Object.entries(headers).reduce((said, [name, value]) => {
    const secret = secretIn(name, value)
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

function rejectable(): { readonly promise: Promise<never>; readonly reject: (why: unknown) => void } {
  let reject = (_why: unknown): void => {}
  const promise = new Promise<never>((_resolve, fail) => {
    reject = fail
  })
  return { promise, reject }
}
