// Which sessions a watcher of cards is told of when another connection writes to the file, and that a bound on bytes does not hide damage.
import { expect, it, onTestFinished } from 'vitest'
import { CardChanges } from '../../src/stores/sqlite/card-changes.ts'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { closeSqliteFile, openSqliteFile } from '../../src/stores/sqlite/open-file.ts'
import { admit, begin, create, message, note, write } from '../contract/fixture.ts'
import { until } from '../until.ts'
import { makeFile, meddle, open } from './folder.ts'

it('B-FOLLOW-14: a look finds what was made where the events of a removed session lay', async () => {
  const file = makeFile()
  const writer = open(file)
  await create(writer, 'old')
  const owner = await begin(writer, 'gone')
  await write(
    writer,
    owner,
    Array.from({ length: 50 }, () => note('x')),
  )
  await writer.release('gone', owner.epoch)
  const connection = openSqliteFile(file, loadDriver())
  onTestFinished(() => closeSqliteFile(connection))
  const news = new CardChanges(connection.statements)
  expect(news.look()).toEqual([])
  await writer.remove('gone', 'me')
  for (const id of ['a', 'b', 'c']) await create(writer, id)
  expect(news.look().toSorted()).toEqual(['a', 'b', 'c', 'gone'])
  expect(news.look()).toEqual([])
  await admit(writer, 'old', message('m'))
  expect(news.look()).toEqual(['old'])
})

it('B-FOLLOW-14: every session that another connection grew, made or removed is told', async () => {
  const file = makeFile()
  const [writer, reader] = [open(file), open(file)]
  await create(writer, 'old')
  const told = new Set<string>()
  const leave = reader.watchCards((session) => told.add(session))
  await reader.card('old')
  const owner = await begin(writer, 'gone')
  await write(
    writer,
    owner,
    Array.from({ length: 50 }, () => note('x')),
  )
  await writer.release('gone', owner.epoch)
  await until(() => expect(told).toContain('gone'))
  told.clear()
  await writer.remove('gone', 'me')
  for (const id of ['a', 'b', 'c']) await create(writer, id)
  await admit(writer, 'old', message('m'))
  await until(() => expect([...told].toSorted()).toEqual(['a', 'b', 'c', 'gone', 'old']))
  leave()
  told.clear()
  const later = new Set<string>()
  reader.watchCards((session) => later.add(session))
  await create(writer, 'd')
  await until(() => expect([...later]).toEqual(['d']))
  expect(told.size).toBe(0)
})

it('B-FOLLOW-11: damage is found with a bound on bytes too', async () => {
  const file = makeFile()
  const store = open(file)
  const owner = await begin(store, 's')
  await write(
    store,
    owner,
    Array.from({ length: 9 }, () => note('x'.repeat(100))),
  )
  meddle(file, (db) => db.exec('DROP TRIGGER events_stay; DELETE FROM events WHERE pos = 5'))
  for (const bytesMax of [100, 500, 100_000]) {
    const seen: number[] = []
    for (;;) {
      const { events, damaged } = await store.read('s', seen.length, 100, bytesMax)
      seen.push(...events.map(({ seq }) => seq))
      if (damaged) {
        expect(damaged.seq).toBe(5)
        break
      }
      expect(events.length).toBeGreaterThan(0)
    }
    expect(seen).toEqual([1, 2, 3, 4])
  }
})
