// Waking and working: how due sessions are found, in which order, what happens while no worker looks, and how a worker ends.
import { describe, expect, it } from 'vitest'
import { Fault, memory, scripted } from '../../src/index.ts'
import { calls, make, STORAGES, storeOf, typesIn, waiting } from './scene.ts'
import { asleep, poisoned, quiet, say } from './wake-stage.ts'
import { until } from '../until.ts'
import { storeWith, withoutTake } from '../../sim/store-with.ts'
import { StillClock } from '../contract/fixture.ts'

describe.each(STORAGES)('what is due, on %s', (storage) => {
  it('B-WAKE-1: a look with nothing pending leaves no trace: no event, no due time, no later look (S4-17, AC-110)', async () => {
    const store = storeOf(storage)
    const harness = make(['never asked'], { store })
    const session = await harness.open({ id: 's' })
    const before = await store.card('s')
    expect(await harness.work({ session: 's' })).toEqual({ type: 'rested', waiting: 'input', until: null })
    expect(await store.card('s')).toEqual(before)
    expect(await typesIn(session)).toEqual(['session.created'])
    expect((await store.due(0)).next).toBeNull()
  })

  it('B-WAKE-2: what is pending and what is due are one run, and a wake of the future stays (S4-21, S4-22, AC-117)', async () => {
    const store = storeOf(storage)
    const harness = make(['done', 'again'], { store })
    const later = store.now() + 60_000
    const now = { due: store.now(), key: 'now' }
    await asleep(store, 's', [now, now, { due: later, key: 'later' }])
    const session = harness.session('s')
    expect(await session.run('hello')).toMatchObject({ status: 'completed', text: 'done' })
    const starts = async () => (await session.events()).events.filter(({ type }) => type === 'run.started')
    expect(await starts()).toMatchObject([{ wakes: ['now'] }])
    expect(await store.card('s')).toMatchObject({ status: 'rescheduling', due: later, wakes: 1 })
    expect(await harness.work({ session: 's' })).toMatchObject({ type: 'rested', until: later })
    expect(await starts()).toHaveLength(1)
  })

  it('B-WAKE-3: work drives what was sent before wakes, the longest waiting first, and asks again after each (S4-21, AC-118)', async () => {
    const store = storeOf(storage)
    const order: string[] = []
    const model = scripted(async ({ session }) => {
      order.push(session)
      if (session === 'sent') await say(store, 'urgent', 'me first')
      return 'done'
    })
    const harness = make(model, { store })
    await asleep(store, 'old', [{ due: store.now() - 9_000 }])
    await asleep(store, 'older', [{ due: store.now() - 99_000 }])
    for (const id of ['sent', 'urgent']) await asleep(store, id, [])
    await say(store, 'sent', 'hello')
    expect(await harness.work({ width: 1, idleMs: 0 })).toEqual({ type: 'idle', looks: 4 })
    expect(order).toEqual(['sent', 'urgent', 'older', 'old'])
  })

  it('B-WAKE-4: one session whose attempts fail does not stop the others (S4-21, AC-118)', async () => {
    const { store, tries } = poisoned(storeOf(storage), new Set(['bad']))
    const failed: string[] = []
    const onError = (session: string): number => failed.push(session)
    const harness = make(
      scripted(() => 'done'),
      { store, worker: { onError } },
    )
    for (const id of ['a', 'bad', 'b', 'c']) {
      await asleep(store, id, [])
      await say(store, id, 'hello')
    }
    expect(await harness.work({ width: 2, idleMs: 0 })).toEqual({ type: 'idle', looks: 4 })
    expect([tries, failed]).toEqual([['bad'], ['bad']])
    for (const id of ['a', 'b', 'c']) expect(await store.card(id)).toMatchObject({ outcome: 'completed', due: null })
    expect(await store.card('bad')).toMatchObject({ outcome: null, trouble: { attempts: 1 } })
  })

  it('B-WAKE-5: a session of an agent that this worker does not have is left for one that has it', async () => {
    const store = storeOf(storage)
    const script = scripted(() => 'done')
    await asleep(store, 'theirs', [], { agent: 'editor' })
    await say(store, 'theirs', 'hello')
    const stranger = make(script, { store, worker: { attemptsMax: 1 } })
    for (let i = 0; i < 2; i++) expect(await stranger.work({ idleMs: 0 })).toMatchObject({ type: 'idle' })
    expect(await store.card('theirs')).not.toHaveProperty('trouble')
    const editor = { description: 'edits', model: script }
    expect(await make(script, { store, subagents: { editor } }).work({ idleMs: 0 })).toMatchObject({ looks: 1 })
    expect(await store.card('theirs')).toMatchObject({ outcome: 'completed' })
  })
})

describe('a worker', () => {
  const scene = () => {
    const clock = new StillClock()
    const store = memory({ clock })
    const harness = make(
      scripted(() => 'done'),
      { store, system: { clock } },
    )
    const ended = async (id: string) => (await store.card(id))?.outcome
    return { clock, store, harness, ended }
  }

  it('B-WAKE-6: sleeps exactly to the next due wake, and is told of an earlier one (S4-20, AC-118)', async () => {
    const { clock, store, harness, ended } = scene()
    await asleep(store, 'first', [{ due: clock.time + 5_000 }])
    const working = harness.work()
    await quiet()
    expect(clock.next).toBe(clock.time + 5_000)
    await asleep(store, 'sooner', [{ due: clock.time + 3_000 }])
    await quiet()
    expect(clock.next).toBe(clock.time + 3_000)
    clock.advance(2_999)
    await quiet()
    expect(await ended('sooner')).toBeNull()
    clock.advance(1)
    await until(async () => expect(await ended('sooner')).toBe('completed'))
    expect(await ended('first')).toBeNull()
    clock.advance(2_000)
    await until(async () => expect(await ended('first')).toBe('completed'))
    await quiet()
    // Looks for claims that might have been lost, and then there is nothing to wait for.
    for (let i = 0; i < 4; i++) {
      clock.advance(30_000)
      await quiet()
    }
    expect(clock.next).toBeNull()
    await harness.close()
    expect(await working).toEqual({ type: 'stopped', looks: 2 })
  })

  it('B-WAKE-13: takes up what it left sleeping when its time has come, with one timer for all, and without work', async () => {
    const clock = new StillClock()
    const store = memory({ clock })
    const asked = new Map<string, number>()
    const model = scripted(({ session }) => {
      const n = asked.get(session) ?? 0
      asked.set(session, n + 1)
      const retryAfterMs = session === 'late' ? 90_000 : 40_000
      return n === 0 ? { error: 'rate_limit', retryAfterMs } : 'done'
    })
    const random = { id: () => crypto.randomUUID(), fraction: () => 0 }
    const harness = make(model, { store, system: { clock, random } })
    const ended = async (id: string) => (await store.card(id))?.outcome
    for (const id of ['late', 'a', 'b']) {
      const session = await harness.open({ id })
      expect(await session.run('hello', { patienceMs: 0 })).toMatchObject({
        status: 'sleeping',
        stopReason: 'rescheduling',
      })
    }
    expect(clock.timers).toEqual([clock.time + 40_000])
    clock.advance(39_999)
    await quiet()
    expect(await ended('a')).toBeNull()
    clock.advance(1)
    await until(async () => expect([await ended('a'), await ended('b')]).toEqual(['completed', 'completed']))
    expect(await ended('late')).toBeNull()
    clock.advance(50_000)
    await until(async () => expect(await ended('late')).toBe('completed'))
    expect([...asked.values()]).toEqual([2, 2, 2])
    await harness.close()
  })

  it('B-WAKE-7: is not fooled by a machine that slept, or a clock that jumped: a wake is late by a minute at most (F21, F22)', async () => {
    const { clock, store, harness, ended } = scene()
    await asleep(store, 's', [{ due: clock.time + 8 * 3_600_000 }])
    harness.work().catch(() => {})
    await quiet()
    clock.suspend(8 * 3_600_000)
    await quiet()
    expect(await ended('s')).toBeNull()
    clock.advance(60_000)
    await until(async () => expect(await ended('s')).toBe('completed'))
    const started = (await harness.session('s').events()).events.filter(({ type }) => type === 'run.started')
    expect(started).toHaveLength(1)
  })

  it('B-WAKE-8: with idleMs it ends when nothing was due for so long, and looks once more before (S4-20, AC-118)', async () => {
    const { clock, store, harness, ended } = scene()
    let over: unknown = null
    const working = harness.work({ idleMs: 1_000 }).then((worked) => {
      over = worked
    })
    await quiet()
    // It becomes due at the very moment when the worker would end.
    await asleep(store, 's', [{ due: clock.time + 1_000 }])
    await quiet()
    clock.advance(1_000)
    await until(async () => expect(await ended('s')).toBe('completed'))
    await quiet()
    clock.advance(999)
    await quiet()
    expect(over).toBeNull()
    clock.advance(1)
    await working
    expect(over).toEqual({ type: 'idle', looks: 1 })
  })

  it('B-WAKE-70: with looksMax it ends after so many looks, says so, and leaves the rest due (S4-20)', async () => {
    const { store, harness, ended } = scene()
    for (const id of ['one', 'two', 'three']) {
      await asleep(store, id, [])
      await say(store, id, 'hello')
    }
    expect(await harness.work({ width: 8, looksMax: 2 })).toEqual({ type: 'looks_max', looks: 2 })
    const ends = await Promise.all(['one', 'two', 'three'].map(ended))
    expect(ends.filter((end) => end === 'completed')).toHaveLength(2)
    expect(await harness.work({ idleMs: 0 })).toEqual({ type: 'idle', looks: 1 })
    await expect(harness.work({ looksMax: 0 })).rejects.toThrow('"looksMax"')
  })

  it('B-WAKE-9: begins nothing more when its signal is aborted, and what runs comes to its rest', async () => {
    const store = memory()
    const slow = waiting('slow')
    const model = scripted(({ messages }) => (messages.at(-1)?.role === 'tool' ? 'done' : calls('slow')))
    const harness = make(model, { store, tools: [slow.tool] })
    for (const id of ['one', 'two']) {
      await asleep(store, id, [])
      await say(store, id, 'hello')
    }
    const stop = new AbortController()
    const working = harness.work({ width: 1, signal: stop.signal })
    await slow.runs.here
    stop.abort()
    slow.go()
    expect(await working).toEqual({ type: 'stopped', looks: 1 })
    expect(await store.card('one')).toMatchObject({ outcome: 'completed' })
    expect(await typesIn(harness.session('two'))).toEqual(['session.created', 'user.message'])
    // A stopped harness can work again.
    expect(await harness.work({ idleMs: 0 })).toEqual({ type: 'idle', looks: 1 })
  })

  it('B-WAKE-10: uses a place that a finished run left free', async () => {
    const store = memory()
    const slow = waiting('slow')
    const model = scripted(({ session, messages }) =>
      session === 'asked' && messages.at(-1)?.role !== 'tool' ? calls('slow') : 'done',
    )
    const harness = make(model, { store, tools: [slow.tool] })
    for (const id of ['asked', 'due']) await asleep(store, id, [])
    const asked = harness.session('asked').run('go')
    await slow.runs.here
    await say(store, 'due', 'hello')
    harness.work({ width: 1 }).catch(() => {})
    await quiet()
    expect(await store.card('due')).toMatchObject({ outcome: null })
    slow.go()
    await asked
    await until(async () => expect(await store.card('due')).toMatchObject({ outcome: 'completed' }))
  })

  it('B-WAKE-11: works once at a time, and refuses a width and a time that make no sense', async () => {
    const { harness } = scene()
    const code = (error: unknown): unknown => (error instanceof Fault ? error.code : error)
    expect(await harness.work({ width: 0 }).catch(code)).toBe('invalid_config')
    expect(await harness.work({ idleMs: -1 }).catch(code)).toBe('invalid_config')
    const working = harness.work()
    expect(await harness.work().catch(code)).toBe('invalid_input')
    await harness.close()
    expect(await working).toEqual({ type: 'stopped', looks: 0 })
    expect(await harness.work().catch(code)).toBe('harness_closed')
  })

  it('B-WAKE-12: waits and goes on when the store cannot say what is due', async () => {
    const clock = new StillClock()
    const inner = memory({ clock })
    let asked = 0
    const store = storeWith(withoutTake(inner), {
      // With a limit of 0 it is only asked when the next session becomes due.
      due: (limit) =>
        limit > 0 && asked++ < 2 ? Promise.reject(new Fault('io_error', 'The disk is gone.')) : inner.due(limit),
    })
    const errors: string[] = []
    const worker = { onError: (session: string, error: unknown) => void errors.push(`${session}${String(error)}`) }
    const harness = make(['done'], { store, system: { clock }, worker })
    await asleep(store, 's', [{ due: clock.time }])
    harness.work().catch(() => {})
    await quiet()
    expect(errors).toEqual(['Fault: The disk is gone.'])
    for (let i = 0; i < 2; i++) {
      clock.advance(1_000)
      await quiet()
    }
    await until(async () => expect(await store.card('s')).toMatchObject({ outcome: 'completed' }))
    expect(asked).toBeLessThan(6)
  })
})
