// From an empty server to three workers and a server by the script of the page; numbers of both; a worker after a restore; and an archive
// that is killed. Real processes on a real Postgres.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freePort, noPostgres, PASSWORD } from '../postgres/server.ts'
import { database, ownServer } from '../postgres/stage.ts'
import { share } from '../runs.ts'
import { until } from '../until.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { Harness, offline } from '../../src/index.ts'
import { admit, create, message } from '../contract/fixture.ts'
import { stageOfEach } from './scripted.ts'
import { MAIN } from './stage.ts'

const { stage, scriptedBy } = stageOfEach()
const script = fileURLToPath(new URL('../../examples/several-machines/start.sh', import.meta.url))
const hasPsql = existsSync('/usr/bin/psql')

const metricsAt = async (url: string, headers: Readonly<Record<string, string>> = {}): Promise<string> => {
  const response = await fetch(url, { headers })
  expect(response.status).toBe(200)
  return response.text()
}

/** As a page asks that has its own name lead to this machine. */
const statusUnder = (host: string, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const asked = get({ host: '127.0.0.1', port, path: '/metrics', headers: { host: `${host}:${port}` } }, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
    asked.on('error', reject)
  })

/** Three free ports that differ in their last digit, without it. Below those that the system gives to others meanwhile. */
async function freeTens(): Promise<number> {
  for (;;) {
    const tens = 2_000 + Math.floor(Math.random() * 1_000)
    const free = await Promise.all([1, 2, 3].map((digit) => isFree(tens * 10 + digit)))
    if (free.every((each) => each)) return tens
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((done) => {
    const server = createServer()
    server.once('error', () => done(false))
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)))
  })
}

describe.skipIf(noPostgres)('without Postgres on this machine these are skipped', () => {
  it.skipIf(!hasPsql)(
    'B-OPS-17, B-OPS-4: start.sh makes roles, tables, three workers and a server, which all say their numbers',
    async () => {
      const server = await ownServer()
      const base = await freeTens()
      const port = await freePort()
      const bin = join(stage.home, '..', 'path')
      mkdirSync(bin)
      writeFileSync(join(bin, 'terret'), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`, { mode: 0o755 })
      const env = {
        ...stage.env,
        PATH: `${bin}:${process.env['PATH'] ?? ''}`,
        PGHOST: '127.0.0.1',
        PGPORT: String(server.port),
        PGUSER: 'postgres',
        PGPASSWORD: PASSWORD,
        OWNER_PASSWORD: 'owner-secret',
        WORKER_PASSWORD: 'worker-secret',
        WORK: stage.folder,
        PORT: String(port),
        METRICS_PORT: String(base),
      }
      const child = spawn('sh', [script], { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
      onTestFinished(() => {
        try {
          process.kill(-(child.pid ?? 0), 'SIGKILL')
        } catch {}
      })
      let said = ''
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (text: Buffer) => void (said += text.toString()))
      // Each process has the time of one to start.
      await until(() => expect(said).toContain('Nothing is wrong.'))
      for (const n of [1, 2, 3]) await until(() => expect(said.split('Metrics are at').length).toBeGreaterThan(n))
      await until(() => expect(said).toContain(`Serving http://127.0.0.1:${port}`))
      expect(said).not.toContain('secret')
      for (const n of [1, 2, 3]) {
        const text = await metricsAt(`http://127.0.0.1:${base}${n}/metrics`)
        expect(text).toContain('terret_up 1\n')
        expect(text).toContain('terret_claims_vain_total 0\n')
        expect((await fetch(`http://127.0.0.1:${base}${n}/`)).status).toBe(404)
        expect(await statusUnder('evil.example', Number(`${base}${n}`))).toBe(421)
      }
      const [, token = ''] = /#token=([\w-]+)/.exec(said) ?? []
      const url = `http://127.0.0.1:${port}/metrics`
      expect((await fetch(url)).status).toBe(401)
      expect(await metricsAt(url, { authorization: `Bearer ${token}` })).toContain('terret_sessions 0\n')
      // Work that is put there by another process, as the worker's role.
      const store = `postgres://terret_worker:worker-secret@127.0.0.1:${server.port}/terret`
      const ran = await stage.terretIn(
        { env: { TERRET_STORE: store } },
        'run',
        '--model',
        'offline:any',
        'Say something.',
      )
      expect(ran.code).toBe(0)
      expect(await metricsAt(url, { authorization: `Bearer ${token}` })).toContain('terret_sessions 1\n')
      child.kill('SIGTERM')
      await new Promise((done) => child.once('exit', done))
      const left = await server.query("select 1 from pg_stat_activity where usename = 'terret_worker'")
      expect(left).toHaveLength(0)
    },
    120_000,
  )

  it('B-DIST-26: four workers drive 120 due sessions of two folders, each once, without a claim in vain, and leave those of a third folder alone', async () => {
    const { url } = await database()
    const store = postgres(url)
    const harness = new Harness({ program: 'terret', model: offline(), store, worker: { drives: false } })
    onTestFinished(() => harness.close())
    const second = join(stage.folder, 'second')
    mkdirSync(second)
    const folders = [stage.folder, second, join(stage.folder, 'not here')]
    const sessions = await Promise.all(
      Array.from({ length: 126 }, async (_, i) => {
        const session = await harness.open({ folder: folders[i < 120 ? i % 2 : 2] ?? '' })
        await session.send('Say something.')
        return session.id
      }),
    )
    const ports = await Promise.all([freePort(), freePort(), freePort(), freePort()])
    const workers = ports.map((port) =>
      stage.start(['worker', '--model', 'offline:any', '--metrics', String(port)], { env: { TERRET_STORE: url } }),
    )
    onTestFinished(() => workers.forEach(({ child }) => void child.kill('SIGKILL')))
    const cards = () => Promise.all(sessions.map((id) => store.card(id)))
    await until(async () => expect((await cards()).filter((card) => card?.outcome === 'completed')).toHaveLength(120))
    const claims = await Promise.all(
      ports.map(async (port) => {
        const text = await metricsAt(`http://127.0.0.1:${port}/metrics`)
        return ['total', 'vain_total'].map((name) =>
          Number(new RegExp(`^terret_claims_${name} (\\d+)$`, 'm').exec(text)?.[1]),
        )
      }),
    )
    expect(claims.map(([, vain]) => vain)).toEqual([0, 0, 0, 0])
    expect(claims.reduce((sum, [all = 0]) => sum + all, 0)).toBe(120)
  }, 120_000)

  it('B-OPS-4: a port that is none, or in use, is refused in one sentence', async () => {
    for (const wrong of ['x', '99999', ':1', 'a b:1'])
      expect(await stage.refused('worker', '--metrics', wrong)).toMatchObject({ code: 2 })
    const started = stage.start(['worker', '--model', 'offline:any', '--metrics', '0'])
    onTestFinished(() => void started.child.kill('SIGKILL'))
    await started.says('Metrics are at')
    const taken = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void taken.close())
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    const refused = await stage.start(['worker', '--model', 'offline:any', '--metrics', String(port)]).ended
    expect([refused.code, refused.err]).toEqual([7, expect.stringContaining(`Port ${port} of 127.0.0.1 is in use`)])
    started.child.kill('SIGTERM')
    const { code, err } = await started.ended
    expect([code, err]).toEqual([0, expect.stringMatching(/Metrics are at http:\/\/127\.0\.0\.1:\d+\/metrics/)])
  }, 60_000)

  it('B-OPS-5: the doctor says what waits for a worker, and how many connections are used', async () => {
    const { url } = await database()
    const store = postgres(url)
    onTestFinished(() => store.close())
    await create(store, 's')
    await admit(store, 's', message('m'))
    const { out } = await stage.terretIn({ env: { TERRET_STORE: url } }, 'doctor', '--model', 'offline:any')
    expect(out).toMatch(/^store .* 1 sessions, 1 due without a worker, for up to \d+ s, \d+ of \d+ connections$/m)
  })

  it.each([
    ['worker', []],
    ['serve', ['--port', '0']],
  ] as const)(
    'B-OPS-6: a %s whose database was restored to an earlier time ends with exit code 8, and the next process goes on',
    async (command, flags) => {
      const write = { calls: [{ tool: 'write', args: { path: 'out.txt', content: 'written' } }] }
      await scriptedBy([write, 'Done.', 'Done again.', 'Done.'])
      const { url, server, name } = await database()
      const env = { TERRET_STORE: url }
      expect((await stage.terretIn({ env }, 'run', 'Write.')).code).toBe(3)
      const worker = stage.start([command, ...flags], { env })
      onTestFinished(() => void worker.child.kill('SIGKILL'))
      const allow = (yes: boolean) =>
        server.query(`update pg_database set datallowconn = ${yes} where datname like '${name}%'`)
      // A database with connections can be neither copied nor renamed, and clients that are cut off connect again at once.
      const alone = async (text: string) => {
        await allow(false)
        await until(async () => {
          await server.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
          await server.query(text)
        })
        await allow(true)
      }
      await alone(`create database ${name}_copy template ${name}`)
      onTestFinished(async () => void (await server.query(`drop database if exists ${name}_lost with (force)`)))
      expect((await stage.terretIn({ env }, 'approve', 'latest', '--yes')).code).toBe(0)
      await until(async () => {
        const { out } = await stage.terretIn({ env }, 'list', '--all', '--json')
        expect(JSON.parse(out)).toMatchObject({ outcome: 'completed' })
      })
      await alone(`alter database ${name} rename to ${name}_lost`)
      await alone(`alter database ${name}_copy rename to ${name}`)
      expect((await stage.terretIn({ env }, 'approve', 'latest', '--yes')).code).toBe(0)
      const ended = await worker.ended
      expect([ended.code, ended.err]).toEqual([8, expect.stringContaining('it was restored to an earlier time')])
      expect((await stage.terretIn({ env }, 'worker', '--idle')).code).toBe(0)
      const { out } = await stage.terretIn({ env }, 'list', '--all', '--json')
      expect(JSON.parse(out)).toMatchObject({ outcome: 'completed' })
      expect((await stage.terretIn({ env }, 'store', 'check')).code).toBe(0)
    },
    120_000,
  )

  it('B-OPS-13: an archive, and then a restore, that are killed at any moment lose nothing, and go on', async () => {
    const { url } = await database()
    const env = { TERRET_STORE: url }
    const folder = join(stage.home, '..', 'archive')
    const count = 12
    for (let i = 0; i < count; i++)
      expect((await stage.terretIn({ env }, 'run', '--model', 'offline:any', `Task ${i}.`)).code).toBe(0)
    const ids = async (): Promise<readonly string[]> => {
      const { out } = await stage.terretIn({ env }, 'list', '--all', '--limit', '99', '--json')
      return out
        .split('\n')
        .filter(Boolean)
        .map((line) => (JSON.parse(line) as { session: string }).session)
    }
    const all = new Set(await ids())
    expect(all.size).toBe(count)
    const kept = (): readonly string[] =>
      existsSync(folder)
        ? readdirSync(folder)
            .filter((file) => file.endsWith('.json'))
            .map(
              (file) =>
                (JSON.parse(readFileSync(join(folder, file), 'utf8')) as { session: string }[])[1]?.session ?? '',
            )
        : []
    const killed = async (args: readonly string[], ms: number): Promise<void> => {
      const started = stage.start(args, { env })
      setTimeout(() => started.child.kill('SIGKILL'), ms)
      await started.ended
      // Each is in the store or in a whole file, and those in both are taken from either.
      expect(new Set([...(await ids()), ...kept()])).toEqual(all)
    }
    for (const ms of share([300, 600, 900, 1_200, 1_500]))
      await killed(['store', 'archive', '--older', '0', '--to', folder], ms)
    expect((await stage.terretIn({ env }, 'store', 'archive', '--older', '0', '--to', folder)).code).toBe(0)
    expect(await ids()).toEqual([])
    for (const ms of share([300, 600, 900, 1_200])) await killed(['store', 'restore', folder], ms)
    expect((await stage.terretIn({ env }, 'store', 'restore', folder)).code).toBe(0)
    expect(new Set(await ids())).toEqual(all)
    expect((await stage.terretIn({ env }, 'store', 'check')).code).toBe(0)
  }, 180_000)
})
