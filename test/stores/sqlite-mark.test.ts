// A store whose file is replaced, restored from an older copy, or lost, and how that is noticed (F17).
import { copyFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { admit, create, message, outcome } from '../contract/fixture.ts'
import { makeFile, makeFolder, meddle, open } from './folder.ts'

async function filled(file: string, sessions: readonly string[]): Promise<void> {
  const store = open(file)
  for (const session of sessions) {
    await create(store, session)
    await admit(store, session, message('m'))
  }
  await store.close()
}

describe('a mark of a store', () => {
  it('B-STORE-151: holds while the store goes on, and for an empty one too; taking it writes nothing', async () => {
    const file = makeFile()
    const store = open(file)
    const empty = await store.mark()
    await create(store, 's')
    const { transactions } = store
    const mark = await store.mark()
    await store.verify(mark)
    expect(store.transactions).toBe(transactions)
    await admit(store, 's', message('m'))
    expect((await store.mark()).pos).toBe(mark.pos + 1)
    await store.close()
    const again = open(file)
    for (const each of [empty, mark]) await again.verify(each)
    expect(await again.mark()).toMatchObject({ store: mark.store, pos: mark.pos + 1 })
  })

  it('B-STORE-152: refuses another store, an older copy, and an older copy that went on (F17)', async () => {
    const folder = makeFolder()
    const [file, copy, other] = ['terret.db', 'copy.db', 'other.db'].map((name) => join(folder, name))
    await filled(file ?? '', ['one'])
    copyFileSync(file ?? '', copy ?? '')
    await filled(file ?? '', ['two'])
    await filled(other ?? '', ['one', 'two'])
    const store = open(file ?? '')
    const mark = await store.mark()
    const refused = async (path: string | undefined): Promise<unknown> => {
      const found = open(path ?? '')
      try {
        return await found.verify(mark).catch((error: unknown) => error)
      } finally {
        await found.close()
      }
    }
    expect(await refused(other)).toMatchObject({ code: 'store_replaced', message: /not the store it was/ })
    expect(await refused(copy)).toMatchObject({ code: 'store_replaced', message: /older than it was/ })
    await filled(copy ?? '', ['three', 'four'])
    expect(await refused(copy)).toMatchObject({ code: 'store_replaced', message: /went on from an older copy/ })
    await store.verify(mark)
  })
})

describe('an open store', () => {
  it('B-STORE-153: whose file is replaced refuses reads and writes with store_replaced, until it is opened again (F17)', async () => {
    const file = makeFile()
    await filled(file, ['s'])
    copyFileSync(file, `${file}.copy`)
    const time = { now: 1_000_000 }
    const clock = { now: () => time.now, timer: () => () => {} }
    const store = open(file, { clock })
    await admit(store, 's', message('m1'))
    renameSync(`${file}.copy`, file)
    time.now += 1_001
    expect(await outcome(store.read('s', 0))).toBe('store_replaced')
    expect(await outcome(admit(store, 's', message('m2')))).toBe('store_replaced')
    expect(await outcome(store.card('s'))).toBe('store_replaced')
    await store.close()
    expect((await open(file).read('s', 0)).events.length).toBeGreaterThanOrEqual(2)
  })

  it('B-STORE-154: that goes back behind what it had is refused with store_replaced, and nothing is written (F17)', async () => {
    const file = makeFile()
    await filled(file, ['one', 'two'])
    const store = open(file)
    await admit(store, 'one', message('before'))
    const before = (await store.mark()).pos
    meddle(file, (db) => db.exec('DROP TRIGGER events_stay; DELETE FROM events WHERE pos > 2'))
    expect(await outcome(admit(store, 'one', message('after')))).toBe('store_replaced')
    expect(await outcome(admit(store, 'two', message('after')))).toBe('store_replaced')
    expect(meddle(file, (db) => db.prepare('SELECT max(pos) AS pos FROM events').get())).toEqual({ pos: 2 })
    expect(before).toBeGreaterThan(2)
  })
})
