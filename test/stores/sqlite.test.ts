// The SQLite store keeps the contract, and what it alone promises of a healthy file: durability, group commit, one driver.
import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { orderedSql, seedParts, walkSql } from '../../src/stores/sqlite/sqlite-pages.ts'
import { SQL } from '../../src/stores/sqlite/sqlite-schema.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { SCHEMA_VERSION } from '../../src/stores/sqlite/sqlite-schema.ts'
import type { CardQuery } from '../../src/ports/store.ts'
import { addSum, logSeed } from '../../src/stores/plan/checksum.ts'
import {
  admit,
  begin,
  card,
  claim,
  create,
  message,
  note,
  outcome,
  ownerWrite,
  seqs,
  StillClock,
  TTL,
  write,
} from '../contract/fixture.ts'
import { describeStore } from '../contract/store.ts'
import { makeFile, meddle, open } from './folder.ts'
import { withoutFolders, withoutParents, withoutProcesses } from './older.ts'

/** One row of SQLite's query plan. */
type Step = { readonly detail: string }

describeStore('sqlite', async () => {
  const clock = new StillClock()
  return { clock, store: open(makeFile(), { clock }) }
})

/** How the few that pass a filter are put in order. */
function sqlOf(order: CardQuery['order'], filter: Partial<CardQuery>): string {
  const query = { ...filter, order, limit: 9 }
  const [seed = { sql: '', values: [] }] = seedParts(query)
  return orderedSql(seed, query, []).text
}

describe('a healthy SQLite file', () => {
  it('B-STORE-70: everything acknowledged is there when the file is opened again', async () => {
    const file = makeFile()
    const first = sqlite(file)
    const owner = await begin(first, 's')
    const blob = { hash: 'h', media: 'text/plain', data: new Uint8Array([1, 2]) }
    const charges = [{ type: 'hold', key: 'k', accounts: ['acc'], amount: 5 }] as const
    await write(first, owner, [note('x')], { blobs: [blob], charges, snapshot: { seq: 2, version: 1, body: '{}' } })
    await admit(first, 's', message('m'))
    const before = [
      await first.read('s', 0),
      await first.card('s'),
      await first.account('acc'),
      await first.snapshot('s'),
    ]
    await first.close()
    const second = open(file)
    const after = [
      await second.read('s', 0),
      await second.card('s'),
      await second.account('acc'),
      await second.snapshot('s'),
    ]
    expect(after).toEqual(before)
    expect([...((await second.blob('h'))?.data ?? [])]).toEqual([1, 2])
    owner.seq = 3
    expect(await outcome(write(second, owner, [note('y')]))).toBe('ok')
    expect(await admit(second, 's', message('m'))).toEqual({ seqs: [3], duplicate: true })
  })

  it('B-STORE-71: a promise resolves only after its commit: by then another connection reads it', async () => {
    const file = makeFile()
    const store = open(file)
    await create(store, 's')
    await admit(store, 's', message('m'))
    const count = meddle(file, (db) => db.prepare('SELECT count(*) AS count FROM events').get() as { count: number })
    expect(count.count).toBe(2)
  })

  it('B-STORE-72: commits asked in one macrotask, of any sessions, are one transaction', async () => {
    const store = open(makeFile())
    const sessions = Array.from({ length: 64 }, (_, i) => `s${i}`)
    await Promise.all(sessions.map((session) => create(store, session)))
    expect(store.transactions).toBe(1)
    const owners = await Promise.all(
      sessions.map(async (session) => ({
        session,
        worker: 'w',
        epoch: (await store.claim(session, 'w', 9e4))?.epoch ?? 0,
        seq: 1,
      })),
    )
    expect(store.transactions).toBe(2)
    for (let round = 0; round < 20; round++)
      await Promise.all(owners.map((owner) => write(store, owner, [note('1'), note('2')])))
    expect(store.transactions).toBe(22)
    for (const session of ['s0', 's31', 's63']) {
      const page = await store.read(session, 0)
      expect(page.damaged).toBeUndefined()
      expect(page.events.map((event) => event.seq)).toEqual(Array.from({ length: 41 }, (_, i) => i + 1))
    }
  })

  it('B-STORE-72: what changes nothing is no transaction', async () => {
    const store = open(makeFile())
    await create(store, 's')
    await admit(store, 's', message('m'))
    const before = store.transactions
    await admit(store, 's', message('m'))
    await store.release('s', 9)
    expect(await outcome(create(store, 's'))).toBe('session_exists')
    expect(store.transactions).toBe(before)
  })

  it('B-STORE-73: a refused commit spoils no other of its group', async () => {
    const store = open(makeFile())
    const [a, b, c] = [await begin(store, 'a'), await begin(store, 'b'), await begin(store, 'c')]
    const before = store.transactions
    const results = await Promise.all([
      outcome(write(store, a, [note('x')])),
      outcome(write(store, { ...b, epoch: 9 }, [note('x')])),
      outcome(admit(store, 'none', message('m'))),
      outcome(write(store, c, [note('x')])),
      outcome(admit(store, 'b', message('m'))),
      outcome(admit(store, 'b', message('m', 'other'))),
    ])
    expect(results).toEqual(['ok', 'lease_lost', 'session_missing', 'ok', 'ok', 'id_reused'])
    expect(store.transactions).toBe(before + 1)
    expect(await Promise.all(['a', 'b', 'c'].map((id) => seqs(store, id)))).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ])
  })

  it('B-STORE-74: events cannot be changed by any program, and deleted only with their session, whose removal is logged', async () => {
    const file = makeFile()
    const store = open(file)
    await create(store, 's')
    await create(store, 'other')
    await store.remove('other', 'ann')
    meddle(file, (db) => {
      expect(() => db.exec(`UPDATE events SET body = '{}'`)).toThrow('events are never changed')
      expect(() => db.exec('DELETE FROM events')).toThrow('events are never deleted')
    })
  })

  it('B-STORE-75: each event is one row, whose sum runs on from the one before', async () => {
    const file = makeFile()
    const store = open(file)
    const owner = await begin(store, 's')
    await write(store, owner, [note('ä'), note('2')])
    const rows = meddle(file, (db) => db.prepare('SELECT sum, body FROM events ORDER BY pos').all()) as {
      sum: number
      body: string
    }[]
    expect(rows.map(({ body }) => JSON.parse(body) as unknown)).toEqual((await store.read('s', 0)).events)
    let sum = logSeed('s')
    for (const row of rows) {
      sum = addSum(sum, row.body)
      expect(row.sum).toBe(sum)
    }
    expect(addSum(logSeed('s'), rows.map((row) => row.body).join(','))).toBe(sum)
  })

  it('B-STORE-76: a deleted or damaged snapshot is no snapshot', async () => {
    const file = makeFile()
    const store = open(file)
    const owner = await begin(store, 's')
    await write(store, owner, [note('x')], { snapshot: { seq: 2, version: 1, body: '{"a":1}' } })
    meddle(file, (db) => db.exec(`UPDATE snapshots SET body = '{"a":2}'`))
    expect(await store.snapshot('s')).toBeNull()
    meddle(file, (db) => db.exec('DELETE FROM snapshots'))
    expect(await store.snapshot('s')).toBeNull()
    expect(await seqs(store, 's')).toEqual([1, 2])
  })

  it('B-STORE-77: questions about due times read an index and no log', async () => {
    const file = makeFile()
    await create(open(file), 's')
    const idle = 'FROM sessions WHERE worker IS NULL AND urgent = 1 AND'
    for (const question of [
      `id ${idle} due <= 5 ORDER BY due, n`,
      `due ${idle} due IS NOT NULL ORDER BY due LIMIT 1`,
    ]) {
      const steps = meddle(file, (db) => db.prepare(`EXPLAIN QUERY PLAN SELECT ${question}`).all() as Step[])
      const plan = steps.map(({ detail }) => detail).join()
      expect(plan).toContain('SEARCH sessions USING INDEX sessions_due')
      expect(plan).not.toContain('TEMP B-TREE')
    }
  })

  it('B-STORE-164: the newest sessions come out of an index, in a file of the fourth schema too; those of one status out of another', async () => {
    const file = makeFile()
    const first = sqlite(file)
    for (const id of ['a', 'b', 'c']) await create(first, id)
    await first.close()
    meddle(file, (db) => {
      withoutFolders(db)
      db.exec('DROP INDEX heads_at; UPDATE meta SET version = 4')
    })
    const store = open(file)
    expect((await store.page({ order: 'newest', limit: 2 })).cards).toHaveLength(2)
    expect(meddle(file, (db) => db.prepare('SELECT version FROM meta').get())).toEqual({ version: SCHEMA_VERSION })
    const planOf = (sql: string) =>
      meddle(file, (db) => (db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as Step[]).map(({ detail }) => detail))
    const newest = planOf(walkSql({ order: 'newest', limit: 9 }, []).text)
    // Versions of SQLite differ in how they write the bound.
    expect(newest.join()).toContain('SEARCH heads USING COVERING INDEX heads_at (')
    expect(newest.filter((step) => step.startsWith('SCAN ')).join()).not.toMatch(/heads|sessions/)
    const ofStatus = planOf(sqlOf('newest', { status: 'idle' }))
    expect(ofStatus.join()).toContain('USING COVERING INDEX sessions_status (status=?)')
    expect(ofStatus.filter((step) => /SCAN (h|s|heads|sessions)\b/.test(step))).toEqual([])
  })

  it('B-STORE-165: the sessions of a folder come out of an index, by when they were made, their last events or their ids, in a file of the fifth schema too', async () => {
    const file = makeFile()
    const first = sqlite(file)
    for (const id of ['a', 'b']) await create(first, id)
    await first.close()
    meddle(file, withoutFolders)
    const store = open(file)
    await create(store, 'c', { folder: '/work' })
    await write(store, await claim(store, 'a', 'w'), [note('x')], { card: card('a', { folder: '/work' }) })
    expect((await store.list({ folder: '/work', limit: 9 })).map(({ session }) => session)).toEqual(['a', 'c'])
    expect(await store.card('b')).toMatchObject({ session: 'b', seq: 1 })
    expect(await store.card('b')).not.toHaveProperty('trouble')
    expect(meddle(file, (db) => db.prepare('SELECT version FROM meta').get())).toEqual({ version: SCHEMA_VERSION })
    for (const sql of [SQL.listFolder, sqlOf('newest', { folder: '/work' }), sqlOf('made', { folder: '/work' })]) {
      const steps = meddle(file, (db) => db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as Step[])
      const plan = steps.map(({ detail }) => detail)
      expect(plan.join()).toMatch(/USING (COVERING )?INDEX sessions_folder \(folder=\?/)
      expect(plan.filter((step) => /SCAN (h|s|heads|sessions)\b/.test(step))).toEqual([])
    }
  })

  it('B-STORE-167: a file of the sixth schema knows no processes: its leases end by the clock, and a claim says which process it is', async () => {
    const file = makeFile()
    const clock = new StillClock()
    const process = { host: 'h', pid: 7, started: 100 }
    const first = sqlite(file, { clock })
    for (const id of ['a', 'b']) await create(first, id)
    await first.claim('a', 'w1', TTL, process)
    await first.close()
    meddle(file, withoutProcesses)
    const store = open(file, { clock })
    expect(await store.holders('h')).toEqual([])
    expect(meddle(file, (db) => db.prepare('SELECT version FROM meta').get())).toEqual({ version: SCHEMA_VERSION })
    expect(await store.expire('w1', process)).toBe(false)
    expect(await store.claim('a', 'w2', TTL)).toBeNull()
    await store.claim('b', 'w1', TTL, process)
    expect(await open(file, { clock }).holders('h')).toEqual([{ worker: 'w1', process }])
    clock.advance(TTL)
    expect(await store.claim('a', 'w2', TTL)).not.toBeNull()
  })

  it('B-CARD-2: children come out of an index by their parent, in a file of the eighth schema too, where their names say it', async () => {
    const file = makeFile()
    const first = sqlite(file)
    // A root may have a tilde in its name too.
    for (const id of ['a', 'b~', 'c']) await create(first, id)
    for (const root of ['a', 'b~']) {
      await create(first, `${root}~4.0`, { root })
      await create(first, `${root}~4.0~12.1.3`, { root })
    }
    await first.close()
    meddle(file, withoutParents)
    const store = open(file)
    const below = async (parent: string) => (await store.list({ parent, limit: 9 })).map(({ session }) => session)
    expect(await below('a')).toEqual(['a~4.0'])
    expect(await below('a~4.0')).toEqual(['a~4.0~12.1.3'])
    expect(await below('b~')).toEqual(['b~~4.0'])
    expect(await below('b~~4.0')).toEqual(['b~~4.0~12.1.3'])
    expect(await store.card('a~4.0')).toMatchObject({ parent: 'a', root: 'a', status: 'idle', seq: 1 })
    expect(await store.card('a~4.0')).not.toHaveProperty('trouble')
    for (const id of ['a', 'b~', 'c']) expect(await store.card(id)).not.toHaveProperty('parent')
    expect(meddle(file, (db) => db.prepare('SELECT version FROM meta').get())).toEqual({ version: SCHEMA_VERSION })
    // Its next commit writes the card anew.
    const next = card('a~4.0', { root: 'a', parent: 'a', status: 'running' })
    await write(store, await claim(store, 'a~4.0', 'w'), [note('x')], { card: next })
    expect(await open(file).card('a~4.0')).toMatchObject({ parent: 'a', status: 'running', seq: 2 })
    expect(await store.card('a~4.0')).not.toHaveProperty('trouble')
    for (const sql of [SQL.listBelow, sqlOf('newest', { parent: 'a' }), sqlOf('made', { parent: 'a' })]) {
      const steps = meddle(file, (db) => db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as Step[])
      const plan = steps.map(({ detail }) => detail)
      expect(plan.join()).toMatch(/USING (COVERING )?INDEX sessions_parent \(parent=\?/)
      expect(plan.filter((step) => /SCAN (h|s|heads|sessions)\b/.test(step))).toEqual([])
      if (sql === SQL.listBelow) expect(plan.join()).not.toContain('TEMP B-TREE')
    }
    // What the index says and the card does not is said on the card.
    meddle(file, (db) => db.exec(`UPDATE sessions SET parent = 'c' WHERE id = 'a~4.0'`))
    expect((await open(file).card('a~4.0'))?.trouble?.reason).toContain('damaged')
  })

  it('B-STORE-88: a file of the first schema is brought up to date when it is opened, with all that is due in it', async () => {
    const file = makeFile()
    const clock = new StillClock()
    const first = sqlite(file, { clock })
    for (const [id, status, due] of [
      ['wake', 'rescheduling', 9],
      ['sent', 'idle', 5],
      ['begun', 'running', 4],
    ] as const)
      await create(first, id, { status, due: clock.time - due })
    await first.close()
    meddle(file, (db) => {
      db.exec(
        'DROP INDEX sessions_due; CREATE INDEX sessions_due ON sessions (due) WHERE worker IS NULL AND due IS NOT NULL',
      )
      withoutFolders(db)
      for (const column of ['urgent', 'tries', 'trouble', 'sum', 'card_sum'])
        db.exec(`ALTER TABLE sessions DROP COLUMN ${column}`)
      for (const table of ['heads', 'accounts', 'holds']) db.exec(`ALTER TABLE ${table} DROP COLUMN sum`)
      db.exec(`DROP INDEX heads_at; DROP TABLE removals; DROP TABLE forks; DROP INDEX blob_refs_session; DROP TRIGGER events_stay;
        ALTER TABLE holds DROP COLUMN session;
        CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END`)
      db.exec('UPDATE meta SET version = 1')
    })
    const store = open(file, { clock })
    expect((await store.due(9)).sessions).toEqual(['sent', 'begun', 'wake'])
    expect(await store.claim('sent', 'w1', 9)).toMatchObject({ failed: 0 })
    expect(meddle(file, (db) => db.prepare('SELECT version FROM meta').get())).toEqual({ version: SCHEMA_VERSION })
    // Others opened it before, and go on.
    const other = open(file, { clock })
    expect(await other.card('wake')).toMatchObject({ status: 'rescheduling' })
  })

  it('B-STORE-78: importing the store loads no SQLite, and making one touches no disk', async () => {
    const script = `
      const before = new Set(process.moduleLoadList)
      const { sqlite } = await import(${JSON.stringify(new URL('../../.build/src/stores/sqlite/sqlite.js', import.meta.url).href)})
      sqlite('/proc/nowhere/at/all.db')
      const { createRequire } = await import('node:module')
      const loaded = Object.keys(createRequire('/x')('node:module')._cache ?? {})
      console.log(JSON.stringify([...process.moduleLoadList, ...loaded].filter((name) => /sqlite/.test(name))))`
    const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
    expect(JSON.parse(printed)).toEqual([])
  })

  it('B-STORE-79: closing writes what was asked before', async () => {
    const file = makeFile()
    const store = sqlite(file)
    const owner = await begin(store, 's')
    const last = store.commit([ownerWrite(store, owner, [note('last')])])
    await store.close()
    await last
    expect(await seqs(open(file), 's')).toEqual([1, 2])
  })
})
