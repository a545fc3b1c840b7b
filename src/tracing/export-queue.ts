// The queue to one sink: settled runs, bounded in number, are read and exported one after the other. It never delays a
// run: runs that do not fit are dropped and counted, and the log can be projected again at any time.
import type { Frozen } from '../kernel/content.ts'
import type { Parent } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import { runsOf } from '../view/spans/project-spans.ts'
import { type Capture, expandCapture, type SessionLog, type Span } from '../view/spans/span.ts'
import type { Sink } from './sink.ts'
import { createdOf, readTree, findRootRun } from './read-tree-logs.ts'

/** Traces that were lost on the way to a sink, counted in runs since the last report. */
export type DropReport = Frozen<{
  /** The name of the sink. */
  sink: string
  /** Runs that did not fit in the queue, or came too late. */
  dropped: number
  /** Runs that could not be read or sent. */
  failed: number
  /** Why the last one was lost. */
  message: string
}>

/** How many runs a sink has taken, and how many were lost on the way. */
export type ExportQueueStats = Frozen<{
  /** The name of the sink. */
  sink: string
  /** Runs whose spans the sink took. */
  exported: number
  /** Runs that did not fit in the queue, or came too late. */
  dropped: number
  /** Runs that could not be read or sent. */
  failed: number
}>

export type ExportQueueOptions = {
  readonly store: Store
  readonly clock: Clock
  readonly sink: Sink
  readonly queueMax: number
  readonly onDrop: (report: DropReport) => void
}

type ExportJob = { readonly session: string; readonly run: number }
/** An open run of a root: the ids of spans already sent, of it and below it, and the timer for the next ones. */
type LiveRun = { readonly run: number; readonly sent: Set<string>; cancel: (() => void) | null }

/** One export may retry for a while, but a sink that never finishes must not block the others for ever. */
const EXPORT_MS = 120_000
const REPORT_MS = 300_000
/** No more than this many are remembered; most never come. */
const MISSED_MAX = 1_024
/** Spans that end within this time are sent together, because the log of the run is read each time. */
const LIVE_MS = 1_000
const TOO_LATE = 'The export took too long, or the tracer was closed.'
/** The form of children's session ids. Only the queue relies on it; the log says what a session is. */
const CHILD = /~\d+\.\d+$/
const CHILDREN = /(~\d+\.\d+)+$/

export class ExportQueue {
  readonly #options: ExportQueueOptions
  readonly #roots: ExportJob[] = []
  /** Most of these are part of their root's trace already. They wait apart, so that they never crowd out a root. */
  readonly #children: ExportJob[] = []
  /** Sessions that were still working when their root was exported. */
  readonly #missed = new Set<string>()
  /** By session. The oldest are dropped first; some of their spans may be sent again, under the same ids. */
  readonly #live = new Map<string, LiveRun>()
  /** Open runs in which something has ended. */
  readonly #open: ExportJob[] = []
  #closed = false
  /** Closed, and no longer waiting for anything. */
  #over = false
  /** Stops the current export. */
  #stop: (() => void) | null = null
  #cancelStart: (() => void) | null = null
  #working: Promise<void> | null = null
  readonly #counts = { exported: 0, dropped: 0, failed: 0 }
  #reported = { dropped: 0, failed: 0, at: Number.NEGATIVE_INFINITY }

  constructor(options: ExportQueueOptions) {
    this.#options = options
  }

  get stats(): ExportQueueStats {
    return { sink: this.#options.sink.name, ...this.#counts }
  }

  /** Only notes the run: the work begins after the caller has gone on. */
  push(job: ExportJob): void {
    const queue = CHILD.test(job.session) ? this.#children : this.#roots
    if (this.#closed) return this.#drop(1, 'The tracer is closed.')
    if (queue.length >= this.#options.queueMax) return this.#drop(1, 'The queue of traces is full.')
    queue.push(job)
    if (this.#working === null) this.#cancelStart ??= this.#options.clock.timer(0, () => this.#start())
  }

  /**
   * Something in an open run has ended. Spans of children are sent with their root's run, as long as that is known
   * here.
   */
  progress({ session, run }: ExportJob): void {
    if (this.#closed) return
    const root = session.replace(CHILDREN, '')
    const live = root === session ? this.#begin(root, run) : this.#live.get(root)
    if (live) live.cancel ??= this.#options.clock.timer(LIVE_MS, () => this.#due(root, live))
  }

  #begin(root: string, run: number): LiveRun {
    const known = this.#live.get(root)
    if (known?.run === run) return known
    known?.cancel?.()
    const live: LiveRun = { run, sent: new Set(), cancel: null }
    this.#live.delete(root)
    this.#live.set(root, live)
    const [oldest = ''] = this.#live.keys()
    if (this.#live.size > this.#options.queueMax) this.#forget(oldest)
    return live
  }

  #forget(root: string): void {
    this.#live.get(root)?.cancel?.()
    this.#live.delete(root)
  }

  #due(session: string, live: LiveRun): void {
    live.cancel?.()
    live.cancel = null
    this.#open.push({ session, run: live.run })
    this.#start()
  }

  async flush(): Promise<void> {
    for (const [root, live] of this.#live) if (live.cancel) this.#due(root, live)
    while (this.#waiting() || this.#working) {
      this.#start()
      await this.#working
    }
  }

  /** Runs that cannot be exported in this time are dropped and counted. */
  async close(timeoutMs: number): Promise<void> {
    const { clock, sink } = this.#options
    if (this.#closed) return
    this.#closed = true
    await waitAtMost(clock, timeoutMs, this.flush())
    const left = this.#roots.splice(0).length + this.#children.splice(0).length
    if (left > 0) this.#drop(left, 'The tracer was closed before they could be exported.')
    this.#over = true
    this.#stop?.()
    await waitAtMost(clock, timeoutMs, this.#working ?? Promise.resolve())
    await waitAtMost(
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
    return this.#roots.length + this.#children.length + this.#open.length > 0
  }

  async #work(): Promise<void> {
    for (;;) {
      const open = this.#open.shift()
      // If this fails, the spans are sent and counted when the run has settled.
      if (open) await this.#exportOpen(open).catch(() => {})
      const job = this.#roots.shift() ?? this.#children.shift()
      if (!job && this.#open.length === 0) return
      if (!job) continue
      try {
        await this.#export(job)
      } catch (error) {
        this.#counts.failed += 1
        this.#report(error instanceof Error ? error.message : 'The sink failed.')
      }
    }
  }

  async #export({ session, run }: ExportJob): Promise<void> {
    const found = await this.#find(session, run, this.#options.sink.capture ?? 'none')
    const root = session.replace(CHILDREN, '')
    const sent = this.#live.get(root)?.sent
    const spans = found?.spans.filter(({ spanId }) => !sent?.has(spanId)) ?? []
    if (found !== null && spans.length > 0) {
      await this.#send({ logs: found.logs, spans })
      this.#counts.exported += 1
      for (const { spanId } of spans) sent?.add(spanId)
    }
    // A child that is still working may have more to send.
    const late = [...this.#missed].some((missed) => missed.startsWith(`${root}~`))
    if (session === root && !late && this.#live.get(root)?.run === run) this.#forget(root)
  }

  /** Sends the spans that ended since the last time. The job of the settled run sends the rest. */
  async #exportOpen({ session, run }: ExportJob): Promise<void> {
    const live = this.#live.get(session)
    if (live?.run !== run) return
    const { store, sink } = this.#options
    const logs = await readTree(store, session, run)
    const runs = runsOf(logs, sink.capture ?? 'none')
    if (runs[0]?.settledAt !== null || !runs[0].sampled) return
    const ended = runs.flatMap(({ spans }) => spans).filter(({ endedAt }) => endedAt !== null)
    const spans = ended.filter(({ spanId }) => !live.sent.has(spanId))
    if (spans.length === 0) return
    await this.#send({ logs, spans })
    for (const { spanId } of spans) live.sent.add(spanId)
  }

  async #send(found: FoundSpans): Promise<void> {
    const { store, sink, clock } = this.#options
    const capture = sink.capture ?? 'none'
    const texts = expandCapture(capture).prompts ? await textsOf(store, found.logs) : new Map<string, string>()
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
    } finally {
      cancel()
      this.#stop = null
    }
  }

  /**
   * Each run is exported once. A root includes the runs below it that settled no later than itself. A child that
   * settles after its root (it was interrupted, or waits for an answer) is exported alone, under the same ids.
   */
  async #find(session: string, run: number, capture: Capture): Promise<FoundSpans | null> {
    const { store } = this.#options
    const parent = (await createdOf(store, session))?.parent
    if (parent) return this.#findChild(session, run, parent, capture)
    const logs = await readTree(store, session, run)
    const runs = runsOf(logs, capture)
    const until = runs[0]?.settledAt ?? null
    if (until === null || runs[0]?.sampled === false) return null
    for (const log of logs.slice(1)) {
      const own = runs.filter((traced) => traced.session === log.session)
      if (own.length === 0 || own.some(({ settledAt }) => settledAt === null)) this.#miss(log.session)
    }
    const done = runs.filter(({ settledAt }) => settledAt !== null && settledAt <= until)
    return { logs, spans: done.flatMap(({ spans }) => spans) }
  }

  async #findChild(session: string, run: number, parent: Parent, capture: Capture): Promise<FoundSpans | null> {
    const { store } = this.#options
    const root = await findRootRun(store, parent)
    if (!root) return null
    const logs = await readTree(store, root.session, root.run)
    const runs = runsOf(logs, capture)
    const own = runs.find((traced) => traced.session === session && traced.run === run)
    if (!own || own.settledAt === null || runs[0]?.sampled === false) return null
    // The root's export included it, unless both settled in the same moment.
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

  /** Reports the first loss at once, later ones at most every five minutes and at the end, with the sums since then. */
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

type FoundSpans = { readonly logs: readonly SessionLog[]; readonly spans: readonly Span[] }

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

/** Waits for the work or for the time, whichever ends first. Ignores the result of the work. */
async function waitAtMost(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  let cancel = (): void => {}
  const late = new Promise<void>((resolve) => {
    cancel = clock.timer(ms, resolve)
  })
  await Promise.race([work.then(cancel, cancel), late])
}
