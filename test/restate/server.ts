// A real Restate server for tests: the binary of its npm package, alone on loopback with a folder and ports of its own. It is not a
// dependency, as it weighs 200 MB: npx fetches it, and where that fails its tests are skipped by name.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { realpathSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { until } from '../until.ts'

const SERVER = '@restatedev/restate-server@1.7.12'
const binary = find()
export const noRestate = binary === null
if (noRestate && process.env['TERRET_REQUIRE_RESTATE'])
  throw new Error(`${SERVER} cannot be had, and its tests may not be skipped here`)

function find(): string | null {
  const found = spawnSync('npx', ['-y', '-p', SERVER, '-c', 'command -v restate-server'], { encoding: 'utf8' })
  if (found.status !== 0) return null
  const script = found.stdout.trim().split('\n').at(-1) ?? ''
  const { resolve } = createRequire(realpathSync(script))
  try {
    const path = resolve(`@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`)
    return spawnSync(path, ['--version']).status === 0 ? path : null
  } catch {
    return null
  }
}

type Invocation = { readonly id: string; readonly status: string; readonly retry_count?: number }

export class RestateServer {
  readonly ingress: string
  readonly #admin: string
  readonly #env: NodeJS.ProcessEnv
  #key = ''
  #process: ChildProcess | null = null

  private constructor(folder: string, [ingress, admin, fabric]: readonly number[]) {
    const pem = join(folder, 'identity.pem')
    const { privateKey } = generateKeyPairSync('ed25519')
    writeFileSync(pem, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
    this.ingress = `http://127.0.0.1:${ingress}`
    this.#admin = `http://127.0.0.1:${admin}`
    this.#env = {
      PATH: process.env['PATH'],
      RESTATE_BASE_DIR: join(folder, 'restate'),
      RESTATE_NODE_NAME: 'test',
      RESTATE_BIND_IP: '127.0.0.1',
      RESTATE_LISTEN_MODE: 'tcp',
      RESTATE_BIND_PORT: String(fabric),
      RESTATE_INGRESS__BIND_PORT: String(ingress),
      RESTATE_ADMIN__BIND_PORT: String(admin),
      RESTATE_WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE: pem,
      // How soon it notices a worker that is frozen.
      RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_INTERVAL: '1s',
      RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_TIMEOUT: '1s',
      RESTATE_DISABLE_TELEMETRY: 'true',
      RESTATE_LOG_DISABLE_ANSI_CODES: 'true',
      RESTATE_DEFAULT_NUM_PARTITIONS: '2',
      RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: '128MB',
    }
  }

  static async start(folder: string): Promise<RestateServer> {
    const server = new RestateServer(folder, await freePorts(3))
    await server.start()
    return server
  }

  /** The public key that its requests are signed with, as it logs it. */
  get key(): string {
    return this.#key
  }

  async start(): Promise<void> {
    if (binary === null) throw new Error('There is no Restate server here.')
    const started = spawn(binary, ['--no-logo'], { env: this.#env, stdio: ['ignore', 'pipe', 'inherit'] })
    this.#process = started
    let log = ''
    started.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (this.#key === '' || log.length < 100_000) log += text
      this.#key ||= /publickeyv1_\w+/.exec(log)?.[0] ?? ''
    })
    await until(async () => {
      const answers = await Promise.all([fetch(`${this.#admin}/health`), fetch(`${this.ingress}/restate/health`)])
      if (!answers.every(({ ok }) => ok) || this.#key === '') throw new Error(`not up: ${log}`)
    })
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const killed = this.#process
    this.#process = null
    if (!killed) return
    const gone = new Promise((resolve) => killed.once('exit', resolve))
    killed.kill(signal)
    await gone
  }

  /** What it answered: status and text. */
  async register(url: string): Promise<{ readonly status: number; readonly text: string }> {
    const body = JSON.stringify({ uri: url, force: true })
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${this.#admin}/deployments`, { method: 'POST', headers, body })
    return { status: answer.status, text: await answer.text() }
  }

  /** Wakes and waits for what it comes to. With `send`, it only hands the wake over. */
  wake(name: string, key: string, send: '' | '/send' = ''): Promise<Response> {
    return fetch(`${this.ingress}/${name}/${key}/wake${send}`, { method: 'POST' })
  }

  async invocations(name: string): Promise<readonly Invocation[]> {
    const query = `select id, status, retry_count from sys_invocation where target_service_name = '${name}'`
    const headers = { 'content-type': 'application/json', accept: 'application/json' }
    const body = JSON.stringify({ query })
    const answer = await fetch(`${this.#admin}/query`, { method: 'POST', headers, body })
    return ((await answer.json()) as { readonly rows: readonly Invocation[] }).rows
  }

  /** What it holds of the object: how it retries and for how long it keeps answers. */
  async described(name: string): Promise<unknown> {
    return (await fetch(`${this.#admin}/services/${name}`)).json()
  }
}

async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve) =>
          server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
        ),
    ),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}
