// Models behind an address, through the harness and over real HTTP: what is said, what is recorded, and what is never told.
// What goes wrong on the way is hosted-trouble.long.test.ts; changes of model are hosted-switch.long.test.ts.
import { describe, expect, it } from 'vitest'
import { fallback, Fault, Harness, type HostedOptions, model } from '../../src/index.ts'
import {
  bodyOf,
  chaosOf,
  conversation,
  DIALECTS,
  eventsOf,
  harnessOf,
  heard,
  hosted,
  KEY,
  noting,
  ofType,
  stage,
  STORAGES,
  storeOf,
} from './hosted-stage.ts'

const PLACES = STORAGES.flatMap((storage) => DIALECTS.map((dialect) => ({ storage, dialect })))
const PRICES = { 'anthropic:*': price(), 'openai:*': price(), 'openrouter:*': price() }

function price() {
  return { input: 2, output: 10, cached: 0.5, contextTokens: 5_000 }
}

describe.each(PLACES)('a model over $dialect, on $storage', ({ storage, dialect }) => {
  it('B-HOSTED-1: text and thoughts stream as they come, and the log holds the whole', async () => {
    const said = { text: 'Grüße aus Oslo.', reasoning: 'It is cold there.', deltas: 4 }
    const { harness, store } = await stage([said], { storage, dialect })
    const stream = harness.stream('Write from Oslo.', { deltas: true })
    const events = await heard(stream)
    const result = await stream.result
    expect(result).toMatchObject({ status: 'completed', text: 'Grüße aus Oslo.' })
    const told = (kind: string) =>
      events.flatMap((event) => (event.type === 'delta' && event.kind === kind ? [event.text] : []))
    expect(told('text').length).toBeGreaterThan(1)
    expect(told('text').join('')).toBe('Grüße aus Oslo.')
    expect(told('reasoning').join('')).toBe('It is cold there.')
    const [message] = ofType(await eventsOf(store, result.sessionId), 'agent.message')
    expect(message?.parts).toMatchObject([
      { type: 'reasoning', text: 'It is cold there.' },
      { type: 'text', text: 'Grüße aus Oslo.' },
    ])
  })

  it('B-HOSTED-2: parallel calls run once each, their arguments stream, and their results go back in order', async () => {
    const { tool, calls } = noting()
    const asks = {
      text: 'Let me see.',
      calls: [
        { tool: 'look', args: { city: 'Oslo' } },
        { tool: 'look', args: { city: 'Rom' } },
      ],
    }
    const { harness, chaos } = await stage([{ ...asks, deltas: 3 }, 'Cold and warm.'], {
      storage,
      dialect,
      tools: [tool],
    })
    const stream = harness.stream('Compare.', { deltas: true })
    const events = await heard(stream)
    expect(await stream.result).toMatchObject({ status: 'completed', text: 'Cold and warm.' })
    expect([...calls].sort()).toEqual(['Oslo', 'Rom'])
    const args = events.flatMap((event) => (event.type === 'delta' && event.kind === 'arguments' ? [event] : []))
    const parts = [...new Set(args.map((delta) => delta.part))]
    expect(parts).toHaveLength(2)
    expect(
      parts.map((part) =>
        args
          .filter((delta) => delta.part === part)
          .map((delta) => delta.text)
          .join(''),
      ),
    ).toEqual(['{"city":"Oslo"}', '{"city":"Rom"}'])
    const second = JSON.stringify(conversation(chaos.requests[1]))
    expect(second.indexOf('Oslo is cold')).toBeGreaterThan(0)
    expect(second.indexOf('Rom is cold')).toBeGreaterThan(second.indexOf('Oslo is cold'))
    expect(chaos.requests.map(({ refused }) => refused)).toEqual([undefined, undefined])
  })

  it('B-HOSTED-3: usage, cost and route stand in the log with the reply, and a turn without usage takes nothing back and is estimated (AC-12)', async () => {
    const { tool } = noting()
    const usage = { inputTokens: 1_000, outputTokens: 100, cachedTokens: 400 }
    const script = [
      { calls: [{ tool: 'look', args: { city: 'Oslo' } }], usage },
      { calls: [{ tool: 'look', args: { city: 'Rom' } }], chaos: { wrongUsage: 'missing' as const } },
      { text: 'Done.', usage: { inputTokens: 10, outputTokens: 1 } },
    ]
    const { harness, store } = await stage(script, { storage, dialect, tools: [tool], hosted: { prices: PRICES } })
    const result = await harness.run('Go.')
    const messages = ofType(await eventsOf(store, result.sessionId), 'agent.message')
    const { name } = hosted({ url: 'http://x' }, dialect)
    expect(messages.map(({ route }) => route)).toEqual([name, name, name])
    expect(messages[0]).toMatchObject({ usage, cost: 2_400 })
    expect(messages[1]?.assumed).toBe(true)
    const { usage: guessed = { inputTokens: 0, outputTokens: 0 }, cost: guess = 0 } = messages[1] ?? {}
    expect(guess).toBe(2 * guessed.inputTokens + 10 * guessed.outputTokens)
    // 600 fresh tokens at 2, 400 from the cache at 0.5, 100 written at 10; then 10 at 2 and 1 at 10.
    expect(result).toMatchObject({
      usage: { inputTokens: 1_010 + guessed.inputTokens, outputTokens: 101 + guessed.outputTokens, modelRequests: 3 },
      cost: { micros: 2_400 + 30 + guess },
    })
  })

  it('B-HOSTED-4: the key is in no event, no error, no delta and no result, also when a provider repeats it', async () => {
    const leak = `Your key ${KEY} is fine.`
    const { harness, store, chaos } = await stage(
      [
        { text: leak, reasoning: leak, deltas: 9 },
        { status: 401, body: { error: { type: 'authentication_error', message: `invalid key ${KEY}` } } },
      ],
      { storage, dialect },
    )
    const stream = harness.stream('Say my key.', { deltas: true })
    const events = await heard(stream)
    const first = await stream.result
    const failed = await harness.session(first.sessionId).run('Again.')
    expect(failed).toMatchObject({ status: 'failed', stopReason: 'provider_error' })
    const everything = JSON.stringify([events, first, failed, await eventsOf(store, first.sessionId)])
    expect(everything).toContain('is fine.')
    expect(everything).not.toContain(KEY)
    expect(everything.match(/⟦secret:/g)?.length).toBeGreaterThan(4)
    expect(JSON.stringify(chaos.requests[1]?.body)).not.toContain(KEY)
  })

  it('B-HOSTED-5: one model for many runs and sessions: nothing of one reaches another (AC-10)', async () => {
    const { harness, chaos } = await stage(() => 'Noted.', { storage, dialect })
    await Promise.all(['The word is apple.', 'The word is pear.'].map((word) => harness.run(word)))
    await harness.run('What is the word?')
    for (const request of chaos.requests) {
      const text = JSON.stringify(conversation(request))
      expect(text.match(/The word is|What is the word/g)).toHaveLength(1)
    }
  })

  it('B-HOSTED-6: the tools are the same bytes in every request of a session (AC-82)', async () => {
    const tools = ['b_look', 'a_look', 'c_look'].map((name) => noting(name).tool)
    const { harness, chaos } = await stage([{ calls: [{ tool: 'a_look', args: { city: 'Oslo' } }] }, 'One.', 'Two.'], {
      storage,
      dialect,
      tools,
    })
    const { sessionId } = await harness.run('Go.')
    await harness.session(sessionId).run('And again.')
    const listed = chaos.requests.map((request) => JSON.stringify(bodyOf(request)['tools']))
    expect(listed).toHaveLength(3)
    expect(new Set(listed).size).toBe(1)
    expect(listed[0]?.indexOf('b_look')).toBeLessThan(listed[0]?.indexOf('a_look') ?? 0)
  })

  it('B-HOSTED-7: an approval waits across harnesses, and what the provider signed goes back unchanged (AC-38)', async () => {
    const store = storeOf(storage)
    const reasoning = { text: 'Careful.', signature: 'c2lnbmVk', encrypted: 'ZW5jcnlwdGVk' }
    const chaos = await chaosOf([{ reasoning, calls: [{ tool: 'look', args: { city: 'Oslo' } }] }, 'Approved.'])
    const make = () => {
      const { tool, calls } = noting('look', { approval: 'ask' })
      return { harness: harnessOf({ model: hosted(chaos, dialect), store, tools: [tool] }), calls }
    }
    const first = make()
    const parked = await first.harness.run('Look.')
    expect(parked).toMatchObject({ status: 'requires_action', stopReason: 'approval_required' })
    await first.harness.close()
    const second = make()
    const session = second.harness.session(parked.sessionId)
    await session.decide({ callId: parked.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'Approved.' })
    expect(second.calls).toEqual(['Oslo'])
    const replayed = JSON.stringify(conversation(chaos.requests[1]))
    expect(replayed).toContain(dialect === 'responses' ? 'ZW5jcnlwdGVk' : 'c2lnbmVk')
    expect(chaos.requests.at(-1)?.refused).toBeUndefined()
  })
})

describe('the name of a model', () => {
  it('B-HOSTED-8: a key that is missing fails the run at once and names the variable', async () => {
    const harness = harnessOf({ model: model('anthropic:claude-x', { env: {} }) })
    const result = await harness.run('Hello.')
    expect(result).toMatchObject({ status: 'failed', stopReason: 'provider_error' })
    expect(result).toMatchObject({ failure: { message: expect.stringContaining('ANTHROPIC_API_KEY') as unknown } })
    expect(result.usage.modelRequests).toBe(0)
  })

  it.each(['', 'gpt-5', ':gpt-5', 'openai:', 'openai: ', 'nobody:gpt-5', 'constructor:x', '__proto__:x', 'toString:x'])(
    'B-HOSTED-9: "%s" is refused when the harness is made, with a sentence that says what to write',
    (name) => {
      const make = () => new Harness({ model: name })
      expect(make).toThrow(Fault)
      expect(make).toThrow(
        /^("[^"]*" is not a model name\. Write provider:model|There is no provider "\w+"\. Choose one of: openai)/,
      )
    },
  )

  it('B-HOSTED-59: an effort that a model or its host cannot do is refused when it is made, and the sentence names what it takes', () => {
    const make = (name: string, reasoning: unknown) => () => model(name, { key: KEY, reasoning } as HostedOptions)
    for (const wrong of ['much', 'none', 'MAX', 3, '', null]) {
      expect(make('anthropic:claude-opus-5', wrong)).toThrow(Fault)
    }
    for (const [name, reasoning, words] of [
      ['anthropic:claude-opus-5', 'minimal', 'it takes "off" or "low" or "medium" or "high" or "xhigh" or "max"'],
      ['anthropic:claude-opus-4-6', 'xhigh', 'it takes "off" or "low" or "medium" or "high" or "max"'],
      ['anthropic:claude-3-5-haiku-latest', 'low', 'it does not reason'],
      ['openai:gpt-4.1', 'high', 'it does not reason'],
      ['openai:gpt-5.1', 'minimal', 'it takes "off" or "low" or "medium" or "high"'],
      ['openai:gpt-5-pro', 'off', 'it takes "high"'],
      ['openai:gpt-5.2', 'max', 'it takes'],
      ['mistral:magistral-medium-latest', 'high', 'its host has no setting for it'],
      ['alibaba:qwen3-max', 'off', 'its host has no setting for it'],
      ['mistral:mistral-large-latest', { budgetTokens: 4_000 }, 'its host has no setting for it'],
      ['groq:openai/gpt-oss-120b', 'max', 'it takes "off" or "low" or "medium" or "high"'],
    ] as const) {
      expect(make(name, reasoning)).toThrow(words)
      expect(make(name, reasoning)).toThrow(expect.objectContaining({ code: 'invalid_config' }))
    }
    for (const [name, reasoning] of [
      ['anthropic:claude-opus-5', 'max'],
      ['anthropic:claude-sonnet-4-5', 'minimal'],
      ['anthropic:some-alias', 'minimal'],
      ['openai:gpt-5', 'minimal'],
      ['openai:gpt-5.2', 'xhigh'],
      ['openai:gpt-4.1', 'off'],
      ['openai:o3', 'off'],
      ['openai:gpt-6-sol', 'max'],
      ['openai:my-deployment', 'max'],
      ['openrouter:any/model', 'xhigh'],
      ['gemini:gemini-3-pro', 'minimal'],
      ['deepseek:deepseek-reasoner', 'max'],
    ] as const) {
      expect(make(name, reasoning)).not.toThrow()
    }
  })

  it("B-HOSTED-10: a host of one's own is five lines, and its key is kept from the log like any other", async () => {
    const chaos = await chaosOf([`Your key is ${KEY}.`])
    const own = {
      name: 'my-host.example',
      protocol: 'chat',
      baseUrl: `${chaos.url}/v1`,
      keys: ['MY_HOST_KEY'],
      keyHeader: 'authorization',
      quirks: {},
      headers: {},
    } as const
    const harness = harnessOf({ model: model('my-host.example:m', { endpoints: [own], key: KEY }) })
    expect((await harness.run('Hello.')).text).toMatch(/^Your key is ⟦secret:\w+⟧\.$/)
  })

  it('B-HOSTED-11: every key of a chain is kept from the log, also two of the same host', async () => {
    const chaos = await chaosOf(['one-key-12345 two-key-12345 Bearer six-key-12345'])
    const make = (name: string, key: string) => hosted(chaos, 'chat', { name, key })
    const proxied = hosted(chaos, 'chat', {
      name: 'openrouter:c',
      headers: { 'x-proxy-token': 'Bearer six-key-12345' },
    })
    const chain = fallback(make('openrouter:a', 'one-key-12345'), make('openrouter:b', 'two-key-12345'), proxied)
    const { text } = await harnessOf({ model: chain }).run('Hello.')
    expect(text.replace(/⟦secret:\w+⟧/g, '*')).toMatch(/^\* \* (Bearer )?\*$/)
  })
})
