// Connections that are reset after the head of the answer, over real sockets: they are tried again like other trouble of the provider,
// and each counts at its hold, because nobody knows what it cost.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { overloadedError } from '../../src/testing/index.ts'
import { fallback, type Price } from '../../src/index.ts'
import { chaosOf, eventsOf, harnessOf, hasty, hosted, ofType, STORAGES, storeOf } from './hosted-stage.ts'

const PRICE: Price = { input: 2, output: 10 }
const PRICES = { 'anthropic:*': PRICE, 'openrouter:*': PRICE, 'openai:*': PRICE }
/** The clock is fast: no deadline may be over because the machine is busy. */
const DEADLINES = { firstByteMs: 3_600_000, idleMs: 3_600_000, stalledMs: 3_600_000 }
const PAID = { prices: PRICES, outputTokensMax: 1_000, deadlines: DEADLINES }
const USAGE = { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 }
const COST = 100 * 2 + 50 * 10

const PIECES = {
  head: '',
  comment: ': working\n\n',
  words: `data: ${JSON.stringify({ id: 'a', choices: [{ index: 0, delta: { content: 'Half' } }] })}\n\n`,
} as const

/** A provider that resets its first connections after this much of the answer. */
async function resetting(times: number, after: keyof typeof PIECES) {
  let requests = 0
  const answer = (out: ServerResponse): void => {
    requests += 1
    out.writeHead(200, { 'content-type': 'text/event-stream' })
    if (requests <= times) {
      out.flushHeaders()
      if (after !== 'head') out.write(PIECES[after])
      setTimeout(() => out.socket?.resetAndDestroy(), 5)
      return
    }
    const said = { id: 'a', choices: [{ index: 0, delta: { content: 'Whole.' }, finish_reason: 'stop' }], usage: USAGE }
    out.end(`data: ${JSON.stringify(said)}\n\ndata: [DONE]\n\n`)
  }
  const server = createServer((request, out) => void request.resume().on('end', () => answer(out)))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests: () => requests }
}

describe.each(['head', 'comment', 'words'] as const)(
  'a connection that is reset after the %s of the answer',
  (after) => {
    it.each(STORAGES)(
      'B-PATIENCE-7: on %s is tried again with growing waits, and each try counts at its hold',
      async (storage) => {
        const clock = hasty(100)
        const store = storeOf(storage, clock)
        const provider = await resetting(6, after)
        const budget = { sessionUsd: 1 }
        const harness = harnessOf({ model: hosted(provider, 'chat', PAID), store, system: { clock }, budget })
        const result = await harness.run('Hello.')
        expect(result).toMatchObject({ status: 'completed', text: 'Whole.' })
        expect(provider.requests()).toBe(7)
        const events = await eventsOf(store, result.sessionId)
        const failed = ofType(events, 'model.failed')
        expect(failed).toHaveLength(6)
        for (const each of failed) expect(each).toMatchObject({ class: 'network', retryable: true, assumed: true })
        // From the fourth on it is not asked for again at once: each is paid for.
        for (const { at, retryAt = 0 } of failed.slice(3)) expect(retryAt - at).toBeGreaterThanOrEqual(29_000)
        const holds = ofType(events, 'model.started').map(({ held = 0 }) => held)
        const spent = holds.slice(0, 6).reduce((sum, held) => sum + held, COST)
        expect(await store.account(`session:${result.sessionId}`)).toMatchObject({ held: 0, spent })
      },
    )

    it('B-PATIENCE-7: is not tried beyond the budget: somebody is asked for more money', async () => {
      const clock = hasty(100)
      const store = storeOf('memory', clock)
      const provider = await resetting(1_000, after)
      const harness = harnessOf({
        model: hosted(provider, 'chat', PAID),
        store,
        system: { clock },
        // A hold is a little more than a cent.
        budget: { sessionUsd: 0.035 },
      })
      const result = await harness.run('Hello.')
      expect(result).toMatchObject({ status: 'limit', limit: 'usd' })
      expect(provider.requests()).toBe(3)
      const account = await store.account(`session:${result.sessionId}`)
      expect(account?.held).toBe(0)
      expect(account?.spent).toBeGreaterThanOrEqual(30_000)
      expect(account?.spent).toBeLessThanOrEqual(35_000)
    })
  },
)

describe('a reset of one model of a chain', () => {
  it('B-PATIENCE-8: whose answer had begun counts at its hold, also where the next model answers', async () => {
    const store = storeOf('memory')
    const first = await resetting(1_000, 'comment')
    const second = await chaosOf([{ text: 'From the second.', usage: { inputTokens: 100, outputTokens: 50 } }])
    const chain = fallback(hosted(first, 'chat', PAID), hosted(second, 'messages', PAID))
    const harness = harnessOf({ model: chain, store, budget: { sessionUsd: 1 } })
    const result = await harness.run('Hello.')
    expect(result).toMatchObject({ status: 'completed', text: 'From the second.' })
    const events = await eventsOf(store, result.sessionId)
    const [started] = ofType(events, 'model.started')
    expect(ofType(events, 'agent.message')).toMatchObject([{ assumed: true }])
    expect(await store.account(`session:${result.sessionId}`)).toMatchObject({ held: 0, spent: started?.held })
  })

  it('B-PATIENCE-8: and where the next one fails too', async () => {
    const clock = hasty(100)
    const store = storeOf('memory', clock)
    const down = await chaosOf((_request, n) => (n < 2 ? overloadedError() : { text: 'Back.' }))
    const broken = await resetting(1, 'head')
    const chain = fallback(hosted(down, 'messages', PAID), hosted(broken, 'chat', PAID))
    const harness = harnessOf({ model: chain, store, system: { clock }, budget: { sessionUsd: 1 } })
    const result = await harness.run('Hello.')
    expect(result).toMatchObject({ status: 'completed' })
    const [failed] = ofType(await eventsOf(store, result.sessionId), 'model.failed')
    expect(failed).toMatchObject({ class: 'server', assumed: true, retryable: true })
  })

  it('B-PATIENCE-8: a provider that refuses before it answers is not paid', async () => {
    const clock = hasty(100)
    const store = storeOf('memory', clock)
    const chaos = await chaosOf([overloadedError(), { text: 'No.', chaos: { cutAfterBytes: 0 } }, 'Back.'])
    const harness = harnessOf({
      model: hosted(chaos, 'messages', PAID),
      store,
      system: { clock },
      budget: { sessionUsd: 1 },
    })
    const result = await harness.run('Hello.')
    const failed = ofType(await eventsOf(store, result.sessionId), 'model.failed')
    expect(failed.map(({ assumed }) => assumed)).toEqual([undefined, undefined])
  })
})
