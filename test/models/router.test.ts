// Several models as one, and the limiter they share.
import { describe, expect, it } from 'vitest'
import type { Model, ModelFailure } from '../../src/ports/model.ts'
import { failure } from '../../src/models/http/failures.ts'
import type { Priced } from '../../src/models/http/hosted-model.ts'
import { Limiter } from '../../src/models/http/limiter.ts'
import type { ModelAbilities } from '../../src/models/structured-output.ts'
import { CAUTIOUS, type Price } from '../../src/models/price.ts'
import { fallback, route } from '../../src/models/router.ts'
import { type Script, scripted } from '../../src/models/local/scripted.ts'
import { callContext, request } from './context.ts'

/** A scripted model that says what it costs and can do, as one of a provider would. */
function priced(name: string, script: Script, more: Partial<ModelAbilities> & { readonly price?: Price } = {}): Priced {
  const { native = 'possible', images = true, price = { input: 1, output: 1 } } = more
  return {
    ...scripted(script, name),
    able: { name, native, images },
    outputTokensMax: 100,
    secrets: { [name]: `key of ${name}` },
    profile: async () => ({ price, known: true, contextTokens: 1_000, cost: () => 1 }),
  }
}

const fails = (kind: ModelFailure['class'], retryAfterMs?: number): Script => [
  { error: kind, message: kind, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
]
const ask = async (model: Model, more: Parameters<typeof request>[0] = {}) => {
  const heard = callContext()
  return { answer: await model.call(request(more), heard.context), ...heard }
}

describe('routes', () => {
  it.each(['rate_limit', 'server', 'network', 'timeout', 'auth'] as const)(
    'B-ROUTE-1: after a failure of class %s the next model is asked at once, and the reply says which model gave it',
    async (kind) => {
      const { answer, slept } = await ask(fallback(scripted(fails(kind), 'a'), scripted(['from b'], 'b')))
      expect(answer).toMatchObject({ type: 'reply', parts: [{ text: 'from b' }], route: 'b' })
      expect(slept).toEqual([])
    },
  )

  it.each(['bad_request', 'overflow', 'other'] as const)(
    'B-ROUTE-2: what is wrong with the request itself is not asked elsewhere: %s',
    async (kind) => {
      const { answer } = await ask(fallback(scripted(fails(kind), 'a'), scripted(['from b'], 'b')))
      expect(answer).toMatchObject({ type: 'failure', class: kind })
    },
  )

  it('B-ROUTE-3: once something was shown no other model is asked (TRAP-6)', async () => {
    const broken: Model = {
      name: 'a',
      call: async (_request, context) => {
        context.emit({ kind: 'text', part: 0, text: 'Half' })
        return failure('network', 'cut')
      },
    }
    const { answer, deltas } = await ask(fallback(broken, scripted(['whole'], 'b')))
    expect(answer).toMatchObject({ type: 'failure', class: 'network' })
    expect(deltas).toHaveLength(1)
  })

  it('B-ROUTE-4: a model that cannot take the request is skipped; if none can, that is said (AC-79)', async () => {
    const output = { mode: 'native', name: 'final_result', schema: {}, strict: false } as const
    const chain = fallback(priced('a', ['a'], { native: 'no' }), priced('b', ['b']))
    expect((await ask(chain, { output })).answer).toMatchObject({ route: 'b' })
    const image = { type: 'data', media: 'image/png', data: 'AAAA' } as const
    const messages = [{ role: 'user', seq: 1, parts: [image] }] as const
    const blind = priced('a', ['a'], { images: false })
    expect((await ask(fallback(blind, priced('b', ['b'])), { messages })).answer).toMatchObject({ route: 'b' })
    expect((await ask(fallback(blind), { messages })).answer).toMatchObject({ type: 'failure', class: 'bad_request' })
  })

  it('B-ROUTE-5: a model that comes twice ends the chain (AC-79)', async () => {
    const a = scripted([{ error: 'server' }, 'again'], 'a')
    const { answer } = await ask(fallback(a, a, scripted(['never'], 'c')))
    expect(answer).toMatchObject({ type: 'failure', class: 'server' })
    expect(() => fallback()).toThrow(/at least one model/)
    expect(fallback('ollama:x', 'ollama:x', 'ollama:y').routes).toEqual(['ollama:x'])
  })

  it('B-ROUTE-5: two models of a host with one name are two', async () => {
    const down = scripted(() => ({ error: 'server' }))
    expect((await ask(fallback(down, scripted(['from b'])))).answer).toMatchObject({ parts: [{ text: 'from b' }] })
    const routed = await ask(route({ chat: scripted(['from chat']), burst: down }, 'burst'))
    expect(routed.answer).toMatchObject({ parts: [{ text: 'from chat' }], fallback_from: 'burst' })
    expect(route({ chat: 'ollama:x', burst: 'ollama:x' }, 'burst').routes).toEqual(['ollama:x'])
  })

  it.each(['throws', 'answers nothing', 'answers something else'] as const)(
    'B-ROUTE-23: a model that %s is fallen back from, unless the call was stopped',
    async (how) => {
      const stop = new AbortController()
      const odd = {
        name: 'odd',
        call: async () => {
          if (how === 'throws') throw new TypeError('fetch failed')
          return how === 'answers nothing' ? undefined : { type: 'reply', parts: [null], calls: [] }
        },
      } as unknown as Model
      const good = scripted(() => 'from b', 'b')
      const { answer } = await ask(fallback(fallback(odd), good))
      expect(answer).toMatchObject({ type: 'reply', route: 'b' })
      expect((await ask(route({ chat: good, burst: odd }, 'burst'))).answer).toMatchObject({ fallback_from: 'burst' })
      expect((await ask(fallback(odd))).answer).toMatchObject({ type: 'failure', class: 'other', retryable: false })
      stop.abort()
      const { context } = callContext()
      const stopped = await fallback(odd, good).call(request(), { ...context, signal: stop.signal })
      expect(stopped).toMatchObject({ type: 'failure', class: 'other' })
    },
  )

  it('B-ROUTE-6: a refused key is not tried again, unless another model in the chain may answer later (AC-78)', async () => {
    const both = await ask(fallback(scripted(fails('auth'), 'a'), scripted(fails('auth'), 'b')))
    expect(both.answer).toMatchObject({ class: 'auth', retryable: false })
    const busy = await ask(fallback(scripted(fails('rate_limit', 70), 'a'), scripted(fails('auth'), 'b')))
    expect(busy.answer).toMatchObject({ class: 'rate_limit', retryable: true, retryAfterMs: 70 })
    const late = await ask(fallback(scripted(fails('auth'), 'a'), scripted(fails('server'), 'b')))
    expect(late.answer).toMatchObject({ class: 'server', retryable: true })
  })

  it('B-ROUTE-13: if any provider was asked it was an attempt; if all calls were held back here, it was none', async () => {
    const held: Model = { name: 'a', call: async () => ({ ...failure('rate_limit', 'held', 70), unasked: true }) }
    const tried = await ask(fallback(held, scripted(fails('server'), 'b')))
    expect(tried.answer).toMatchObject({ class: 'server' })
    expect(tried.answer).not.toHaveProperty('unasked')
    for (const other of [scripted(fails('auth'), 'b'), { ...held, name: 'b' }])
      expect((await ask(fallback(held, other))).answer).toMatchObject({ class: 'rate_limit', unasked: true })
  })

  it('B-ROUTE-7: money is held for the dearest of the chain, and a model that names no price counts as dear', async () => {
    const cheap = priced('a', ['a'], { price: { input: 1, output: 9, cacheWrite: 4 } })
    const dear = priced('b', ['b'], { price: { input: 2, output: 5 } })
    expect(await fallback(cheap, dear).profile()).toMatchObject({
      price: { input: 2, output: 9, cacheWrite: 4 },
      known: true,
      contextTokens: 1_000,
    })
    const mixed = fallback(cheap, scripted(['x'], 'c'))
    expect(await mixed.profile()).toMatchObject({ price: { input: CAUTIOUS.input, output: 15 }, known: false })
    expect(mixed.outputTokensMax).toBe(8_192)
    expect(mixed.able.native).toBe('no')
    expect(fallback(cheap, dear).secrets).toEqual({ a: 'key of a', b: 'key of b' })
  })

  it('B-ROUTE-8: a workload without a model of its own goes to its neighbour, and has it behind its own', async () => {
    const [big, small] = [scripted(fails('server'), 'big'), scripted(['small says'], 'small')]
    expect(route({ chat: small }, 'burst').name).toBe('small')
    expect(route({ chat: small }, 'summarization').name).toBe('small')
    expect(route({ agentic: small }, 'coding').name).toBe('small')
    expect((await ask(route({ reasoning: big, agentic: small }, 'reasoning'))).answer).toMatchObject({ route: 'small' })
    expect(() => route({ chat: small }, 'vision')).toThrow(/No model is set for "vision"/)
    expect(() => route({ vision: small }, 'coding')).toThrow(/"coding" or "agentic"/)
  })

  it('B-ROUTE-9: an abort ends the chain', async () => {
    const heard = callContext()
    const first: Model = {
      name: 'a',
      call: async () => {
        heard.stop()
        return failure('network', 'gone')
      },
    }
    const answer = await fallback(first, scripted(['late'], 'b')).call(request(), heard.context)
    expect(answer).toMatchObject({ type: 'failure', class: 'network' })
  })
})

describe('the limiter', () => {
  it('B-ROUTE-10: when a provider says not before, no call is sent before: short waits are sat out, long ones given back', async () => {
    const limiter = new Limiter()
    const { context, slept } = callContext()
    expect(await limiter.pass('p', context)).toBeNull()
    limiter.noteFailure(failure('server', 'm', 900), context)
    expect(await limiter.pass('p', context)).toBeNull()
    expect(slept).toEqual([])
    limiter.noteFailure(failure('rate_limit', 'm', 900), context)
    limiter.noteFailure(failure('rate_limit', 'm', 300), context)
    expect(await limiter.pass('p', context)).toBeNull()
    expect(slept).toEqual([900])
    limiter.noteFailure(failure('rate_limit', 'm', 60_000), context)
    expect(await limiter.pass('p', context)).toMatchObject({
      class: 'rate_limit',
      retryable: true,
      retryAfterMs: 60_000,
    })
  })

  it('B-ROUTE-11: a waiting call checks again, since others may have been told to wait longer, and ends with an abort', async () => {
    const limiter = new Limiter()
    const { context, slept } = callContext()
    limiter.noteFailure(failure('rate_limit', 'm', 1_000), context)
    const sleep = async (ms: number): Promise<void> => {
      if (slept.length === 0) limiter.noteFailure(failure('rate_limit', 'm', 1_500), context)
      await context.sleep(ms)
    }
    expect(await limiter.pass('p', { ...context, sleep })).toBeNull()
    expect(slept).toEqual([1_000, 500])
    const stopped = callContext()
    limiter.noteFailure(failure('rate_limit', 'm', 4_000), stopped.context)
    stopped.stop()
    expect(await limiter.pass('p', stopped.context)).toBeNull()
    expect(stopped.slept).toEqual([])
  })

  it('B-ROUTE-24: a wait holds on the clock it was told on, and not on the clock of another harness', async () => {
    const limiter = new Limiter()
    const [first, second] = [callContext(), callContext()]
    limiter.noteFailure(failure('rate_limit', 'm', 60_000), first.context)
    expect(await limiter.pass('p', second.context)).toBeNull()
    expect(await limiter.pass('p', first.context)).toMatchObject({ class: 'rate_limit' })
  })
})
