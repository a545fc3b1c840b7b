// Sessions in files, and back in the store that they left: through the archive alone, on every store.
import { hash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { archiveOf, checkArchive, removeArchived, restoreArchive } from '../../src/archive/session-archive.ts'
import { memory, scripted, sqlite, type CompleteStore } from '../../src/index.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { noPostgres } from '../postgres/server.ts'
import { database } from '../postgres/stage.ts'
import { make } from '../runtime/scene.ts'
import { outcome } from '../contract/fixture.ts'
import { family } from './family.ts'

const STORES: Readonly<Record<string, () => Promise<CompleteStore>>> = {
  memory: async () => memory(),
  sqlite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'terret-archive-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    return sqlite(join(folder, 'a.db'))
  },
  ...(noPostgres ? {} : { postgres: async () => postgres((await database()).url) }),
}

async function goOn(store: CompleteStore): Promise<void> {
  const harness = make(
    scripted(() => 'more'),
    { store },
  )
  await harness.session('root').run('again')
  await harness.close()
}

async function all(store: CompleteStore) {
  const cards = await store.list({ limit: 99 })
  const logs = await Promise.all(cards.map(({ session }) => store.read(session, 0)))
  const hashes = [...JSON.stringify(logs).matchAll(/"hash":"([0-9a-f]{64})"/g)].map(([, name = '']) => name)
  const found = await Promise.all(hashes.map((name) => store.blob(name, 'root')))
  const blobs = found.flatMap((blob) =>
    blob ? [`${blob.media} ${blob.data.length} ${hash('sha256', blob.data)}`] : [],
  )
  const accounts = await Promise.all(['session:root', 'tree:root', 'day:x'].map((id) => store.account(id)))
  return { cards, logs: logs.map((log) => hash('sha256', JSON.stringify(log))), blobs, accounts }
}

const restored = async (store: CompleteStore, value: unknown, by: string | null) =>
  restoreArchive(store, await checkArchive(value), by)

const removedBy = async (store: CompleteStore): Promise<string | null> =>
  (await store.removals(99)).find(({ session }) => session === 'root')?.by ?? null

describe.each(Object.entries(STORES))('an archive of a store in %s', (_name, open) => {
  async function opened(): Promise<CompleteStore> {
    const store = await open()
    onTestFinished(() => store.close())
    await store.open()
    return store
  }

  it('B-OPS-11: comes back as it was, byte for byte, with its children, blobs, money, folder and labels', async () => {
    const store = await opened()
    await family(store)
    const before = await all(store)
    expect(before.blobs.length).toBeGreaterThan(0)
    const made = await archiveOf(store, 'root')
    expect(await removeArchived(store, made, 'ana')).toHaveLength(2)
    expect(await store.list({ limit: 9 })).toEqual([])
    const file: unknown = JSON.parse(JSON.stringify(made.records))
    expect(await restored(store, file, await removedBy(store))).toMatchObject({ session: 'root' })
    const after = await all(store)
    expect(after).toEqual(before)
    // Archived again it is the same.
    expect((await archiveOf(store, 'root')).digest).toBe(made.digest)
    expect(await outcome(restored(store, file, await removedBy(store)))).toBe('session_exists')
  })

  it('B-OPS-12: that was changed, is of another store, or is an older one of it is refused, and nothing is written', async () => {
    const store = await opened()
    await family(store)
    const old = await archiveOf(store, 'root')
    await removeArchived(store, old, 'ana')
    const by = await removedBy(store)
    const file = old.records
    const text = JSON.stringify(file)
    for (const wrong of [
      null,
      [],
      'x',
      {},
      [{ ...file[0], version: 2 }, ...file.slice(1)],
      [...file.slice(0, 1), { ...file[1], session: 'other' }, ...file.slice(2)],
      file.filter((record, i) => i < 2 || record.type !== 'log'),
      file.filter(({ type }) => type !== 'account'),
      file.slice(0, -1),
      JSON.parse(text.replace('hello', 'HELLO')),
      JSON.parse(text.replaceAll(tmpdir(), '/etc')),
    ])
      expect(await outcome(restored(store, wrong, by))).toBe('invalid_input')
    for (const said of [null, 'ana', `ana (archive ${'0'.repeat(64)})`])
      expect(await outcome(restored(store, file, said))).toBe('invalid_input')
    const other = await opened()
    expect(await outcome(restored(other, file, await removedBy(other)))).toBe('invalid_input')
    expect(await store.list({ limit: 9 })).toEqual([])
    // It grows, and is archived anew: the first file is of the past.
    await restored(store, file, by)
    await goOn(store)
    const young = await archiveOf(store, 'root')
    await removeArchived(store, young, 'ana')
    expect(await outcome(restored(store, file, await removedBy(store)))).toBe('invalid_input')
    expect(await outcome(restored(store, young.records, await removedBy(store)))).toBe('ok')
  })

  it('B-OPS-10: is not taken out when it has grown since', async () => {
    const store = await opened()
    await family(store)
    const made = await archiveOf(store, 'root')
    await goOn(store)
    expect(await outcome(removeArchived(store, made, 'ana'))).toBe('conflict')
    expect(await store.list({ limit: 9 })).toHaveLength(2)
  })
})
