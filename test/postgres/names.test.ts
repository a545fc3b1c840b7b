// Names and hints that no honest caller would give: refused before any SQL, and harmless to what is asked beside them.
import { describe, expect, it, onTestFinished } from 'vitest'
import { Harness, scripted } from '../../src/index.ts'
import type { Write } from '../../src/ports/store.ts'
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import {
  admit,
  begin,
  card,
  claim,
  create,
  creation,
  message,
  note,
  outcome,
  ownerWrite,
  seqs,
  TTL,
} from '../contract/fixture.ts'
import { connections, newSchema, openPostgres } from './opened.ts'
import { noPostgres } from './server.ts'

const BAD = ['', 'a\0b', '\ud800', 'x'.repeat(513)] as const

describe.skipIf(noPostgres)('names that the database cannot hold', () => {
  it('B-PG-2: are refused or found nowhere, and spoil nothing that is asked in the same moment', async () => {
    const store = await openPostgres()
    await create(store, 's')
    for (const [i, bad] of BAD.entries()) {
      const process = { host: bad, pid: 1, started: 1 }
      const hold = { type: 'hold', key: bad, accounts: ['x'], amount: 1 } as const
      const on = { ...hold, key: 'k', accounts: [bad] }
      const beside = (charge: typeof hold | typeof on): Write => ({
        session: 's',
        lane: 'inbox',
        events: [],
        charges: [charge],
      })
      const refused = await Promise.all([
        outcome(create(store, bad)),
        outcome(admit(store, bad, message('m'))),
        outcome(admit(store, 's', message(bad))),
        outcome(store.claim('s', bad, TTL)),
        outcome(store.extend(bad, TTL)),
        outcome(store.announce(bad, 'x', TTL)),
        outcome(store.commit([beside(hold)])),
        outcome(store.commit([beside(on)])),
        outcome(store.remove('s', bad)),
        outcome(store.remove(bad, 'ann')),
        outcome(store.take(bad, TTL, { limit: 1 }).then(() => {})),
        outcome(admit(store, 's', message(`good ${i}`))),
      ])
      expect(refused).toEqual([...Array.from({ length: 11 }, () => 'invalid_input'), 'ok'])
      const missing = [outcome(store.read(bad, 0)), outcome(store.claim(bad, 'w', TTL))]
      expect(await Promise.all(missing)).toEqual(['session_missing', 'session_missing'])
      const nowhere = [
        store.card(bad),
        store.sent(bad, 'm'),
        store.sent('s', bad),
        store.snapshot(bad),
        store.account(bad),
      ]
      expect(await Promise.all([...nowhere, store.address(bad), store.blob(bad), store.blob('h', bad)])).toEqual(
        Array.from({ length: 8 }, () => null),
      )
      expect(await store.holders(bad)).toEqual([])
      expect(await store.expire(bad, process)).toBe(false)
      await store.release(bad, 1)
      await store.keep(bad, [])
    }
    expect(await seqs(store, 's')).toEqual([1, 2, 3, 4, 5])
  })

  it('B-PG-2: so are texts beside the log, and searches with them find nothing', async () => {
    const store = await openPostgres()
    const owner = await begin(store, 's')
    for (const bad of ['a\0b', '\ud800']) {
      for (const over of [
        { agent: bad },
        { root: bad },
        { folder: bad },
        { parent: bad },
        { labels: { [bad]: 'x' } },
        { labels: { x: bad } },
      ]) {
        const made = creation(store, 'new', { card: card('new', over) })
        const beside = ownerWrite(store, owner, [note('x')])
        expect(await Promise.all([outcome(store.commit([made])), outcome(store.commit([beside]))])).toEqual([
          'invalid_input',
          'ok',
        ])
        owner.seq += 1
      }
      const blobs = [{ hash: 'h', media: bad, data: new Uint8Array() }]
      expect(await outcome(store.commit([ownerWrite(store, owner, [note('x')], { blobs })]))).toBe('invalid_input')
    }
    const bad = 'a\0b'
    for (const filter of [{ root: bad }, { folder: bad }, { parent: bad }, { where: { [bad]: 'x' } }])
      expect(await store.list({ limit: 9, ...filter })).toEqual([])
    for (const query of [{ q: bad }, { agent: bad }, { owner: bad }, { folder: bad }, { where: { x: bad } }])
      expect((await store.page({ order: 'newest', limit: 9, ...query })).cards).toEqual([])
    expect(await store.list({ limit: 9, after: 'r\0z' })).toHaveLength(1)
    expect(await store.list({ limit: 9, after: 's\0' })).toHaveLength(0)
    // What stands in the log itself may be anything.
    expect(await outcome(admit(store, 's', message('m', 'a\0b \ud800')))).toBe('ok')
    expect((await store.read('s', owner.seq)).events).toMatchObject([{ parts: [{ text: 'a\0b \ud800' }] }])
  })

  it('B-PGNET-30: a process that drives a session or waits for due ones asks for no growth hints; all other watchers do, until they leave', async () => {
    let followers = 0
    const follow = (): (() => void) => {
      followers += 1
      return () => void (followers -= 1)
    }
    const hints = { start: async () => {}, stop: () => {}, tell: () => {}, close: async () => {}, follow }
    const store = new PostgresStore(await connections(), { schema: newSchema(), hints: () => hints })
    onTestFinished(() => store.close())
    const leave = [store.watchDue(() => {}), store.watch('s', () => {}, 'inbox')]
    expect(followers).toBe(0)
    const driving: number[] = []
    const model = scripted(() => {
      driving.push(followers)
      return 'done'
    })
    const harness = new Harness({ model, store, worker: { drives: false } })
    const session = await harness.open()
    await session.send('Go.')
    const driver = new Harness({ model, store })
    await driver.work({ session: session.id })
    expect(driving).toEqual([0])
    await driver.close()
    leave.push(store.watch('s', () => {}))
    expect(followers).toBe(1)
    leave.push(store.watchCards(() => {}))
    expect(followers).toBe(2)
    for (const each of leave) each()
    expect(followers).toBe(0)
  })

  it('B-PG-16: a hint that is wrong, forged or of an unknown sender is harmless: the next comparison corrects it', async () => {
    const schema = newSchema()
    const [store, other] = [await openPostgres({ schema }), await openPostgres({ schema })]
    await create(store, 's')
    const heard: (readonly number[] | null)[] = []
    const cards: string[] = []
    let due = 0
    store.watch('s', (news) => heard.push(news && news.map(({ seq }) => seq)))
    store.watchCards((session) => cards.push(session))
    store.watchDue(() => void (due += 1))
    await store.heard(new Map([['s', 1]]), false)
    expect([heard, due]).toEqual([[], 0])
    await store.heard(
      new Map([
        ['s', 1_000_000],
        ['x'.repeat(2_048), 7],
        ['nobody', 3],
      ]),
      false,
    )
    expect(heard).toEqual([null])
    await admit(other, 's', message('m1'))
    await store.heard(null, false)
    expect([heard, due]).toEqual([[null, null], 1])
    expect(cards).toContain('s')
    // Told already, and overtaken.
    await store.heard(null, false)
    await store.heard(new Map([['s', 1]]), true)
    expect([heard.length, due]).toEqual([2, 3])
    await admit(store, 's', message('m2'))
    expect(heard.at(-1)).toEqual([3])
    await admit(other, 's', message('m3'))
    await store.heard(new Map([['s', 4]]), false)
    expect(heard.at(-1)).toBeNull()
    await other.remove('s', 'ann')
    await store.heard(new Map([['s', 0]]), false)
    expect(heard).toHaveLength(5)
    expect(await outcome(store.read('s', 0))).toBe('session_missing')
  })

  it('B-SCALE-1: a look that finds what is known already tells nobody that something is due', async () => {
    const schema = newSchema()
    const [store, other] = [await openPostgres({ schema }), await openPostgres({ schema })]
    let told = 0
    store.watchDue(() => void (told += 1))
    const look = async (): Promise<number> => {
      told = 0
      await store.heard(null, false)
      return told
    }
    await look()
    expect([await look(), await look()]).toEqual([0, 0])
    const later = store.now() + 3_600_000
    await create(other, 'later', { status: 'rescheduling', due: later })
    expect([await look(), await look()]).toEqual([1, 0])
    await create(other, 'sooner', { status: 'rescheduling', due: later - 1 })
    expect([await look(), await look()]).toEqual([1, 0])
    // As long as something is due that nobody takes, each look tells of it.
    await create(other, 'now', { status: 'running', due: store.now() })
    expect([await look(), await look()]).toEqual([1, 1])
    await claim(other, 'now', 'w')
    expect([await look(), await look()]).toEqual([1, 0])
  })
})
