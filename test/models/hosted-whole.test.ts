// What must not be lost between a provider and a session: how an answer ended, what was said before it was stopped, attempts
// that were none, and a conversation whose provider takes back what it sealed. Real HTTP to the chaos server.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type ChaosReply, rateLimitError } from '../../src/testing/index.ts'
import { defineTool, Fault, fallback, type HostedOptions, model, type Result } from '../../src/index.ts'
import { callContext, request } from './context.ts'
import {
  bodyOf,
  chaosOf,
  conversation,
  DIALECTS,
  eventsOf,
  harnessOf,
  hasty,
  hosted,
  noting,
  ofType,
  stage,
  storeOf,
} from './hosted-stage.ts'

describe.each(DIALECTS)('an answer over %s', (dialect) => {
  it('B-HOSTED-51: one that was cut or refused says so in the log and in its result, and the next one that is whole does not', async () => {
    const script: readonly ChaosReply[] = [
      { text: 'half a sent', finish: 'length' },
      { text: 'I will not.', finish: 'refusal' },
      'All of it.',
    ]
    const { harness, store } = await stage(script, { dialect })
    const cut = await harness.run('Tell.')
    expect(cut).toMatchObject({ status: 'completed', stopReason: 'max_tokens', text: 'half a sent' })
    const session = harness.session(cut.sessionId)
    expect(await session.run('Go on.')).toMatchObject({ status: 'completed', stopReason: 'refusal' })
    expect(await session.run('Please.')).toMatchObject({ status: 'completed', stopReason: 'end_turn' })
    const replies = ofType(await eventsOf(store, cut.sessionId), 'agent.message')
    expect(replies.map(({ finish }) => finish)).toEqual(['length', 'refusal', undefined])
    expect(replies.at(-1)).not.toHaveProperty('finish')
  })

  it('B-HOSTED-51: a refusal without a word has its own end and its own sentence, also where an answer of a shape is asked for', async () => {
    const schema = z.object({ city: z.string() })
    for (const output of [undefined, { schema }] as const) {
      const { harness } = await stage(() => ({ finish: 'refusal' }), { dialect, ...(output ? { output } : {}) })
      const result = await harness.run('Tell.')
      expect(result).toMatchObject({ status: 'failed', stopReason: 'refusal', flags: { empty: false } })
      expect(result.status === 'failed' && result.failure.message).toMatch(/refused to answer/)
    }
  })

  it('B-HOSTED-28: the model is told at how many tokens its call was cut, whatever else was wrong with it', async () => {
    const { tool } = noting('write')
    const cut: ChaosReply = {
      calls: [{ tool: 'write', rawArgs: '{"town":"Os' }],
      finish: 'length',
      usage: { inputTokens: 10, outputTokens: 4_321 },
    }
    const { harness, chaos } = await stage([cut, 'Shorter.'], { dialect, tools: [tool] })
    await harness.run('Write.')
    expect(JSON.stringify(conversation(chaos.requests[1]))).toMatch(/cut off at 4321 tokens.*Write less at a time/)
  })

  it('B-HOSTED-54: what was said before a call was stopped stays in the log, with the time it took', async () => {
    const spoken = { text: 'x'.repeat(9_000), deltas: 30, chaos: { stallAfterBytes: 6_000 } }
    const late = await stage([spoken], { dialect, limits: { modelMs: 400 } })
    const { sessionId } = await late.harness.run('Hello.')
    const stopped = await stage([spoken], { dialect })
    const session = await stopped.harness.open()
    const stream = session.stream('Talk.', { deltas: true })
    for await (const event of stream) if (event.type === 'delta') await session.interrupt()
    for (const [store, id, kind] of [
      [late.store, sessionId, 'timeout'],
      [stopped.store, session.id, 'interrupted'],
    ] as const) {
      const [failed] = ofType(await eventsOf(store, id), 'model.failed')
      expect(failed).toMatchObject({ class: kind, partial: expect.stringMatching(/^x+$/) as string })
      expect(failed?.message).toMatch(/ after \d+ ms/)
    }
  })

  it('B-SOUND-8: a tool whose input is a choice is shown as one object, taken by a strict host, and checked by its own schema', async () => {
    const seen: unknown[] = []
    const move = defineTool({
      name: 'move',
      description: 'Moves',
      input: z.union([
        z.object({ to: z.literal('city'), city: z.string().describe('Where to') }),
        z.object({ to: z.literal('point'), x: z.number(), y: z.number().optional() }),
      ]),
      effect: 'read',
      execute: (input) => {
        seen.push(input)
        return 'there'
      },
    })
    const calls = (args: object): ChaosReply => ({ calls: [{ tool: 'move', args: args as { to: string } }] })
    const script = [calls({ to: 'point' }), calls({ to: 'point', x: 1 }), 'There.']
    const { harness, chaos } = await stage(script, { dialect, tools: [move] })
    expect(await harness.run('Move.')).toMatchObject({ status: 'completed', text: 'There.' })
    expect(seen).toEqual([{ to: 'point', x: 1 }])
    expect(chaos.requests.map(({ refused }) => refused)).toEqual([undefined, undefined, undefined])
    const [listed] = bodyOf(chaos.requests[0])['tools'] as readonly Readonly<Record<string, unknown>>[]
    const { function: of = listed } = listed as { readonly function?: unknown }
    const { input_schema, parameters } = of as { readonly input_schema?: unknown; readonly parameters?: unknown }
    expect(input_schema ?? parameters).toEqual({
      $schema: expect.any(String) as string,
      type: 'object',
      properties: {
        to: { anyOf: [expect.objectContaining({ const: 'city' }), expect.objectContaining({ const: 'point' })] },
        city: { type: 'string', description: 'Where to' },
        x: { type: 'number' },
        y: { type: 'number' },
      },
      required: ['to'],
    })
  })
})

describe.each(['messages', 'responses', 'chat'] as const)('what %s sealed', (dialect) => {
  it('B-HOSTED-52: and no longer takes is left out: the request is made once more, and later ones once', async () => {
    const { tool } = noting()
    const store = storeOf('memory')
    const sealed = { text: 'hm', signature: 'c2lnbmVk', encrypted: 'c2VhbGVk' }
    const first = await chaosOf([{ reasoning: sealed, calls: [{ tool: 'look', args: { city: 'Oslo' } }] }, 'Cold.'])
    const settings = { reasoning: 'high', name: NAMES[dialect] } as const
    const before = harnessOf({ model: hosted(first, dialect, settings), store, tools: [tool] })
    const { sessionId } = await before.run('Look.')
    await before.close()
    // A provider that changed its keys knows none of what it signed.
    const refusal = { status: 400, body: { error: { message: REFUSALS[dialect], type: 'invalid_request_error' } } }
    const knows = (request: unknown): boolean => !/c2lnbmVk|c2VhbGVk/.test(JSON.stringify(request))
    const second = await chaosOf(
      (request, n) => {
        if (!knows(request.body)) return refusal
        return n < 3
          ? { reasoning: { ...sealed, text: 'new', signature: 'bmV3', encrypted: 'bmV3' }, text: 'On.' }
          : 'Done.'
      },
      { strict: false },
    )
    const { harness } = { harness: harnessOf({ model: hosted(second, dialect, settings), store, tools: [tool] }) }
    expect(await harness.session(sessionId).run('Go on.')).toMatchObject({ status: 'completed', text: 'On.' })
    expect(second.requests).toHaveLength(2)
    await harness.session(sessionId).run('And on.')
    expect(second.requests).toHaveLength(3)
    // What came since goes back as it came.
    expect(JSON.stringify(second.requests[2]?.body)).toContain('bmV3')
    expect(ofType(await eventsOf(store, sessionId), 'model.failed')).toEqual([])
  })
})

const NAMES = {
  messages: 'anthropic:claude-opus-4-6',
  responses: 'openai:gpt-5.2',
  chat: 'openrouter:some/model',
} as const
const REFUSALS = {
  messages: 'messages.1.content.0: Invalid `signature` in `thinking` block',
  responses: 'The encrypted content c2Vh... could not be verified. Reason: invalid_encrypted_content',
  chat: 'messages.2.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.',
} as const

describe('a provider that wants to be asked otherwise', () => {
  it('B-HOSTED-52: a strict provider that never issued a signature gets none of it', async () => {
    const store = storeOf('memory')
    const settings = { reasoning: 'high', name: 'anthropic:claude-opus-4-6' } as const
    const first = await chaosOf([{ reasoning: 'hm', text: 'One.' }])
    const { sessionId } = await harnessOf({ model: hosted(first, 'messages', settings), store }).run('Count.')
    const second = await chaosOf(['Two.'])
    const harness = harnessOf({ model: hosted(second, 'messages', settings), store })
    expect(await harness.session(sessionId).run('On.')).toMatchObject({ status: 'completed', text: 'Two.' })
    expect(second.requests.map(({ refused }) => refused)).toEqual(['messages-28', undefined])
  })

  it('B-HOSTED-55: a response that is no longer stored is told anew, and the next turn is linked to the new one', async () => {
    const gone = { error: { message: 'Previous response not found.', code: 'previous_response_not_found' } }
    const { harness, chaos } = await stage((_request, n) => (n === 1 ? { status: 400, body: gone } : `Said ${n}.`), {
      dialect: 'responses',
      hosted: { chain: true },
      chaos: { strict: false },
    })
    const { sessionId } = await harness.run('One.')
    expect(await harness.session(sessionId).run('Two.')).toMatchObject({ text: 'Said 2.' })
    expect(await harness.session(sessionId).run('Three.')).toMatchObject({ text: 'Said 3.' })
    const linked = chaos.requests.map((request) => 'previous_response_id' in bodyOf(request))
    expect(linked).toEqual([false, true, false, true])
    expect(chaos.requests.map((request) => bodyOf(request)['store'])).toEqual([true, true, true, true])
  })

  it('B-HOSTED-56: an organisation that may not read summaries is asked without them, from then on', async () => {
    const message = 'Your organization must be verified to generate reasoning summaries.'
    const unverified = { error: { message, param: 'reasoning.summary', code: 'unsupported_value' } }
    const { harness, chaos } = await stage(
      (request) => (JSON.stringify(request.body).includes('summary') ? { status: 400, body: unverified } : 'Fine.'),
      { dialect: 'responses', hosted: { reasoning: 'low' }, chaos: { strict: false } },
    )
    expect(await harness.run('One.')).toMatchObject({ text: 'Fine.' })
    expect(await harness.run('Two.')).toMatchObject({ text: 'Fine.' })
    const asked = chaos.requests.map((request) => bodyOf(request)['reasoning'])
    expect(asked).toEqual([{ effort: 'low', summary: 'auto' }, { effort: 'low' }, { effort: 'low' }])
  })

  it('B-HOSTED-53: a call that was held back here is no attempt: a run that fails has asked the provider at least four times', async () => {
    const clock = hasty(60)
    const asked = new Map<string, number>()
    const { harness } = await stage(
      (request, n) => {
        const who = /Run \d/.exec(JSON.stringify(request.body))?.[0] ?? ''
        asked.set(who, (asked.get(who) ?? 0) + 1)
        return n < 13 ? rateLimitError(30) : 'Fine.'
      },
      { system: { clock } },
    )
    const runs = [...Array(8).keys()].map(async (i): Promise<readonly [string, Result]> => {
      let result = await harness.run(`Run ${i}`)
      while (result.status === 'sleeping') result = await harness.session(result.sessionId).run()
      return [`Run ${i}`, result]
    })
    for (const [who, result] of await Promise.all(runs)) {
      expect([result.status, (asked.get(who) ?? 0) >= 4]).not.toEqual(['failed', false])
    }
  }, 60_000)

  it('B-HOSTED-53: the log says that no provider was asked, and the failures of the run do not count it', async () => {
    const { harness, store } = await stage([rateLimitError(60)])
    await harness.run('One.', { patienceMs: 0 })
    const { sessionId, status } = await harness.run('Two.', { patienceMs: 0 })
    expect(status).toBe('sleeping')
    const [failed] = ofType(await eventsOf(store, sessionId), 'model.failed')
    expect(failed).toMatchObject({ class: 'rate_limit', retryable: true, unasked: true })
  })
})

describe('where a model is', () => {
  it('B-HOSTED-57: an address may end with a slash, and a key with a line end', async () => {
    const chaos = await chaosOf(['Fine.', 'Fine.'])
    for (const more of [{ key: ' k1\n' }, { env: { ANTHROPIC_API_KEY: 'k1\n' } }]) {
      const named = model('anthropic:claude-x', { baseUrl: `${chaos.url}/`, ...more })
      expect(Object.values(named.secrets)).toEqual(['k1'])
      expect(await harnessOf({ model: named }).run('Hello.')).toMatchObject({ text: 'Fine.' })
    }
    expect(chaos.requests.map(({ path }) => path)).toEqual(['/v1/messages', '/v1/messages'])
  })

  it('B-HOSTED-57: one that is no address is refused when it is named, with a sentence that says what to write', () => {
    for (const baseUrl of ['localhost:8080/v1', 'ftp://localhost:8080/v1', '//localhost:8080/v1', '']) {
      expect(() => model('openai:gpt-5.1', { baseUrl, key: 'k' })).toThrow(Fault)
    }
    expect(() => model('openai:gpt-5.1', { baseUrl: 'localhost:8080/v1', key: 'k' })).toThrow(
      /http:\/\/localhost:8080\/v1/,
    )
  })

  it("B-HOSTED-58: one's own server may load a model for five minutes before it says a word, another's has one", async () => {
    const firstByteMs = async (name: string, more: HostedOptions = {}): Promise<number> => {
      const armed: number[] = []
      const { context } = callContext()
      const clock = { ...context.clock, timer: (ms: number) => (armed.push(ms), () => {}) }
      const send: typeof fetch = () => Promise.resolve(new Response('no'))
      await model(name, { key: 'k', fetch: send, ...more }).call(request(), { ...context, clock })
      return armed[0] ?? 0
    }
    expect(await firstByteMs('ollama:qwen3')).toBe(300_000)
    expect(await firstByteMs('openai:gpt-5.1')).toBe(60_000)
    expect(await firstByteMs('ollama:qwen3', { deadlines: { firstByteMs: 5 } })).toBe(5)
  })

  it('B-ROUTE-12: a chain keeps the spelling of arguments of the model that reads it', async () => {
    const { tool } = noting()
    const rawArgs = '{ "city" : "Oslo" }'
    const chaos = await chaosOf([{ calls: [{ tool: 'look', rawArgs }] }, 'Cold.'])
    const chain = fallback(hosted(chaos, 'chat'), hosted(chaos, 'messages'))
    await harnessOf({ model: chain, tools: [tool] }).run('Look.')
    const said = conversation(chaos.requests[1]).find(({ role }) => role === 'assistant')
    expect(said?.['tool_calls']).toMatchObject([{ function: { arguments: rawArgs } }])
    expect(fallback(hosted(chaos, 'messages')).verbatim).toBe(false)
  })
})
