// Outages that are longer than anybody waits: the session sleeps and is tried again, callers leave, and nothing is lost. Hours and days
// pass by a clock that is stepped.
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  Harness,
  type HarnessOptions,
  type Model,
  type ModelFailure,
  scripted,
  type CompleteStore,
} from '../../src/index.ts'
import { eventsOf, ofType, STORAGES, type Storage, storeOf } from './hosted-stage.ts'
import { asleep } from '../runtime/wake-stage.ts'
import { SteppedClock } from './stepped-clock.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const DOWN: ModelFailure = { type: 'failure', class: 'server', message: 'HTTP 503: overloaded', retryable: true }

/** A provider that is down until this time of the clock. */
function downUntil(clock: SteppedClock, until: number, failure = DOWN) {
  const tries: number[] = []
  const answers = scripted(() => 'Back.')
  const model: Model = {
    name: 'away',
    call: async (request, context) => {
      tries.push(clock.now())
      return clock.now() < until ? failure : answers.call(request, context)
    },
  }
  return { model, tries }
}

type Options = Partial<Omit<HarnessOptions, 'model' | 'clock'>> & { readonly storage?: Storage }

function staged(downMs: number, { storage = 'memory', ...options }: Options = {}, failure = DOWN) {
  const clock = new SteppedClock()
  const { model, tries } = downUntil(clock, clock.now() + downMs, failure)
  const store = completeStore(options.store ?? storeOf(storage, clock))
  const make = (): Harness => {
    const harness = new Harness({ model, store, system: { clock }, secrets: {}, ...options })
    onTestFinished(() => harness.close())
    return harness
  }
  return { clock, store, tries, make, harness: make() }
}

async function restsUntilIdle(clock: SteppedClock, store: CompleteStore, id: string): Promise<void> {
  do await clock.pass(10 * MINUTE)
  while ((await store.card(id))?.status !== 'idle')
}

describe('a long outage', () => {
  it.each([
    ['memory', 2 * DAY],
    ['sqlite', 5 * HOUR],
  ] as const)(
    'B-PATIENCE-1: on %s, of %d ms, is slept through by a worker: input and wake are answered then (S4-33, S4-35, AC-112, AC-116)',
    async (storage, downMs) => {
      const { clock, store, harness } = staged(downMs, { storage })
      await asleep(store, 'woken', [{ due: clock.now() + MINUTE }])
      const session = await harness.open({ id: 'asked' })
      void harness.work()
      await session.send('Hello.')
      await clock.pass(downMs / 2)
      for (const id of ['asked', 'woken']) {
        const card = await store.card(id)
        expect(card).toMatchObject({ status: 'rescheduling', outage: { reason: 'server: HTTP 503: overloaded' } })
        expect(card?.due).toBeGreaterThan(clock.now())
        expect((card?.due ?? 0) - clock.now()).toBeLessThanOrEqual(15 * 1.25 * MINUTE)
      }
      await clock.pass(downMs / 2 + 20 * MINUTE)
      for (const id of ['asked', 'woken']) {
        expect(await store.card(id)).toMatchObject({ status: 'idle', outcome: 'completed', wakes: 0 })
        expect(ofType(await eventsOf(store, id), 'run.started')).toHaveLength(1)
      }
    },
  )

  it('B-PATIENCE-2: of more than three days fails the run, and the reason says what ended it', async () => {
    const { clock, store, harness } = staged(30 * DAY)
    const session = await harness.open()
    void harness.work()
    await session.send('Hello.')
    const begun = clock.now()
    await restsUntilIdle(clock, store, session.id)
    expect(clock.now() - begun).toBeGreaterThan(2.9 * DAY)
    expect(clock.now() - begun).toBeLessThan(3.1 * DAY)
    const [settled] = ofType(await eventsOf(store, session.id), 'run.settled')
    expect(settled?.outcome).toMatchObject({ type: 'failed', reason: 'provider_error', class: 'server' })
    const outcome = settled?.outcome
    expect(outcome?.type === 'failed' && outcome.failure.message).toMatch(
      /^HTTP 503: overloaded\. Given up after \d+ tries\. The limit outageMs is 259200000 ms\.$/,
    )
  })

  it('B-PATIENCE-2: `outageMs` says how long a run is tried, for all runs or for one; 0 is one try', async () => {
    const { clock, harness, tries } = staged(DAY, { limits: { outageMs: 0 } })
    expect(await clock.during(harness.run('Hello.'))).toMatchObject({ status: 'failed', stopReason: 'provider_error' })
    expect(tries).toHaveLength(1)
    const longer = await clock.during(harness.run('Hello.', { limits: { outageMs: MINUTE } }))
    expect(longer).toMatchObject({ status: 'failed' })
    expect(tries.length).toBeGreaterThan(5)
  })

  it('B-PATIENCE-3: run() returns when its patience is over and says why, and the session is answered later without help', async () => {
    const { clock, store, harness } = staged(HOUR)
    const begun = clock.now()
    const result = await clock.during(harness.run('Hello.'))
    expect(result).toMatchObject({ status: 'sleeping', stopReason: 'rescheduling', reason: 'HTTP 503: overloaded' })
    expect(clock.now() - begun).toBeGreaterThan(12 * MINUTE)
    expect(clock.now() - begun).toBeLessThan(16 * MINUTE)
    expect(result.status === 'sleeping' && result.until).toBeGreaterThan(clock.now())
    // The harness is open: it takes up what it left sleeping.
    await clock.pass(HOUR)
    expect(await store.card(result.sessionId)).toMatchObject({ outcome: 'completed' })
    expect(await harness.session(result.sessionId).result()).toMatchObject({ status: 'completed', text: 'Back.' })
  })

  it.each([0, 1_000, 90_000])(
    'B-PATIENCE-3: a caller says itself how long it waits: %d ms, and not much longer',
    async (patienceMs) => {
      const { clock, harness } = staged(HOUR)
      const begun = clock.now()
      const result = await clock.during(harness.run('Hello.', { patienceMs }))
      expect(result).toMatchObject({ status: 'sleeping', reason: 'HTTP 503: overloaded' })
      expect(clock.now() - begun).toBeLessThanOrEqual(patienceMs + 1_000)
      const streamed = harness.session(result.sessionId).stream(undefined, { patienceMs })
      expect(await clock.during(streamed.result)).toMatchObject({ status: 'sleeping' })
    },
  )

  it('B-PATIENCE-3: a caller without any patience waits for a try that is due, and does not leave it to the next caller', async () => {
    const { clock, harness, make, tries } = staged(100)
    const { sessionId } = await clock.during(harness.run('Hello.', { patienceMs: 0 }))
    await clock.during(harness.close())
    expect(tries).toHaveLength(1)
    await clock.pass(MINUTE)
    const result = await clock.during(make().session(sessionId).run(undefined, { patienceMs: 0 }))
    expect(result).toMatchObject({ status: 'completed', text: 'Back.' })
  })

  it.each(STORAGES)(
    'B-PATIENCE-3: on %s another harness goes on with what a caller left, and nothing runs twice',
    async (storage) => {
      const { clock, store, harness, make } = staged(HOUR, { storage })
      const { sessionId } = await clock.during(harness.run('Hello.'))
      await clock.during(harness.close())
      const other = make()
      const result = await clock.during(other.session(sessionId).run(undefined, { patienceMs: 2 * HOUR }))
      expect(result).toMatchObject({ status: 'completed', text: 'Back.' })
      const events = await eventsOf(store, sessionId)
      expect([ofType(events, 'run.started').length, ofType(events, 'agent.message').length]).toEqual([1, 1])
    },
  )

  it('B-PATIENCE-4: a Retry-After of half an hour is kept: the caller is told at once, and nobody asks before', async () => {
    const { clock, store, harness, tries } = staged(HOUR, {}, { ...DOWN, retryAfterMs: 1_800_000 })
    const begun = clock.now()
    const result = await clock.during(harness.run('Hello.'))
    expect(result).toMatchObject({ status: 'sleeping', reason: 'HTTP 503: overloaded' })
    expect(clock.now() - begun).toBeLessThan(MINUTE)
    await clock.pass(2 * HOUR)
    expect(await store.card(result.sessionId)).toMatchObject({ outcome: 'completed' })
    const [first = 0, second = 0, third = 0] = tries
    expect(tries).toHaveLength(3)
    expect(Math.min(second - first, third - second)).toBeGreaterThanOrEqual(1_800_000)
  })

  it('B-PATIENCE-5: a message, resume and wake make the next try at once, and using them uses up no patience', async () => {
    const { clock, store, harness, tries } = staged(HOUR, {}, { ...DOWN, retryAfterMs: 1_800_000 })
    const session = await harness.open()
    expect(await clock.during(session.run('Hello.'))).toMatchObject({ status: 'sleeping' })
    expect(tries).toHaveLength(1)
    await clock.during(session.send('Are you there?'))
    await clock.pass(1_000)
    expect(tries).toHaveLength(2)
    await clock.during(session.send([{ type: 'resume' }]))
    await clock.pass(1_000)
    expect(tries).toHaveLength(3)
    await clock.during(harness.work({ session: session.id }))
    expect(tries).toHaveLength(4)
    // Looking is no wake: with nothing else to do it writes nothing.
    const { seq } = (await store.card(session.id)) ?? {}
    expect(await clock.during(session.run())).toMatchObject({ status: 'sleeping' })
    expect((await store.card(session.id))?.seq).toBe(seq)
  })

  it.each(['interrupt', 'close'] as const)('B-PATIENCE-5: %s ends the wait at once', async (verb) => {
    const { clock, store, harness, tries } = staged(HOUR)
    const session = await harness.open()
    await clock.during(session.run('Hello.', { patienceMs: 5 * MINUTE }))
    const begun = clock.now()
    await clock.during<unknown>(verb === 'close' ? session.close() : session.interrupt())
    await clock.pass(1_000)
    expect(await store.card(session.id)).toMatchObject({
      status: verb === 'close' ? 'terminated' : 'idle',
      outcome: 'interrupted',
    })
    expect(clock.now() - begun).toBeLessThan(10_000)
    const before = tries.length
    await clock.pass(2 * HOUR)
    expect(tries).toHaveLength(before)
  })

  it('B-PATIENCE-6: waits double from 200 ms to 30 s, then grow with the outage to 15 minutes, with jitter', async () => {
    const { clock, store, harness } = staged(DAY)
    const { sessionId } = await clock.during(harness.run('Hello.', { patienceMs: 2 * DAY }))
    const failed = ofType(await eventsOf(store, sessionId), 'model.failed')
    const waits = failed.map(({ at, retryAt = 0 }) => retryAt - at)
    expect(waits[0]).toBeGreaterThanOrEqual(200)
    expect(waits[0]).toBeLessThanOrEqual(250)
    const lasted = (i: number): number => (failed[i]?.at ?? 0) - (failed[0]?.at ?? 0)
    waits.forEach((wait, i) => {
      expect(wait).toBeLessThanOrEqual(1.25 * Math.min(15 * MINUTE, Math.max(30_000, lasted(i) / 8 + 1_000)) + 1)
    })
    expect(Math.max(...waits)).toBeGreaterThanOrEqual(15 * MINUTE)
    expect(failed.length).toBeLessThan(200)
  })
})
