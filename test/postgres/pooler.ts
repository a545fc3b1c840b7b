// A real pgbouncer in transaction mode, in front of a server. Gone after the test.
import { spawn, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { until } from '../until.ts'
import { account, freePort, PASSWORD, type Server } from './server.ts'

const program = ['pgbouncer', '/usr/sbin/pgbouncer'].find((name) => spawnSync(name, ['--version']).status === 0)
/** As with the server: the CI installs it, and elsewhere its absence is a named skip. */
export const noPooler = program === undefined
if (noPooler && process.env['TERRET_REQUIRE_POSTGRES'])
  throw new Error('pgbouncer is missing, and its tests may not be skipped here')

/** Returns its port. `size` server connections serve all clients. */
export async function pooler(server: Server, size: number): Promise<number> {
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
  onTestFinished(async () => {
    const ended = new Promise((done) => child.once('exit', done))
    child.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  await until(async () => {
    if (child.exitCode !== null || !existsSync(folder)) throw new Error('pgbouncer did not start')
    const client = new pg.Client({ connectionString: server.url('postgres', undefined, port) })
    client.on('error', () => {})
    await client.connect()
    await client.end()
  })
  return port
}
