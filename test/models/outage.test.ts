// Providers that are down for a while, over real HTTP: the run waits and goes on by itself, and what it waits for can be seen.
import { describe, expect, it } from 'vitest'
import { type ChaosReply, overloadedError, rateLimitError, unauthorizedError } from '../../src/testing/index.ts'
import { fallback, type CompleteStore, type StreamEvent } from '../../src/index.ts'
import { Fault } from '../../src/kernel/failure.ts'
import { storeWith } from '../../sim/store-with.ts'
import { asleep } from '../runtime/wake-stage.ts'
import { chaosOf, eventsOf, harnessOf, hasty, hosted, ofType, stage, STORAGES, storeOf } from './hosted-stage.ts'

const down = (times: number): readonly ChaosReply[] => Array.from({ length: times }, () => overloadedError())
const CUT = { text: 'Half of the whole answer.', deltas: 12, chaos: { cutAfterBytes: 900 } }

async function cardOf(store: CompleteStore, id: string, status: string) {
  for (;;) {
    const card = await store.card(id)
    if (card?.status === status) return card
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

describe('an outage', () => {
  it('B-OUTAGE-1: of more tries than ever before is waited out by run(), and its end gives the patience back (S4-16, AC-116)', async () => {
    const { harness, chaos, store } = await stage([...down(7), 'Back.'], { system: { clock: hasty(50) } })
    const result = await harness.run('Hello.')
    expect(result).toMatchObject({ status: 'completed', text: 'Back.' })
    expect(chaos.requests).toHaveLength(8)
    expect(await store.card(result.sessionId)).toMatchObject({ status: 'idle', outcome: 'completed' })
    expect((await store.card(result.sessionId))?.outage).toBeUndefined()
  })

  it('B-OUTAGE-2: the patience that run() is given stands in the log, comes before that of the agent, and ends only its wait', async () => {
    const { harness, store } = await stage(() => overloadedError(), {
      system: { clock: hasty(10) },
      limits: { patienceMs: 60_000 },
    })
    const patienceMs = 12_000
    const result = await harness.run('Hello.', { patienceMs })
    expect(result).toMatchObject({ status: 'sleeping', stopReason: 'rescheduling' })
    expect(result.status === 'sleeping' && result.reason).toMatch(/overloaded/i)
    const events = await eventsOf(store, result.sessionId)
    expect(ofType(events, 'user.message')).toMatchObject([{ patienceMs }])
    expect(ofType(events, 'run.started')).toMatchObject([{ limits: { patienceMs } }])
    expect(ofType(events, 'run.settled')).toEqual([])
    const failed = ofType(events, 'model.failed')
    expect(failed.length).toBeGreaterThan(1)
    const [first, last] = [failed[0]?.at ?? 0, failed.at(-1)?.at ?? 0]
    expect(last - first).toBeLessThan(60_000)
  })

  it('B-OUTAGE-2: a patience that is no number of milliseconds is refused before anything is written', async () => {
    const { harness, store } = await stage(['Hello.'])
    for (const patienceMs of [-1, 1.5, Number.NaN, '5m' as unknown as number]) {
      await expect(harness.run('Hello.', { patienceMs })).rejects.toMatchObject({ code: 'invalid_config' })
    }
    expect(await store.list({ limit: 10 })).toEqual([])
  })

  it('B-OUTAGE-2: no patience is one try, and then the session goes on by itself', async () => {
    const { harness, chaos, store } = await stage([overloadedError(), 'Back.'])
    const result = await harness.run('Hello.', { patienceMs: 0 })
    expect(result).toMatchObject({ status: 'sleeping' })
    expect(chaos.requests).toHaveLength(1)
    await cardOf(store, result.sessionId, 'idle')
    expect(await harness.session(result.sessionId).result()).toMatchObject({ status: 'completed', text: 'Back.' })
  })

  it('B-OUTAGE-3: a failure that will not get better ends the run at once, whatever patience there is', async () => {
    const { harness, chaos } = await stage([unauthorizedError(), 'Never.'])
    expect(await harness.run('Hello.', { patienceMs: 900_000 })).toMatchObject({ status: 'failed' })
    expect(chaos.requests).toHaveLength(1)
  })

  it.each(STORAGES)(
    'B-OUTAGE-4: on %s the session is rescheduling meanwhile, given back, and its card says why (S4-33)',
    async (storage) => {
      const store = storeOf(storage)
      const chaos = await chaosOf([...down(1), 'Back.'])
      const harness = harnessOf({ model: hosted(chaos, 'messages'), store, worker: { lingerMs: 0 } })
      const session = await harness.open()
      const running = session.run('Hello.', { patienceMs: 60_000 })
      const card = await cardOf(store, session.id, 'rescheduling')
      expect(card.outage).toMatchObject({
        tries: 1,
        reason: expect.stringMatching(/^server: .*overloaded/i) as unknown,
      })
      expect((await harness.list({ order: 'id', limit: 500 })).cards[0]?.outage).toEqual(card.outage)
      // No worker holds the session: another one can claim it.
      expect(await store.claim(session.id, 'another', 1)).not.toBeNull()
      expect(await running).toMatchObject({ status: 'completed', text: 'Back.' })
    },
  )

  it.each(STORAGES)(
    'B-OUTAGE-5: on %s a worker with a wake finishes by itself, and the wake is not lost (AC-112, TRAP-24)',
    async (storage) => {
      const clock = hasty(100)
      const store = storeOf(storage, clock)
      const chaos = await chaosOf([...down(6), 'Looked.'])
      const harness = harnessOf({
        model: hosted(chaos, 'messages'),
        store,
        system: { clock },
        worker: { lingerMs: 100 },
      })
      await asleep(store, 's', [{ due: clock.now() }])
      await harness.work({ idleMs: 60_000 })
      expect(await store.card('s')).toMatchObject({ outcome: 'completed', wakes: 0 })
      expect(ofType(await eventsOf(store, 's'), 'run.started')).toHaveLength(1)
    },
  )

  it('B-OUTAGE-6: a connection that is cut after the first words is tried again, and readers are told that the reply starts again', async () => {
    const { harness, store, chaos } = await stage([CUT, 'Whole.'], { system: { clock: hasty(10) } })
    const stream = harness.stream('Hello.', { deltas: true })
    const seen: StreamEvent[] = []
    for await (const event of stream) seen.push(event)
    const result = await stream.result
    expect(result).toMatchObject({ status: 'completed', text: 'Whole.' })
    expect(chaos.requests).toHaveLength(2)
    // A reader that forgets what it showed when it sees `model.failed` shows the answer once.
    let shown = ''
    for (const event of seen) {
      if (event.type === 'model.failed') shown = ''
      else if (event.type === 'delta' && event.kind === 'text') shown += event.text
    }
    expect(shown).toBe('Whole.')
    const [failed] = ofType(await eventsOf(store, result.sessionId), 'model.failed')
    expect(failed).toMatchObject({ class: 'network', retryable: true, assumed: true })
    expect(failed?.partial).toMatch(/^Half/)
    expect(seen.filter((event) => event.type === 'delta').map((event) => event.seq)[0]).toBeLessThan(failed?.seq ?? 0)
  })

  it('B-OUTAGE-7: an answer that is cut again and again is asked for again, from the fourth time on after 30 s at least', async () => {
    const { harness, chaos, store } = await stage((_request, n) => (n < 6 ? CUT : 'Whole.'), {
      system: { clock: hasty(100) },
    })
    const result = await harness.run('Hello.')
    expect(result).toMatchObject({ status: 'completed', text: 'Whole.' })
    expect(chaos.requests).toHaveLength(7)
    const waits = ofType(await eventsOf(store, result.sessionId), 'model.failed').map(
      ({ at, retryAt = 0 }) => retryAt - at,
    )
    // The wait counts from the failure, which is a little before its event is written, and the clock is fast.
    expect(Math.max(...waits.slice(0, 3))).toBeLessThan(2_000)
    expect(Math.min(...waits.slice(3))).toBeGreaterThan(25_000)
  })

  it('B-OUTAGE-27: a store that is busy while a request is made is waited for, and nobody is asked before it can be read', async () => {
    const clock = hasty(50)
    const inner = storeOf('memory', clock)
    let busy = 2
    const store = storeWith(inner, {
      blob: async (hash) => {
        if (busy === 0) return inner.blob(hash)
        busy -= 1
        throw new Fault('store_busy', 'The store is busy.')
      },
    })
    const chaos = await chaosOf(['A dot.'])
    const harness = harnessOf({ model: hosted(chaos, 'messages'), store, system: { clock }, budget: { sessionUsd: 1 } })
    const picture = Buffer.from('iVBORw0KGgo=', 'base64')
    const result = await harness.run([{ type: 'image', media: 'image/png', data: picture }])
    expect(result).toMatchObject({ status: 'completed', text: 'A dot.' })
    expect(chaos.requests).toHaveLength(1)
    const failed = ofType(await eventsOf(store, result.sessionId), 'model.failed')
    expect(failed.map(({ retryable, message }) => [retryable, message])).toEqual([
      [true, 'The store is busy.'],
      [true, 'The store is busy.'],
    ])
    expect(await store.account(`session:${result.sessionId}`)).toMatchObject({ held: 0 })
  })

  it('B-OUTAGE-28: an answer is kept where the store is busy while it is looked up why the cache of the provider missed', async () => {
    const inner = storeOf('memory', hasty(50))
    let asked = 0
    let refused = 0
    const read: CompleteStore['read'] = async (...args) => {
      if (asked === 2 && refused === 0) {
        refused += 1
        throw new Fault('store_busy', 'The store is busy.')
      }
      return inner.read(...args)
    }
    const chaos = await chaosOf(() => `Answer ${++asked}.`)
    const options = { model: hosted(chaos, 'messages'), store: storeWith(inner, { read }), budget: { sessionUsd: 1 } }
    await harnessOf(options).open({ id: 's' })
    expect(await harnessOf(options).session('s').run('One.')).toMatchObject({ text: 'Answer 1.' })
    expect(await harnessOf(options).session('s').run('Two.')).toMatchObject({ status: 'completed', text: 'Answer 2.' })
    expect([chaos.requests.length, refused]).toEqual([2, 1])
    expect(ofType(await eventsOf(inner, 's'), 'model.failed')).toEqual([])
  })

  it('B-ROUTE-14: a fallback to another model of the same key is asked at once while the first must wait', async () => {
    const chaos = await chaosOf((request) =>
      (request.body as { model: string }).model === 'first' ? rateLimitError(100) : 'The second answers.',
    )
    const named = (name: string) => hosted(chaos, 'messages', { name: `anthropic:${name}` })
    const chain = fallback(named('first'), named('second'))
    const harness = harnessOf({ model: chain })
    // The first time the provider says so, the second time we know it.
    for (let i = 0; i < 2; i++) {
      expect(await harness.run('Hello.')).toMatchObject({ status: 'completed', text: 'The second answers.' })
    }
    expect(chaos.requests.map(({ body }) => (body as { model: string }).model)).toEqual(['first', 'second', 'second'])
  })
})
