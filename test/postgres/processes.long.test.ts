// Several processes on one Postgres, some of them stopped or killed: nobody waits for them, and nothing is half done. The children are
// the compiled child-store.ts.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { admit, create, message, outcome, seqs, TTL } from '../contract/fixture.ts'
import { share } from '../runs.ts'
import { connections, meddle, newSchema, openPostgres } from './opened.ts'
import { noPostgres } from './server.ts'
import { sharedServer } from './stage.ts'
import type { Told } from './child-store.ts'

const script = fileURLToPath(new URL('../../.build/test/postgres/child-store.js', import.meta.url))
const children: ChildProcess[] = []

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** A child that runs, and what it tells at its end: it may do so before anybody asks. */
type Running = { readonly child: ChildProcess; readonly told: Promise<Told> }

async function start(schema: string, task: string, name: string): Promise<Running> {
  const child = fork(script, [(await sharedServer()).url(), schema, task, name])
  children.push(child)
  const told = new Promise<Told>((resolve) => {
    child.on('message', (message: Told | string) => {
      if (typeof message === 'object') resolve(message)
    })
  })
  await once(child, 'message')
  return { child, told }
}

describe.skipIf(noPostgres)('several processes on one Postgres', () => {
  it('B-PG-4: while a worker is stopped in the middle of its commits, no other waits 50 ms for a lock', async () => {
    const schema = newSchema()
    const between = await connections({ patienceMs: 0 })
    const store = new PostgresStore(between, { schema })
    await store.open()
    for (const id of ['s', 'other']) await create(store, id)
    // Who has to wait that long for a lock is refused with store_busy, and the test fails.
    await between.lane.ask('', 'set lock_timeout = 50')
    const { child, told } = await start(schema, 'commit', 'w1')
    const rounds = 40
    for (let round = 0; round < rounds; round++) {
      await once(child, 'message')
      child.kill('SIGSTOP')
      await admit(store, 's', message(`m${round}`))
      const charges = [{ type: 'hold', key: `p:${round}`, accounts: ['day'], amount: 3 }] as const
      await store.commit([{ session: 'other', lane: 'inbox', events: [], charges }])
      expect(await store.claim('s', 'w2', TTL)).toBeNull()
      child.kill('SIGCONT')
    }
    child.send('stop')
    const { done, refusals } = await told
    expect(new Set([...refusals, 'conflict'])).toEqual(new Set(['conflict']))
    expect(await seqs(store, 's')).toEqual(Array.from({ length: 1 + rounds + done }, (_, i) => i + 1))
    expect(await store.account('day')).toMatchObject({ held: 3 * rounds, spent: done })
    await store.close()
  })

  it('B-PG-5: ten processes that hold on one limit fill it exactly, and each is refused when it is full', async () => {
    const schema = newSchema()
    const store = await openPostgres({ schema })
    await create(store, 's')
    await store.commit([
      { session: 's', lane: 'inbox', events: [], charges: [{ type: 'limit', account: 'day', limit: 500 }] },
    ])
    const all = await Promise.all(Array.from({ length: 10 }, (_, i) => start(schema, 'hold', `p${i}`)))
    const answers = await Promise.all(all.map(({ told }) => told))
    expect(answers.reduce((sum, { done }) => sum + done, 0)).toBe(166)
    expect(answers.map(({ refusals }) => refusals)).toEqual(answers.map(() => ['over_budget']))
    expect(await store.account('day')).toEqual({ id: 'day', limit: 500, held: 498, spent: 0, assumed: 0 })
  })

  it('B-PG-7: processes that are killed while they open an empty database leave all of its tables or none, and the next goes on', async () => {
    for (const round of share([...Array(12).keys()])) {
      const schema = newSchema()
      const [killed, other] = await Promise.all([start(schema, 'open', 'killed'), start(schema, 'open', 'other')])
      // At another moment of its start each time: some have begun to make tables, some have not.
      for (let i = 0; i < round * 3; i++) await meddle('select 1')
      killed.child.kill('SIGKILL')
      expect(await other.told).toEqual({ done: 1, refusals: [] })
      const store = await openPostgres({ schema })
      expect(await seqs(store, 'other')).toEqual([1])
      expect(['ok', 'session_missing']).toContain(await outcome(store.read('killed', 0)))
      expect(await outcome(create(store, 's'))).toBe('ok')
    }
  }, 120_000)
})
