// Sessions in files, and back in the store that they left: through the archive alone, on every store.
import { hash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { archiveOf, removeArchived, restoreArchive } from '../../src/archive/archive.ts'
import { memory, scripted, sqlite, type Store } from '../../src/index.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { noPostgres } from '../postgres/server.ts'
import { database } from '../postgres/stage.ts'
import { calls, make, tool } from '../runtime/scene.ts'
import { outcome } from '../contract/fixture.ts'
import { until } from '../until.ts'

const STORES: Readonly<Record<string, () => Promise<Store>>> = {
  memory: async () => memory(),
  sqlite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'terret-archive-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    return sqlite(join(folder, 'a.db'))
  },
  ...(noPostgres ? {} : { postgres: async () => postgres((await database()).url) }),
}

/** A root with a child, a long result in a blob, money, a label and a folder. */
async function family(store: Store): Promise<void> {
  const helper = { description: 'helps', model: scripted(() => 'helped') }
  const long = tool('long', { execute: () => 'x'.repeat(100_000) })
  const options = { store, tools: [long], subagents: { helper }, detached: true, compression: 'off' as const }
  const harness = make(scripted([calls('long'), 'done', 'heard']), options)
  const session = await harness.open({
    id: 'root',
    labels: { team: 'a' },
    folder: tmpdir(),
    metadata: { title: 'Old' },
  })
  expect(await session.run('hello', { id: 'm' })).toMatchObject({ status: 'completed' })
  const { sessionId } = await session.spawn('helper', 'help me')
  // The child's report is heard by its parent, which then rests too.
  for (const id of [sessionId, 'root'])
    await until(async () => expect(await store.card(id)).toMatchObject({ outcome: 'completed', due: null }))
  const charges = [
    { type: 'hold', key: 'k', accounts: ['session:root', 'tree:root', 'day:x'], amount: 10 },
    { type: 'settle', key: 'k', amount: 7.25 },
    { type: 'hold', key: 'l', accounts: ['session:root'], amount: 3 },
    { type: 'settle', key: 'l', amount: 3, assumed: true },
    { type: 'limit', account: 'session:root', limit: 5 },
  ] as const
  await store.commit([{ session: 'root', lane: 'inbox', events: [], charges }])
  await harness.close()
}

async function goOn(store: Store): Promise<void> {
  const harness = make(
    scripted(() => 'more'),
    { store },
  )
  await harness.session('root').run('again')
  await harness.close()
}

async function all(store: Store) {
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

const removedBy = async (store: Store): Promise<string | null> =>
  (await store.removals(99)).find(({ session }) => session === 'root')?.by ?? null

describe.each(Object.entries(STORES))('an archive of a store in %s', (_name, open) => {
  async function opened(): Promise<Store> {
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
    const file: unknown = JSON.parse(JSON.stringify(made))
    expect(await restoreArchive(store, file, await removedBy(store))).toMatchObject({ session: 'root' })
    const after = await all(store)
    expect(after).toEqual(before)
    // Archived again it is the same.
    expect((await archiveOf(store, 'root')).checksum).toBe(made.checksum)
    expect(await outcome(restoreArchive(store, file, await removedBy(store)))).toBe('session_exists')
  })

  it('B-OPS-12: that was changed, is of another store, or is an older one of it is refused, and nothing is written', async () => {
    const store = await opened()
    await family(store)
    const old = await archiveOf(store, 'root')
    await removeArchived(store, old, 'ana')
    const by = await removedBy(store)
    const text = JSON.stringify(old)
    for (const wrong of [
      null,
      [],
      'x',
      {},
      { ...old, version: 2 },
      { ...old, session: 'other' },
      { ...old, sessions: old.sessions.slice(0, 1) },
      { ...old, accounts: [] },
      JSON.parse(text.replace('hello', 'HELLO')),
      JSON.parse(text.replaceAll(tmpdir(), '/etc')),
    ])
      expect(await outcome(restoreArchive(store, wrong, by))).toBe('invalid_input')
    for (const said of [null, 'ana', `ana (archive ${'0'.repeat(64)})`])
      expect(await outcome(restoreArchive(store, old, said))).toBe('invalid_input')
    const other = await opened()
    expect(await outcome(restoreArchive(other, old, await removedBy(other)))).toBe('invalid_input')
    expect(await store.list({ limit: 9 })).toEqual([])
    // It grows, and is archived anew: the first file is of the past.
    await restoreArchive(store, old, by)
    await goOn(store)
    const young = await archiveOf(store, 'root')
    await removeArchived(store, young, 'ana')
    expect(await outcome(restoreArchive(store, old, await removedBy(store)))).toBe('invalid_input')
    expect(await outcome(restoreArchive(store, young, await removedBy(store)))).toBe('ok')
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
