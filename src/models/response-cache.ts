// The cache of answers for `cached`. It never makes a call fail: if the store has a problem, the model is called as
// without a cache.
import { hash } from 'node:crypto'
import type { Json } from '../kernel/content.ts'
import type { CallContext, Model, ModelFailure, Reply, ReplyCall, Request } from '../ports/model.ts'
import { isObject, asList, parseJson } from '../view/untrusted-json.ts'
import { failure } from './http/failures.ts'
import { modelIdentity } from './http/hosted-model.ts'

/** A store of answers: texts by key, each with a lifetime. A Keyv is one. It may lose any of them at any time. */
export interface ResponseStore {
  /** Returns the text under this key, or a promise of it. Anything but a text means that there is none. */
  get(key: string): unknown
  /** Keeps the text for at most so many ms. It may return a promise. */
  set(key: string, value: string, ttlMs: number): unknown
}

/** Options of `cacheReplies`: who shares the answers, for how long they hold, and where they are kept. */
export type CacheRepliesOptions = {
  /** The scope in which answers are shared: a tenant, an application, a version of the prompt. */
  readonly namespace: string
  /** The lifetime of an answer. Default: an hour. */
  readonly ttlMs?: number
  /** The number of answers in the memory of this process, without a store. Default: 1,000. */
  readonly maxEntries?: number
  /** Default: the memory of this process. */
  readonly store?: ResponseStore
}

const TTL_MS = 3_600_000
const ENTRIES_MAX = 1_000
/** A longer answer is not cached. */
const VALUE_CHARS_MAX = 1_000_000
/** The most characters of all answers in the memory of this process. */
const MEMORY_CHARS_MAX = 32_000_000
/** A slower store is not waited for. */
const STORE_MS = 2_000

export class ResponseCache {
  readonly #model: Model
  readonly #options: CacheRepliesOptions
  readonly #memory: MemoryCache | null
  /** Open calls by key: the same request waits for the open one. Null if its answer cannot be shared. */
  readonly #flights = new Map<string, Promise<Reply | null>>()

  constructor(model: Model, options: CacheRepliesOptions) {
    this.#model = model
    this.#options = options
    this.#memory = options.store ? null : new MemoryCache(options.maxEntries ?? ENTRIES_MAX)
  }

  async call(request: Request, context: CallContext): Promise<Reply | ModelFailure> {
    // Earlier replies are part of the request, and a model seldom repeats them exactly.
    if (request.messages.some(({ role }) => role !== 'user')) return this.#model.call(request, context)
    const key = cacheKeyOf(this.#model, this.#options.namespace, request)
    for (;;) {
      const flight = this.#flights.get(key)
      if (flight === undefined) return this.#lead(key, request, context)
      const shared = await Promise.race([flight, resolveOnAbort(context.signal)])
      if (context.signal.aborted) return failure('other', 'The call was stopped.')
      if (shared !== null) return replayReply(shared, context)
    }
  }

  /** Looks for an answer, or makes a call whose answer is shared. */
  async #lead(key: string, request: Request, context: CallContext): Promise<Reply | ModelFailure> {
    let share: (reply: Reply | null) => void = () => {}
    this.#flights.set(key, new Promise((resolve) => (share = resolve)))
    let shared: Reply | null = null
    try {
      shared = await this.#kept(key, context)
      if (shared !== null) return replayReply(shared, context)
      const answer = await this.#model.call(request, context)
      if (answer.type === 'reply' && isCacheable(answer, this.#model)) {
        shared = answer
        this.#keep(key, answer, context)
      }
      return answer
    } finally {
      this.#flights.delete(key)
      share(shared)
    }
  }

  async #kept(key: string, context: CallContext): Promise<Reply | null> {
    if (this.#memory) return this.#memory.get(key, context.clock.now())
    const { store } = this.#options
    let cancel = (): void => {}
    const late = new Promise<null>((resolve) => (cancel = context.clock.timer(STORE_MS, () => resolve(null))))
    try {
      return replyIn(await Promise.race([store?.get(key), late, resolveOnAbort(context.signal)]))
    } catch {
      return null
    } finally {
      cancel()
    }
  }

  /** Not awaited, since the answer is complete. */
  #keep(key: string, reply: Reply, { clock }: CallContext): void {
    const { usage: _usage, cost: _cost, assumed: _assumed, ...said } = reply
    const value = JSON.stringify(said)
    if (value.length > VALUE_CHARS_MAX) return
    const { store, ttlMs = TTL_MS } = this.#options
    if (this.#memory) return this.#memory.set(key, value, clock.now() + ttlMs)
    // If the store fails now, the next lookup fails too and becomes a call.
    void new Promise((resolve) => resolve(store?.set(key, value, ttlMs))).catch(() => {})
  }
}

/** A hash, so that no request, setting or secret can be read from it. It leaves out ids of sessions and events. */
function cacheKeyOf(model: Model, namespace: string, request: Request): string {
  const { instructions, tools, allow, boost, output = null, messages, settings } = request
  const said = messages.map((message) => (message.role === 'user' ? message.parts : []))
  const whole = [1, namespace, modelIdentity(model), instructions, tools, allow, boost, output, said]
  return hash('sha256', JSON.stringify(settings === undefined ? whole : [...whole, settings]), 'hex')
}

/** Only complete answers of this model are cached. The answer of a fallback belongs to another model. */
function isCacheable({ finish, parts, calls, route }: Reply, { name }: Model): boolean {
  const whole = finish === 'stop' || finish === 'calls'
  const says = calls.length > 0 || parts.some((part) => part.type === 'text' && part.text.trim() !== '')
  return whole && says && (route === undefined || route === name)
}

/** Replays the answer to a reader of the stream like any other answer, at once and at no cost. */
function replayReply(reply: Reply, { emit }: CallContext): Reply {
  reply.parts.forEach((part, i) => {
    if ((part.type === 'text' || part.type === 'reasoning') && part.text !== '')
      emit({ kind: part.type, part: i, text: part.text })
  })
  reply.calls.forEach(({ tool, args }, index) => {
    emit({ kind: 'arguments', part: reply.parts.length + index, text: args, proposed: { tool, index } })
  })
  const { assumed: _assumed, ...said } = reply
  return { ...said, usage: { inputTokens: 0, outputTokens: 0 }, cost: 0, cached: true }
}

/** Reads a value from the store, which is not trusted: null unless it is a whole reply. */
function replyIn(value: unknown): Reply | null {
  const said = typeof value === 'string' && value.length <= VALUE_CHARS_MAX ? parseJson(value) : undefined
  if (!isObject(said) || said['type'] !== 'reply' || !Array.isArray(said['parts']) || !Array.isArray(said['calls']))
    return null
  const { finish, route } = said
  const parts = asList(said['parts'])
  const calls = asList(said['calls'])
  if ((finish !== 'stop' && finish !== 'calls') || !parts.every(isPart) || !calls.every(isCall)) return null
  const of = typeof route === 'string' ? { route } : {}
  return { type: 'reply', parts: parts as Reply['parts'], calls, finish, usage: null, ...of }
}

function isPart(part: Json): boolean {
  return isObject(part) && (part['type'] === 'text' || part['type'] === 'reasoning') && typeof part['text'] === 'string'
}

function isCall(call: Json): call is ReplyCall {
  return isObject(call) && ['id', 'tool', 'args'].every((field) => typeof call[field] === 'string')
}

function resolveOnAbort(signal: AbortSignal): Promise<null> {
  if (signal.aborted) return Promise.resolve(null)
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }))
}

/** The answers in the memory of this process: the least recently used are dropped first. */
class MemoryCache {
  readonly #max: number
  readonly #kept = new Map<string, { readonly value: string; readonly until: number }>()
  #chars = 0

  constructor(max: number) {
    this.#max = max
  }

  get(key: string, now: number): Reply | null {
    const found = this.#kept.get(key)
    if (found === undefined) return null
    this.#drop(key)
    if (found.until <= now) return null
    this.set(key, found.value, found.until)
    return replyIn(found.value)
  }

  set(key: string, value: string, until: number): void {
    this.#drop(key)
    this.#kept.set(key, { value, until })
    this.#chars += value.length
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= this.#max && this.#chars <= MEMORY_CHARS_MAX) return
      this.#drop(oldest)
    }
  }

  #drop(key: string): void {
    this.#chars -= this.#kept.get(key)?.value.length ?? 0
    this.#kept.delete(key)
  }
}
