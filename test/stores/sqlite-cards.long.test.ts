// Cards and their pages in an SQLite file: what an older file gets, what damage does, and many sessions.
import { copyFileSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { CardQuery } from '../../src/ports/store.ts'
import type { SqliteValue } from '../../src/stores/sqlite/driver.ts'
import { SCHEMA_VERSION } from '../../src/stores/sqlite/sqlite-schema.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { admit, begin, card, create, message, note, outcome, ownerWrite, seqs, write } from '../contract/fixture.ts'
import { driverOf, makeFile, meddle, open } from './folder.ts'
import { withoutFacts } from './older.ts'

const GOLDEN = new URL('../golden/store-schema-9.sql', import.meta.url)

/** A file as the ninth schema had it, written by the code of then. */
function olderFile(): string {
  const file = makeFile()
  meddle(file, (db) => db.exec(readFileSync(GOLDEN, 'utf8')))
  return file
}

const versionIn = (file: string): unknown => meddle(file, (db) => db.prepare('SELECT version FROM meta').get())

describe('a file of the ninth schema', () => {
  it('B-CARD-14: gets titles, owners, times, tokens and what is searched from its logs, and keeps its snapshots', async () => {
    const file = olderFile()
    const store = open(file)
    const cards = Object.fromEntries((await store.list({ limit: 99 })).map((each) => [each.session, each]))
    expect(versionIn(file)).toEqual({ version: SCHEMA_VERSION })
    const at = 1_700_000_000_000
    expect(cards['plain']).toMatchObject({ title: 'Fix the flaky test', created: at, tokens: 127, cost: 5 })
    expect(cards['named']).toMatchObject({ title: 'Publish the news', owner: 'ana', created: at + 20, tokens: 0 })
    expect(cards['fork']).toMatchObject({ title: 'Fix the flaky test' })
    expect(cards['plain~3.0']).toMatchObject({ title: 'look at the log', parent: 'plain' })
    expect(cards['arrived']).toMatchObject({ title: 'the first words', owner: 'bob' })
    expect(cards['empty']).not.toHaveProperty('title')
    // Its head was changed before, and that is still found.
    expect(cards['cut']?.trouble?.reason).toContain('damaged')
    for (const id of ['plain', 'named', 'fork', 'arrived', 'empty']) expect(cards[id]).not.toHaveProperty('trouble')
    const found = async (query: Partial<CardQuery>) =>
      (await store.page({ order: 'newest', limit: 9, ...query })).cards.map(({ session }) => session)
    expect(await found({ q: 'flaky' })).toEqual(['fork', 'plain'])
    expect(await found({ q: 'team=blue news' })).toEqual(['named'])
    expect(await found({ owner: 'ana' })).toEqual(['named'])
    expect(await found({ agent: 'b' })).toEqual(['named'])
    expect(await store.snapshot('plain')).toEqual({ seq: 4, version: 1, body: '{"seq":4}' })
    // It goes on.
    await admit(store, 'plain', message('m9', 'more'))
    expect(await open(file).card('plain')).toMatchObject({ title: 'Fix the flaky test', tokens: 127, seq: 5 })
    expect(await outcome(admit(store, 'cut', message('m9')))).toBe('session_damaged')
  })

  it('B-CARD-14: an event or a card that cannot be read does not keep it from being brought up to date', async () => {
    const file = makeFile()
    const first = sqlite(file)
    for (const id of ['a', 'b']) await create(first, id)
    await first.close()
    meddle(file, (db) => {
      withoutFacts(db)
      db.exec(`DROP TRIGGER events_keep; UPDATE events SET body = '"type":"user.message" {' WHERE session = 1`)
      db.exec(`UPDATE sessions SET card = '{' WHERE id = 'b'`)
    })
    const store = open(file)
    expect((await store.read('a', 0)).damaged?.seq).toBe(1)
    expect((await store.card('b'))?.trouble?.reason).toContain('damaged')
    expect(await seqs(store, 'b')).toEqual([1])
  })

  it('B-CARD-14: killed at any statement, the file is as before, and the next process brings it up to date', async () => {
    const statements = [
      'UPDATE sessions SET agent',
      'UPDATE heads SET tokens',
      'INSERT INTO snapshots',
      'DROP',
      'UPDATE meta',
    ]
    for (const last of [...statements, 'COMMIT']) {
      const [file, left] = [olderFile(), makeFile()]
      // What a kill would leave at this moment.
      const die = (sql: string): boolean => {
        if (!sql.startsWith(last)) return false
        for (const end of ['', '-wal']) copyFileSync(`${file}${end}`, `${left}${end}`)
        throw new Error('killed')
      }
      const dying = driverOf((db) => ({
        get isTransaction() {
          return db.isTransaction
        },
        close: () => db.close(),
        exec: (sql) => void (die(sql) || db.exec(sql)),
        prepare: (sql) => {
          const real = db.prepare(sql)
          const checked =
            <T>(act: (...values: SqliteValue[]) => T) =>
            (...values: SqliteValue[]) => (die(sql), act(...values))
          return {
            run: checked(real.run.bind(real)),
            get: checked(real.get.bind(real)),
            all: checked(real.all.bind(real)),
          }
        },
      }))
      await expect(open(file, { loadDriver: () => dying }).card('plain')).rejects.toThrow('killed')
      expect(versionIn(left)).toEqual({ version: 9 })
      for (const each of [file, left])
        expect(await open(each).card('plain')).toMatchObject({ title: 'Fix the flaky test' })
    }
  })
})

describe('cards of an SQLite file', () => {
  it('B-CARD-15: a title, owner, time or agent that was changed in the file is said on the card, and found before a write', async () => {
    for (const change of [`title = 'x'`, `owner = 'mallory'`, 'created = 5', `agent = 'b'`, 'facts_sum = 5']) {
      const file = makeFile()
      const store = sqlite(file)
      await create(store, 's')
      await admit(store, 's', message('m', 'words'))
      await store.close()
      meddle(file, (db) => db.exec(`UPDATE sessions SET ${change}`))
      const after = open(file)
      expect((await after.card('s'))?.trouble?.reason).toContain('damaged')
      expect(await outcome(admit(after, 's', message('n')))).toBe('session_damaged')
    }
    const file = makeFile()
    await create(open(file), 's')
    meddle(file, (db) => db.exec('UPDATE heads SET tokens = 5'))
    expect((await open(file).card('s'))?.trouble?.reason).toContain('damaged')
  })

  it('B-STORE-172: a snapshot that is damaged or was moved is passed over, and the one before it is read', async () => {
    const file = makeFile()
    const store = open(file)
    const owner = await begin(store, 's')
    await create(store, 'other')
    await write(
      store,
      owner,
      Array.from({ length: 20_000 }, () => note('')),
    )
    const made = (seq: number) => ({ seq, version: 1, body: JSON.stringify({ seq }) })
    for (const seq of [8_000, 16_000, 20_000]) await write(store, owner, [], { snapshot: made(seq) })
    meddle(file, (db) => db.exec(`UPDATE snapshots SET body = '{}' WHERE key % 134217728 = 20000`))
    expect(await store.snapshot('s')).toEqual(made(16_000))
    expect(await store.snapshot('s', 19_000)).toEqual(made(16_000))
    meddle(file, (db) => db.exec('UPDATE snapshots SET key = key + 1000 WHERE key % 134217728 = 16000'))
    expect(await store.snapshot('s', 19_000)).toEqual(made(8_000))
    meddle(file, (db) => db.exec('UPDATE snapshots SET key = 2 * 134217728 + 1 WHERE key % 134217728 = 8000'))
    expect([await store.snapshot('s'), await store.snapshot('other', 1)]).toEqual([null, null])
  })

  it('B-CARD-12: few or many that pass, a page is the same as of a list that is filtered as a whole', async () => {
    const file = makeFile()
    const store = open(file)
    const COUNT = 5_000
    for (let from = 0; from < COUNT; from += 500) {
      const writes = Array.from({ length: 500 }, (_, i) => {
        const n = from + i
        const at = { session: `s${n}`, worker: '', epoch: 0, seq: 0 }
        const owner = n % 1_000 === 7 ? 'rare' : n < 2_500 ? 'old' : 'new'
        const metadata = { owner, title: `number ${n}${n % 2 === 0 ? ' even' : ''}` }
        const agent = n === 77 ? 'Rare\none' : 'a'
        const made = ownerWrite(store, at, [{ type: 'session.created', agent, planner: 'model', metadata }])
        // In many of them, several at once.
        const events = made.events.map((event) => ({ ...event, at: 1_000 + Math.floor(((n * 7_919) % COUNT) / 3) }))
        return { ...made, events, card: card(`s${n}`, { agent, status: n % 3 === 0 ? 'idle' : 'terminated' }) }
      })
      await store.commit(writes)
    }
    const all = (await store.page({ order: 'newest', limit: COUNT })).cards
    expect(all).toHaveLength(COUNT)
    expect(all.map(({ at }) => at)).toEqual(all.map(({ at }) => at).toSorted((a, b) => b - a))
    const numberOf = (session: string): number => Number(session.slice(1))
    const cases: readonly [Partial<CardQuery>, (n: number) => boolean][] = [
      [{}, () => true],
      [{ owner: 'rare' }, (n) => n % 1_000 === 7],
      [{ owner: 'old', status: 'idle' }, (n) => n < 2_500 && n % 1_000 !== 7 && n % 3 === 0],
      [{ agent: 'Rare\none' }, (n) => n === 77],
      [{ agent: 'rare\none' }, () => false],
      [{ agent: 'a', owner: 'rare', q: 'number' }, (n) => n % 1_000 === 7],
      [{ q: 'EVEN' }, (n) => n % 2 === 0],
      [{ q: 'even', owner: 'rare' }, () => false],
      [{ q: 'number 4999' }, (n) => n === 4_999],
      [{ q: 'nowhere' }, () => false],
    ]
    for (const [query, passes] of cases) {
      const expected = all.map(({ session }) => session).filter((session) => passes(numberOf(session)))
      const found: string[] = []
      for (let behind: CardQuery['behind']; ; ) {
        const page = await store.page({ order: 'newest', limit: 700, ...query, ...(behind ? { behind } : {}) })
        found.push(...page.cards.map(({ session }) => session))
        if (page.next === null) break
        behind = page.next
      }
      expect([query, found]).toEqual([query, expected])
    }
    // Others are served while a long search goes on.
    let turns = 0
    const tick = (): void => void ((turns += 1), going && setImmediate(tick))
    let going = true
    tick()
    await store.page({ order: 'newest', limit: 9, q: 'even', owner: 'old', status: 'running' })
    going = false
    expect(turns).toBeGreaterThan(0)
  })
})
