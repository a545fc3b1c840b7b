// Backups of a real server under real workers: restored to a point in time, and as a dump. What was done after that time is not known.
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Harness, offline, type CompleteStore } from '../../src/index.ts'
import { checkStore } from '../../src/replay.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { readPostgres } from '../../src/stores/postgres/postgres-move.ts'
import { until } from '../until.ts'
import { noPostgres, type Server } from './server.ts'
import { ownServer } from './stage.ts'

const script = fileURLToPath(new URL('../../.build/test/postgres/child-worker.js', import.meta.url))

type Worker = { readonly child: ChildProcess; readonly told: Set<string> }

async function worker(url: string, file: string): Promise<Worker> {
  const child = fork(script, [url, file])
  onTestFinished(() => void child.kill('SIGKILL'))
  const told = new Set<string>()
  child.on('message', (text: string) => void told.add(text))
  await until(() => expect(told).toContain('started'))
  return { child, told }
}

/** Opens sessions and sends to them; drives nothing. */
function sender(url: string) {
  const store = postgres(url)
  const harness = new Harness({ model: offline(), store, worker: { drives: false } })
  onTestFinished(async () => {
    await harness.close()
    await store.close()
  })
  return { store, send: async (id: string) => void (await (await harness.open({ id })).send('Pay.')) }
}

async function problems(store: CompleteStore, url: string): Promise<readonly unknown[]> {
  const reader = await readPostgres({ url, name: 'test' })
  try {
    return (await checkStore(store, reader)).problems
  } finally {
    await reader.close()
  }
}

/** One that was interrupted in its call waits for a person. */
const settled = (store: CompleteStore, count: number) =>
  until(async () => {
    const cards = await store.list({ limit: 1_000 })
    const done = cards.filter(({ outcome, asks }) => outcome === 'completed' || asks.length > 0)
    expect(done).toHaveLength(count)
  })

/** Which sessions paid, by what their logs say. */
async function paidIn(store: CompleteStore): Promise<ReadonlySet<string>> {
  const paid = new Set<string>()
  for (const { session } of await store.list({ limit: 1_000 })) {
    const { events } = await store.read(session, 0)
    if (events.some(({ type }) => type === 'agent.tool_result')) paid.add(session)
  }
  return paid
}

const timeOf = async (server: Server): Promise<string> =>
  (await server.query<{ time: string }>('select clock_timestamp()::text as time'))[0]?.time ?? ''

function paidFile(): { readonly file: string; readonly lines: () => readonly string[] } {
  const folder = mkdtempSync(join(tmpdir(), 'terret-restore-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'paid')
  writeFileSync(file, '')
  return { file, lines: () => readFileSync(file, 'utf8').split('\n').filter(Boolean) }
}

describe.skipIf(noPostgres)('backups', () => {
  it('B-OPS-7: a restore to a point in time is whole, workers of the time after it write nothing, and new ones go on', async () => {
    const server = await ownServer({ keepsLog: true, fsync: true })
    const url = server.url()
    const before = sender(url)
    const { file, lines } = paidFile()
    const backup = join(server.data, '..', 'backup')
    for (let i = 0; i < 10; i++) await before.send(`before-${i}`)
    const workers = await Promise.all([worker(url, file), worker(url, file), worker(url, file)])
    server.backup(backup)
    for (let i = 0; i < 10; i++) await before.send(`during-${i}`)
    await settled(before.store, 20)
    for (const { child } of workers) child.kill('SIGSTOP')
    // Asked for before that time, and done after it.
    for (let i = 0; i < 10; i++) await before.send(`late-${i}`)
    const time = await timeOf(server)
    const known = await paidIn(before.store)
    for (const { child } of workers) child.kill('SIGCONT')
    for (let i = 0; i < 10; i++) await before.send(`lost-${i}`)
    await settled(before.store, 40)
    const [{ name } = { name: '' }] = await server.query<{ name: string }>(
      'select pg_walfile_name(pg_current_wal_lsn()) as name, pg_switch_wal()',
    )
    const kept = `select 1 from pg_stat_archiver where last_archived_wal >= '${name}'`
    await until(async () => expect(await server.query(kept)).toHaveLength(1))
    await server.restore(backup, time)

    const after = sender(url)
    const cards = await after.store.list({ limit: 1_000 })
    expect(cards).toHaveLength(30)
    expect(await paidIn(after.store)).toEqual(known)
    expect(await problems(after.store, url)).toEqual([])
    // Three workers that know of a future are asked for the ten that are due, and for one that was never heard of.
    await after.send('new')
    await until(() => expect(workers.filter(({ told }) => told.has('store_replaced'))).toHaveLength(3))
    expect(await problems(after.store, url)).toEqual([])
    expect(await paidIn(after.store)).toEqual(known)
    for (const { child } of workers) child.kill('SIGKILL')

    await Promise.all([worker(url, file), worker(url, file)])
    await settled(after.store, 31)
    expect(await problems(after.store, url)).toEqual([])
    const paid = lines()
    const twice = [...new Set(paid.filter((session, i) => paid.indexOf(session) < i))]
    // What the log did not know of was done again, and nothing else was.
    expect(twice.sort()).toEqual(Array.from({ length: 10 }, (_, i) => `late-${i}`))
    expect(paid.filter((session) => session.startsWith('lost-'))).toHaveLength(10)
  }, 180_000)

  it('B-OPS-8: a dump that is made while workers run is restored whole, and goes on', async () => {
    const server = await ownServer()
    const { file } = paidFile()
    const { store, send } = sender(server.url())
    for (let i = 0; i < 5; i++) await send(`a-${i}`)
    const { child } = await worker(server.url(), file)
    for (let i = 0; i < 20; i++) await send(`b-${i}`)
    const dump = join(server.kept, 'dump')
    server.program('pg_dump', '-Fc', '-f', dump, 'postgres')
    await settled(store, 25)
    child.kill('SIGKILL')
    await server.query('create database restored')
    server.program('pg_restore', '--exit-on-error', '-d', 'restored', dump)
    const url = server.url('restored')
    const other = sender(url)
    expect(await problems(other.store, url)).toEqual([])
    await worker(url, file)
    await other.send('new')
    await settled(other.store, 26)
    expect(await problems(other.store, url)).toEqual([])
  }, 120_000)
})
