// One request to one provider and its outcome: exactly one Reply or ModelFailure within the deadlines. It never throws, whatever the
// provider or the HTTP client does, and it retries nothing.
import type { CallContext, Delta, ModelFailure, Reply, Request } from '../../ports/model.ts'
import type { Clock } from '../../ports/system.ts'
import { secretIn } from './endpoints.ts'
import { failure, failureOf, retryAfter, troubleIn } from './failures.ts'
import { frame, type Framing, UNFRAMED } from './framing.ts'
import type { Protocol, Target, WireEvent } from '../protocols/protocol.ts'
import type { Transport } from './transport.ts'

export type Deadlines = {
  /** Until the first byte of the answer. */
  readonly firstByteMs: number
  /** Between two bytes. */
  readonly idleMs: number
  /** With bytes but without a real event: pings keep a connection alive, not a reply. */
  readonly stalledMs: number
}

export const DEADLINES: Deadlines = { firstByteMs: 60_000, idleMs: 60_000, stalledMs: 180_000 }

/** A local server may load a model and read a long prompt before its first byte. */
export const OWN_DEADLINES: Deadlines = { firstByteMs: 300_000, idleMs: 300_000, stalledMs: 300_000 }

const ANSWER_BYTES_MAX = 64 * 1024 * 1024
const ERROR_BYTES_MAX = 64 * 1024

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
    const sent = {
      url,
      headers: { ...all, ...traceOf(context), ...headers, ...order.headers },
      body,
      signal: stop.signal,
    }
    await Promise.race([transport(sent, answer), stopped])
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

function traceOf({ traceparent }: CallContext): { readonly traceparent?: string } {
  return traceparent === undefined ? {} : { traceparent }
}

/** A deadline that ran out. Its message is for people. */
class Late extends Error {}

class Watch {
  readonly #clock: Clock
  readonly #deadlines: Deadlines
  readonly #fire: (why: Late) => void
  #cancel: () => void = () => {}
  #byteAt: number | null = null
  #eventAt = 0
  readonly #begun: number

  constructor(clock: Clock, deadlines: Deadlines, fire: (why: Late) => void) {
    this.#clock = clock
    this.#deadlines = deadlines
    this.#fire = fire
    this.#begun = clock.now()
    this.#arm(deadlines.firstByteMs)
  }

  /** Only stores a number, since chunks come by the thousand. The timer reads it when it fires. */
  heard(event: boolean): void {
    const now = this.#clock.now()
    const first = this.#byteAt === null
    if (first || event) this.#eventAt = now
    this.#byteAt = now
    if (!first) return
    // From now on other deadlines apply, and they may be nearer.
    this.#cancel()
    this.#arm(Math.min(this.#deadlines.idleMs, this.#deadlines.stalledMs))
  }

  end(): void {
    this.#cancel()
  }

  #arm(ms: number): void {
    this.#cancel = this.#clock.timer(ms, () => this.#look())
  }

  #look(): void {
    const now = this.#clock.now()
    const { firstByteMs, idleMs, stalledMs } = this.#deadlines
    const dues: readonly (readonly [number, string])[] =
      this.#byteAt === null
        ? [[this.#begun + firstByteMs, `No answer within ${firstByteMs} ms.`]]
        : [
            [this.#byteAt + idleMs, `The stream was silent for ${idleMs} ms.`],
            [this.#eventAt + stalledMs, `The stream said nothing for ${stalledMs} ms.`],
          ]
    const late = dues.find(([due]) => due <= now)
    if (late) this.#fire(new Late(late[1]))
    else this.#arm(Math.max(1, Math.min(...dues.map(([due]) => due)) - now))
  }
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
  #streams = false
  #framing: Framing = UNFRAMED
  #state: State
  #bytes = 0
  #chunks: Uint8Array[] = []
  #closed = false

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
    this.#streams = status === 200 && (headers['content-type'] ?? '').includes('event-stream')
  }

  readonly data = (chunk: Uint8Array): void => {
    if (this.#closed) throw new Error('The call is over.')
    this.#bytes += chunk.length
    const most = this.#status === 200 ? ANSWER_BYTES_MAX : ERROR_BYTES_MAX
    if (this.#bytes > most) throw new RangeError(`The answer is longer than ${most} bytes.`)
    const coding = this.#headers['content-encoding'] ?? 'identity'
    if (coding !== 'identity') throw new TypeError(`The answer is packed as ${coding}, which was not asked for.`)
    if (!this.#streams) {
      this.#watch.heard(true)
      this.#chunks.push(chunk)
      return
    }
    const [framing, events] = frame(this.#framing, chunk)
    this.#framing = framing
    this.#watch.heard(events.some((event) => !isPing(event)))
    for (const event of events) {
      // By index: destructuring the pair is the largest cost here until it is compiled.
      const stepped = this.#protocol.step(this.#state, event)
      this.#state = stepped[0]
      for (const delta of stepped[1]) this.#emit(delta)
    }
  }

  /** Later output of an abandoned client is ignored. */
  close(): void {
    this.#closed = true
  }

  result(): Reply | ModelFailure {
    if (this.#streams) return this.#told(this.#protocol.finish(this.#state))
    const body = new TextDecoder().decode(Buffer.concat(this.#chunks))
    if (this.#status === 200) return this.#told(this.#protocol.whole(body, this.#target))
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

  /** The connection broke. An end or error event that came before counts for more. */
  broken(
    error: unknown,
    { elapsedMs, stopped }: { readonly elapsedMs: number; readonly stopped: boolean },
  ): Reply | ModelFailure {
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
  #told(answer: Reply | ModelFailure): Reply | ModelFailure {
    if (answer.type === 'reply') return answer
    const told = { ...answer, message: withoutKeys(answer.message, this.#sent) }
    return this.#bytes > 0 && this.#status === 200 && answer.class === 'network' ? { ...told, broken: true } : told
  }
}

/** An AggregateError of several addresses has a code and no message. */
function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** Some hosts repeat the key in their error message. */
function withoutKeys(text: string, headers: Exchange<unknown>['headers']): string {
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
