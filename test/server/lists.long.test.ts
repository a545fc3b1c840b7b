// Every list of a server takes as many statements, and as many rows, in a store of many sessions as in one of a tenth of them.
import { expect, it } from 'vitest'
import { driverOf, makeFile, open } from '../stores/folder.ts'
import { fillMany, LISTS, SOURCE } from '../load/many.ts'
import { createTriggers } from '../../src/triggers/index.ts'
import { cronPlanner } from '../../src/cron/index.ts'
import { scripted } from '../../src/index.ts'
import { served } from './served.ts'

type Cost = { statements: number; rows: number }

/** What each list takes, asked a second time: what is only counted once is known by then. */
async function costOf(sessions: number): Promise<ReadonlyMap<string, Cost>> {
  const cost: Cost = { statements: 0, rows: 0 }
  const Driver = driverOf((db) => ({
    get isTransaction() {
      return db.isTransaction
    },
    exec: (sql) => db.exec(sql),
    close: () => db.close(),
    prepare: (sql) => {
      const statement = db.prepare(sql)
      const isCounted = /^\s*(select|with)/i.test(sql)
      const count = (rows: number): void => {
        if (!isCounted) return
        cost.statements += 1
        cost.rows += rows
      }
      return {
        run: (...values) => statement.run(...values),
        get: (...values) => {
          count(1)
          return statement.get(...values)
        },
        all: (...values) => {
          const rows = statement.all(...values)
          count(rows.length)
          return rows
        },
      }
    },
  }))
  const store = open(makeFile(), { loadDriver: () => Driver })
  await fillMany(store, sessions)
  const triggers = createTriggers({ models: [scripted([])], sources: { [SOURCE]: { targets: {} } } })
  const harness = { worker: { drives: false }, secrets: {}, graphs: [cronPlanner()], triggers } as const
  const one = await served([], { store, harness })
  const costs = new Map<string, Cost>()
  for (const list of LISTS) {
    await one.json('GET', `/v1/${list}`)
    Object.assign(cost, { statements: 0, rows: 0 })
    await one.json('GET', `/v1/${list}`)
    costs.set(list, { ...cost })
  }
  return costs
}

it('B-PAGELIST-15: a list takes as many statements and rows among 10,000 sessions as among 2,000', async () => {
  const [few, many] = [await costOf(2_000), await costOf(10_000)]
  const grows = LISTS.filter((list) => {
    const [before, after] = [few.get(list), many.get(list)]
    return (after?.statements ?? 0) > (before?.statements ?? 0) + 1 || (after?.rows ?? 0) > (before?.rows ?? 0) + 250
  })
  expect(grows).toEqual([])
}, 300_000)
