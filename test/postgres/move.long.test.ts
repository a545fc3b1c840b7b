// Stores that are moved to a Postgres database and back: all of it, proven, and the source says where it went.
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Fault } from '../../src/kernel/failure.ts'
import { type MoveResult, moveStore } from '../../src/stores/move/move-store.ts'
import type { MoveRow, MoveSource, MoveTarget } from '../../src/stores/move/move-rows.ts'
import { postgresSource, postgresTarget, readPostgres } from '../../src/stores/postgres/postgres-move.ts'
import { postgres, type PostgresDatabase } from '../../src/stores/postgres/postgres.ts'
import { sqliteSource, sqliteTarget } from '../../src/stores/sqlite/sqlite-move.ts'
import { admit, begin, create, message, note, outcome, write } from '../contract/fixture.ts'
import { makeFile, makeFolder, meddle, open as openFile } from '../stores/folder.ts'
import { contentOf, furnish } from '../stores/moving.ts'
import { noPostgres, PASSWORD, type Server } from './server.ts'
import { type Database, database, proxyTo } from './stage.ts'

const NAME = 'postgres://postgres@here/moved'
const named = ({ url }: Database): { readonly url: string; readonly name: string } => ({ url, name: NAME })

function open({ url }: Database): PostgresDatabase {
  const store = postgres(url)
  onTestFinished(() => store.close())
  return store
}

async function furnished(): Promise<string> {
  const file = makeFile()
  const store = openFile(file)
  await furnish(store)
  await store.close()
  meddle(file, (db) => db.exec('UPDATE workers SET until = 1000; PRAGMA wal_checkpoint(TRUNCATE)'))
  return file
}

async function moved(from: Promise<MoveSource>, to: () => Promise<MoveTarget>): Promise<MoveResult> {
  const source = await from
  try {
    const target = await to()
    try {
      return await moveStore(source, target, Date.now(), () => {})
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

const there = (file: string, to: Database): Promise<MoveResult> =>
  moved(sqliteSource(file), () => postgresTarget(named(to)))

async function refusal(promise: Promise<unknown>): Promise<readonly [string, string]> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof Fault)) throw new Error('it was not refused', { cause: error })
  return [error.code, error.message]
}

/** What no store does. */
async function tamper({ server, name }: { server: Server; name: string }, sql: string): Promise<void> {
  await server.query(`set session_replication_role = replica; ${sql}`, name)
}

describe.skipIf(noPostgres)('without Postgres on this machine these are skipped', () => {
  it('B-PGMOVE-1: every kind of row is taken from a file to a database and back, with one digest, and is answered as before', async () => {
    const file = await furnished()
    const before = openFile(file)
    const content = await contentOf(before)
    await before.close()
    const to = await database()
    const first = await there(file, to)
    expect(Object.values(first.counts).every((count) => count > 0)).toBe(true)
    const store = open(to)
    expect([await contentOf(store), await store.moved()]).toEqual([content, null])
    await store.close()
    const back = join(makeFolder(), 'back.db')
    const second = await moved(postgresSource(named(to)), () => sqliteTarget(back))
    expect([second.digest, second.counts]).toEqual([first.digest, first.counts])
    expect(await contentOf(openFile(back))).toEqual(content)
  })

  it('B-PGMOVE-2: the moved store goes on: epochs, inbox ids, holds and numbers continue', async () => {
    const to = await database()
    await there(await furnished(), to)
    const store = open(to)
    expect((await admit(store, 'alpha', message('m1'))).duplicate).toBe(true)
    expect((await admit(store, 'alpha', message('m3'))).seqs).toEqual([6])
    expect(await store.claim('lost', 'w2', 30_000)).toMatchObject({ epoch: 2, failed: 1 })
    await create(store, 'gone')
    expect((await store.claim('gone', 'w2', 30_000))?.epoch).toBeGreaterThan(2 ** 32)
    await store.commit([
      { session: 'alpha', lane: 'inbox', events: [], charges: [{ type: 'settle', key: 'alpha:4', amount: 1 }] },
    ])
    expect(await store.account('session:alpha')).toMatchObject({ held: 0, spent: 1 })
    expect((await store.page({ order: 'made', limit: 1 })).cards[0]?.session).toBe('gone')
    await store.remove('fork', 'me')
  })

  it('B-PGMOVE-3, B-PGMOVE-12: after it a database is read as before and refuses every write, also of a process that had it open', async () => {
    const from = await database()
    await there(await furnished(), from)
    const earlier = open(from)
    const content = await contentOf(earlier)
    const to = join(makeFolder(), 'to.db')
    await moved(postgresSource(named(from)), () => sqliteTarget(to))
    for (const store of [earlier, open(from)]) {
      for (const writing of [
        () => admit(store, 'alpha', message('m9')),
        () => create(store, 'new'),
        () => store.claim('beta', 'w', 30_000),
        () => store.take?.('w', 30_000, { limit: 1 }) ?? Promise.resolve(),
        () => store.remove('beta', 'me'),
      ])
        expect(await refusal(writing())).toEqual([
          'store_replaced',
          expect.stringContaining(`${NAME} was moved to ${to} on `),
        ])
      expect(await contentOf(store)).toEqual(content)
    }
    expect(await open(from).moved()).toContain(`${NAME} was moved to ${to} on `)
    const again = moved(postgresSource(named(from)), () => sqliteTarget(join(makeFolder(), 'other.db')))
    expect(await refusal(again)).toEqual(['store_replaced', expect.not.stringContaining(PASSWORD)])
  })

  it('B-PGMOVE-4: no process writes while it is moved: a writer waits until the move lets the source go', async () => {
    const from = await database()
    const store = open(from)
    await create(store, 's')
    const source = await postgresSource(named(from))
    let done = false
    const writing = admit(store, 's', message('late')).then(() => void (done = true))
    // It waits for a lock, as the database itself says.
    const waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    while ((await from.server.query(waits, from.name)).length === 0);
    expect([done, (await source.counts()).inbox, (await store.card('s'))?.session]).toEqual([false, 0, 's'])
    await source.close()
    await writing
    expect(done).toBe(true)
  })

  it('B-PGMOVE-5: is refused while a session is driven, from a database without a store, and to one that is used', async () => {
    const from = await database()
    const away = (): Promise<MoveTarget> => sqliteTarget(join(makeFolder(), 'to.db'))
    expect(await refusal(moved(postgresSource(named(from)), away))).toEqual([
      'invalid_input',
      `There is no store in ${NAME}, so there is nothing to read.`,
    ])
    const store = open(from)
    const owner = await begin(store, 's')
    expect(await refusal(moved(postgresSource(named(from)), away))).toEqual([
      'session_busy',
      expect.stringMatching(/^Session s is driven now\. /),
    ])
    await write(store, owner, [note('on')], { release: true })
    expect(await refusal(there(await furnished(), from))).toEqual(['conflict', expect.stringContaining('is not empty')])
    expect(await outcome(create(store, 'still writable'))).toBe('ok')
  })

  /** The rows with one change, as a target that keeps something else than it was given. */
  function meddling(real: MoveTarget, change: (row: MoveRow) => MoveRow | null): MoveTarget {
    async function* altered(rows: AsyncIterable<readonly MoveRow[]>): AsyncGenerator<readonly MoveRow[]> {
      for await (const piece of rows) yield piece.flatMap((row) => change(row) ?? [])
    }
    return {
      id: real.id,
      name: real.name,
      state: () => real.state(),
      counts: () => real.counts(),
      rows: () => real.rows(),
      shared: (damaged) => real.shared(damaged),
      fill: (from, rows) => real.fill(from, altered(rows)),
      clear: () => real.clear(),
      finish: () => real.finish(),
      close: () => real.close(),
    }
  }

  it('B-PGMOVE-6: one byte that differs is found; the target is emptied and keeps its id, and the source goes on', async () => {
    const file = await furnished()
    const to = await database()
    const [source, target] = [await sqliteSource(file), await postgresTarget(named(to))]
    const changed = meddling(target, (row) =>
      row.type === 'event' ? { ...row, body: row.body.replace('hello', 'hallo') } : row,
    )
    expect(await refusal(moveStore(source, changed, Date.now(), () => {}))).toEqual([
      'store_damaged',
      expect.stringContaining('does not hold what was sent to it, and was emptied'),
    ])
    expect(await target.state()).toEqual({ type: 'empty' })
    const { id } = target
    await Promise.all([source.close(), target.close()])
    const reader = await readPostgres(named(to))
    expect(reader.id).toBe(id)
    await reader.close()
    await create(openFile(file), 'goes on')
    expect((await there(file, to)).counts.session).toBe(7)
  })

  it('B-PGMOVE-7: what another move has brought to the target is not taken out', async () => {
    const to = await database()
    const [first, second] = [await postgresTarget(named(to)), await postgresTarget(named(to))]
    expect([await first.state(), await second.state()]).toEqual([{ type: 'empty' }, { type: 'empty' }])
    const source = await sqliteSource(await furnished())
    const mark = { id: source.id, name: source.name, at: 1, text: 'A move is not finished.' }
    await first.fill(mark, source.rows())
    expect(await refusal(create(open(to), 'x'))).toEqual(['store_replaced', 'A move is not finished.'])
    expect((await refusal(second.fill({ ...mark, id: 'another' }, source.rows())))[0]).toBe('conflict')
    await second.clear()
    expect(await first.state()).toEqual({ type: 'arriving', from: mark })
    await first.finish()
    await Promise.all([first.close(), second.close(), source.close()])
    expect(await outcome(create(open(to), 'x'))).toBe('ok')
  })

  it.each([
    [
      "update terret.events set body = replace(body, 'hello', 'hallo') where seq = 2",
      'session_damaged',
      'Session alpha',
    ],
    [
      "delete from terret.events where seq = 2 and n = (select n from terret.sessions where id = 'alpha')",
      'session_damaged',
      'event 2 is missing',
    ],
    ["update terret.sessions set sum = sum + 1 where id = 'beta'", 'session_damaged', 'Session beta'],
    ["update terret.sessions set card = '{' where id = 'beta'", 'session_damaged', 'Session beta'],
    ["update terret.holds set accounts = '{'", 'store_damaged', 'The hold alpha:4'],
    ["update terret.blobs set data = ''", 'store_damaged', 'The blob'],
    ["insert into terret.inbox values (99, 'x', 1)", 'store_damaged', 'rows (inbox) that belong to no session'],
  ])('B-PGMOVE-8: what is damaged in the source is named, and nothing is moved (%s)', async (sql, code, said) => {
    const from = await database()
    await there(await furnished(), from)
    await tamper(from, sql)
    const to = join(makeFolder(), 'to.db')
    const refused = await refusal(moved(postgresSource(named(from)), () => sqliteTarget(to)))
    expect(refused).toEqual([code, expect.stringContaining(said)])
    expect(await openFile(to).list({ limit: 1 })).toEqual([])
    expect(await outcome(create(open(from), 'goes on'))).toBe('ok')
  })

  it('B-PGMOVE-10: a session with a text that no database holds is named, and nothing is moved', async () => {
    const file = await furnished()
    await create(openFile(file), 'odd', { labels: { team: 'red\0blue' } })
    const to = await database()
    const said = 'Session odd cannot be moved: a text of it has a NUL'
    expect(await refusal(there(file, to))).toEqual(['store_unsupported', expect.stringContaining(said)])
    expect(await open(to).list({ limit: 1 })).toEqual([])
    await create(openFile(file), 'goes on')
  })

  it.each(['to', 'from'] as const)(
    'B-PGMOVE-11: a connection that breaks in the middle of a move %s a database is said, and the same move again comes to its end',
    async (way) => {
      const to = await database()
      if (way === 'from') await there(await furnished(), to)
      const proxy = await proxyTo(to.server)
      const far = { url: to.server.url(to.name, undefined, proxy.port), name: NAME }
      const file = way === 'to' ? await furnished() : join(makeFolder(), 'to.db')
      const [source, target] =
        way === 'to'
          ? [await sqliteSource(file), await postgresTarget(far)]
          : [await postgresSource(far), await sqliteTarget(file)]
      const cut = (): void => proxy.cut()
      // At the first piece that is read, and a transaction is under way at the database.
      const moving = moveStore(
        source,
        meddling(target, (row) => (cut(), row)),
        Date.now(),
        () => {},
      )
      expect(await refusal(moving)).toEqual([
        'store_busy',
        expect.stringMatching(/^The connection to the database broke, [^.]+\. Run the same command again\.$/),
      ])
      expect(await target.state()).toEqual({ type: 'empty' })
      await Promise.all([source.close(), target.close()])
      const again = way === 'to' ? there(file, to) : moved(postgresSource(named(to)), () => sqliteTarget(file))
      expect((await again).counts.session).toBe(6)
    },
  )
})
