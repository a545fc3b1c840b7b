// A database that was put back to an earlier time, under processes that know what came after.
import { describe, expect, it, onTestFinished } from 'vitest'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { admit, begin, claim, create, message, note, outcome, seqs, TTL, write } from '../contract/fixture.ts'
import { until } from '../until.ts'
import { noPostgres } from './server.ts'
import { database, type Database } from './stage.ts'

function opened(url: string) {
  const store = postgres(url)
  onTestFinished(() => store.close())
  return store
}

/** What a hint connects anew is ended again. */
async function alone({ server, name }: Database, ...texts: readonly string[]): Promise<void> {
  for (const text of [null, ...texts])
    await until(async () => {
      await server.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
      if (text !== null) await server.query(text)
    })
}

/** Resolves to what puts the database back to how it is now. */
async function backup(place: Database): Promise<() => Promise<void>> {
  const { server, name } = place
  await alone(place, `create database ${name}_copy template ${name}`)
  onTestFinished(async () => {
    for (const each of [`${name}_copy`, `${name}_lost`])
      await server.query(`drop database if exists ${each} with (force)`)
  })
  const renames = [`alter database ${name} rename to ${name}_lost`, `alter database ${name}_copy rename to ${name}`]
  return () => alone(place, ...renames)
}

describe.skipIf(noPostgres)('a database of an earlier time', () => {
  it('B-OPS-6: takes nothing of a process that wrote more, also when its log is as long by then', async () => {
    const place = await database()
    const old = opened(place.url)
    const owner = await begin(old, 's', 'a')
    await create(old, 'other')
    await write(old, owner, [note('both know this')])
    const restore = await backup(place)
    await write(old, owner, [note('lost'), note('lost too')])
    await restore()
    // Another worker goes on there, under the same epoch, up to the same seq.
    const fresh = opened(place.url)
    await fresh.release('s', owner.epoch)
    const next = await claim(fresh, 's', 'b')
    await write(fresh, next, [note('kept'), note('kept too')])
    const kept = await fresh.read('s', 0)
    for (const asked of [
      () => write(old, owner, [note('over it')]),
      () => write(old, { ...owner, epoch: next.epoch, seq: next.seq }, [note('over it')]),
      () => admit(old, 'other', message('m')),
      () => old.claim('other', 'a', TTL),
      () => old.take?.('a', TTL, { limit: 5 }) ?? Promise.resolve(),
      () => old.extend('a', TTL),
      () => old.remove('other', 'ana'),
      () => old.health(),
    ])
      expect(await outcome(asked())).toBe('store_replaced')
    expect(await fresh.read('s', 0)).toEqual(kept)
    expect(await seqs(fresh, 'other')).toEqual([1])
    // Started again, it goes on with what is there.
    const again = opened(place.url)
    await admit(again, 'other', message('m'))
    expect(await seqs(fresh, 'other')).toEqual([1, 2])
  })

  it('B-OPS-6: one that has what the process wrote, or its removal, goes on', async () => {
    const place = await database()
    const store = opened(place.url)
    await create(store, 's')
    await create(store, 't')
    await alone(place)
    await admit(store, 't', message('m'))
    await store.remove('t', 'ana')
    await alone(place)
    await admit(store, 's', message('m'))
    await admit(opened(place.url), 's', message('n'))
    await create(store, 'u')
    expect(await seqs(store, 's')).toEqual([1, 2, 3])
  })
})
