// Lists of many sessions in an SQLite file: which statements they take, and by which index these go.
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, memory, scripted, type CompleteStore } from '../../src/index.ts'
import { SCHEMA_VERSION, SQL } from '../../src/stores/sqlite/sqlite-schema.ts'
import { mayWait } from '../../src/view/pending-calls.ts'
import { card, create } from '../contract/fixture.ts'
import { driverOf, makeFile, meddle, open } from './folder.ts'
import { type Counted, expectFewStatements, fillStore } from './page-lists.ts'

/** A file whose statements are counted. A transaction is not. */
function countedFile(): Counted {
  const counted = { count: 0, store: null as unknown as CompleteStore }
  const Driver = driverOf((db) => ({
    get isTransaction() {
      return db.isTransaction
    },
    exec: (sql) => db.exec(sql),
    close: () => db.close(),
    prepare: (sql) => {
      const statement = db.prepare(sql)
      const isCounted = /^\s*(select|with)/i.test(sql)
      return {
        run: (...values) => statement.run(...values),
        get: (...values) => {
          counted.count += isCounted ? 1 : 0
          return statement.get(...values)
        },
        all: (...values) => {
          counted.count += isCounted ? 1 : 0
          return statement.all(...values)
        },
      }
    },
  }))
  counted.store = open(makeFile(), { loadDriver: () => Driver })
  return counted
}

type Step = { readonly detail: string }

describe('lists of many sessions in an SQLite file', () => {
  it('B-PAGELIST-2: a page of cards with what their trees cost takes two statements, and a look at what is pending takes one', async () => {
    const counted = countedFile()
    await fillStore(counted.store)
    await expectFewStatements(counted)
  })

  it('B-PAGELIST-3: sessions that wait, and what is below many roots, come out of an index, in order', async () => {
    const file = makeFile()
    await create(open(file), 's')
    const indexes = { listWaiting: 'sessions_waiting (id>?)', listTrees: 'sessions_root (root=?)' } as const
    for (const [name, index] of Object.entries(indexes)) {
      const sql = SQL[name as keyof typeof indexes]
      const plan = meddle(file, (db) => db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as Step[]).map(
        (one) => one.detail,
      )
      expect(plan.join()).toContain(`SEARCH s USING INDEX ${index}`)
      expect(plan.join()).not.toMatch(/TEMP B-TREE|SCAN (h|s|heads|sessions)\b/)
    }
  })

  it('B-PAGELIST-4: a file of the tenth schema gets the index of the sessions that wait when it is opened', async () => {
    const file = makeFile()
    const first = open(file)
    await create(first, 'asks', { status: 'requires_action', asks: ['2.0'] })
    await create(first, 'calm')
    await first.close()
    meddle(file, (db) => db.exec('DROP INDEX sessions_waiting; UPDATE meta SET version = 10'))
    const store = open(file)
    expect((await store.list({ waiting: true, limit: 9 })).map(({ session }) => session)).toEqual(['asks'])
    expect(meddle(file, (db) => db.prepare('SELECT version FROM meta').get())).toEqual({ version: SCHEMA_VERSION })
  })
})

describe.each([
  ['memory', memory],
  ['sqlite', () => open(makeFile())],
])('what is pending in %s', (_name, make) => {
  const pay = defineTool({
    name: 'pay',
    description: 'pays',
    input: z.object({}),
    approval: 'ask',
    execute: () => 'paid',
  })

  it('B-PAGELIST-5: pending comes in pages that never split a session, the next one after the last session', async () => {
    const model = scripted((request) =>
      request.messages.at(-1)?.role === 'tool' ? 'Paid.' : { calls: [1, 2].map(() => ({ tool: 'pay', args: {} })) },
    )
    const harness = new Harness({ model, tools: [pay], store: make(), secrets: {} })
    onTestFinished(() => harness.close())
    for (const id of ['a', 'b', 'c', 'd']) await (await harness.open({ id })).run('Pay twice.')
    const ids = async (filter: Parameters<typeof harness.pending>[0]) =>
      (await harness.pending(filter)).map(({ sessionId }) => sessionId)
    expect(await ids({})).toEqual(['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd'])
    expect(await ids({ limit: 3 })).toEqual(['a', 'a', 'b', 'b'])
    expect(await ids({ limit: 3, after: 'b' })).toEqual(['c', 'c', 'd', 'd'])
    expect(await ids({ limit: 3, after: 'd' })).toEqual([])
    await expect(harness.pending({ limit: 0 })).rejects.toThrow('limit')
  })
})

it('B-PAGELIST-1: no title, label or folder makes a session look as if it waited', async () => {
  const store = open(makeFile())
  const odd = '"asks":[{"outcome":"limit"'
  await create(store, 'odd', { status: 'idle', folder: odd, labels: { odd }, cause: odd })
  expect(await store.list({ waiting: true, limit: 9 })).toEqual([])
  expect(mayWait(card('odd', { folder: odd }))).toBe(false)
})
