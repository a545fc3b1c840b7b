// What a soak measures again and again: a line of ten columns each time, and in the end whether any of it grew.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { descriptorsOf, memoryOf, type ServerProcess, type WorkerProcess } from './server.ts'
import { type Allowance, slopeOf } from './slope.ts'

/** The processes that are never killed: only in them can a leak be seen. */
export type Watched = {
  readonly server: ServerProcess
  readonly worker: WorkerProcess
  /** The folder of the store. */
  readonly data: string
  /** Of a tab, after a collection; null without a browser. */
  readonly tabMb: () => Promise<number | null>
  readonly kills: () => number
}

type Measured = {
  readonly serverMb: number
  readonly workerMb: number
  readonly tabMb: number
  readonly descriptors: number
  readonly diskMb: number
  readonly events: number
  readonly turns: number
  readonly p50: number
  readonly p99: number
}

const NAMES = [
  'min',
  'server/worker/tab MB',
  'descriptors',
  'disk MB',
  'events',
  'turns',
  'p50 ms',
  'p99 ms',
  'kills',
  'due/behind s',
]
const WIDTHS = [6, 21, 12, 8, 8, 7, 7, 7, 6, 13]
const MB: Allowance = { share: 0.1, amount: 25 }
/** Latency is the machine's as much as the server's: it counts when it doubles. */
const JUDGED = {
  serverMb: ['memory of the server, MB', MB],
  workerMb: ['memory of the worker, MB', MB],
  tabMb: ['heap of the tab, MB', MB],
  descriptors: ['descriptors of both', { share: 0.1, amount: 20 }],
  p50: ['p50 of delivery, ms', { share: 1, amount: 25 }],
  p99: ['p99 of delivery, ms', { share: 1, amount: 250 }],
} as const satisfies Readonly<Partial<Record<keyof Measured, readonly [string, Allowance]>>>
/** The log is kept, so a disk fills. It may take so many times what was written, for indexes, cards and what a checkpoint has not emptied. */
const DISK_TIMES = 4
const DISK_MB = 64

export class Figures {
  readonly #watched: Watched
  readonly #begun = performance.now()
  readonly #all: Measured[] = []
  #late: number[] = []
  #events = 0
  #turns = 0
  /** Of all events that were read. */
  #bytes = 0

  constructor(watched: Watched) {
    this.#watched = watched
    console.log(rowOf(NAMES))
  }

  /** An event came to a reader. Late counts only through the server that is never killed. */
  see({
    type,
    bytes,
    lateMs,
  }: {
    readonly type: string
    readonly bytes: number
    readonly lateMs: number | null
  }): void {
    this.#events += 1
    if (type === 'agent.message') this.#turns += 1
    this.#bytes += bytes
    if (lateMs !== null) this.#late.push(lateMs)
  }

  async measure(): Promise<void> {
    const { server, worker, data, tabMb, kills } = this.#watched
    const late = this.#late.toSorted((a, b) => a - b)
    this.#late = []
    const at = (share: number): number => late[Math.min(late.length - 1, Math.floor(late.length * share))] ?? 0
    const health = await server.json<{ readonly due: number; readonly waitedMs?: number }>('GET', 'health')
    const measured: Measured = {
      serverMb: memoryOf(server.pid).rss,
      workerMb: memoryOf(worker.pid).rss,
      tabMb: (await tabMb()) ?? 0,
      descriptors: descriptorsOf(server.pid) + descriptorsOf(worker.pid),
      diskMb: bytesIn(data) / 1_000_000,
      events: this.#events,
      turns: this.#turns,
      p50: at(0.5),
      p99: at(0.99),
    }
    this.#all.push(measured)
    const { serverMb, workerMb, descriptors, diskMb } = measured
    const columns = [
      ((performance.now() - this.#begun) / 60_000).toFixed(1),
      `${serverMb}/${workerMb}/${measured.tabMb.toFixed(1)}`,
      `${descriptors}`,
      diskMb.toFixed(1),
      `${this.#events}`,
      `${this.#turns}`,
      `${measured.p50}`,
      `${measured.p99}`,
      `${kills()}`,
      `${health.due}/${((health.waitedMs ?? 0) / 1_000).toFixed(1)}`,
    ]
    console.log(rowOf(columns))
  }

  /** What grew, in sentences. Also says how each figure moved. */
  grown(): readonly string[] {
    const grown: string[] = []
    for (const [name, [what, allowance]] of Object.entries(JUDGED)) {
      const slope = slopeOf(
        this.#all.map((measured) => measured[name as keyof typeof JUDGED]),
        allowance,
      )
      const moved = `${what}: ${slope.from.toFixed(1)}, grew by ${slope.growth.toFixed(1)} (allowed ${slope.allowed.toFixed(1)}; ${slope.certainty.toFixed(1)} deviations from chance)`
      const verdict = slope.grows === null ? `${slope.measurements} measurements are too few to judge` : ''
      console.log(`${slope.grows ? '✗' : '✓'} ${moved}${verdict && `; ${verdict}`}`)
      if (slope.grows) grown.push(moved)
    }
    return [...grown, ...this.#diskGrown()]
  }

  #diskGrown(): readonly string[] {
    const [first, last] = [this.#all[0], this.#all.at(-1)]
    if (!first || !last) return []
    const growth = last.diskMb - first.diskMb
    const written = this.#bytes / 1_000_000
    const allowed = DISK_TIMES * written + DISK_MB
    const moved = `disk: ${first.diskMb.toFixed(1)} MB, grew by ${growth.toFixed(1)} MB, and ${written.toFixed(1)} MB of events were read (allowed ${allowed.toFixed(1)})`
    console.log(`${growth > allowed ? '✗' : '✓'} ${moved}`)
    return growth > allowed ? [moved] : []
  }
}

function rowOf(columns: readonly string[]): string {
  return columns.map((text, i) => text.padStart(WIDTHS[i] ?? 0)).join(' ')
}

function bytesIn(folder: string): number {
  let bytes = 0
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    // A file may go while it is looked at.
    bytes += statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0
  }
  return bytes
}
