// A store whose commits fail, before or after they are made, under senders who send everything twice and again until they are answered.
// By seeds, so that a failure can be played again.
import { expect, it, onTestFinished } from 'vitest'
import { Fault } from '../../src/kernel/failure.ts'
import { type Clock, Harness, memory, scripted, type TriggerReceipt } from '../../src/index.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import { createTriggers } from '../../src/triggers/index.ts'
import { storeWith } from '../../sim/store-with.ts'
import { hasty } from '../models/hosted-stage.ts'

const SEEDS = 30
const DELIVERIES = 8
const TRIES = 40

/** The same numbers for the same seed. */
function chanceOf(seed: number): () => number {
  let state = seed * 2_654_435_761 + 1
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0
    return ((state >>> 0) % 10_000) / 10_000
  }
}

/** Every third commit or so fails: half of them before anything is written, half of them when all is. */
function unsteady(store: CompleteStore, chance: () => number): CompleteStore {
  const commit: CompleteStore['commit'] = async (writes) => {
    const drawn = chance()
    const code = chance() < 0.5 ? 'store_busy' : 'io_error'
    if (drawn < 0.15) throw new Fault(code, 'before')
    const receipts = await store.commit(writes)
    if (drawn > 0.85) throw new Fault(code, 'after')
    return receipts
  }
  return new Proxy(store, {
    get: (target, name): unknown => {
      if (name === 'commit') return commit
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
    },
  })
}

it('B-TRIGGER-31: a delivery that was acknowledged is on disk, its key has one session, and its notice one key, whatever commits do', async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const chance = chanceOf(seed)
    const clock = hasty(100)
    const store = memory({ clock })
    const told: string[] = []
    const make = (drives: boolean) => {
      const harness = new Harness({
        model: scripted(() => 'x'),
        store: drives ? store : unsteady(store, chance),
        system: { clock },
        secrets: {},
        worker: { drives },
        triggers: createTriggers({
          models: [scripted(() => '{"action":"notify","prompt":"Look.","reason":"So."}')],
          sources: { mail: seed % 2 === 0 ? {} : { caps: { perMinute: 3 } } },
          notify: (_, { key }) => void told.push(key),
        }),
      })
      onTestFinished(() => harness.close())
      return harness
    }
    const senders = [make(false), make(false)]
    const deliver = async (i: number, sender: number): Promise<TriggerReceipt | null> => {
      for (let tries = 0; tries < TRIES; tries++) {
        try {
          const harness = senders[(sender + tries) % 2] as Harness
          return await harness.trigger({ source: 'mail', label: 'm', payload: `${i}.${sender}`, dedupeKey: `${i}` })
        } catch (error) {
          if (!(error instanceof Fault) || !['store_busy', 'io_error'].includes(error.code)) throw error
        }
      }
      return null
    }
    const sent = await Promise.all(
      Array.from({ length: DELIVERIES }, (_, i) => Promise.all([deliver(i, 0), deliver(i, 1)])),
    )
    const ids = sent.map((pair) => new Set(pair.flatMap((receipt) => receipt?.sessionId ?? [])))
    expect([seed, ids.map(({ size }) => size)]).toEqual([seed, ids.map(() => 1)])
    expect(new Set(ids.flatMap((each) => [...each])).size).toBe(DELIVERIES)
    for (const [id = ''] of ids) {
      const { events } = await store.read(id, 0)
      expect([seed, events.map(({ type }) => type)]).toEqual([seed, ['session.created', 'user.message']])
    }
    expect((await store.list({ limit: 100 })).length).toBe(DELIVERIES)
    if (seed % 10 === 0) {
      await make(true).work({ idleMs: 50 })
      expect(told.toSorted()).toEqual(ids.flatMap((each) => [...each]).toSorted())
    }
  }
})

it('B-TRIGGER-32: an event that two processes write at the same moment, word for word, is one message', async () => {
  const clock: Clock = { now: () => 1_800_000_000_000, timer: () => () => {} }
  const store = memory({ clock })
  // Both look before either writes.
  let looks = 0
  let letGo = (): void => {}
  const bothLooked = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const slow = storeWith(store, {
    card: async (session) => {
      const card = await store.card(session)
      looks += 1
      if (looks === 2) letGo()
      await bothLooked
      return card
    },
  })
  const make = (): Harness => {
    const triggers = createTriggers({
      models: [scripted(() => '{"action":"drop","reason":"So."}')],
      sources: { mail: {} },
    })
    const harness = new Harness({
      model: scripted(() => 'x'),
      store: slow,
      system: { clock },
      secrets: {},
      worker: { drives: false },
      triggers,
    })
    onTestFinished(() => harness.close())
    return harness
  }
  const [one, two] = [make(), make()]
  const event = { source: 'mail', label: 'm', payload: 'same', dedupeKey: 'evt_1' }
  const sent = await Promise.all([one.trigger({ ...event, receivedAt: 1 }), two.trigger({ ...event, receivedAt: 2 })])
  expect(sent.filter(({ duplicate }) => duplicate)).toHaveLength(1)
  const { sessionId } = sent[0]
  const { events } = await store.read(sessionId, 0)
  expect(events.map(({ type }) => type)).toEqual(['session.created', 'user.message'])
})
