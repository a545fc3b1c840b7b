// What a model costs and how much it takes.
import { describe, expect, it } from 'vitest'
import { CAUTIOUS, costOfUsage, FREE_PROFILE, profileOf } from '../../src/models/price.ts'
import type { HostedOptions } from '../../src/models/http/hosted-model.ts'
import { model } from '../../src/models/resolve-model.ts'

const million = { inputTokens: 100_000, outputTokens: 10_000 }

describe('prices', () => {
  it('B-PRICE-1: a known model is priced with what was read from and written to the cache (TRAP-16)', async () => {
    const { known, cost, contextTokens } = await profileOf('anthropic', 'claude-sonnet-4-5')
    expect(known).toBe(true)
    expect(contextTokens).toBe(200_000)
    // $3 in, $15 out, $0.30 read, $3.75 written, each a million.
    expect(cost(million)).toBe(300_000 + 150_000)
    expect(cost({ ...million, cachedTokens: 50_000, cacheWriteTokens: 20_000 })).toBe(
      90_000 + 15_000 + 75_000 + 150_000,
    )
  })

  it('B-PRICE-2: an unknown model is never free, and says that it is unknown', async () => {
    const { known, cost, price } = await profileOf('anthropic', 'claude-of-tomorrow-x')
    expect(known).toBe(false)
    expect(price).toEqual(CAUTIOUS)
    expect(cost(million)).toBe(450_000)
    expect((await profileOf('nobody', 'gpt-5.1')).cost({ inputTokens: 1, outputTokens: 0 })).toBeGreaterThan(0)
  })

  it("B-PRICE-3: the user's own table wins, by model and then by provider, and may say how much a model takes", async () => {
    const table = { 'openai:gpt-5.1': { input: 1, output: 2, contextTokens: 9 }, 'openai:*': { input: 7, output: 7 } }
    const exact = await profileOf('openai', 'gpt-5.1', table)
    expect(exact).toMatchObject({ known: true, contextTokens: 9 })
    expect(exact.cost(million)).toBe(120_000)
    const any = await profileOf('openai', 'gpt-5.2', table)
    expect(any).toMatchObject({ price: { input: 7 }, contextTokens: 400_000 })
  })

  it('B-PRICE-9: how much a model takes is unknown where nobody says it: no number is made up', async () => {
    expect((await profileOf('anthropic', 'claude-of-tomorrow-x')).contextTokens).toBeNull()
    expect((await model('ollama:qwen3').profile()).contextTokens).toBeNull()
    const own = { 'vllm:big': { input: 1, output: 1 } }
    expect((await model('vllm:big', { prices: own }).profile()).contextTokens).toBeNull()
  })

  it.each([
    ['with a key', { key: 'sk-a-real-key' }],
    ['that wants to know who asks', { headers: { Authorization: 'Bearer sk-a-real-key' } }],
    ['on another machine', { baseUrl: 'https://llm.example.org/v1' }],
  ])('B-PRICE-4: a server %s may send a bill', async (_what, options) => {
    const { known, cost } = await model('ollama:qwen3', options).profile()
    expect(known).toBe(false)
    expect(cost(million)).toBe(450_000)
  })

  it("B-PRICE-4: one's own server is free, unless the table says what it costs", async () => {
    expect((await model('ollama:qwen3').profile()).cost(million)).toBe(0)
    for (const host of ['localhost:8000', '[::1]:8000', '127.1.2.3:8000'])
      expect((await model('ollama:qwen3', { baseUrl: `http://${host}/v1` }).profile()).cost(million)).toBe(0)
    expect(FREE_PROFILE.known).toBe(true)
    const paid = model('vllm:big', { prices: { 'vllm:big': { input: 1, output: 1 } } })
    expect((await paid.profile()).cost(million)).toBe(110_000)
  })

  it('B-PRICE-5: where prices have tiers, money is held by the dearest and paid by the one that applies', async () => {
    const { price, cost } = await profileOf('gemini', 'gemini-2.5-pro')
    expect(price).toMatchObject({ input: 2.5, output: 15 })
    expect(cost(million)).toBe(125_000 + 100_000)
    expect(cost({ inputTokens: 300_000, outputTokens: 10_000 })).toBe(750_000 + 150_000)
  })

  const table = (price: object) => ({ prices: { 'openai:*': price } }) as HostedOptions
  it.each<readonly [string, HostedOptions, RegExp]>([
    ['a forgotten price', table({ input: 3 }), /The option "prices\.openai:\*\.output" of the model is missing/],
    ['a price that is no number', table({ input: Number.NaN, output: 15 }), /The price "input"/],
    ['a price below nothing', table({ input: 3, output: -15 }), /The price "output"/],
    ['a price in words', table({ input: '3', output: 15 }), /The price "input"/],
    ['a bad price of the cache', table({ input: 3, output: 15, cached: Number.NaN }), /The price "cached"/],
    ['a context of nothing', table({ input: 3, output: 15, contextTokens: 0 }), /contextTokens of openai:\* must be/],
    [
      'a price of nobody',
      { prices: { 'gpt-5.1': { input: 3, output: 15 } } },
      /"gpt-5\.1" is not a model name\. Write provider:model, or provider/,
    ],
    ['an answer of no length', { outputTokensMax: Number.NaN }, /outputTokensMax must be a whole number of tokens/],
    ['an answer of less than nothing', { outputTokensMax: -5 }, /outputTokensMax must be/],
    ['thinking of no length', { reasoning: { budgetTokens: Number.NaN } }, /reasoning\.budgetTokens must be/],
  ])('B-PRICE-7: %s is refused when the model is made', (_what, options, sentence) => {
    expect(() => model('openai:gpt-5.1', options)).toThrow(sentence)
  })

  it('B-PRICE-8: an entry without any price says nothing, unless its name says that it is free', async () => {
    const unpriced = await profileOf('gemini', 'gemma-3-27b-it')
    expect(unpriced).toMatchObject({ known: false, price: CAUTIOUS })
    expect(unpriced.cost(million)).toBe(450_000)
    const free = await profileOf('openrouter', 'meta-llama/llama-3.3-70b-instruct:free')
    expect(free.known).toBe(true)
    expect(free.cost(million)).toBe(0)
  })

  it('B-PRICE-6: amounts are whole, rounded up, and never negative', () => {
    const price = { input: 0.1, output: 0.1 }
    expect(costOfUsage(price, { inputTokens: 1, outputTokens: 0 })).toBe(1)
    expect(costOfUsage(price, { inputTokens: 5, outputTokens: 0, cachedTokens: 50 })).toBeGreaterThanOrEqual(0)
    expect(costOfUsage({ ...price, cached: 0 }, { inputTokens: 5, outputTokens: 0, cachedTokens: 5 })).toBe(0)
  })
})
