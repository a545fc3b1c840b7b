// What the SQLite store promises of removals beyond the contract: the file gets smaller, nothing is left in it, a kill leaves all or
// nothing, older files can do it too.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { Event } from '../../src/kernel/event.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import type { Database } from '../../src/stores/sqlite/driver.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { SCHEMA_VERSION } from '../../src/stores/sqlite/sqlite-schema.ts'
import { admit, begin, card, create, message, note, outcome, seqs, StillClock, write } from '../contract/fixture.ts'
import { share, upTo } from '../runs.ts'
import { makeFile, meddle, open } from './folder.ts'

/** Everything the file keeps by a session's number. */
const KEPT = [
  'SELECT count(*) AS c FROM events WHERE session = ?',
  'SELECT count(*) AS c FROM heads WHERE n = ?',
  'SELECT count(*) AS c FROM sessions WHERE n = ?',
  'SELECT count(*) AS c FROM spans WHERE key >> 27 = ?',
  'SELECT count(*) AS c FROM inbox WHERE session = ?',
  'SELECT count(*) AS c FROM blob_refs WHERE session = ?',
  'SELECT count(*) AS c FROM snapshots WHERE key >> 27 = ?',
  'SELECT count(*) AS c FROM finds WHERE n = ?',
  'SELECT count(*) AS c FROM forks WHERE session = ?',
]

const rowsOf = (db: Database, n: number): number[] => KEPT.map((sql) => (db.prepare(sql).get(n) as { c: number }).c)
const numberOf = (db: Database, id: string): number =>
  (db.prepare('SELECT n FROM sessions WHERE id = ?').get(id) as { n: number }).n

/** A session whose events lie in many places, with all that can be kept of one. */
async function grown(
  store: CompleteStore,
  session: string,
  { events, text }: { events: number; text: string },
): Promise<void> {
  const owner = await begin(store, session)
  const blobs = [{ hash: `of ${session}`, media: 'text/plain', data: new TextEncoder().encode(text) }]
  const snapshot = { seq: 2, version: 1, body: JSON.stringify(text) }
  await write(store, owner, [note(text)], { blobs, snapshot })
  await admit(store, session, message(`first of ${session}`, text))
  owner.seq += 1
  for (let left = events; left > 0; left -= 500) {
    const notes = Array.from({ length: Math.min(left, 500) }, (_, i) => note(`${text} ${i}`))
    await write(store, owner, notes)
    await admit(store, `${session}~1.0`, message(`${left}`)).catch(() =>
      create(store, `${session}~1.0`, { root: session }),
    )
  }
  await store.release(session, owner.epoch)
}

describe('removal from a file', () => {
  it('B-STORE-141: the file gets smaller, and nothing that was said in the session is found in it', async () => {
    const file = makeFile()
    const store = sqlite(file)
    const text = 'the password is swordfish'
    await create(store, 'stays')
    for (let i = 0; i < 4; i++) await grown(store, `s${i}`, { events: 1_000, text: `${text}, ${'x'.repeat(500)}` })
    await store.close()
    const before = statSync(file).size
    expect(readFileSync(file).includes(text)).toBe(true)
    const again = sqlite(file)
    await Promise.all([0, 1, 2, 3].map((i) => again.remove(`s${i}`, 'ann')))
    const numbers = meddle(file, (db) => db.prepare('SELECT n FROM removals').all() as { n: number }[])
    expect(numbers).toHaveLength(8)
    for (const { n } of numbers) expect(meddle(file, (db) => rowsOf(db, n))).toEqual(KEPT.map(() => 0))
    await again.close()
    expect(statSync(file).size).toBeLessThan(before / 10)
    for (const word of [text, 'of s1', 'first of']) expect(readFileSync(file).includes(word)).toBe(false)
    expect(meddle(file, (db) => db.prepare('PRAGMA integrity_check').get())).toEqual({ integrity_check: 'ok' })
    expect(await seqs(open(file), 'stays')).toEqual([1])
  })

  it('B-STORE-141: the number of a removed session is not given again, though it was the last', async () => {
    const file = makeFile()
    const store = open(file)
    await create(store, 'a')
    await store.remove('a', 'ann')
    await create(store, 'b')
    expect(meddle(file, (db) => [numberOf(db, 'b'), rowsOf(db, 1)])).toEqual([2, KEPT.map(() => 0)])
  })

  it('B-STORE-142: killed at any statement of a removal, it is done whole or not at all', async () => {
    const made = makeFile()
    const store = sqlite(made)
    const names = ['s', 'other']
    for (const name of names) await grown(store, name, { events: 1_500, text: 'x'.repeat(200) })
    const lengths = await lengthsOf(store, names)
    await store.close()
    const numbers = meddle(made, (db) => new Map([...lengths.keys()].map((id) => [id, numberOf(db, id)])))
    const whole = { names, lengths, numbers }
    const statements = (await removeIn(copied(made), 0)) ?? 0
    expect(statements).toBeGreaterThan(20)
    // The last one comes after the commit.
    const places = [...share(upTo(statements - 1)), statements]
    const ends = new Map<string, number>()
    for (let i = 0; i < places.length; i += WIDTH) {
      const round = places.slice(i, i + WIDTH).map(async (at) => {
        const file = copied(made)
        expect(await removeIn(file, at)).toBeNull()
        const left = await check(file, whole)
        expect(left).toEqual(at === statements ? ['other'] : names)
        ends.set(left.join(), (ends.get(left.join()) ?? 0) + 1)
        expect(await outcome(open(file).remove('s', 'ann'))).toBe(left.length === 2 ? 'ok' : 'session_missing')
      })
      await Promise.all(round)
    }
    expect([...ends]).toEqual([
      ['s,other', places.length - 1],
      ['other', 1],
    ])
  }, 120_000)

  it('B-STORE-143: a file of the second schema can do it when it was opened, and knows its forks, holds and blobs', async () => {
    const file = makeFile()
    const dump = readFileSync(new URL('../golden/store-schema-2.sql', import.meta.url), 'utf8')
    meddle(file, (db) => db.exec(dump))
    const clock = new StillClock()
    const store = open(file, { clock })
    expect((await store.read('root', 0)).events).toHaveLength(4)
    expect(meddle(file, (db) => db.prepare('SELECT version FROM meta').get())).toEqual({ version: SCHEMA_VERSION })
    await expect(store.remove('root', 'ann')).rejects.toMatchObject({ code: 'conflict' })
    await store.remove('fork-short', 'ann')
    await expect(store.remove('root', 'ann')).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('fork-long') as string,
    })
    await store.remove('fork-long', 'ann')
    expect((await store.remove('root', 'ann')).map(({ session }) => session)).toEqual(['root', 'root~3.0'])
    expect(await store.account('day:a:19675')).toEqual({
      id: 'day:a:19675',
      limit: 1000,
      held: 0,
      spent: 40,
      assumed: 40,
    })
    expect(await store.account('tree:root')).toBeNull()
    expect([await store.blob('own'), (await store.blob('shared'))?.media]).toEqual([null, 'text/plain'])
    expect((await store.read('plain', 0)).damaged).toBeUndefined()
    expect(await seqs(store, 'plain')).toHaveLength(22)
    expect((await store.due(0)).next).not.toBeNull()
    // It was rebuilt, so that it gives pages back as a new one does.
    expect(meddle(file, (db) => db.prepare('PRAGMA auto_vacuum').get())).toEqual({ auto_vacuum: 2 })
    expect(meddle(file, (db) => db.prepare('PRAGMA integrity_check').get())).toEqual({ integrity_check: 'ok' })
  })

  it('B-STORE-144: a damaged session can be removed, whole, also when the places of its events are unknown', async () => {
    const file = makeFile()
    const store = sqlite(file)
    await create(store, 'healthy')
    for (const name of ['lost', 'torn']) await grown(store, name, { events: 20, text: 'x' })
    await store.close()
    const numbers = meddle(file, (db) => {
      const [lost, torn] = [numberOf(db, 'lost'), numberOf(db, 'torn')]
      db.exec(`DROP TRIGGER events_keep; UPDATE heads SET tail = '1,1' WHERE n = ${lost}`)
      db.exec(`UPDATE heads SET tail = 'x' WHERE n = ${torn}; UPDATE events SET body = '{' WHERE session = ${torn}`)
      return [lost, torn]
    })
    const damaged = open(file)
    expect((await damaged.read('lost', 0)).damaged).toBeDefined()
    expect(await outcome(admit(damaged, 'lost', message('m')))).toBe('session_damaged')
    for (const name of ['lost', 'torn']) expect(await outcome(damaged.remove(name, 'ann'))).toBe('ok')
    for (const n of numbers) expect(meddle(file, (db) => rowsOf(db, n))).toEqual(KEPT.map(() => 0))
    expect(await seqs(damaged, 'healthy')).toEqual([1])
    await create(damaged, 'lost')
    expect(await outcome(admit(damaged, 'lost', message('m')))).toBe('ok')
  })

  it('B-STORE-145: what another process removed is gone here too, and its watchers here are told', async () => {
    const file = makeFile()
    const [here, there] = [open(file), open(file)]
    const owner = await begin(here, 's')
    await write(here, owner, [note('x')], { release: true, card: card('s', { due: 5 }) })
    const told = new Promise<readonly Event[] | null>((resolve) => here.watch('s', resolve))
    await there.remove('s', 'ann')
    expect(await told).toBeNull()
    expect(await outcome(here.read('s', 0))).toBe('session_missing')
    expect(await outcome(admit(here, 's', message('m')))).toBe('session_missing')
    expect(await outcome(write(here, owner, [note('late')]))).toBe('session_missing')
    expect((await here.due(9)).sessions).toEqual([])
    await create(there, 's')
    expect(await outcome(write(here, owner, [note('late')]))).toBe('lease_lost')
    await create(here, 'after')
    expect([await seqs(here, 's'), await seqs(there, 'after')]).toEqual([[1], [1]])
  })
})

const WIDTH = 4

function copied(made: string): string {
  const file = makeFile()
  copyFileSync(made, file)
  return file
}

/** Removes `s` in a process that is killed at its nth statement. Null if it was, else how many statements there were. */
async function removeIn(file: string, at: number): Promise<number | null> {
  const script = fileURLToPath(new URL('../../.build/test/stores/child-remove.js', import.meta.url))
  const child = fork(script, [file, 's', `${at}`])
  let statements: number | null = null
  child.once('message', (count: number) => {
    statements = count
  })
  const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
  if (at > 0) expect(signal).toBe('SIGKILL')
  return statements
}

async function lengthsOf(store: CompleteStore, roots: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const ids = roots.flatMap((root) => [root, `${root}~1.0`])
  return new Map(await Promise.all(ids.map(async (id) => [id, (await seqs(store, id)).length] as const)))
}

type Whole = {
  readonly names: readonly string[]
  readonly lengths: ReadonlyMap<string, number>
  readonly numbers: ReadonlyMap<string, number>
}

/** Each family is there with every event, or is gone with every row. Returns those that are there. */
async function check(file: string, { names, lengths, numbers }: Whole): Promise<string[]> {
  const store = sqlite(file)
  const logged = new Set((await store.removals(99)).map(({ session }) => session))
  const left: string[] = []
  for (const root of names) {
    const there = (await store.card(root)) !== null
    if (there) left.push(root)
    for (const id of [root, `${root}~1.0`]) {
      expect(logged.has(id)).toBe(!there)
      const n = numbers.get(id) ?? 0
      if (!there) expect(meddle(file, (db) => rowsOf(db, n))).toEqual(KEPT.map(() => 0))
      else
        expect(await store.read(id, 0).then(({ events, damaged }) => [events.length, damaged])).toEqual([
          lengths.get(id),
          undefined,
        ])
    }
    expect((await store.blob(`of ${root}`)) !== null).toBe(there)
  }
  await store.close()
  return left
}
