// The way to one sink: a bounded queue of runs that have settled, read and exported one after the other. It never makes
// anybody wait: what does not fit is dropped and counted, and the log can be projected again at any time.
import type { Frozen } from '../kernel/content.ts'
import type { Parent } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import { runsOf } from './project.ts'
import { type Capture, capturedBy, type SessionLog, type Sink, type Span } from './span.ts'
import { createdOf, readTree, rootOf } from './tree.ts'

/** `dropped` did not fit in the queue, or came too late; `failed` could not be read or sent. Counted in runs. */
export type DropReport = Frozen<{ sink: string; dropped: number; failed: number; message: string }>

export type LaneStats = Frozen<{ sink: string; exported: number; dropped: number; failed: number }>

export type LaneOptions = {
  readonly store: Store
  readonly clock: Clock
  readonly sink: Sink
  readonly queueMax: number
  readonly onDrop: (report: DropReport) => void
}

type Job = { readonly session: string; readonly run: number }

/** One export may retry for a while; a sink that never ends must not hold the others back for ever. */
const EXPORT_MS = 120_000
const REPORT_MS = 300_000
/** More than this many are not remembered: most never come. */
const MISSED_MAX = 1_024
const TOO_LATE = 'The export took too long, or the tracer was closed.'
/** How the sessions of children are named. Only the queue goes by it; what a session is, its log says. */
const CHILD = /~\d+\.\d+$/

export class ExportQueue {
  readonly #options: LaneOptions
  readonly #roots: Job[] = []
  /** Most of these are part of their root's trace already: they wait apart, so that they never crowd out a root. */
  readonly #children: Job[] = []
  /** Sessions that still worked when their root was exported. */
  readonly #missed = new Set<string>()
  #closed = false
  /** Closed, and nothing is waited for any more. */
  #over = false
  /** Stops the export in hand. */
  #stop: (() => void) | null = null
  #cancelStart: (() => void) | null = null
  #working: Promise<void> | null = null
  readonly #counts = { exported: 0, dropped: 0, failed: 0 }
  #reported = { dropped: 0, failed: 0, at: Number.NEGATIVE_INFINITY }

  constructor(options: LaneOptions) {
    this.#options = options
  }

  get stats(): LaneStats {
    return { sink: this.#options.sink.name, ...this.#counts }
  }

  /** Takes note and returns: the work begins after the caller has gone on. */
  push(job: Job): void {
    const queue = CHILD.test(job.session) ? this.#children : this.#roots
    if (this.#closed) return this.#drop(1, 'The tracer is closed.')
    if (queue.length >= this.#options.queueMax) return this.#drop(1, 'The queue of traces is full.')
    queue.push(job)
    if (this.#working === null) this.#cancelStart ??= this.#options.clock.timer(0, () => this.#start())
  }

  async flush(): Promise<void> {
    while (this.#waiting() || this.#working) {
      this.#start()
      await this.#working
    }
  }

  /** What cannot be exported in this time is dropped and counted. */
  async close(timeoutMs: number): Promise<void> {
    const { clock, sink } = this.#options
    if (this.#closed) return
    this.#closed = true
    await inTime(clock, timeoutMs, this.flush())
    const left = this.#roots.splice(0).length + this.#children.splice(0).length
    if (left > 0) this.#drop(left, 'The tracer was closed before they could be exported.')
    this.#over = true
    this.#stop?.()
    await inTime(clock, timeoutMs, this.#working ?? Promise.resolve())
    await inTime(
      clock,
      timeoutMs,
      Promise.resolve().then(() => sink.close()),
    )
    this.#report('', true)
  }

  #start(): void {
    this.#cancelStart?.()
    this.#cancelStart = null
    this.#working ??= this.#work().finally(() => {
      this.#working = null
      if (this.#waiting()) this.#start()
    })
  }

  #waiting(): boolean {
    return this.#roots.length + this.#children.length > 0
  }

  async #work(): Promise<void> {
    for (;;) {
      const job = this.#roots.shift() ?? this.#children.shift()
      if (!job) return
      try {
        await this.#export(job)
      } catch (error) {
        this.#counts.failed += 1
        this.#report(error instanceof Error ? error.message : 'The sink failed.')
      }
    }
  }

  async #export({ session, run }: Job): Promise<void> {
    const { store, sink, clock } = this.#options
    const capture = sink.capture ?? 'none'
    const found = await this.#find(session, run, capture)
    if (found === null || found.spans.length === 0) return
    const texts = capturedBy(capture).prompts ? await textsOf(store, found.logs) : new Map<string, string>()
    if (this.#over) throw new Error(TOO_LATE)
    const ended = new AbortController()
    const { signal } = ended
    this.#stop = () => ended.abort()
    const cancel = clock.timer(EXPORT_MS, this.#stop)
    const late = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(new Error(TOO_LATE)))
    })
    try {
      await Promise.race([sink.export(found.spans, { texts, clock, signal }), late])
      this.#counts.exported += 1
    } finally {
      cancel()
      this.#stop = null
    }
  }

  /**
   * Each run is exported once. A root brings the runs below it that settled no later than itself; a child that settles
   * after its root (it was interrupted, or waits for an answer) comes alone, under the ids it would have had.
   */
  async #find(session: string, run: number, capture: Capture): Promise<Found | null> {
    const { store } = this.#options
    const parent = (await createdOf(store, session))?.parent
    if (parent) return this.#findChild(session, run, parent, capture)
    const logs = await readTree(store, session, run)
    const runs = runsOf(logs, capture)
    const until = runs[0]?.settledAt ?? null
    if (until === null) return null
    for (const log of logs.slice(1)) {
      const own = runs.filter((traced) => traced.session === log.session)
      if (own.length === 0 || own.some(({ settledAt }) => settledAt === null)) this.#miss(log.session)
    }
    const done = runs.filter(({ settledAt }) => settledAt !== null && settledAt <= until)
    return { logs, spans: done.flatMap(({ spans }) => spans) }
  }

  async #findChild(session: string, run: number, parent: Parent, capture: Capture): Promise<Found | null> {
    const { store } = this.#options
    const root = await rootOf(store, parent)
    if (!root) return null
    const logs = await readTree(store, root.session, root.run)
    const own = runsOf(logs, capture).find((traced) => traced.session === session && traced.run === run)
    if (!own || own.settledAt === null) return null
    // By its time it was there when the root was exported, unless it came about in that very moment.
    if (own.settledAt <= root.settledAt && !this.#missed.delete(session)) return null
    return { logs: logs.filter((log) => log.session === session), spans: own.spans }
  }

  #miss(session: string): void {
    this.#missed.add(session)
    const [oldest = ''] = this.#missed
    if (this.#missed.size > MISSED_MAX) this.#missed.delete(oldest)
  }

  #drop(count: number, message: string): void {
    this.#counts.dropped += count
    this.#report(message)
  }

  /** The first trouble is told at once, more of it at most every five minutes and at the end, with the sums since then. */
  #report(message: string, last = false): void {
    const { clock, sink, onDrop } = this.#options
    const { at } = this.#reported
    const dropped = this.#counts.dropped - this.#reported.dropped
    const failed = this.#counts.failed - this.#reported.failed
    if (dropped + failed === 0 || (!last && clock.now() - at < REPORT_MS)) return
    this.#reported = { dropped: this.#counts.dropped, failed: this.#counts.failed, at: clock.now() }
    try {
      onDrop({ sink: sink.name, dropped, failed, message: message || 'More traces were lost since the last report.' })
    } catch {
      // A listener that throws must not stop the rest of the export.
    }
  }
}

type Found = { readonly logs: readonly SessionLog[]; readonly spans: readonly Span[] }

/** The instructions and toolsets that these runs froze, by hash. They were redacted before they were stored. */
async function textsOf(store: Store, logs: readonly SessionLog[]): Promise<ReadonlyMap<string, string>> {
  const runs = logs.flatMap(({ events }) => events.filter((event) => event.type === 'run.started'))
  const hashes = new Set(runs.flatMap(({ instructions, toolset }) => [instructions, toolset]))
  const texts = new Map<string, string>()
  for (const hash of hashes) {
    const blob = await store.blob(hash)
    if (blob) texts.set(hash, new TextDecoder().decode(blob.data))
  }
  return texts
}

/** Waits for the work or for the time, whichever comes first. What the work comes to is its own business. */
async function inTime(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  let cancel = (): void => {}
  const late = new Promise<void>((resolve) => {
    cancel = clock.timer(ms, resolve)
  })
  await Promise.race([work.then(cancel, cancel), late])
}
