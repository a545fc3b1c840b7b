// A disk that stays full for longer than a lease, under a real SQLite file: the same worker goes on when there is room again.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Fault, Harness, scripted } from '../../src/index.ts'
import { driverOf, makeFile, open } from '../stores/folder.ts'
import type { Database, Driver } from '../../src/stores/sqlite/driver.ts'
import { tool, typesIn } from './scene.ts'
import { until } from '../until.ts'

it('B-WAKE-31: a disk that is full for longer than a lease loses no result: the attempt waits, keeps its session and goes on by itself (F15)', async () => {
  const opened: Database[] = []
  const file = makeFile()
  const driver = (): Driver =>
    driverOf((db) => {
      opened.push(db)
      return db
    })
  const store = open(file, { loadDriver: driver })
  const full = (pages: number): void => opened[0]?.exec(`PRAGMA max_page_count = ${pages}`)
  let ran = 0
  let heartbeats = 0
  // Nothing at all fits: neither what landed nor a heartbeat.
  const pay = tool('pay', {
    effect: 'once',
    execute: () => {
      ran += 1
      blocked = true
      full(1)
      return 'x'.repeat(200_000)
    },
  })
  let blocked = false
  const extend = store.extend.bind(store)
  store.extend = (worker, ttlMs) => {
    if (!blocked) return extend(worker, ttlMs)
    heartbeats += 1
    return Promise.reject(new Fault('disk_full', 'The disk is full.'))
  }
  const model = scripted([{ calls: [{ tool: 'pay', args: { n: 1 } }] }, 'done'])
  const harness = new Harness({ model, tools: [pay], store, worker: { leaseMs: 1_000, graceMs: 50 } })
  const session = await harness.open({ id: 's' })
  const running = session.run('go')
  await until(() => expect(ran).toBe(1))
  await sleep(2_500)
  expect(heartbeats).toBeGreaterThan(3)
  expect(await typesIn(session)).not.toContain('agent.tool_result')
  blocked = false
  full(1_000_000)
  expect(await running).toMatchObject({ status: 'completed', text: 'done' })
  expect(ran).toBe(1)
  const { events } = await session.events()
  expect(new Set(events.map(({ epoch }) => epoch))).toEqual(new Set([0, 1]))
  expect(events.find(({ type }) => type === 'agent.tool_result')).toMatchObject({ status: 'ok' })
  await harness.close()
}, 30_000)
