// What a window is cleared, cut and fitted to, measured in tokens over many turns; and which prompt-cache misses that makes.
import { afterEach, describe, expect, it } from 'vitest'
import { Harness, memory } from '../../src/index.ts'
import { CLEARED } from '../../src/kernel/transcript.ts'
import { buildContextReport } from '../../src/context/context-report.ts'
import { compactionsOf, contentOf, longStage, type LongStage, pricedModel, textIn } from './long-stage.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

const page = (n: number, chars: number): string => `page ${n}\n${'word '.repeat(chars / 5)}\nend of ${n}`

function stage(given: LongStage) {
  const made = longStage(given)
  open.push(made.harness)
  return made
}

const W = 32_000

describe('a window in tokens', () => {
  it.each([20_000, 24_000])(
    'B-TARGET-1: sixty turns with results of %i characters are summarised twice at most in 32k, and each clear ends at or below 0.75 of the window (C4)',
    async (chars) => {
      const { harness, sent, summaries, refusals } = stage({ result: (n) => page(n, chars), turns: 60 })
      const { status, sessionId } = await harness.run('read')
      expect([status, refusals()]).toEqual(['completed', 0])
      const compactions = await compactionsOf(harness, sessionId)
      expect(summaries.length).toBeLessThanOrEqual(2)
      const clears = compactions.filter(({ cleared }) => cleared !== undefined)
      expect(clears.length).toBeGreaterThan(5)
      for (const { before = 0, after = W } of clears) {
        expect(before).toBeGreaterThanOrEqual(0.8 * W)
        expect(after).toBeLessThanOrEqual(0.75 * W)
      }
      // Between two clears results come in whole; what was cleared is never the newest batch.
      for (const { request } of sent) {
        const last = request.messages.at(-1)
        if (last?.role === 'tool') expect(contentOf(last)).not.toContain(CLEARED)
      }
    },
  )

  it('B-TARGET-2: a clear takes the oldest results until 0.25 of the window is reached, whatever their number', async () => {
    const { harness, sent } = stage({ result: (n) => page(n, 2_000), turns: 80 })
    const { sessionId } = await harness.run('read')
    const clears = (await compactionsOf(harness, sessionId)).filter(({ cleared }) => cleared !== undefined)
    expect(clears).toHaveLength(1)
    const [{ after = 0 } = {}] = clears
    expect(after).toBeGreaterThan(0.2 * W)
    expect(after).toBeLessThanOrEqual(0.25 * W)
    const first = sent.find(({ request }) => textIn(request).includes(CLEARED))
    const results = first?.request.messages.flatMap((m) => (m.role === 'tool' ? [contentOf(m)] : [])) ?? []
    const whole = results.filter((text) => !text.startsWith(CLEARED))
    expect(whole.length).toBeGreaterThan(5)
    expect(results.slice(-whole.length)).toEqual(whole)
    // The estimate was right: what the provider counts then is about the target.
    expect(first?.tokens).toBeLessThan(0.27 * W)
  })

  it('B-TARGET-3: a cut keeps the newest whole turns up to 0.20 of the window, and at least the last', async () => {
    const words = 'y'.repeat(6_000)
    const { harness, sent, summaries } = stage({
      result: () => 'ok',
      turns: 0,
      windowTokens: W,
    })
    const session = await harness.open()
    for (let i = 0; i < 24; i++) await session.run(`${i} ${words}`)
    expect(summaries).toHaveLength(1)
    const after = sent.find(({ request }) => textIn(request).includes('<conversation-summary>'))
    const kept = after?.request.messages.slice(1) ?? []
    // Each turn is a question of 1,500 tokens and an answer of a few.
    expect(kept.filter(({ role }) => role === 'user')).toHaveLength(4)
    const large = stage({ result: (n) => page(n, 60_000), turns: 3, calls: 2, windowTokens: 16_000 })
    expect((await large.harness.run('read')).status).toBe('completed')
    for (const { request } of large.sent) {
      const calls = request.messages.flatMap((m) => (m.role === 'assistant' ? m.calls.map(({ key }) => key) : []))
      expect(request.messages.flatMap((m) => (m.role === 'tool' ? [m.call] : []))).toEqual(calls)
    }
  })

  it.each([
    [W, 5, 38_000],
    [128_000, 1, 130_000],
    [128_000, 4, 130_000],
  ])(
    'B-TARGET-4: in a window of %i, %i results of %i characters in one reply are answered, none is refused, and the originals stay whole (C1, C2)',
    async (windowTokens, calls, chars) => {
      const { harness, refusals } = stage({ result: (n) => page(n, chars), turns: 3, calls, windowTokens })
      const { status, sessionId } = await harness.run('read')
      expect([status, refusals()]).toEqual(['completed', 0])
      const { events } = await harness.session(sessionId).events()
      const sizes = events.flatMap((e) =>
        e.type === 'agent.tool_result' ? [typeof e.content === 'string' ? e.content.length : e.content.bytes] : [],
      )
      expect(sizes).toEqual(Array.from({ length: 3 * calls }, (_, n) => page(n, chars).length))
    },
  )

  it('B-TARGET-4: 200 KB that a user pastes into 32k are answered (C2)', async () => {
    const { harness, refusals } = stage({ result: () => 'ok', turns: 0 })
    expect([(await harness.run(page(0, 200_000))).status, refusals()]).toEqual(['completed', 0])
  })

  it('B-TARGET-5: a session that was parked goes on with the next run, and after compact() (C3)', async () => {
    for (const compacts of [false, true]) {
      const store = memory()
      // Without compaction the provider's refusal parks it.
      const off = stage({
        result: (n) => page(n, 38_000),
        turns: 9,
        options: { store, context: { compaction: false } },
      })
      const { sessionId, status } = await off.harness.run('read')
      expect(status).toBe('requires_action')
      await off.harness.close()
      const on = stage({ result: (n) => page(n, 38_000), turns: 2, options: { store } })
      const session = on.harness.session(sessionId)
      if (compacts) expect(await session.compact()).toMatchObject({ summary: expect.any(String) as string })
      await session.send([{ type: 'resume' }])
      expect([(await session.run('go on')).status, on.refusals()]).toEqual(['completed', 0])
    }
  })

  it('B-TARGET-6: a provider that counts 2.5 times what was estimated refuses four times at most, and then answers (C6)', async () => {
    const { harness, refusals } = stage({ result: (n) => page(n, 30_000), turns: 12, calls: 2, charsAToken: 1.6 })
    expect((await harness.run('read')).status).toBe('completed')
    expect(refusals()).toBeLessThanOrEqual(4)
  })

  it('B-TARGET-6: once counted, texts of the same kind are estimated as the provider counts them, and nothing is refused', async () => {
    const { harness, refusals, sent } = stage({ result: (n) => page(n, 9_000), turns: 40, charsAToken: 1.6 })
    expect((await harness.run('read')).status).toBe('completed')
    expect(refusals()).toBe(0)
    expect(Math.max(...sent.map(({ tokens }) => tokens))).toBeLessThan(0.95 * W)
  })

  it('B-TARGET-7: pins of 0.95 of the window are never sent: the run waits, and names the sizes (C7)', async () => {
    const { harness, sent } = stage({ result: () => 'ok', turns: 0, windowTokens: 10_000 })
    const session = await harness.open()
    for (const word of ['one ', 'two ', 'six ', 'ten ']) await session.pin(word.repeat(2_375))
    const result = await session.run('go')
    expect([result.status, sent.length]).toEqual(['requires_action', 0])
    expect(JSON.stringify(result)).toMatch(/of 10000 tokens.*pinned messages take 9\d{3} of them.*Unpin/)
  })

  it('B-TARGET-8: each request after a clear, a cut or a shortening that the cache missed is recorded, by its cause and its price (C8)', async () => {
    const plain = longStage({ result: (n) => page(n, 30_000), turns: 60 })
    const model = pricedModel(plain.model, W)
    const { harness } = { harness: new Harness({ ...plain.options, model }) }
    open.push(plain.harness, harness)
    const { sessionId, status } = await harness.run('read')
    expect(status).toBe('completed')
    const real = plain.sent.filter(({ lost }) => lost > 0)
    expect(real.length).toBeGreaterThan(10)
    const { misses } = await buildContextReport(plain.store, sessionId, { tokens: W, compacts: true })
    expect(misses).toHaveLength(real.length)
    expect(new Set(misses.map(({ why }) => why)).has('cleared')).toBe(true)
    for (const { why, tokens, cost } of misses) {
      expect(['cleared', 'cut', 'fitted']).toContain(why)
      expect(tokens).toBeGreaterThanOrEqual(0)
      // Instructions and what stands before the change were read from the cache.
      expect(tokens).toBeLessThan(0.8 * W)
      expect(cost).toBe(Math.ceil(tokens * 1.8))
    }
  })

  it('B-TARGET-8: a miss after a restart is recorded too', async () => {
    const store = memory()
    const options = { store, context: { compaction: { windowTokens: W } } }
    const first = longStage({ result: (n) => page(n, 20_000), turns: 4, options })
    open.push(first.harness)
    const before = new Harness({ ...first.options, model: pricedModel(first.model, W) })
    open.push(before)
    const session = await before.open()
    await session.run('read')
    await before.close()
    const then = longStage({ result: (n) => page(n, 20_000), turns: 0, options })
    const after = new Harness({ ...then.options, model: pricedModel(then.model, W) })
    open.push(then.harness, after)
    await after.session(session.id).run('x '.repeat(12_000))
    const { misses } = await buildContextReport(store, session.id, { tokens: W, compacts: true })
    expect(misses.map(({ why }) => why)).toEqual(['cleared'])
  })

  it('B-TARGET-10: a budgeted run goes on after a compaction, also where the provider counts a token for each character', async () => {
    const plain = stage({ result: () => 'ok', turns: 0, charsAToken: 1, windowTokens: 10_000 })
    const model = pricedModel(plain.model, 10_000)
    const harness = new Harness({ ...plain.options, model, budget: { sessionUsd: 100 } })
    open.push(harness)
    const session = await harness.open()
    for (let i = 0; i < 24; i++) expect((await session.run(`${i} ${'word '.repeat(100)}`)).status).toBe('completed')
    expect(plain.summaries.length).toBeGreaterThan(0)
  })
})
