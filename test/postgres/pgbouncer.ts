// A real pgbouncer in transaction mode, in front of a server. For programs and tests alike; what a test takes of it is pooler.ts.
import { spawn, spawnSync } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { account, freePort, PASSWORD, type Server } from './server.ts'

const program = ['pgbouncer', '/usr/sbin/pgbouncer'].find((name) => spawnSync(name, ['--version']).status === 0)
/** As with the server: the CI installs it, and elsewhere its absence is a named skip. */
export const noPooler = program === undefined
if (noPooler && process.env['TERRET_REQUIRE_POSTGRES'])
  throw new Error('pgbouncer is missing, and its tests may not be skipped here')

export type Pooler = { readonly port: number; readonly close: () => Promise<void> }

const LOOK_MS = 20
const LOOKS_MAX = 500

/** `size` server connections serve all clients. */
export async function startPooler(server: Server, size: number): Promise<Pooler> {
  const folder = mkdtempSync(join(tmpdir(), 'terret-pooler-'))
  const port = await freePort()
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'trust',
    auth_file: join(folder, 'users'),
    pool_mode: 'transaction',
    default_pool_size: size,
    ignore_startup_parameters: '',
    // A server that was away is asked again after a second, not after fifteen.
    server_login_retry: 1,
  }
  writeFileSync(join(folder, 'users'), `"postgres" "${PASSWORD}"\n`)
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  writeFileSync(
    join(folder, 'ini'),
    ['[databases]', `* = host=127.0.0.1 port=${server.port}`, '[pgbouncer]', ...lines, ''].join('\n'),
  )
  if (account)
    for (const path of [folder, join(folder, 'users'), join(folder, 'ini')]) chownSync(path, account.uid, account.gid)
  const child = spawn(program ?? '', [join(folder, 'ini')], { ...account, cwd: '/', stdio: 'ignore' })
  const sweep = (): void => void child.kill('SIGKILL')
  process.once('exit', sweep)
  const close = async (): Promise<void> => {
    process.off('exit', sweep)
    const ended = new Promise((done) => child.once('exit', done))
    child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
  for (let looks = 0; !(await answers(server.url('postgres', undefined, port))); looks++) {
    if (child.exitCode !== null || looks === LOOKS_MAX) throw new Error('pgbouncer did not start')
    await sleep(LOOK_MS)
  }
  return { port, close }
}

async function answers(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    return false
  }
}
