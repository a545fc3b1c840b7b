// What the tests of terret/restate with a real server stand on: a folder with a store, worker processes, and one address before them.
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { Harness, scripted, type CompleteStore } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { until } from '../until.ts'
import type { Setup } from './child-worker.ts'
import type { RestateServer } from './server.ts'

const script = fileURLToPath(new URL('../../.build/test/restate/child-worker.js', import.meta.url))

/** A process, and what it has said so far. */
export class Program {
  readonly process: ChildProcess
  readonly gone: Promise<number | null>
  #said = ''

  constructor(child: ChildProcessByStdio<null, Readable, null>) {
    this.process = child
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#said += text
    })
    this.gone = new Promise((resolve) => child.once('exit', (code) => resolve(code)))
  }

  get said(): string {
    return this.#said
  }

  /** Until it has said this; then what stands behind it on the line. */
  heard(start: string): Promise<string> {
    return until(() => {
      const line = this.#said.split('\n').find((each) => each.startsWith(start))
      if (line === undefined) throw new Error(`no "${start}" in: ${this.#said}`)
      return line.slice(start.length)
    })
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.process.kill(signal)
    await this.gone
  }
}

/** Closed and removed after the test. */
export class Stage {
  readonly name: string
  readonly folder = mkdtempSync(join(tmpdir(), 'terret-restate-'))
  readonly journal = join(this.folder, 'journal')
  readonly go = join(this.folder, 'go')
  readonly store: CompleteStore
  /** It writes and reads, and drives nothing. */
  readonly harness: Harness
  readonly #restate: RestateServer
  readonly #workers: Program[] = []

  constructor(restate: RestateServer, name: string, agents: readonly string[] = []) {
    this.name = name
    this.#restate = restate
    this.store = sqlite(join(this.folder, 'terret.db'))
    const model = scripted([])
    const subagents = Object.fromEntries(agents.map((agent) => [agent, { description: 'another', model }]))
    this.harness = new Harness({ model, store: this.store, secrets: {}, worker: { drives: false }, subagents })
    onTestFinished(async () => {
      await Promise.all(this.#workers.map((worker) => worker.kill()))
      await this.harness.close()
      await this.store.close()
      rmSync(this.folder, { recursive: true })
    })
  }

  /** A process that is up. */
  async worker(more: Partial<Setup> = {}): Promise<{ readonly worker: Program; readonly url: string }> {
    const setup: Setup = {
      file: join(this.folder, 'terret.db'),
      journal: this.journal,
      go: this.go,
      name: this.name,
      ingress: this.#restate.ingress,
      identityKeys: [this.#restate.key],
      port: 0,
      ...more,
    }
    const args = [script, JSON.stringify(setup)]
    const worker = new Program(spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] }))
    this.#workers.push(worker)
    return { worker, url: await worker.heard('up ') }
  }

  /** A process that is up and that Restate knows. */
  async registered(more: Partial<Setup> = {}): Promise<Program> {
    const { worker, url } = await this.worker(more)
    await this.register(url)
    return worker
  }

  async register(url: string): Promise<void> {
    const { status, text } = await this.#restate.register(url)
    if (status !== 200 && status !== 201) throw new Error(`Restate answered ${status}: ${text}`)
  }

  /** The ids of new sessions that were each sent this. */
  async sessions(count: number, text: string): Promise<readonly string[]> {
    const ids: string[] = []
    for (let i = 0; i < count; i++) {
      const session = await this.harness.open({ id: `s${i}` })
      await session.send(text)
      ids.push(session.id)
    }
    return ids
  }

  async settled(ids: readonly string[], outcome = 'completed'): Promise<void> {
    for (const id of ids)
      await until(async () => {
        const card = await this.store.card(id)
        if (card?.outcome !== outcome || card.status !== 'idle') throw new Error(`${id}: ${JSON.stringify(card)}`)
      })
  }

  /** The calls that wait for the file `go`, and those that did. */
  hangs(): readonly (readonly string[])[] {
    return this.calls().filter(([, n]) => n === 'hang')
  }

  /** Each call that ran: session, number, process. */
  calls(): readonly (readonly string[])[] {
    if (!existsSync(this.journal)) return []
    return readFileSync(this.journal, 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
  }
}

/** One address for several workers, as a load balancer gives: a connection goes to the next that takes it. */
export class Balancer {
  readonly #ports: readonly number[]
  readonly #server: Server
  readonly #open = new Set<Socket>()
  #next = 0

  private constructor(urls: readonly string[]) {
    this.#ports = urls.map((url) => Number(new URL(url).port))
    this.#server = createServer((socket) => this.#pass(socket, this.#ports.length))
  }

  /** Closed after the test. */
  static async before(...urls: readonly string[]): Promise<string> {
    const balancer = new Balancer(urls)
    const port = await new Promise<number>((resolve) =>
      balancer.#server.listen(0, '127.0.0.1', () => resolve((balancer.#server.address() as { port: number }).port)),
    )
    onTestFinished(() => {
      for (const socket of balancer.#open) socket.destroy()
      balancer.#server.close()
    })
    return `http://127.0.0.1:${port}`
  }

  #pass(socket: Socket, left: number): void {
    if (left === 0) return void socket.destroy()
    const port = this.#ports[this.#next++ % this.#ports.length] ?? 0
    const there = connect(port, '127.0.0.1')
    let isUp = false
    there.once('connect', () => {
      isUp = true
      this.#open.add(socket)
      socket.pipe(there).pipe(socket)
    })
    there.once('error', () => (isUp ? socket.destroy() : this.#pass(socket, left - 1)))
    there.once('close', () => isUp && socket.destroy())
    socket.once('error', () => there.destroy())
    socket.once('close', () => {
      this.#open.delete(socket)
      there.destroy()
    })
  }
}
