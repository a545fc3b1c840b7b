// Providers in trouble, through the harness and over real HTTP: what is tried again, what is not, what is never run and how it
// ends. The clock runs faster where a test would wait.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type ChaosReply,
  overflowError,
  overloadedError,
  quotaError,
  rateLimitError,
  serverError,
  unauthorizedError,
} from '../../src/testing/index.ts'
import { z } from 'zod'
import { defineTool, fallback, scripted } from '../../src/index.ts'
import {
  bodyOf,
  chaosOf,
  conversation,
  DIALECTS,
  eventsOf,
  harnessOf,
  hasty,
  heard,
  hosted,
  noting,
  ofType,
  stage,
  STORAGES,
  storeOf,
} from './hosted-stage.ts'

const ASK = { calls: [{ tool: 'look', args: { city: 'Oslo' } }] }
const FAST = { firstByteMs: 500, idleMs: 500, stalledMs: 700 }

/** How long each failure waits before the next try. */
function waits(events: Awaited<ReturnType<typeof eventsOf>>): readonly number[] {
  return ofType(events, 'model.failed').flatMap(({ at, retryAt }) => (retryAt === undefined ? [] : [retryAt - at]))
}

describe.each(DIALECTS)('trouble over %s', (dialect) => {
  it('B-HOSTED-20: trouble before any output is tried again, the same request, and the log says when (F32, F33, AC-78)', async () => {
    const script = [overloadedError(), serverError(), rateLimitError(), 'There.']
    const { harness, store, chaos } = await stage(script, { dialect, system: { clock: hasty(10) } })
    const result = await harness.run('Hello.')
    expect(result).toMatchObject({ status: 'completed', text: 'There.' })
    const events = await eventsOf(store, result.sessionId)
    const failed = ofType(events, 'model.failed')
    expect(failed.map((event) => [event.class, event.retryable])).toEqual([
      ['server', true],
      ['server', true],
      ['rate_limit', true],
    ])
    // From 200 ms on twice as long each time, and up to a quarter more by chance.
    for (const [n, wait] of waits(events).entries()) {
      // It counts from the failure, which is a little before its event is written; this clock runs ten times as fast.
      expect(wait).toBeGreaterThan(200 * 2 ** n - 150)
      expect(wait).toBeLessThanOrEqual(250 * 2 ** n + 1)
    }
    expect(new Set(chaos.requests.map(({ body }) => JSON.stringify(body))).size).toBe(1)
    expect(chaos.requests).toHaveLength(4)
  })

  it('B-HOSTED-21: as many tries as modelAttempts says; then the run fails with the cause, and the session goes on (AC-63)', async () => {
    const down: readonly ChaosReply[] = [overloadedError(), overloadedError(), overloadedError(), overloadedError()]
    const { harness, chaos, store } = await stage([...down, 'Back.'], {
      dialect,
      system: { clock: hasty(10) },
      limits: { modelAttempts: 4 },
    })
    const result = await harness.run('Hello.')
    expect(result).toMatchObject({ status: 'failed', stopReason: 'provider_error' })
    expect(result.status === 'failed' && result.failure.message).toMatch(/HTTP 5[02][39].*overloaded/i)
    expect(chaos.requests).toHaveLength(4)
    expect(ofType(await eventsOf(store, result.sessionId), 'model.failed')).toHaveLength(4)
    expect(await harness.session(result.sessionId).run('Still there?')).toMatchObject({ text: 'Back.' })
  })

  it('B-HOSTED-22: a key that is refused and money that is used up are not tried again (AC-78)', async () => {
    for (const trouble of [unauthorizedError(), quotaError()]) {
      const { harness, chaos } = await stage([trouble], { dialect })
      const result = await harness.run('Hello.')
      expect(result).toMatchObject({ status: 'failed', stopReason: 'provider_error' })
      expect(chaos.requests).toHaveLength(1)
    }
  })

  it('B-HOSTED-23: an error in the stream is tried again, before output and after it, and what came is kept (F33)', async () => {
    const early = await stage([{ text: 'No.', chaos: { errorAfter: 1 } }, 'Yes.'], {
      dialect,
      system: { clock: hasty(10) },
    })
    expect(await early.harness.run('Hello.')).toMatchObject({ status: 'completed', text: 'Yes.' })
    const late = { text: 'Half of the whole.', deltas: 12, chaos: { errorAfter: 8 } }
    const { harness, store, chaos } = await stage([late, 'Whole.'], { dialect, system: { clock: hasty(10) } })
    const result = await harness.run('Hello.')
    expect(result).toMatchObject({ status: 'completed', text: 'Whole.' })
    expect(chaos.requests).toHaveLength(2)
    const [failed] = ofType(await eventsOf(store, result.sessionId), 'model.failed')
    expect(failed).toMatchObject({
      class: 'server',
      retryable: true,
      partial: expect.stringMatching(/^Half/) as unknown,
    })
  })

  it('B-HOSTED-24: a stall is tried again; before any output nothing is said twice, after it the answer is told anew (F34, AC-62)', async () => {
    const options = { dialect, hosted: { deadlines: FAST } }
    for (const chaos of [{ stallAfterBytes: 0 }, { pingsOnly: true as const, dripMs: 20 }]) {
      const { harness } = await stage((_request, n) => (n === 0 ? { text: 'Lost.', chaos } : 'Here.'), options)
      const stream = harness.stream('Hello.', { deltas: true })
      const said = (await heard(stream)).flatMap((event) => (event.type === 'delta' ? [event.text] : []))
      expect(await stream.result).toMatchObject({ status: 'completed', text: 'Here.' })
      expect(said.join('')).toBe('Here.')
    }
    const long = { text: 'x'.repeat(8_000), deltas: 40, chaos: { stallAfterBytes: 3_000 } }
    const { harness, store, chaos } = await stage([long, 'Whole.'], options)
    const result = await harness.run('Hello.')
    expect(result).toMatchObject({ status: 'completed', text: 'Whole.' })
    expect(chaos.requests).toHaveLength(2)
    const [failed] = ofType(await eventsOf(store, result.sessionId), 'model.failed')
    expect(failed).toMatchObject({
      class: 'timeout',
      retryable: true,
      partial: expect.stringMatching(/^x+$/) as unknown,
    })
  })

  it('B-HOSTED-25: a stream that is cut or has no end is no answer, and no call of it runs (F35)', async () => {
    for (const chaos of [{ noEnd: true as const }, { cutAfterBytes: 900 }, { cutAfterBytes: 0 }]) {
      const { tool, calls } = noting()
      const { harness } = await stage([{ ...ASK, chaos }, 'After all.'], {
        dialect,
        tools: [tool],
        system: { clock: hasty(10) },
      })
      const result = await harness.run('Look.')
      // Once some of it was shown the run ends; before, it is asked again.
      expect(['completed', 'failed']).toContain(result.status)
      if (chaos.cutAfterBytes === 0) expect(result).toMatchObject({ text: 'After all.' })
      expect(calls).toEqual([])
    }
  })

  it('B-HOSTED-26: pings, comments, unknown events, torn characters and a byte at a time change nothing (F36)', async () => {
    const said = { text: 'Grüße 👋 aus Oslo', reasoning: 'Kälte', deltas: 5 }
    for (const chaos of [
      { junk: true as const },
      { splitBytes: 1 },
      { junk: true as const, splitBytes: 3 },
      { hugeLine: 1_000_000 },
    ]) {
      const { harness } = await stage([{ ...said, chaos }], { dialect })
      expect(await harness.run('Hello.')).toMatchObject({ status: 'completed', text: said.text })
    }
  })

  it('B-HOSTED-27: an unreadable stream ends with a sentence (F36)', async () => {
    const { harness } = await stage(() => ({ text: 'Zipped.', chaos: { gzip: true } }), {
      dialect,
      system: { clock: hasty(10) },
    })
    const result = await harness.run('Hello.')
    expect(result).toMatchObject({ status: 'failed', stopReason: 'provider_error' })
    expect(result.status === 'failed' && result.failure.message).toMatch(/gzip/)
  })

  it('B-HOSTED-43: a byte that was spoilt on the way ends in an answer or in a failure, and the session goes on (F36)', async () => {
    for (const corruptAt of [0, 6, 40, 150, 300, 600, 900]) {
      const { tool } = noting()
      const script = (_request: unknown, n: number): ChaosReply =>
        n === 0 ? { ...ASK, text: 'See.', chaos: { corruptAt } } : 'Fine.'
      const { harness } = await stage(script, { dialect, tools: [tool], system: { clock: hasty(10) } })
      const result = await harness.run('Look.')
      expect(['completed', 'failed']).toContain(result.status)
      expect(await harness.session(result.sessionId).run('And now?')).toMatchObject({
        status: 'completed',
        text: 'Fine.',
      })
    }
  })

  it('B-HOSTED-28: a call that ran out of room is never run, whatever of it came, and the model is told (F37)', async () => {
    for (const rawArgs of ['', '{', '{"city":"Os', '{"city":"Oslo"', '{"city":"Oslo","dry_run":']) {
      const { tool, calls } = noting()
      const cut = { calls: [{ tool: 'look', rawArgs }], finish: 'length' as const }
      const { harness, chaos } = await stage([cut, 'I see.'], { dialect, tools: [tool] })
      expect(await harness.run('Look.')).toMatchObject({ status: 'completed', text: 'I see.' })
      expect(calls).toEqual([])
      expect(chaos.requests.at(-1)?.refused).toBeUndefined()
    }
    // A tool without arguments: even an empty text would be valid input for it.
    let ran = 0
    const launch = defineTool({
      name: 'launch',
      description: 'launches',
      input: z.object({}),
      effect: 'once',
      execute: () => ++ran,
    })
    const cut = { calls: [{ tool: 'launch', rawArgs: '' }], finish: 'length' as const }
    await (await stage([cut, 'I see.'], { dialect, tools: [launch] })).harness.run('Launch.')
    expect(ran).toBe(0)
  })

  it('B-HOSTED-29: of several calls only the one that was cut is not run (F37)', async () => {
    const { tool, calls } = noting()
    const cut = {
      calls: [
        { tool: 'look', args: { city: 'Rom' } },
        { tool: 'look', rawArgs: '{"city":"Oslo"' },
      ],
      finish: 'length' as const,
    }
    const { harness, chaos } = await stage([cut, 'I see.'], { dialect, tools: [tool] })
    expect(await harness.run('Look.')).toMatchObject({ status: 'completed' })
    expect(calls).toEqual(['Rom'])
    expect(JSON.stringify(conversation(chaos.requests[1]))).toMatch(/Rom is cold.*cut off/)
  })

  it('B-HOSTED-30: ids that are blank or the same for all calls are mapped, and each call runs once (F38)', async () => {
    for (const chaos of [{ blankIds: true as const }, { duplicateIds: true as const }]) {
      const { tool, calls } = noting()
      const two = {
        calls: [
          { tool: 'look', args: { city: 'Oslo' } },
          { tool: 'look', args: { city: 'Rom' } },
        ],
        chaos,
      }
      const { harness, chaos: server } = await stage([two, two, 'Done.'], { dialect, tools: [tool] })
      expect(await harness.run('Look.')).toMatchObject({ status: 'completed', text: 'Done.' })
      expect([...calls].sort()).toEqual(['Oslo', 'Oslo', 'Rom', 'Rom'])
      expect(server.requests.map(({ refused }) => refused)).toEqual([undefined, undefined, undefined])
    }
  })

  it('B-HOSTED-31: a refusal, nothing at all and only thoughts each have an end, and no loop asks again (F39, AC-73)', async () => {
    const ends: readonly (readonly [ChaosReply, object, number])[] = [
      [{ text: 'I cannot do that.', finish: 'refusal' }, { status: 'completed', text: 'I cannot do that.' }, 1],
      [{ finish: 'refusal' }, { status: 'failed', stopReason: 'refusal' }, 1],
      [{ text: '' }, { status: 'failed', stopReason: 'empty_answer' }, 1],
      [{ reasoning: 'Hm.' }, { status: 'failed', stopReason: 'empty_answer' }, 1],
      [{ reasoning: 'Hm.', finish: 'length' }, { status: 'failed', stopReason: 'empty_answer' }, 2],
    ]
    for (const [reply, end, requests] of ends) {
      const { harness, chaos } = await stage(() => reply, { dialect })
      expect(await harness.run('Hello.')).toMatchObject(end)
      expect(chaos.requests).toHaveLength(requests)
      expect(chaos.requests.map(({ refused }) => refused).filter(Boolean)).toEqual([])
    }
  })

  it('B-HOSTED-32: an empty answer that ran out of room is asked once more with twice the room, and only then (AC-75)', async () => {
    const script: readonly ChaosReply[] = [{ reasoning: 'Hm.', finish: 'length' }, 'Short.', 'And on.']
    const { harness, chaos } = await stage(script, { dialect, hosted: { outputTokensMax: 1_000 } })
    const { sessionId, text } = await harness.run('Hello.')
    expect(text).toBe('Short.')
    await harness.session(sessionId).run('Go on.')
    const room = chaos.requests.map((request) => {
      const body = bodyOf(request)
      return body['max_tokens'] ?? body['max_output_tokens'] ?? body['max_completion_tokens']
    })
    expect(room).toEqual([1_000, 2_000, 1_000])
  })

  it('B-HOSTED-33: a full context parks the session, says how full it is and what can be done, and any message goes on (F40)', async () => {
    let isBetter = false
    const script = (): ChaosReply => (isBetter ? 'Better.' : overflowError())
    const { harness, store } = await stage(script, { dialect, instructions: 'i'.repeat(600) })
    const parked = await harness.run('word '.repeat(600))
    const failed = ofType(await eventsOf(store, parked.sessionId), 'model.failed').at(-1)
    expect(failed).toMatchObject({ class: 'overflow', retryable: false })
    expect(failed?.message).toMatch(/^The context is full: about \d+ of \d+ tokens\. .*[Ff]ork/)
    const told = { stopReason: 'paused', pending: [], reason: failed?.message }
    expect(parked).toMatchObject({ status: 'requires_action', ...told })
    const session = harness.session(parked.sessionId)
    expect(await session.run()).toMatchObject({ status: 'requires_action', stopReason: 'paused' })
    isBetter = true
    expect(await session.run('Only the last part, please.')).toMatchObject({ status: 'completed', text: 'Better.' })
  })

  it('B-HOSTED-34: nothing is sent on to another address (F42)', async () => {
    const elsewhere = await chaosOf(['Got your key.'])
    const { harness } = await stage([{ text: '', chaos: { redirectTo: `${elsewhere.url}/v1/messages` } }], { dialect })
    const result = await harness.run('Hello.')
    expect(result).toMatchObject({ status: 'failed', stopReason: 'provider_error' })
    expect(result.status === 'failed' && result.failure.message).toContain(new URL(elsewhere.url).host)
    expect(elsewhere.requests).toEqual([])
  })

  it('B-HOSTED-35: an interrupt ends the stream at once, and the provider sees the connection go (AC-64, AC-80)', async () => {
    const { harness, store, chaos } = await stage(
      [{ text: 'x'.repeat(9_000), deltas: 30, chaos: { stallAfterBytes: 4_000 } }],
      { dialect },
    )
    const session = await harness.open()
    const stream = session.stream('Talk.', { deltas: true })
    let interrupted = false
    for await (const event of stream) {
      if (event.type === 'delta' && !interrupted) {
        interrupted = true
        await session.interrupt()
      }
    }
    expect(await stream.result).toMatchObject({ status: 'interrupted', stopReason: 'cancelled' })
    const [failed] = ofType(await eventsOf(store, session.id), 'model.failed')
    expect(failed).toMatchObject({ class: 'interrupted' })
    expect(chaos.requests).toHaveLength(1)
    // It would wait for ever for a connection that is still open.
    await chaos.close()
  })

  it('B-HOSTED-36: a call that takes longer than the run allows is tried again, also if something of it was shown (AC-80)', async () => {
    const limits = { modelMs: 400 }
    const stall = { text: 'No.', chaos: { stallAfterBytes: 0 } }
    const silent = await stage((_request, n) => (n === 0 ? stall : 'Yes.'), { dialect, limits })
    expect(await silent.harness.run('Hello.')).toMatchObject({ status: 'completed', text: 'Yes.' })
    const spoken = { text: 'x'.repeat(9_000), deltas: 30, chaos: { stallAfterBytes: 4_000 } }
    const { harness, chaos } = await stage([spoken, 'Whole.'], { dialect, limits })
    expect(await harness.run('Hello.')).toMatchObject({ status: 'completed', text: 'Whole.' })
    expect(chaos.requests).toHaveLength(2)
  })
})

describe('trouble on the way', () => {
  it('B-HOSTED-37: a provider that cannot be reached is tried as often as is allowed, and the cause is named (F31)', async () => {
    const { url } = await chaosOf([])
    for (const baseUrl of ['http://127.0.0.1:1', 'http://no-such-host.invalid', url.replace('http:', 'https:')]) {
      const clock = hasty(10)
      const store = storeOf('memory', clock)
      const harness = harnessOf({
        model: hosted({ url: baseUrl }, 'messages'),
        store,
        system: { clock },
        limits: { modelAttempts: 4 },
      })
      const result = await harness.run('Hello.')
      expect(result).toMatchObject({ status: 'failed', stopReason: 'provider_error' })
      expect(result.status === 'failed' && result.failure.message).toMatch(/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|SSL/)
      expect(ofType(await eventsOf(store, result.sessionId), 'model.failed').map((event) => event.class)).toEqual(
        Array(4).fill('network'),
      )
    }
  })

  it('B-HOSTED-38: Retry-After is kept, and no other call is sent before it is over (F32)', async () => {
    const clock = hasty(10)
    const { harness, chaos, store } = await stage((_request, n) => (n === 0 ? rateLimitError(4) : 'Fine.'), {
      system: { clock },
    })
    const first = harness.run('One.')
    while (chaos.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    await new Promise((resolve) => setTimeout(resolve, 50))
    const others = await Promise.all([first, harness.run('Two.'), harness.run('Three.')])
    expect(others.map(({ text }) => text)).toEqual(['Fine.', 'Fine.', 'Fine.'])
    const [told, ...later] = chaos.requests.map(({ at }) => at)
    // The clock runs ten times faster, and the machine's clock may round.
    for (const at of later) expect(at - (told ?? 0)).toBeGreaterThanOrEqual(395)
    expect(later).toHaveLength(3)
    const events = await eventsOf(store, others[0]?.sessionId ?? '')
    expect(waits(events)[0]).toBeGreaterThanOrEqual(4_000)
    // Jitter: callers that got the same Retry-After come back at different times.
    expect(waits(events)[0]).toBeLessThanOrEqual(5_001)
  })

  it('B-HOSTED-39: a Retry-After of ten minutes is waited for as told, and the session rests meanwhile (AC-78)', async () => {
    const { harness, store } = await stage([rateLimitError(600), 'Never asked.'])
    const result = await harness.run('Hello.', { patienceMs: 60_000 })
    expect(result).toMatchObject({ status: 'sleeping', stopReason: 'rescheduling' })
    const events = await eventsOf(store, result.sessionId)
    const [wait = 0, ...more] = waits(events)
    expect(more).toEqual([])
    // It counts from the failure, which is a little before its event is written, and a little is added.
    expect(wait).toBeGreaterThan(599_000)
    expect(wait).toBeLessThanOrEqual(608_000)
    expect(result.status === 'sleeping' && result.until).toBe(ofType(events, 'model.failed')[0]?.retryAt)
    // A further call is told to wait, and the provider is not asked.
    const other = await harness.run('Me too.', { patienceMs: 60_000 })
    expect(other).toMatchObject({ status: 'sleeping', stopReason: 'rescheduling' })
  })

  it('B-HOSTED-39: a Retry-After that is longer than `outageMs` ends the run at once, and says when the provider is to be asked', async () => {
    const { harness, chaos, store } = await stage([rateLimitError(86_400), 'Never asked.'], {
      limits: { outageMs: 3_600_000 },
    })
    const result = await harness.run('Hello.')
    expect(result).toMatchObject({ status: 'failed', stopReason: 'provider_error' })
    const [failed] = ofType(await eventsOf(store, result.sessionId), 'model.failed')
    const said = /is to be asked again at (\S+)\. Given up after 1 try\./.exec(failed?.message ?? '')?.[1] ?? ''
    expect(Math.abs(Date.parse(said) - (failed?.at ?? 0) - 86_400_000)).toBeLessThan(60_000)
    expect(chaos.requests).toHaveLength(1)
  })

  it.each(STORAGES)(
    'B-HOSTED-40: a retry is in the log: another harness on %s goes on with the same request',
    async (storage) => {
      // No faster than it is: the first wait must not be over before the run is put off.
      const clock = hasty(1)
      const store = storeOf(storage, clock)
      const chaos = await chaosOf([overloadedError(), 'Here I am.'])
      const make = () =>
        harnessOf({
          model: hosted(chaos, 'responses'),
          store,
          system: { clock },
          worker: { lingerMs: 0, graceMs: 200 },
        })
      const first = make()
      const asleep = await first.run('Hello.', { patienceMs: 0 })
      expect(asleep).toMatchObject({ status: 'sleeping', stopReason: 'rescheduling' })
      await first.close()
      const session = make().session(asleep.sessionId)
      let result = await session.run()
      while (result.status === 'sleeping') result = await session.run()
      expect(result).toMatchObject({ status: 'completed', text: 'Here I am.' })
      expect(chaos.requests).toHaveLength(2)
      expect(chaos.requests[1]?.body).toEqual(chaos.requests[0]?.body)
    },
  )

  it('B-HOSTED-41: a chain asks its next model before any output, passes over one that cannot, and ends where a name comes again (AC-79)', async () => {
    const chaos = await chaosOf((request) =>
      bodyOf(request)['model'] === 'first' ? overloadedError() : 'Second here.',
    )
    const blind = hosted(chaos, 'chat', { name: 'deepseek:blind' })
    const chain = fallback(
      hosted(chaos, 'responses', { name: 'openai:first' }),
      blind,
      hosted(chaos, 'responses', { name: 'openai:second' }),
    )
    const store = storeOf('memory')
    const picture = { type: 'image', media: 'image/png', data: 'aGVsbG8=' } as const
    const result = await harnessOf({ model: chain, store }).run([{ type: 'text', text: 'What is it?' }, picture])
    expect(result).toMatchObject({ status: 'completed', text: 'Second here.' })
    expect(chaos.requests.map((request) => bodyOf(request)['model'])).toEqual(['first', 'second'])
    expect(ofType(await eventsOf(store, result.sessionId), 'agent.message')[0]?.route).toBe('openai:second')
    const again = fallback(
      hosted(chaos, 'responses', { name: 'openai:first' }),
      hosted(chaos, 'responses', { name: 'openai:first' }),
      scripted(['Never.']),
    )
    const limits = { modelAttempts: 1 }
    expect(await harnessOf({ model: again, limits }).run('Hello.')).toMatchObject({ status: 'failed' })
    expect(chaos.requests).toHaveLength(3)
  })

  it('B-HOSTED-42: an answer that is no stream, and a page that is no answer, are read for what they are', async () => {
    const pages = ['<html>Sign in to the hotel network</html>', '{"half":', '']
    const server = createServer((_request, out) => {
      const [status, type] = [200, 'text/html']
      out.writeHead(status, { 'content-type': type }).end(pages.shift() ?? '')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    for (let page = 0; page < 3; page++) {
      const harness = harnessOf({ model: hosted({ url }, 'messages'), limits: { modelAttempts: 1 } })
      const result = await harness.run('Hello.')
      expect(result).toMatchObject({ status: 'failed', stopReason: 'provider_error' })
      expect(result.status === 'failed' && result.failure.message.length).toBeGreaterThan(10)
    }
  })
})
