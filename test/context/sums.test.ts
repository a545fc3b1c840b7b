// A provider may count all rounds that it made for one reply. The sum is money, and no length of a request.
import { afterEach, describe, expect, it } from 'vitest'
import {
  Harness,
  type HarnessOptions,
  memory,
  model,
  type Result,
  scripted,
  type CompleteStore,
} from '../../src/index.ts'
import { countRequestChars } from '../../src/runtime/money/usage-estimate.ts'
import type { Model, Request } from '../../src/ports/model.ts'
import { startChaos } from '../../src/testing/index.ts'
import { GOOD_SUMMARY } from './long-stage.ts'
import { CONTEXT_SUMMARY_PROMPT } from '../../src/context/summary.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

/** Its reply `sumAt` has `sum` input tokens, all others what was sent. */
function summing(sum: number, sumAt: number, options: Partial<HarnessOptions> = {}) {
  const sent: Request[] = []
  const scriptedModel = scripted((request) => {
    if (request.instructions === CONTEXT_SUMMARY_PROMPT) return GOOD_SUMMARY
    const n = sent.push({ ...request, messages: [...request.messages] })
    const inputTokens = n === sumAt ? sum : Math.ceil(countRequestChars(request) / 4)
    return { text: `answer ${n}`, usage: { inputTokens, outputTokens: 10 } }
  })
  const harness = new Harness({ model: scriptedModel, context: { compaction: { windowTokens: 32_000 } }, ...options })
  open.push(harness)
  return { harness, sent }
}

/** Records replies as versions did that took every count for a length. */
function olderStore(store: CompleteStore): CompleteStore {
  const commit: CompleteStore['commit'] = async (writes) => {
    const older = writes.map((write) => ({
      ...write,
      events: write.events.map((event) => {
        if (event.type !== 'agent.message' || !event.usage) return event
        const { contextTokens: _, ...usage } = event.usage
        return { ...event, usage }
      }),
    }))
    return store.commit(older as typeof writes)
  }
  return new Proxy(store, {
    get(target, name) {
      if (name === 'commit') return commit
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

const statuses = (results: readonly Result[]) => [...new Set(results.map(({ status }) => status))]

describe('a count that is a sum', () => {
  it.each([
    [40_000, 3],
    [400_000, 3],
    [400_000, 1],
  ])(
    'B-COMPACT-36: a reply with %i input tokens for a short request leaves the session as it was, also as reply %i',
    async (sum, sumAt) => {
      for (const compaction of [{ windowTokens: 32_000 }, false] as const) {
        const { harness, sent } = summing(sum, sumAt, { context: { compaction } })
        const session = await harness.open()
        const results: Result[] = []
        for (let n = 0; n < 6; n++) results.push(await session.run(`question ${n}`))
        expect([statuses(results), sent.length]).toEqual([['completed'], 6])
        expect(sent.at(-1)?.messages).toHaveLength(11)
        const [reply] = (await session.events()).events.filter(
          (event) => event.type === 'agent.message' && event.usage?.inputTokens === sum,
        )
        // The money is that of the sum.
        expect(reply).toMatchObject({ usage: { inputTokens: sum, contextTokens: expect.any(Number) as number } })
        expect(results[sumAt - 1]?.usage.inputTokens).toBe(sum)
        if (compaction !== false) expect(results[sumAt - 1]?.context?.tokens).toBeLessThan(1_000)
      }
    },
  )

  it('B-COMPACT-36: a count that the request can have is a length, however dense its text is', async () => {
    const { harness } = summing(30_000, 1)
    const session = await harness.open()
    // One token for each character.
    const { context } = await session.run('æ'.repeat(29_000))
    expect(context?.tokens).toBe(30_010)
  })

  it('B-COMPACT-36: where the provider searched, a count that the request could have is no length either', async () => {
    const usage = { inputTokens: 9_000, outputTokens: 10 }
    const steps = [
      { text: 'found', usage: { ...usage, webSearches: 2 } },
      { text: 'read', usage },
    ]
    const harness = new Harness({ model: scripted(steps), context: { compaction: { windowTokens: 32_000 } } })
    open.push(harness)
    const session = await harness.open()
    // It asked its model three times at most.
    expect((await session.run('search')).context?.tokens).toBe(3_010)
    expect((await session.run('read')).context?.tokens).toBe(9_010)
  })

  it('B-COMPACT-36: a count is a length where the reply cites pages, and where the provider reads a file itself', async () => {
    const usage = { inputTokens: 60_000, outputTokens: 10 }
    const cited = { type: 'source', url: 'https://example.com/a' } as const
    const parts = [{ type: 'text', text: 'Read.' } as const, cited]
    const reader: Model = {
      name: 'reader',
      call: async () => ({ type: 'reply', parts, calls: [], finish: 'stop', usage }),
    }
    const harness = new Harness({ model: reader, context: { compaction: { windowTokens: 1_000_000 } } })
    open.push(harness)
    const cites = await harness.session((await harness.open()).id).run('漢字仮名'.repeat(10_000))
    expect(cites.context?.tokens).toBe(60_010)
    const file = { type: 'url', media: 'application/pdf', url: 'https://example.com/a.pdf' } as const
    const reads = await (await harness.open()).run([{ type: 'text', text: 'Read it.' }, file])
    expect(reads.context?.tokens).toBe(60_010)
  })

  it.each(['anthropic:claude-sonnet-4-5', 'openai:gpt-5.1', 'groq:llama-3.3-70b'])(
    'B-COMPACT-36: %s goes on after a reply whose usage is a sum',
    async (name) => {
      let n = 0
      const usage = { inputTokens: 400_000, outputTokens: 100 }
      const chaos = await startChaos({ script: () => (++n === 2 ? { text: 'searched', usage } : `answer ${n}`) })
      const baseUrl = name.startsWith('anthropic') ? chaos.url : `${chaos.url}/v1`
      const harness = new Harness({ model: model(name, { key: 'abcdefgh12345', baseUrl }), store: memory() })
      open.push(harness)
      const session = await harness.open()
      const results: Result[] = []
      for (let i = 0; i < 4; i++) results.push(await session.run(`question ${i}`))
      expect(statuses(results)).toEqual(['completed'])
      expect(results[1]?.context?.tokens).toBeLessThan(2_000)
      await chaos.close()
    },
  )

  it('B-COMPACT-37: a session whose log took a sum for a length goes on, also after compactions by it, and in another process', async () => {
    for (const sumAt of [1, 3]) {
      const store = memory()
      const older = summing(400_000, sumAt, { store: olderStore(store) })
      const { id } = await older.harness.open()
      for (let n = 0; n < 3; n++) await older.harness.session(id).run(`question ${n}`)
      await older.harness.session(id).compact()
      const { events } = await older.harness.session(id).events()
      expect(events.some((event) => event.type === 'agent.message' && event.usage?.inputTokens === 400_000)).toBe(true)
      await older.harness.close()
      const { harness, sent } = summing(0, -1, { store })
      const results = [await harness.session(id).run('go on'), await harness.session(id).run('and on')]
      expect([statuses(results), sent.length]).toEqual([['completed'], 2])
      expect(results[1]?.context?.tokens).toBeLessThan(2_000)
    }
  })

  it('B-COMPACT-38: a session that waits because its context is full says sizes that add up', async () => {
    const { harness } = summing(0, -1, { context: { compaction: { windowTokens: 10_000 } } })
    const session = await harness.open()
    for (const word of ['one ', 'two ', 'six ', 'ten ']) await session.pin(word.repeat(2_375))
    const { reason = '' } = (await session.run('go')) as { reason?: string }
    const [all = 0, window, pinned = 0, newest = 0, rest = 0] = (reason.match(/\d+/g) ?? []).map(Number)
    expect(window).toBe(10_000)
    expect(pinned + newest + rest).toBe(all)
  })
})
