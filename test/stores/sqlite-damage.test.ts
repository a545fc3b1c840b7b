// What the SQLite store does when the file, the disk or another program lets it down.
import {
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { Harness, scripted } from '../../src/index.ts'
import { type Database, loadDriver, type Statement } from '../../src/stores/sqlite/driver.ts'
import { SCHEMA_VERSION, SQL } from '../../src/stores/sqlite/sqlite-schema.ts'
import {
  admit,
  begin,
  claim,
  create,
  message,
  note,
  outcome,
  seqs,
  StillClock,
  TTL,
  write,
} from '../contract/fixture.ts'
import { driverOf, makeFile, meddle, open } from './folder.ts'

/** A file with a session of ten events, `s`, and a healthy one beside it. */
async function makeLog(): Promise<string> {
  const file = makeFile()
  const store = open(file)
  const owner = await begin(store, 's')
  await create(store, 'healthy')
  await write(
    store,
    owner,
    Array.from({ length: 9 }, (_, i) => note(`note ${i + 2} of the log`)),
    { release: true },
  )
  await store.close()
  return file
}

function alter(file: string, sql: string): void {
  meddle(file, (db) => db.exec(`DROP TRIGGER events_keep; DROP TRIGGER events_stay; ${sql}`))
}

const positionOf = (seq: number) => `(SELECT pos FROM events WHERE session = 1 AND body LIKE '{%"seq":${seq},%')`

describe('a damaged log', () => {
  const cases = [
    [
      'whose event was changed',
      6,
      `UPDATE events SET body = replace(body, 'note 6', 'note 7') WHERE pos = ${positionOf(6)}`,
    ],
    ['whose event is no JSON', 6, `UPDATE events SET body = '{' WHERE pos = ${positionOf(6)}`],
    ['whose last sum was changed', 10, `UPDATE events SET sum = sum + 1 WHERE pos = ${positionOf(10)}`],
    ['whose event is gone', 6, `DELETE FROM events WHERE pos = ${positionOf(6)}`],
    ['whose last event is gone', 10, `DELETE FROM events WHERE pos = ${positionOf(10)}`],
    [
      'with two events exchanged',
      6,
      `UPDATE events SET pos = -1 WHERE pos = 7; UPDATE events SET pos = 7 WHERE pos = 8; UPDATE events SET pos = 8 WHERE pos = -1`,
    ],
    ['whose index points elsewhere', 1, `UPDATE heads SET tail = '1,2' WHERE n = 1`],
    ['whose index lost its beginning', 1, `UPDATE heads SET tail = '4,5' WHERE n = 1`],
  ] as const

  it.each(cases)('B-STORE-80: a session %s reads up to the last good event and says so', async (_, seq, sql) => {
    const file = await makeLog()
    alter(file, sql)
    const page = await open(file).read('s', 0)
    expect(page.events.map((event) => event.seq)).toEqual(Array.from({ length: seq - 1 }, (_, i) => i + 1))
    expect(page.damaged).toMatchObject({ seq })
  })

  it('B-STORE-80: a byte that flipped on the disk is found', async () => {
    const file = await makeLog()
    const bytes = readFileSync(file)
    const at = bytes.indexOf('note 6 of the log')
    const handle = openSync(file, 'r+')
    writeSync(handle, Buffer.from([(bytes[at + 3] ?? 0) ^ 0x10]), 0, 1, at + 3)
    closeSync(handle)
    const page = await open(file).read('s', 0)
    expect(page).toMatchObject({ damaged: { seq: 6 } })
    expect(page.events).toHaveLength(5)
  })

  it('B-STORE-80: events that were moved in from another session are not taken for its own', async () => {
    const file = await makeLog()
    alter(file, `UPDATE heads SET tail = (SELECT tail FROM heads WHERE n = 1), seq = 10, pos = 11 WHERE n = 2`)
    expect(await open(file).read('healthy', 0)).toMatchObject({ events: [], damaged: { seq: 1 } })
  })

  it('B-STORE-81: a session found damaged is read-only and no longer due; others go on', async () => {
    const file = await makeLog()
    alter(file, `UPDATE events SET body = '{}' WHERE pos = ${positionOf(6)}`)
    const store = open(file)
    await admit(store, 's', message('before anybody looked'))
    const owner = await claim(store, 's', 'w1')
    expect((await store.read('s', 0)).damaged?.seq).toBe(6)
    expect(await outcome(write(store, owner, [note('x')]))).toBe('session_damaged')
    expect(await outcome(admit(store, 's', message('m')))).toBe('session_damaged')
    await store.release('s', owner.epoch)
    expect(await outcome(store.claim('s', 'w2', TTL))).toBe('session_damaged')
    expect((await store.due(9)).sessions).toEqual([])
    expect((await store.due(0)).next).toBeNull()
    expect((await store.read('s', 0, 3)).events).toHaveLength(3)
    expect(await outcome(admit(store, 'healthy', message('m')))).toBe('ok')
    expect((await store.due(1)).sessions).toEqual(['healthy'])
  })

  it('B-STORE-81: a log that lost its last event is not appended to, also when it was not read before', async () => {
    const file = await makeLog()
    alter(file, `DELETE FROM events WHERE pos = ${positionOf(10)}`)
    expect(await outcome(admit(open(file), 's', message('m')))).toBe('session_damaged')
  })

  it('B-STORE-82: a blob that does not match its sum is not handed out', async () => {
    const file = await makeLog()
    const store = open(file)
    const owner = await claim(store, 's', 'w1')
    await write(store, owner, [note('x')], { blobs: [{ hash: 'h', media: 'a/b', data: new Uint8Array([1]) }] })
    meddle(file, (db) => db.exec(`UPDATE blobs SET data = x'02'`))
    expect(await outcome(store.blob('h'))).toBe('store_damaged')
  })

  it('B-STORE-83: rows that contradict each other fail the commit that meets them, and no other of its group', async () => {
    const file = await makeLog()
    meddle(file, (db) => db.exec(`INSERT INTO inbox (session, id, seq, pos) VALUES (1, 'm', 99, 99)`))
    const store = open(file)
    const results = await Promise.all([
      outcome(admit(store, 'healthy', message('m1'))),
      outcome(admit(store, 's', message('m'))),
      outcome(admit(store, 'healthy', message('m2'))),
    ])
    expect(results).toEqual(['ok', 'store_damaged', 'ok'])
    expect(await seqs(store, 'healthy')).toEqual([1, 2, 3])
    expect(await seqs(store, 's')).toHaveLength(10)
  })
})

describe('a row that cannot be read', () => {
  it('B-STORE-83: a commit that fails half-way is not written in part, and spoils no other of its group', async () => {
    const file = makeFile()
    const before = open(file)
    const owner = await begin(before, 's')
    await create(before, 'other')
    await before.close()
    const spy = spyDriver()
    const store = open(file, { loadDriver: spy.loadDriver })
    await store.card('s')
    spy.failing = { sql: SQL.worker, errcode: 11 }
    const sends = [{ session: 'other', event: message('sent') }]
    const results = await Promise.all([
      outcome(admit(store, 'other', message('m1'))),
      outcome(write(store, owner, [note('x')], { sends })),
      outcome(admit(store, 'other', message('m2'))),
    ])
    expect(results).toEqual(['ok', 'store_damaged', 'ok'])
    expect(await seqs(store, 's')).toEqual([1])
    expect((await store.read('other', 1)).events).toMatchObject([{ id: 'm1' }, { id: 'm2' }])
    spy.failing = null
    owner.seq = 1
    expect(await outcome(write(store, owner, [note('x')], { sends }))).toBe('ok')
  })
})

describe('a file that is no store of ours', () => {
  it('B-STORE-84: a file that is no database is refused and left as it is', async () => {
    const file = makeFile()
    writeFileSync(file, 'My dear diary, today I wrote a harness.\n'.repeat(50))
    const before = readFileSync(file)
    expect(await outcome(create(open(file), 's'))).toBe('store_damaged')
    await expect(open(file).read('s', 0)).rejects.toThrow('not an SQLite database')
    expect(readFileSync(file)).toEqual(before)
  })

  it('B-STORE-178: work on a file that is no database ends with that error, and does not wait', async () => {
    const file = makeFile()
    writeFileSync(file, 'My dear diary, today I wrote a harness.\n'.repeat(50))
    const harness = new Harness({ model: scripted(['Never said.']), store: open(file) })
    await expect(harness.work({ idleMs: 500 })).rejects.toMatchObject({ code: 'store_damaged' })
    await harness.close()
  })

  it('B-STORE-84: a database that was cut short is refused', async () => {
    const file = makeFile()
    copyFileSync(await makeLog(), file)
    truncateSync(file, statSync(file).size / 2)
    expect(await outcome(create(open(file), 't'))).toBe('store_damaged')
    await expect(open(file).read('s', 0)).rejects.toThrow('backup')
  })

  it("B-STORE-85: another program's database is refused and left as it is", async () => {
    const file = makeFile()
    meddle(file, (db) => db.exec('CREATE TABLE photos (id INTEGER); CREATE TABLE meta (version INTEGER)'))
    expect(await outcome(create(open(file), 's'))).toBe('store_unsupported')
    expect(meddle(file, (db) => db.prepare('PRAGMA journal_mode').get())).toEqual({ journal_mode: 'delete' })
  })

  it('B-STORE-86: a newer schema is refused with its number', async () => {
    const file = await makeLog()
    meddle(file, (db) => db.exec(`UPDATE meta SET version = ${SCHEMA_VERSION + 1}`))
    const store = open(file)
    expect(await outcome(store.read('s', 0))).toBe('store_newer')
    await expect(store.read('s', 0)).rejects.toThrow(`schema ${SCHEMA_VERSION + 1}`)
  })

  it('B-STORE-87: a file that is removed or replaced while open is noticed by the next commit', async () => {
    const file = await makeLog()
    const clock = new StillClock()
    const store = open(file, { clock })
    await admit(store, 's', message('m1'))
    renameSync(file, `${file}.old`)
    expect(await outcome(admit(store, 's', message('m2')))).toBe('store_replaced')
    expect(await outcome(admit(store, 's', message('m3')))).toBe('store_replaced')
  })
})

/** A driver that shows its connection, and fails where it is told to. */
function spyDriver() {
  const opened: Database[] = []
  const spy = {
    failing: null as { readonly sql: string; readonly errcode: number } | null,
    db: () => opened.at(-1) as Database,
    loadDriver: () =>
      driverOf((db) => {
        opened.push(db)
        const guard = (sql: string) => {
          if (spy.failing?.sql !== sql) return
          throw Object.assign(new Error('disk I/O error'), { errcode: spy.failing.errcode })
        }
        return Object.assign(Object.create(db) as Database, {
          prepare: (sql: string) => guarded(db.prepare(sql), () => guard(sql)),
        })
      }),
  }
  return spy
}

function guarded(real: Statement, guard: () => void): Statement {
  const before =
    <A extends unknown[], R>(call: (...values: A) => R) =>
    (...values: A): R => {
      guard()
      return call(...values)
    }
  return {
    run: before((...v) => real.run(...v)),
    get: before((...v) => real.get(...v)),
    all: before((...v) => real.all(...v)),
  }
}

describe('a disk that fails', () => {
  it('B-STORE-90: when the disk is full commits are refused, nothing acknowledged is lost, and room makes them work again', async () => {
    const file = makeFile()
    const spy = spyDriver()
    const store = open(file, { loadDriver: spy.loadDriver })
    await create(store, 's')
    spy.db().exec('PRAGMA max_page_count = 60')
    const acked: number[] = []
    let refused = ''
    for (let i = 0; i < 200 && refused === ''; i++) {
      const result = await outcome(
        admit(store, 's', message(`m${i}`, 'x'.repeat(3000))).then(({ seqs }) => acked.push(...seqs)),
      )
      if (result !== 'ok') refused = result
    }
    expect(refused).toBe('disk_full')
    expect(await outcome(admit(store, 's', message('again', 'x'.repeat(3000))))).toBe('disk_full')
    expect(await seqs(store, 's')).toEqual([1, ...acked])
    spy.db().exec('PRAGMA max_page_count = 1000000')
    expect((await admit(store, 's', message('again', 'x'.repeat(3000)))).seqs).toEqual([acked.length + 2])
    await store.close()
    expect(await seqs(open(file), 's')).toEqual([1, ...acked, acked.length + 2])
  })

  it('B-STORE-90: a commit that is too large for the disk does not spoil a small one of its group', async () => {
    const spy = spyDriver()
    const store = open(makeFile(), { loadDriver: spy.loadDriver })
    await create(store, 's')
    spy.db().exec('PRAGMA max_page_count = 60')
    const results = await Promise.all([
      outcome(admit(store, 's', message('large', 'x'.repeat(400_000)))),
      outcome(admit(store, 's', message('small'))),
    ])
    expect(results).toEqual(['disk_full', 'ok'])
    expect(await seqs(store, 's')).toEqual([1, 2])
  })

  it('B-STORE-91: after an I/O error at a commit nothing more is written until the store is opened again; reading goes on', async () => {
    const file = makeFile()
    const spy = spyDriver()
    const store = open(file, { loadDriver: spy.loadDriver })
    await create(store, 's')
    spy.failing = { sql: 'COMMIT', errcode: 1034 }
    expect(await outcome(admit(store, 's', message('m1')))).toBe('io_error')
    spy.failing = null
    expect(await outcome(admit(store, 's', message('m2')))).toBe('io_error')
    expect(await outcome(store.claim('s', 'w', TTL))).toBe('io_error')
    expect(await seqs(store, 's')).toEqual([1])
    await store.close()
    expect(await outcome(admit(open(file), 's', message('m2')))).toBe('ok')
  })

  it('B-STORE-92: a commit waits for other processes, without stopping its own, and gets through', async () => {
    const file = await makeLog()
    const store = open(file)
    await store.card('s')
    const lock = new (loadDriver())(file)
    lock.exec('BEGIN IMMEDIATE')
    const result = outcome(admit(store, 's', message('m')))
    let ticks = 0
    const ticking = setInterval(() => {
      ticks += 1
    }, 1)
    await sleep(300)
    clearInterval(ticking)
    lock.exec('COMMIT')
    lock.close()
    expect(await result).toBe('ok')
    expect(ticks).toBeGreaterThan(3)
  })

  it('B-STORE-92: after ten seconds of waiting it is refused as busy, with nothing written', async () => {
    const file = await makeLog()
    const clock = new StillClock()
    const store = open(file, { clock })
    await store.card('s')
    const lock = new (loadDriver())(file)
    lock.exec('BEGIN IMMEDIATE')
    let result = ''
    const done = outcome(admit(store, 's', message('m'))).then((code) => {
      result = code
    })
    for (let i = 0; i < 100 && result === ''; i++) {
      await sleep(1)
      clock.advance(500)
    }
    await done
    expect(result).toBe('store_busy')
    lock.exec('COMMIT')
    lock.close()
    expect(await outcome(admit(store, 's', message('m')))).toBe('ok')
    expect(await seqs(store, 's')).toHaveLength(11)
  })
})
