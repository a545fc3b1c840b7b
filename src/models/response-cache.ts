// Answers that are kept and given again, for `cached`. It never makes a call fail: trouble with the place where answers are kept is a
// call as without it.
import { hash } from 'node:crypto'
import type { Json } from '../kernel/content.ts'
import type { CallContext, Model, ModelFailure, Reply, ReplyCall, Request } from '../ports/model.ts'
import { isObject, listOf, parsed } from '../view/json.ts'
import { failure } from './http/failures.ts'
import { identityOf } from './http/hosted.ts'

/** Where answers are kept: texts by key, each for a time. A Keyv is one. It may lose any of them at any time. */
export interface ResponseStore {
  get(key: string): unknown
  set(key: string, value: string, ttlMs: number): unknown
}

export type CachedOptions = {
  /** What shares answers: a tenant, an application, a version of the prompt. */
  readonly namespace: string
  /** How long an answer counts. Default: an hour. */
  readonly ttlMs?: number
  /** Without a store: how many answers this process keeps. Default: 1,000. */
  readonly maxEntries?: number
  /** Default: the memory of this process. */
  readonly store?: ResponseStore
}

const TTL_MS = 3_600_000
const ENTRIES_MAX = 1_000
/** A longer answer is not kept. */
const VALUE_CHARS_MAX = 1_000_000
/** Of all answers in the memory of this process. */
const MEMORY_CHARS_MAX = 32_000_000
/** A slower store is not waited for. */
const STORE_MS = 2_000

export class ResponseCache {
  readonly #model: Model
  readonly #options: CachedOptions
  readonly #memory: Memory | null
  /** Open calls by key: the same request waits for the open one. Null: its answer cannot be shared. */
  readonly #flights = new Map<string, Promise<Reply | null>>()

  constructor(model: Model, options: CachedOptions) {
    this.#model = model
    this.#options = options
    this.#memory = options.store ? null : new Memory(options.maxEntries ?? ENTRIES_MAX)
  }

  async call(request: Request, context: CallContext): Promise<Reply | ModelFailure> {
    // What a model said before is part of what it is asked now, and seldom said twice.
    if (request.messages.some(({ role }) => role !== 'user')) return this.#model.call(request, context)
    const key = keyOf(this.#model, this.#options.namespace, request)
    for (;;) {
      const flight = this.#flights.get(key)
      if (flight === undefined) return this.#lead(key, request, context)
      const shared = await Promise.race([flight, stopped(context.signal)])
      if (context.signal.aborted) return failure('other', 'The call was stopped.')
      if (shared !== null) return given(shared, context)
    }
  }

  /** Looks for an answer, or asks for one that others may have too. */
  async #lead(key: string, request: Request, context: CallContext): Promise<Reply | ModelFailure> {
    let share: (reply: Reply | null) => void = () => {}
    this.#flights.set(key, new Promise((resolve) => (share = resolve)))
    let shared: Reply | null = null
    try {
      shared = await this.#kept(key, context)
      if (shared !== null) return given(shared, context)
      const answer = await this.#model.call(request, context)
      if (answer.type === 'reply' && isKept(answer, this.#model)) {
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
      return replyIn(await Promise.race([store?.get(key), late, stopped(context.signal)]))
    } catch {
      return null
    } finally {
      cancel()
    }
  }

  /** Not waited for: the answer is there. */
  #keep(key: string, reply: Reply, { clock }: CallContext): void {
    const { usage: _usage, cost: _cost, assumed: _assumed, ...said } = reply
    const value = JSON.stringify(said)
    if (value.length > VALUE_CHARS_MAX) return
    const { store, ttlMs = TTL_MS } = this.#options
    if (this.#memory) return this.#memory.set(key, value, clock.now() + ttlMs)
    // A store that fails now fails the next look too, which is then a call.
    void new Promise((resolve) => resolve(store?.set(key, value, ttlMs))).catch(() => {})
  }
}

/** A hash: nothing of a request, a setting or a secret can be read from it. Ids of sessions and events are no part of it. */
function keyOf(model: Model, namespace: string, request: Request): string {
  const { instructions, tools, allow, boost, output = null, messages, settings } = request
  const said = messages.map((message) => (message.role === 'user' ? message.parts : []))
  const whole = [1, namespace, identityOf(model), instructions, tools, allow, boost, output, said]
  return hash('sha256', JSON.stringify(settings === undefined ? whole : [...whole, settings]), 'hex')
}

/** Whole answers of this very model. A fallback's answer is another model's. */
function isKept({ finish, parts, calls, route }: Reply, { name }: Model): boolean {
  const whole = finish === 'stop' || finish === 'calls'
  const says = calls.length > 0 || parts.some((part) => part.type === 'text' && part.text.trim() !== '')
  return whole && says && (route === undefined || route === name)
}

/** The answer as a reader of the stream sees any other: at once, and for nothing. */
function given(reply: Reply, { emit }: CallContext): Reply {
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

/** What a store gives back, which is not believed: null unless it is a whole reply. */
function replyIn(value: unknown): Reply | null {
  const said = typeof value === 'string' && value.length <= VALUE_CHARS_MAX ? parsed(value) : undefined
  if (!isObject(said) || said['type'] !== 'reply' || !Array.isArray(said['parts']) || !Array.isArray(said['calls']))
    return null
  const { finish, route } = said
  const parts = listOf(said['parts'])
  const calls = listOf(said['calls'])
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

function stopped(signal: AbortSignal): Promise<null> {
  if (signal.aborted) return Promise.resolve(null)
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }))
}

/** The answers of this process: the least recently used go first. */
class Memory {
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
