// Results and messages that are larger than a window: they are shortened into it, the log keeps them whole, and there is always a way on.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, type Event, Harness, memory, scripted, type CompleteStore } from '../../src/index.ts'
import { CONTEXT_SUMMARY_PROMPT } from '../../src/context/summary.ts'
import type { Request } from '../../src/ports/model.ts'
import { countRequestChars } from '../../src/runtime/money/usage-estimate.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

const page = (n: number, chars: number): string => `first line of ${n}\n${'x'.repeat(chars)}\nlast line of ${n}`

type Stage = {
  /** How many characters each result has, and how many calls a reply makes. */
  readonly chars: number
  readonly calls?: number
  readonly turns?: number
  readonly windowTokens?: number
  /** The provider refuses requests with more characters than this. */
  readonly takesChars?: number
  readonly store?: CompleteStore
  readonly summary?: string
}

/** A provider that refuses what is too long, as real ones do, and asks for results until it answers. */
function stage({ chars, calls = 5, turns = 1, windowTokens = 32_000, takesChars, store = memory(), summary }: Stage) {
  const sent: Request[] = []
  let refused = 0
  const model = scripted((request) => {
    if (request.instructions === CONTEXT_SUMMARY_PROMPT) return summary ?? '## Goal\nRead.'
    if (countRequestChars(request) > (takesChars ?? windowTokens * 4)) {
      refused += 1
      return { error: 'overflow', message: 'too long' }
    }
    sent.push({ ...request, messages: [...request.messages] })
    const asked = request.messages.filter(({ role }) => role === 'assistant').length
    const usage = { inputTokens: Math.ceil(countRequestChars(request) / 4), outputTokens: 10 }
    return asked < turns
      ? { usage, calls: Array.from({ length: calls }, (_, i) => ({ tool: 'look', args: { n: i } })) }
      : { usage, text: 'done' }
  })
  const look = defineTool({
    name: 'look',
    description: 'look',
    input: z.object({ n: z.number() }),
    effect: 'read',
    execute: ({ n }) => page(n, chars),
  })
  const compaction = { windowTokens }
  const harness = new Harness({
    model,
    tools: [look],
    store,
    breaker: false,
    context: { compaction },
    results: { compression: 'off' },
  })
  open.push(harness)
  return { harness, sent, store, refusals: () => refused }
}

const resultsIn = (request?: Request): readonly string[] =>
  request?.messages.flatMap((m) => (m.role === 'tool' && typeof m.content === 'string' ? [m.content] : [])) ?? []

async function eventsOf(harness: Harness, id: string): Promise<readonly Event[]> {
  return (await harness.session(id).events()).events
}

describe('results that are larger than the window', () => {
  it('B-FIT-1: five of 38 KB in one reply are shortened into a window of 32k, the originals stay, and nothing is refused', async () => {
    const { harness, sent, refusals } = stage({ chars: 38_000 })
    const result = await harness.run('read')
    expect(result).toMatchObject({ status: 'completed', text: 'done' })
    expect(refusals()).toBe(0)
    const shown = resultsIn(sent.at(-1))
    expect(shown).toHaveLength(5)
    for (const [i, text] of shown.entries()) {
      expect(text).toMatch(new RegExp(`^first line of ${i}\\n`))
      expect(text).toMatch(new RegExp(`last line of ${i}$`))
      expect(text).toContain('left out to fit the context')
    }
    expect(countRequestChars(sent.at(-1) as Request)).toBeLessThan(32_000 * 4 * 0.4)
    const events = await eventsOf(harness, result.sessionId)
    const whole = events.flatMap((event) => (event.type === 'agent.tool_result' ? [event.content] : []))
    expect(whole.map((content) => (typeof content === 'string' ? content.length : content.bytes))).toEqual(
      Array(5).fill(page(0, 38_000).length),
    )
  })

  it('B-FIT-1: small ones of the batch stay whole, and larger ones share the rest', async () => {
    const { harness, sent } = stage({ chars: 0, calls: 1 })
    const look = defineTool({
      name: 'look',
      description: 'look',
      input: z.object({ n: z.number() }),
      effect: 'read',
      execute: ({ n }) => page(n, [100, 90_000, 60_000][n] ?? 0),
    })
    const model = scripted((request) => {
      sent.push({ ...request, messages: [...request.messages] })
      return request.messages.some(({ role }) => role === 'assistant')
        ? 'done'
        : { calls: [0, 1, 2].map((n) => ({ tool: 'look', args: { n } })) }
    })
    const other = new Harness({
      model,
      tools: [look],
      breaker: false,
      context: { compaction: { windowTokens: 32_000 } },
    })
    open.push(other)
    expect((await other.run('read')).status).toBe('completed')
    const [small, ...large] = resultsIn(sent.at(-1))
    expect(small).toBe(page(0, 100))
    expect(large.map(({ length }) => length)).toEqual([large[0]?.length, large[0]?.length])
    await harness.close()
  })

  it('B-FIT-2: 200 KB that a user pasted are shortened too, both ends shown', async () => {
    const { harness, sent, refusals } = stage({ chars: 10, calls: 1, turns: 0 })
    expect((await harness.run(page(7, 200_000))).status).toBe('completed')
    expect(refusals()).toBe(0)
    const [first] = sent.at(-1)?.messages ?? []
    const text = JSON.stringify(first)
    expect([text.includes('first line of 7'), text.includes('last line of 7'), text.includes('msg:')]).toEqual([
      true,
      true,
      true,
    ])
  })

  it('B-FIT-3: a provider that counts far more than was estimated refuses at most four times, and then answers', async () => {
    const { harness, refusals } = stage({ chars: 38_000, takesChars: 32_000 * 4 * 0.25 })
    expect((await harness.run('read')).status).toBe('completed')
    expect(refusals()).toBeGreaterThan(0)
    expect(refusals()).toBeLessThanOrEqual(4)
  })

  it('B-FIT-4: pins that fill the window are never sent: the run waits, and says how large everything is and what helps', async () => {
    const { harness, sent } = stage({ chars: 10, calls: 1, turns: 0, windowTokens: 8_000 })
    const session = await harness.open({})
    await session.run('hello')
    for (const letter of 'abcd') await session.pin(letter.repeat(9_900))
    const before = sent.length
    const result = await session.run('more')
    expect([result.status, sent.length]).toEqual(['requires_action', before])
    const failed = (await session.events()).events.findLast((event) => event.type === 'model.failed')
    expect(failed).toMatchObject({
      class: 'overflow',
      unasked: true,
      message: expect.stringMatching(/of 8000 tokens.*pinned/) as string,
    })
  })

  it('B-FIT-5: a session that was parked goes on with the next run, and after a restart shows the same bytes', async () => {
    const store = memory()
    const { harness, sent } = stage({ chars: 38_000, turns: 2, store })
    const { sessionId, status } = await harness.run('read')
    expect(status).toBe('completed')
    const shown = resultsIn(sent.at(-1)).slice(0, 5)
    const again = stage({ chars: 38_000, turns: 0, store })
    expect((await again.harness.session(sessionId).run('and?')).status).toBe('completed')
    expect(resultsIn(again.sent.at(-1)).slice(0, 5)).toEqual(shown)
  })

  it('B-FIT-6: compact() shortens the newest results where nothing older can be summarised', async () => {
    const { harness } = stage({ chars: 60_000, calls: 1, windowTokens: 20_000 })
    const session = await harness.open({})
    await session.run('read')
    expect(await session.compact()).not.toMatchObject({ failed: expect.any(String) as string })
  })

  it.each([12_000, 24_000, 60_000, 130_000, 240_000])(
    'B-FIT-7: results of %i characters, three a turn for ten turns, never wedge a window of 16k',
    async (chars) => {
      const { harness, refusals } = stage({ chars, calls: 3, turns: 10, windowTokens: 16_000 })
      expect(await harness.run('read')).toMatchObject({ status: 'completed', text: 'done' })
      expect(refusals()).toBe(0)
    },
  )
})
