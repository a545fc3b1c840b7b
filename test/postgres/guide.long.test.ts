// What docs/guide/postgres.md says, as it stands there: its programs, the rights of a role, and the sentences of its table.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Fault } from '../../src/kernel/failure.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { create, outcome, seqs } from '../contract/fixture.ts'
import { noPooler, pooler } from './pooler.ts'
import { noPostgres, PASSWORD } from './server.ts'
import { database, ownServer, ownStandby } from './stage.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(join(repository, 'docs/guide/postgres.md'), 'utf8')
const blocks = (kind: string): readonly string[] =>
  [...page.matchAll(new RegExp(`\`\`\`${kind}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, code = '']) => code)

describe.skipIf(noPostgres)('the guide on Postgres', () => {
  it('B-PG-19: its programs run as written, from two processes', async () => {
    const place = mkdtempSync(join(tmpdir(), 'terret-postgres-guide-'))
    const { url } = await database()
    writeFileSync(join(place, 'package.json'), '{ "type": "module" }')
    mkdirSync(join(place, 'node_modules'))
    symlinkSync(repository, join(place, 'node_modules', 'terret'))
    const [worker, send] = blocks('ts').map((code, n): (() => ChildProcess) => {
      const file = join(place, `${n}.mjs`)
      writeFileSync(file, code)
      const env = { ...process.env, DATABASE_URL: url }
      return () => spawn(process.execPath, [file], { cwd: place, env, stdio: ['ignore', 'pipe', 'inherit'] })
    })
    const working = worker?.()
    const ended = (child: ChildProcess | undefined) => new Promise((done) => child?.once('close', done))
    const gone = ended(working)
    onTestFinished(() => {
      working?.kill('SIGKILL')
      rmSync(place, { recursive: true })
    })
    const sending = send?.()
    let said = ''
    sending?.stdout?.on('data', (chunk: Buffer) => void (said += chunk.toString()))
    expect(await ended(sending)).toBe(0)
    expect(said).toBe('Hello from a worker.\n')
    working?.kill('SIGTERM')
    expect(await gone).toBe(0)
  })

  it('B-PG-20, B-PG-28: a role that owns nothing works with the rights that it says, changes no event and writes no removal', async () => {
    const { server, name, url } = await database()
    const owner = postgres(url)
    await owner.open()
    await owner.close()
    const role = `worker_${name}`
    const [rights = ''] = blocks('sql')
    await server.query(rights.replaceAll(/\bworker\b/g, role).replace("'…'", `'${PASSWORD}'`), name)
    onTestFinished(async () => {
      await server.query(`drop owned by ${role}`, name)
      await server.query(`drop role ${role}`)
    })
    const theirs = server.url(name, `${role}:${PASSWORD}`)
    const store = postgres(theirs)
    onTestFinished(() => store.close())
    await create(store, 's')
    expect(await seqs(store, 's')).toEqual([1])
    // The first of 100,000 sessions makes the table of their events, which is the owner's.
    const parts = `select tableowner from pg_tables where schemaname = 'terret' and tablename ~ '^events_'`
    expect(await server.query(parts, name)).toEqual([{ tableowner: 'postgres' }])
    const { default: pg } = await import('pg')
    const client = new pg.Client({ connectionString: theirs })
    await client.connect()
    await expect(client.query(`update terret.events set body = ''`)).rejects.toMatchObject({ code: '42501' })
    for (const text of [
      'delete from terret.events',
      'delete from terret.removals',
      "insert into terret.removals select n, id, id, 1, 'a', 1, 1, 1, 'nobody' from terret.sessions",
      "update terret.removals set by = 'nobody'",
    ])
      await expect(client.query(text)).rejects.toMatchObject({ code: '42501' })
    await expect(client.query('drop table terret.events_0')).rejects.toMatchObject({ code: '42501' })
    await client.end()
    await store.remove('s', 'me')
    expect(await outcome(store.read('s', 0))).toBe('session_missing')
    for (const text of [
      'delete from terret.removals',
      "update terret.removals set by = 'nobody'",
      'truncate terret.removals',
    ])
      await expect(server.query(text, name)).rejects.toThrow('removals are never changed')
  })

  it.skipIf(noPooler)('B-PG-21: each sentence of its table is what a real server makes it say', async () => {
    const { server, name, url } = await database()
    const rows = [...page.matchAll(/^\| [^|]+ \| `(\w+)`[^|]* \| `([^|]+)` \|$/gm)]
    const told = new Map(rows.map(([, code = '', text = '']) => [text, code]))
    expect(told.size).toBe(15)
    const primary = await ownServer()
    const standby = await ownStandby(primary)
    const ascii = await database(`encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C' template template0`)
    const [foreign, newer] = [await database(), await database()]
    await server.query('create schema terret; create table terret.sessions (id int)', foreign.name)
    const made = postgres(newer.url)
    await made.open()
    await made.close()
    await server.query('update terret.meta set version = version + 1', newer.name)
    const role = `weak_${name}`
    await server.query(`create role ${role} login password '${PASSWORD}'`)
    onTestFinished(async () => void (await server.query(`drop role ${role}`)))
    const wrong = [
      'mysql://h/d',
      'postgres://h/d?sslmod=require',
      `postgres://u:${PASSWORD}@nowhere.invalid:1/d`,
      server.url(name, `postgres:${PASSWORD}x`),
      server.url('nowhere'),
      `${url}?sslmode=require`,
      server.url(name, undefined, await pooler(server, 1)),
      ascii.url,
      foreign.url,
      newer.url,
      server.url(name, `${role}:${PASSWORD}`),
      standby.url(),
      `postgres://u:${PASSWORD}@127.0.0.1:1/d`,
    ]
    for (const bad of wrong) {
      const error = await (async () => {
        const store = postgres({ url: bad, patienceMs: 50 })
        onTestFinished(() => store.close())
        await store.open()
      })().catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(Fault)
      const { code, message } = error as Fault
      expect(message).not.toContain(PASSWORD)
      const found = [...told].find(([text]) => patternOf(text).test(message))
      expect([message, found?.[1]]).toEqual([message, code])
      if (found) told.delete(found[0])
    }
    // Without the package, and an old server: B-CLISTORE-41 and B-PGNET-11 have these.
    expect([...told.keys()].map((text) => text.slice(0, 24))).toEqual([
      'A store in Postgres need',
      'The server at … is Postg',
    ])
  })
})

/** A sentence in which … stands for anything. */
function patternOf(text: string): RegExp {
  const parts = text.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`)
}
