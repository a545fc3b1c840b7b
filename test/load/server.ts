// `terret serve` as a process of its own over a folder of its own, beside a provider: started, asked, killed, and how much memory it has.
import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join, resolve } from 'node:path'

const MAIN = resolve('dist/cli/main.js')

/** However this process ends, none of them is left. */
const children = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

function started(args: readonly string[], options: SpawnOptions = {}): ChildProcess {
  const child = spawn(process.execPath, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** A socket that rests is closed here before the server closes it, so that no request goes into one that is being closed. */
const AGENT = { keepAlive: true, maxSockets: 64, timeout: 25_000 }

export type Answer = { readonly status: number; readonly text: string }

/** Started again on the same port and folder, it has the same token. */
export class ServerProcess {
  readonly #folder: string
  readonly #args: readonly string[]
  #child: ChildProcess | null = null
  #agent = new Agent(AGENT)
  token = ''
  port = 0

  constructor(folder: string, providerUrl: string, args: readonly string[]) {
    this.#folder = folder
    this.#args = args
    const config = join(folder, 'config/terret')
    mkdirSync(config, { recursive: true })
    mkdirSync(join(folder, 'work'))
    const endpoints = { fake: { baseUrl: `${providerUrl}/v1`, protocol: 'chat' } }
    writeFileSync(
      join(config, 'config.json'),
      JSON.stringify({ model: 'fake:m', endpoints, context: { compaction: false } }),
    )
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async start(node: readonly string[] = []): Promise<void> {
    const { PATH = '' } = process.env
    const env = {
      PATH,
      HOME: this.#folder,
      TERRET_HOME: join(this.#folder, 'data'),
      XDG_CONFIG_HOME: join(this.#folder, 'config'),
    }
    const args = [...node, MAIN, 'serve', '--port', String(this.port), '--json', ...this.#args]
    const child = started(args, { cwd: join(this.#folder, 'work'), env })
    this.#child = child
    const { url, token } = JSON.parse(await firstLine(child)) as { readonly url: string; readonly token: string }
    this.token = token
    this.port = Number(new URL(url).port)
  }

  /** Resolves when the process is gone. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise((done) => child.once('exit', done))
    child.kill(signal)
    await gone
    this.#agent.destroy()
    this.#agent = new Agent(AGENT)
  }

  headers(body?: string): Record<string, string> {
    const media = body === undefined ? {} : { 'content-type': 'application/json' }
    return { authorization: `Bearer ${this.token}`, ...media }
  }

  ask(method: string, path: string, content?: object, more: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const body = content === undefined ? undefined : JSON.stringify(content)
    const options = {
      host: '127.0.0.1',
      port: this.port,
      method,
      path: `/v1/${path}`,
      agent: this.#agent,
      headers: { ...this.headers(body), ...more },
    }
    return new Promise((done, failed) => {
      const asked = request(options, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
        response.on('end', () => done({ status: response.statusCode ?? 0, text })).on('error', failed)
      })
      asked.on('error', failed).end(body)
    })
  }

  async json<T>(method: string, path: string, content?: object): Promise<T> {
    const { status, text } = await this.ask(method, path, content)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
    return JSON.parse(text) as T
  }

  /** What the kernel says: now, and the most there was. In MB. */
  memory(): { readonly rss: number; readonly peak: number } {
    const text = readFileSync(`/proc/${this.pid}/status`, 'utf8')
    const of = (name: string): number =>
      Math.round(Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(text)?.[1] ?? 0) / 1_024)
    return { rss: of('VmRSS'), peak: of('VmHWM') }
  }
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((done, failed) => {
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
      if (text.includes('\n')) done(text.split('\n')[0] ?? '')
    })
    child.once('exit', (code) => failed(new Error(`The process ended with ${code}: ${text}`)))
  })
}

export async function startProvider(
  ...args: readonly string[]
): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const child = started([resolve('.build/test/load/provider.js'), ...args])
  return { url: await firstLine(child), child }
}
