// A Postgres server for tests, one a process, and plain connections to it. Without the binaries the tests are skipped, by name;
// TERRET_REQUIRE_POSTGRES=1 forbids that. Another server: TERRET_POSTGRES_BIN.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { Socket } from 'node:net'
import { delimiter, join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../src/ports/system.ts'
import { PostgresStore } from '../../src/stores/postgres/store.ts'
import { type Change, clientOf, connectionsTo, type Place } from './postgres-client.ts'

function findBinaries(): string | null {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [
    process.env['TERRET_POSTGRES_BIN'] ?? '',
    ...versions.map((version) => join(debian, version, 'bin')),
    ...(process.env['PATH'] ?? '').split(delimiter),
  ]
  return folders.find((folder) => folder !== '' && existsSync(join(folder, 'initdb'))) ?? null
}

const binaries = findBinaries()
if (binaries === null && process.env['TERRET_REQUIRE_POSTGRES'] === '1')
  throw new Error('TERRET_REQUIRE_POSTGRES is set, and there is no Postgres. Set TERRET_POSTGRES_BIN to its folder.')

export const noPostgres = binaries === null

/** initdb refuses root: then it is the user of Debian's package. */
function account(): { readonly uid: number; readonly gid: number } | Record<string, never> {
  if (process.getuid?.() !== 0) return {}
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

export type Server = Place & { readonly child: ChildProcess }

/** Stops when this process ends, however it ends: the shell's input ends then. */
const WRAPPER = '"$@" & pid=$!; cat >/dev/null; kill -INT $pid; wait $pid'

async function startServer(settings: Readonly<Record<string, string>> = {}): Promise<Server> {
  if (binaries === null) throw new Error('there is no Postgres')
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'terret-pg-'))
  const user = account()
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const flags = ['-D', data, '-U', 'terret', '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N']
  execFileSync(join(binaries, 'initdb'), flags, { ...user, cwd: folder, stdio: 'pipe' })
  const all = {
    listen_addresses: '',
    unix_socket_directories: folder,
    fsync: 'off',
    max_connections: '200',
    ...settings,
  }
  const options = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const command = [join(binaries, 'postgres'), '-D', data, ...options]
  const child = spawn('sh', ['-c', WRAPPER, 'sh', ...command], {
    ...user,
    cwd: folder,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  child.unref()
  ;(child.stdin as Partial<Socket> | null)?.unref?.()
  process.once('exit', () => {
    child.kill('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  })
  const server = { socket: folder, port: 5432, child }
  await ready(server)
  return server
}

async function ready(server: Server): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    try {
      const client = clientOf(server)
      await client.connect()
      await client.end()
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  throw new Error('Postgres does not start')
}

let shared: Promise<Server> | null = null

export function sharedServer(): Promise<Server> {
  shared ??= startServer()
  return shared
}

let schemas = 0

export function newSchema(): string {
  schemas += 1
  return `t${process.pid}_${schemas}`
}

let emptied: string | null = null

/** The same schema again, with nothing in it: making the tables takes longer than most tests. For tests that run one after the other. */
export async function emptySchema(): Promise<string> {
  const schema = (emptied ??= newSchema())
  await meddle(`do $do$ declare each text; begin
    set local session_replication_role = replica;
    for each in select tablename from pg_tables where schemaname = '${schema}' and tablename <> 'meta' and tablename !~ '^events_' loop
      execute format('delete from ${schema}.%I', each);
    end loop; end $do$`)
  return schema
}

type Opening = { readonly schema?: string; readonly clock?: Clock; readonly change?: Change; readonly server?: Server }

/** Open, and closed after the test. */
export async function openPostgres({
  schema = newSchema(),
  clock,
  change,
  server,
}: Opening = {}): Promise<PostgresStore> {
  const connections = await connectionsTo(server ?? (await sharedServer()), change)
  const store = new PostgresStore(connections, { schema, ...(clock ? { clock } : {}) })
  await store.open()
  onTestFinished(() => store.close())
  return store
}

/** Runs SQL as any other program would. */
export async function meddle<Row extends object>(text: string, server?: Server): Promise<readonly Row[]> {
  const client = clientOf(server ?? (await sharedServer()))
  await client.connect()
  try {
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end()
  }
}
