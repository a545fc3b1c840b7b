// `terret serve` and `terret worker` as processes of their own over one folder, beside a provider: started, asked, killed, and how much
// memory and how many descriptors they have.
import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join, resolve } from 'node:path'

const MAIN = resolve('dist/cli/main.js')

/** Of Linux, on every machine there is. */
const TICK_MS = 10

/** However this process ends, none of them is left. */
const children = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

function started(
  args: readonly string[],
  options: SpawnOptions = {},
  errors: number | 'inherit' = 'inherit',
): ChildProcess {
  const child = spawn(process.execPath, args, { ...options, stdio: ['ignore', 'pipe', errors] })
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** A socket that rests is closed here before the server closes it, so that no request goes into one that is being closed. */
const AGENT = { keepAlive: true, maxSockets: 64, timeout: 25_000 }

export type Answer = { readonly status: number; readonly text: string }

/** Makes the folder ready for them: its configuration names this provider. `more` is other settings. */
export function prepareFolder(folder: string, providerUrl: string, more: object = {}): void {
  const config = join(folder, 'config/terret')
  mkdirSync(config, { recursive: true })
  mkdirSync(join(folder, 'work'))
  const endpoints = { fake: { baseUrl: `${providerUrl}/v1`, protocol: 'chat' } }
  writeFileSync(
    join(config, 'config.json'),
    JSON.stringify({ model: 'fake:m', endpoints, context: { compaction: false }, ...more }),
  )
}

/** Where they keep the store. */
export function dataOf(folder: string): string {
  return join(folder, 'data')
}

type Variables = Readonly<Record<string, string>>

function terret(folder: string, args: readonly string[], more: Variables): ChildProcess {
  const { PATH = '' } = process.env
  const own = { PATH, HOME: folder, TERRET_HOME: dataOf(folder), XDG_CONFIG_HOME: join(folder, 'config') }
  // What they say of their troubles is no part of the report, and is kept beside their data.
  const errors = openSync(join(folder, 'stderr.log'), 'a')
  try {
    return started(args, { cwd: join(folder, 'work'), env: { ...own, ...more } }, errors)
  } finally {
    closeSync(errors)
  }
}

/** Resolves when the process is gone. */
async function ended(child: ChildProcess | null, signal: NodeJS.Signals): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((done) => child.once('exit', done))
  child.kill(signal)
  await gone
}

/** `terret worker`, which says nothing. */
export class WorkerProcess {
  readonly #folder: string
  readonly #variables: Variables
  #child: ChildProcess | null = null

  constructor(folder: string, variables: Variables = {}) {
    this.#folder = folder
    this.#variables = variables
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  start(): void {
    this.#child = terret(this.#folder, [MAIN, 'worker', '--quiet'], this.#variables)
    this.#child.stdout?.resume()
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    await ended(this.#child, signal)
  }
}

/** Started again on the same port and folder, it has the same token. */
export class ServerProcess {
  readonly #folder: string
  readonly #args: readonly string[]
  readonly #variables: Variables
  #child: ChildProcess | null = null
  #agent = new Agent(AGENT)
  token = ''
  port = 0

  constructor(folder: string, args: readonly string[], variables: Variables = {}) {
    this.#folder = folder
    this.#args = args
    this.#variables = variables
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async start(node: readonly string[] = []): Promise<void> {
    const args = [...node, MAIN, 'serve', '--port', String(this.port), '--json', ...this.#args]
    const child = terret(this.#folder, args, this.#variables)
    this.#child = child
    const { url, token } = JSON.parse(await firstLine(child)) as { readonly url: string; readonly token: string }
    this.token = token
    this.port = Number(new URL(url).port)
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    await ended(this.#child, signal)
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
}

/** What the kernel says of a process: now, and the most there was. In MB. */
export function memoryOf(pid: number): { readonly rss: number; readonly peak: number } {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  const of = (name: string): number =>
    Math.round(Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(text)?.[1] ?? 0) / 1_024)
  return { rss: of('VmRSS'), peak: of('VmHWM') }
}

/** What a process has used of the cores since it began. */
export function cpuMsOf(pid: number): number {
  // The name of the program stands in brackets and may hold anything; the fields are counted after it.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

export function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
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
