// The one portable stream: exports, archives, restored trees, copies of stores and moves, and what is refused of them.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { redigest } from '../../sim/forge-file.ts'
import { exportSession, importSession, type Portable, type PortableRecord } from '../../src/archive/portable.ts'
import { archiveOf, checkArchive, removeArchived, restoreArchive } from '../../src/archive/session-archive.ts'
import { checkStore } from '../../src/archive/store-check.ts'
import { portableText } from '../../src/archive/stream-file.ts'
import { memory, type CompleteStore } from '../../src/index.ts'
import { Fault } from '../../src/kernel/failure.ts'
import type { StreamRow } from '../../src/stores/move/move-rows.ts'
import { LogDigest, RowDigest } from '../../src/stores/move/row-digest.ts'
import { fillStore, streamStore } from '../../src/stores/move/store-stream.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { readSqlite, sqliteSource } from '../../src/stores/sqlite/sqlite-move.ts'
import { readLog } from '../../src/view/session-log.ts'
import { begin, card, create, note, outcome, write } from '../contract/fixture.ts'
import { noPostgres } from '../postgres/server.ts'
import { database } from '../postgres/stage.ts'
import { makeFile, makeFolder, open } from './folder.ts'
import { move } from './moving.ts'
import { family, forkedFamily } from './family.ts'

const STORES: Readonly<Record<string, () => Promise<CompleteStore>>> = {
  memory: async () => memory(),
  sqlite: async () => open(makeFile()),
  ...(noPostgres ? {} : { postgres: async () => postgres((await database()).url) }),
}

async function opened(make: () => Promise<CompleteStore>): Promise<CompleteStore> {
  const store = await make()
  onTestFinished(() => store.close())
  await store.open()
  return store
}

/** The digest of a session's log, as its record says it. */
function logDigest(records: Portable, session: string): string {
  const found = records.find((record) => record.type === 'log' && record.session === session)
  return found?.type === 'log' ? found.digest : ''
}

async function rowsOf(store: CompleteStore): Promise<readonly StreamRow[]> {
  const rows: StreamRow[] = []
  for await (const row of streamStore(store)) rows.push(row)
  return rows
}

const sentence = async (promise: Promise<unknown>): Promise<readonly string[]> => {
  const error: unknown = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  return error instanceof Fault ? [error.code, error.message] : ['ok', '']
}

describe('one digest', () => {
  it('B-PORTABLE-1: an export, an archive, a copy and a move of a session say the same digest of its log', async () => {
    const [from, to] = [makeFile(), join(makeFolder(), 'to.db')]
    const store = open(from)
    await family(store, { folder: false })
    const exported = await exportSession(store, 'root')
    const archived = (await archiveOf(store, 'root')).records
    const copied = memory()
    await fillStore(copied, streamStore(store), store.now())
    await store.close()
    // A move reads the rows of the tables themselves.
    const source = await sqliteSource(from)
    const own = new LogDigest('root')
    let session = ''
    for await (const piece of source.rows())
      for (const row of piece) {
        if (row.type === 'session') session = row.id
        if (row.type === 'event' && session === 'root') own.add(row.body)
      }
    await source.close()
    await move(from, to)
    const moved = open(to)
    const said = [
      logDigest(exported, 'root'),
      logDigest(archived, 'root'),
      logDigest(await exportSession(copied, 'root'), 'root'),
      logDigest(await exportSession(moved, 'root'), 'root'),
      own.end(),
    ]
    expect(said[0]).toMatch(/^[0-9a-f]{64}$/)
    expect(new Set(said).size).toBe(1)
    // With all that belongs to it, too: the same records have the same digest, wherever they are read.
    expect(await exportSession(moved, 'root')).toEqual(exported)
    expect((await archiveOf(moved, 'root')).records).toEqual(archived)
  })
})

describe('files of earlier versions', () => {
  const golden = (name: string): unknown =>
    JSON.parse(readFileSync(join(import.meta.dirname, '..', 'golden', 'files', name), 'utf8'))

  it('B-PORTABLE-2: an exported session is imported, and a fork with its origins', async () => {
    const store = memory()
    const buyer = await importSession(store, golden('session-v1.json'))
    expect(buyer).toMatchObject({ session: 'buyer', status: 'requires_action', held: true })
    const fork = await importSession(store, golden('fork-v1.json'))
    expect(fork).toMatchObject({ session: 'fork', outcome: 'completed' })
    expect(await store.card('root')).toMatchObject({ status: 'terminated' })
    // Exported today it has the events of the file, and then that it was imported.
    const { events } = golden('fork-v1.json') as { events: unknown[] }
    expect((await readLog(store, 'fork')).slice(0, -1)).toEqual(events)
    expect((await exportSession(store, 'fork')).filter(({ type }) => type === 'blob').length).toBeGreaterThan(0)
  })

  it('B-PORTABLE-2: an archive is restored in the store whose log of removals has its checksum', async () => {
    const store = memory()
    const file = golden('archive-v1.json') as { checksum: string; sessions: { session: string; events: unknown[] }[] }
    await create(store, 'root')
    await store.remove('root', `ana (archive ${file.checksum})`)
    const [removal] = await store.removals(1)
    const card = await restoreArchive(store, await checkArchive(file), removal?.by ?? null)
    expect(card).toMatchObject({ session: 'root', folder: '/tmp', labels: { team: 'a' }, title: 'Old' })
    for (const { session, events } of file.sessions) expect(await readLog(store, session)).toEqual(events)
    expect(await store.account('session:root')).toMatchObject({ held: 0, spent: 10.25, assumed: 3, limit: 5 })
    expect(await store.account('tree:root')).toMatchObject({ spent: 7.25 })
  })

  it('B-PORTABLE-2: one that was changed is refused, and so is an archive that is imported', async () => {
    for (const name of ['session-v1.json', 'fork-v1.json', 'archive-v1.json']) {
      const file = golden(name) as Record<string, unknown>
      for (const wrong of [
        { ...file, session: 'x' },
        { ...file, version: 2 },
        { ...file, checksum: '' },
      ]) {
        expect(await outcome(importSession(memory(), wrong))).toBe('invalid_input')
        expect(await outcome(checkArchive(wrong))).toBe('invalid_input')
      }
    }
    expect(await sentence(importSession(memory(), golden('archive-v1.json')))).toEqual([
      'invalid_input',
      expect.stringContaining('`terret store restore` brings it back'),
    ])
    expect(await outcome(checkArchive(golden('session-v1.json')))).toBe('invalid_input')
  })
})

const eventAt = (file: Portable, n: number): number => file.findIndex((record) => record.type === 'event') + n
const without = (file: Portable, i: number): Portable => file.filter((_, at) => at !== i)
const put = (file: Portable, i: number, record: object): Portable =>
  file.map((each, at) => (at === i ? (record as PortableRecord) : each))

const wrongs: readonly (readonly [string, string, (file: Portable) => unknown])[] = [
  [
    'a newer version',
    'a newer version of Terret wrote it (format 2, and this one reads 1)',
    (file) => put(file, 0, { ...file[0], version: 2, more: true }),
  ],
  ['another format', 'not a file that Terret exported', (file) => put(file, 0, { ...file[0], format: 'transcript' })],
  ['an unknown version', 'records[0].version must be 1', (file) => put(file, 0, { ...file[0], version: 0 })],
  ['no header', 'not a file that Terret exported', (file) => file.slice(1)],
  ['another content', 'records[0].holds must be one of', (file) => put(file, 0, { ...file[0], holds: 'all' })],
  ['a second header', 'a second header', (file) => [file[0], ...file]],
  ['an unknown field', 'records[1].extra is not known', (file) => put(file, 1, { ...file[1], extra: 1 })],
  ['an unknown record', 'has the type "wish"', (file) => put(file, 2, { type: 'wish' })],
  ['no end', 'it was cut off: its last record is missing', (file) => file.slice(0, -1)],
  ['half of it', 'it was cut off: its last record is missing', (file) => file.slice(0, eventAt(file, 2))],
  ['a missing event', 'of its', (file) => without(file, eventAt(file, 1))],
  ['an event twice', 'of its', (file) => file.flatMap((each, i) => (i === eventAt(file, 1) ? [each, each] : [each]))],
  [
    'a changed event',
    'was changed or damaged: its checksum does not match',
    (file) => JSON.parse(JSON.stringify(file).replace('hello', 'HELLO')) as unknown,
  ],
  [
    'a changed digest',
    'it was changed or damaged: its checksum does not match',
    (file) => put(file, file.length - 1, { type: 'end', digest: 'f'.repeat(64) }),
  ],
  [
    'another id',
    'was changed or damaged: its checksum does not match',
    (file) => put(file, 1, { ...file[1], session: 'other' }),
  ],
  [
    'a blob twice',
    'is in it twice',
    (file) => redigest(file.flatMap((each): Portable => (each.type === 'blob' ? [each, each] : [each]))),
  ],
  [
    'a session twice',
    'the session root is in it twice',
    (file) => redigest([file[0] as PortableRecord, ...file.slice(1, -1), ...originOf(file), ...file.slice(-1)]),
  ],
  [
    'a second root',
    'there is more than one tree in it',
    (file) => redigest([...file.slice(0, -1), ...asRoot(file), ...file.slice(-1)]),
  ],
  [
    'an event of no session',
    'an event of it belongs to no session',
    (file) => redigest([...file.slice(0, -1), file[eventAt(file, 0)] as PortableRecord, ...file.slice(-1)]),
  ],
  ['no session', 'there is no session in it', (file) => redigest([...file.slice(0, 1), ...file.slice(-1)])],
  ['an end in the middle', 'a second end', (file) => [...file, file.at(-1)]],
]
const logOf = (file: Portable) =>
  file.slice(
    1,
    file.findIndex(({ type }, i) => i > 1 && type !== 'event'),
  )
const originOf = (file: Portable): Portable => put(logOf(file), 0, { ...file[1], part: 'origin' })
const asRoot = (file: Portable): Portable => put(logOf(file), 0, { ...file[1], session: 'root2' })

describe('a stream that is wrong', () => {
  it.each(wrongs)(
    'B-PORTABLE-3: %s is refused in one sentence, and nothing is written',
    async (_name, said, change) => {
      const store = memory()
      await family(store, { folder: false })
      const changed = change(await exportSession(store, 'root'))
      const there = memory()
      const [code, text = ''] = await sentence(importSession(there, changed))
      expect([code, text]).toEqual(['invalid_input', expect.stringContaining(said)])
      expect(text).not.toContain('\n')
      expect(await there.list({ limit: 9 })).toEqual([])
    },
  )

  it('B-PORTABLE-3: an event that was moved to another session of the archive is noticed, with new digests, too', async () => {
    const store = memory()
    await family(store)
    const { records } = await archiveOf(store, 'root')
    const child = records.findIndex((record) => record.type === 'log' && record.part === 'child')
    const taken = records[eventAt(records, 1)] as PortableRecord
    const shifted = records.flatMap((each, i) => (i === child ? [each, taken] : each === taken ? [] : [each]))
    expect(await sentence(checkArchive(shifted))).toEqual(['invalid_input', expect.stringContaining('of its')])
    expect(await outcome(checkArchive(redigest(shifted)))).toBe('invalid_input')
    const stray = put(
      records,
      records.findIndex(({ type }) => type === 'account'),
      {
        type: 'account',
        id: 'session:other',
        limit: null,
        held: 0,
        spent: 1,
        assumed: 0,
      },
    )
    expect(await sentence(checkArchive(redigest(stray)))).toEqual([
      'invalid_input',
      expect.stringContaining('an account of it is none of its sessions'),
    ])
  })

  it('B-PORTABLE-4: as text it is JSON with one record on each line', async () => {
    const store = memory()
    await family(store)
    const { records } = await archiveOf(store, 'root')
    const text = portableText(records)
    expect(JSON.parse(text)).toEqual(records)
    expect(text.trimEnd().split('\n')).toHaveLength(records.length)
    expect(text.split('\n')[0]).toBe('[{"type":"header","format":"terret.stream","version":1,"holds":"tree"},')
  })
})

it('B-PORTABLE-5: an archive comes back with a child that reads the log of its parent', async () => {
  const store = memory()
  await forkedFamily(store)
  const made = await archiveOf(store, 'root')
  expect(made.tree.logs.map(({ events: [created] }) => created)).toMatchObject([{}, { fork: { session: 'root' } }])
  expect(made.records.filter((record) => record.type === 'log' && record.part === 'origin')).toEqual([])
  const logs = await Promise.all(made.tree.logs.map(({ session }) => readLog(store, session)))
  await removeArchived(store, made, 'ana')
  const [removal] = await store.removals(1)
  await restoreArchive(store, await checkArchive(JSON.parse(JSON.stringify(made.records))), removal?.by ?? null)
  expect(await Promise.all(made.tree.logs.map(({ session }) => readLog(store, session)))).toEqual(logs)
})

const WAYS = Object.keys(STORES).flatMap((from) => Object.keys(STORES).map((to) => [from, to] as const))

describe.each(WAYS)('a copy from %s to %s', (from, to) => {
  it('B-PORTABLE-6: has every session, blob, account and trouble, and says the digest of the source', async () => {
    const [source, target] = [await opened(STORES[from] as never), await opened(STORES[to] as never)]
    await family(source)
    await forkedFamily(source, 'a-tree')
    // Sorted before the session that it was forked from.
    const created = {
      type: 'session.created',
      agent: 'a',
      planner: 'model',
      fork: { session: 'root', seq: 3 },
    } as const
    const held = await begin(source, 'tired')
    await source.release('tired', held.epoch, { attempts: 3, reason: 'It failed.', until: null })
    await source.commit([
      {
        session: 'a-fork',
        lane: 'owner',
        epoch: 0,
        expectedSeq: 0,
        card: card('a-fork'),
        events: [{ seq: 1, at: source.now(), epoch: 0, ...created }],
      },
    ])
    const rows = await rowsOf(source)
    const { digest, counts } = await fillStore(target, rows, source.now())
    const back = new RowDigest()
    for (const row of await rowsOf(target)) back.add(row)
    expect(back.end()).toBe(digest)
    expect(counts.session).toBe((await source.list({ limit: 99 })).length)
    const ids = async (store: CompleteStore) => (await store.list({ limit: 99 })).map(({ session }) => session)
    expect(await ids(target)).toEqual(await ids(source))
    expect(await target.card('tired')).toMatchObject({ due: null, trouble: { attempts: 3, until: null } })
    for (const id of await ids(source)) expect(await readLog(target, id)).toEqual(await readLog(source, id))
    expect(await target.account('session:root')).toMatchObject({ spent: 10.25, assumed: 3, limit: 5 })
    // Again it finds everything there.
    expect((await fillStore(target, streamStore(source), source.now())).digest).toBe(digest)
  })
})

describe('a copy that is wrong or cut off', () => {
  it('B-PORTABLE-7: goes on where it was cut off, and no tree is there in part', async () => {
    const source = memory()
    for (const id of ['a', 'b', 'c']) await write(source, await begin(source, id), [note('x')], { release: true })
    const rows = await rowsOf(source)
    const target = open(makeFile())
    for (let at = 0; at <= rows.length; at++) {
      const cut = fillStore(target, rows.slice(0, at), source.now())
      // Cut inside a log it is refused; between two logs it looks like the stream of a smaller store.
      expect(['ok', 'store_damaged']).toContain(await outcome(cut))
      for (const { session, seq } of await target.list({ limit: 9 })) expect([session, seq]).toEqual([session, 2])
    }
    expect((await target.list({ limit: 9 })).length).toBe(3)
    const file = makeFile()
    const check = await checkStore(target, await readSqlite(file))
    expect(check.problems).toEqual([])
  })

  it('B-PORTABLE-8: another session under the id of one is refused, and stays; a damaged row is refused', async () => {
    const [source, target] = [memory(), memory()]
    await create(source, 's')
    await write(target, await begin(target, 's'), [note('mine')], { release: true })
    expect(await outcome(fillStore(target, streamStore(source), source.now()))).toBe('session_exists')
    expect((await target.card('s'))?.seq).toBe(2)
    const changed = (await rowsOf(target)).map((row) =>
      row.type === 'event' ? { ...row, body: row.body.replace('mine', 'thine') } : row,
    )
    expect(await sentence(fillStore(memory(), changed, 0))).toEqual([
      'store_damaged',
      expect.stringContaining('session s was changed or damaged: its checksum does not match.'),
    ])
  })
})
