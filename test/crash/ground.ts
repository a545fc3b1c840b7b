// What the programs that kill and cut have in common: a folder of evidence, one client that is never killed, workers as real processes,
// and the comparison at the end. It hurts nobody itself: main.ts kills, test/faults cuts, stops and promotes.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Event } from '../../src/kernel/event.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import {
  Appender,
  type ErrorLine,
  type JournalLine,
  type MarkLine,
  type OracleLine,
  placesIn,
  readLines,
} from './evidence.ts'
import { LeaseCheck } from './lease-check.ts'
import { openStore } from './open.ts'
import { Child } from './process.ts'
import { Strikes } from './strike.ts'
import { type Verdict, verify } from './verify.ts'

const BEGIN_MS = 30_000
/** On a machine that may be busy: with other runs of kills, too. */
const SETTLE_MS = 180_000
const STOP_MS = 20_000

export class Ground {
  readonly folder = mkdtempSync(join(tmpdir(), 'terret-crash-'))
  readonly places = placesIn(this.folder)
  readonly strikes = new Strikes()
  readonly leases = new LeaseCheck()
  readonly troubles: string[] = []
  /** Where this process reads from, and the children work unless they are told another way to it. */
  database: string
  readonly #children = new Set<Child>()

  /** A process that is told to end in the middle leaves nothing. */
  readonly #sweep = (): void => rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })

  constructor(database?: string) {
    this.database = database ?? this.places.database
    process.once('exit', this.#sweep)
  }

  /** Opens sessions, sends, decides and interrupts until it is told to settle. */
  async startClient(seed: number, database = this.database): Promise<Child> {
    const client = this.#start('./child-client.js', [this.folder, database, String(seed)])
    if (!(await client.heard('begun', BEGIN_MS))) throw new Error(`the client did not begin: ${client.stderr}`)
    return client
  }

  /** It works when it is told to go. Its machine's clock is so far ahead. */
  startWorker(leaseMs: number, database = this.database, aheadMs = 0): Child {
    return this.#start('./child-worker.js', [this.folder, database, String(leaseMs), String(aheadMs)])
  }

  /** It takes deliveries in at once, at the port that it says. */
  startServer(leaseMs: number): Child {
    return this.#start('./child-server.js', [this.folder, this.database, String(leaseMs)])
  }

  #start(script: string, args: readonly string[]): Child {
    const child = new Child(script, args)
    this.#children.add(child)
    return child
  }

  marksOf({ serial }: Child): readonly MarkLine[] {
    return readLines<MarkLine>(this.places.marks(serial))
  }

  /** By a connection of its own that is closed again: between two workers a file may well have no reader at all. */
  async look<T>(act: (store: CompleteStore) => Promise<T>): Promise<T> {
    const store = openStore(this.database)
    try {
      await store.open()
      return await act(store)
    } finally {
      await store.close()
    }
  }

  /** Where the kill of this worker fell. */
  async judge(worker: Child): Promise<void> {
    this.#children.delete(worker)
    const oracle = readLines<OracleLine>(this.places.oracle)
    const marks = this.marksOf(worker)
    this.leases.add(marks, worker.killedAt)
    await this.look((store) => this.strikes.judge(store, marks, oracle))
  }

  /** Nothing is hurt any more: these workers and the client bring everything to rest, and end. */
  async settle(client: Child, workers: readonly Child[]): Promise<void> {
    for (const worker of workers) worker.say('go')
    client.say('settle')
    if (!(await client.heard('settled', SETTLE_MS)))
      this.troubles.push(`not settled after ${SETTLE_MS} ms: ${await this.#unsettled()} ${client.stderr}`)
    client.say('stop')
    await this.stop(workers)
    await client.exited
  }

  #unsettled(): Promise<string> {
    return this.look(async (store) => {
      const cards = await store.list({ limit: 10_000 })
      const open = cards.filter(({ status, due }) => !/idle|terminated/.test(status) || due !== null)
      return open.map(({ session, status, due, at }) => `${session} ${status} since ${at}, due ${due}`).join('; ')
    })
  }

  /** An orderly end. What they were promised is compared. */
  async stop(workers: readonly Child[]): Promise<void> {
    for (const worker of workers) worker.say('stop')
    await Promise.all(
      workers.map(async (worker) => {
        const deadline = setTimeout(() => worker.kill(), STOP_MS)
        const code = await worker.exited
        clearTimeout(deadline)
        if (code !== 0) this.troubles.push(`a worker ended with ${code} when it was told to stop: ${worker.stderr}`)
      }),
    )
    await this.look(async (store) => {
      for (const worker of workers) {
        const marks = this.marksOf(worker)
        this.leases.add(marks, worker.killedAt)
        await this.strikes.compare(store, marks)
      }
    })
  }

  verdict(): Promise<Verdict> {
    const { journal, oracle, errors } = this.places
    return this.look((store) =>
      verify(store, {
        journal: readLines<JournalLine>(journal),
        oracle: readLines<OracleLine>(oracle),
        errors: readLines<ErrorLine>(errors),
        reads: this.strikes.reads,
      }),
    )
  }

  /** What was wrong in all of it, in sentences. */
  violations(verdict: Verdict): readonly string[] {
    return [...this.troubles, ...this.strikes.wrong, ...verdict.violations]
  }

  /** The evidence is kept for a look when something was wrong, with the logs of a server that ends with this process. */
  async end(wrong: boolean): Promise<void> {
    process.off('exit', this.#sweep)
    for (const child of this.#children) child.kill()
    if (!wrong) return rmSync(this.folder, { recursive: true })
    if (this.database !== this.places.database) await this.#keepLogs().catch(() => {})
    console.log(`kept for a look: ${this.folder}`)
  }

  #keepLogs(): Promise<void> {
    const logs = new Appender<Event & { readonly session: string }>(join(this.folder, 'logs.jsonl'))
    return this.look(async (store) => {
      for (const { session } of await store.list({ limit: 10_000 }))
        for (const event of (await store.read(session, 0)).events) logs.add({ session, ...event })
    })
  }
}
