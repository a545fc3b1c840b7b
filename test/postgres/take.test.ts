// Claiming what is due in one question: who gets what, in which order, and never the same twice.
import { describe, expect, it } from 'vitest'
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
  START,
  StillClock,
  TTL,
  write,
} from '../contract/fixture.ts'
import { until } from '../until.ts'
import { meddle, newSchema, openPostgres, readOf } from './opened.ts'
import { noPostgres } from './server.ts'

describe.skipIf(noPostgres)('take', () => {
  it('B-PG-11: claims what is due in the order of due, at most so many, with epochs that count like those of claim', async () => {
    const clock = new StillClock()
    const store = await openPostgres({ clock })
    await create(store, 'wake', { status: 'rescheduling', due: START - 900 })
    await create(store, 'later', { status: 'rescheduling', due: START + 5 })
    await create(store, 'begun', { status: 'running', due: START - 5 })
    await create(store, 'sent')
    await admit(store, 'sent', message('m'))
    await create(store, 'lost', { status: 'running', due: START - 7 })
    await create(store, 'driven', { status: 'running', due: START - 8 })
    await claim(store, 'lost', 'gone')
    clock.advance(TTL)
    await claim(store, 'driven', 'alive')
    expect((await store.due(9)).sessions).toEqual(['lost', 'begun', 'sent', 'wake', 'later'])
    const until = clock.time + TTL
    const process = { host: 'h', pid: 7, started: 100 }
    expect([...(await store.take('w', TTL, { limit: 3, process }))]).toEqual([
      ['lost', { epoch: 2, seq: 1, until, failed: 1 }],
      ['begun', { epoch: 1, seq: 1, until, failed: 0 }],
      ['sent', { epoch: 1, seq: 2, until, failed: 0 }],
    ])
    expect((await store.card('lost'))?.trouble).toEqual({
      attempts: 1,
      reason: expect.stringContaining('lost') as string,
      until: clock.time,
    })
    expect(await store.holders('h')).toEqual([{ worker: 'w', process }])
    expect([...(await store.extend('w', TTL)).keys()].toSorted()).toEqual(['begun', 'lost', 'sent'])
    expect((await store.due(9)).sessions).toEqual(['wake', 'later'])
    // The owner goes on without reading anything, and a claim counts on.
    await write(store, { session: 'begun', worker: 'w', epoch: 1, seq: 1 }, [note('x')], {
      release: true,
      card: card('begun'),
    })
    expect(await store.claim('begun', 'w2', TTL)).toMatchObject({ epoch: 2, failed: 0 })
    expect([...(await store.take('w', TTL, { limit: 0 }))]).toEqual([])
    expect(await outcome(store.take('w', TTL, { limit: -1 }).then(() => {}))).toBe('invalid_input')
  })

  it('B-SCALE-2: writes nothing where it takes nothing', async () => {
    const schema = newSchema()
    const store = await openPostgres({ schema })
    await create(store, 's', { status: 'running', due: store.now() })
    expect([...(await store.take('w', TTL, { limit: 9 })).keys()]).toEqual(['s'])
    const rows = async () => meddle(`select id, until, xmin from ${schema}.workers`)
    const before = await rows()
    expect(before).toMatchObject([{ id: 'w' }])
    for (const worker of ['w', 'x']) expect([...(await store.take(worker, TTL, { limit: 9 }))]).toEqual([])
    expect(await rows()).toEqual(before)
    expect([...(await store.extend('w', TTL)).keys()]).toEqual(['s'])
  })

  it('B-PG-11: only of these agents, and with `fresh` none that failed before', async () => {
    const clock = new StillClock()
    const store = await openPostgres({ clock })
    for (const [id, agent] of [
      ['a1', 'a'],
      ['b1', 'b'],
      ['a2', 'a'],
      ['c1', 'c'],
    ] as const)
      await store.commit([creation(store, id, { card: card(id, { agent, due: START }) })])
    const taken = async (wanted: Parameters<typeof store.take>[2]) => [...(await store.take('w', TTL, wanted)).keys()]
    expect(await taken({ limit: 9, agents: [] })).toEqual([])
    expect(await taken({ limit: 9, agents: ['x', 'a\0'] })).toEqual([])
    expect(await taken({ limit: 1, agents: ['a', 'c'] })).toEqual(['a1'])
    await store.release('a1', 1, { attempts: 1, reason: 'why', until: START })
    expect(await taken({ limit: 9, agents: ['a', 'c'], fresh: true })).toEqual(['a2', 'c1'])
    expect(await taken({ limit: 9, agents: ['a', 'c'] })).toEqual(['a1'])
    expect(await taken({ limit: 9 })).toEqual(['b1'])
  })

  it('B-PG-11: a worker that lives is never robbed: not of what it holds, and not when it wrote or beat meanwhile', async () => {
    const schema = newSchema()
    const clock = new StillClock()
    const [store, other] = [await openPostgres({ schema, clock }), await openPostgres({ schema, clock })]
    const owner = await begin(store, 's')
    await write(store, owner, [note('x')], { card: card('s', { status: 'running', due: clock.time }) })
    clock.advance(TTL)
    await store.extend('w1', TTL)
    expect([...(await other.take('w2', TTL, { limit: 9 }))]).toEqual([])
    clock.advance(TTL)
    expect([...(await other.take('w2', TTL, { limit: 9 })).keys()]).toEqual(['s'])
    expect(await outcome(write(store, owner, [note('late')]))).toBe('lease_lost')
  })

  it('B-PG-11: eight workers that take at once share what is due: each session once, and none claims in vain', async () => {
    const schema = newSchema()
    const stores = await Promise.all(Array.from({ length: 8 }, () => openPostgres({ schema })))
    const [first] = stores as [(typeof stores)[0]]
    const due = first.now() - 1
    const ids = Array.from({ length: 400 }, (_, i) => `s${i}`)
    await Promise.all(ids.map((id) => create(first, id, { due, status: 'running' })))
    const all = await Promise.all(
      stores.map(async (store, i) => {
        const mine: string[] = []
        for (;;) {
          const taken = [...(await store.take(`w${i}`, TTL, { limit: 10 })).keys()]
          mine.push(...taken)
          if (taken.length === 0 && (await first.due(1)).sessions.length === 0) return mine
        }
      }),
    )
    expect(all.flat().toSorted()).toEqual(ids.toSorted())
    for (const [i, mine] of all.entries())
      expect(await stores[i]?.extend(`w${i}`, TTL)).toEqual(new Map(mine.map((id) => [id, 1])))
  })

  it('B-PG-23: reads as many rows as it is asked for sessions or may choose among, however many are due, also before the table was ever analysed', async () => {
    const schema = newSchema()
    const store = await openPostgres({ schema })
    const due = store.now() - 1
    await Promise.all(Array.from({ length: 3_000 }, (_, i) => create(store, `s${i}`, { due, status: 'running' })))
    const read = (): Promise<number> => readOf(schema, 'sessions')
    const before = await read()
    const worker = await openPostgres({ schema })
    const among = Array.from({ length: 80 }, (_, i) => `s${2_900 + i}`)
    for (let i = 0; i < 5; i++) {
      expect((await worker.take('w', TTL, { limit: 10 })).size).toBe(10)
      expect((await worker.take('w', TTL, { limit: 10, among })).size).toBe(10)
    }
    // A connection that ends says what it has read.
    await worker.close()
    await until(async () => expect(await read()).toBeGreaterThan(before + 50))
    // Once, when it asks first, a process looks whether a clock that was ahead has put off any of them.
    expect((await read()) - before).toBeLessThan(3_000 + 5 * 600)
  })
})
