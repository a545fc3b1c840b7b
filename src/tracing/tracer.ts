// The tracer: a consumer of the log that turns runs into traces after they have settled. It adds nothing to the log, and
// it is not waited for. What it loses it counts; the log loses nothing, so every trace can be made again with `spansOf`.
import type { Store } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import { callable, type Checks, clockCheck, count, flag, given, having, listOf, needed, optionsOf } from '../options.ts'
import { type DropReport, ExportQueue, type LaneStats } from './export-queue.ts'
import type { Sink } from './span.ts'

export type TracerOptions = {
  readonly store: Store
  readonly clock: Clock
  /** Any number. Each has its own queue: a slow one does not hold the others back. */
  readonly sinks: readonly Sink[]
  /** How many settled runs may wait for a sink. Default: 1,024. */
  readonly queueMax?: number
  /** Send each span of an open run soon after it has ended, and not only when the run has settled. Default: false. */
  readonly live?: boolean
  /** Model requests carry the header `traceparent`, and tools are told theirs, also in runs that were given none. Default: false. */
  readonly propagate?: boolean
  /** Told when something was lost: at once for the first time, then at most every five minutes for each sink. */
  readonly onDrop?: (report: DropReport) => void
}

type TracingOptions = Omit<TracerOptions, 'store' | 'clock'>
const TRACING: Checks<TracingOptions> = {
  sinks: needed(listOf(having('give sinks such as localTraces() or otlp()', 'export'))),
  queueMax: count(1),
  live: flag,
  propagate: flag,
  onDrop: callable,
}
const checkTracing = optionsOf<TracingOptions>('tracing', TRACING)
const checkTracer = optionsOf<TracerOptions>('new Tracer', {
  ...TRACING,
  store: needed(having('give the store of the harness', 'read')),
  clock: needed(clockCheck),
})

const QUEUE_MAX = 1_024
const CLOSE_MS = 5_000

export class Tracer {
  /** Whether model requests carry the trace on. */
  readonly propagate: boolean
  readonly #lanes: readonly ExportQueue[]
  readonly #live: boolean

  constructor(options: TracerOptions) {
    checkTracer(options)
    const { store, clock, sinks, queueMax = QUEUE_MAX, onDrop = () => {}, live = false, propagate = false } = options
    this.#live = live
    this.propagate = propagate
    this.#lanes = sinks.map((sink) => new ExportQueue({ store, clock, sink, queueMax, onDrop }))
  }

  /** How many runs each sink was given, and how many were lost on the way. */
  get stats(): readonly LaneStats[] {
    return this.#lanes.map((lane) => lane.stats)
  }

  /** To be called after a commit that ends a model request or a call of the open run `run`. Returns at once and never throws. */
  progressed(session: string, run: number): void {
    if (this.#live && run > 0) for (const lane of this.#lanes) lane.progress({ session, run })
  }

  /** To be called after the commit that holds `run.settled`, of roots and of children. Returns at once and never throws. */
  settled(session: string, run: number): void {
    if (run > 0) for (const lane of this.#lanes) lane.push({ session, run })
  }

  /** Resolves when everything that settled before has been exported or given up. */
  async flush(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.flush()))
  }

  /** Exports what is left, for a bounded time, and closes the sinks. To be called while the store is still open. */
  async close(timeoutMs = CLOSE_MS): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.close(timeoutMs)))
  }
}

/** What a harness hands to its tracer. */
export type TracingPlace = {
  readonly store: Store
  readonly clock: Clock
  readonly report: (error: unknown) => void
}

/** Tracing for a harness: `new Harness({ model, tracing: tracing({ sinks: [localTraces()] }) })`. It reports what it loses. */
export function tracing(options: TracingOptions): (place: TracingPlace) => Tracer {
  checkTracing(options)
  return ({ store, clock, report }) => {
    const onDrop = ({ sink, dropped, failed, message }: DropReport): void =>
      report(new Error(`${dropped + failed} traces were lost on the way to the ${sink}. ${message}`))
    return new Tracer({ onDrop, ...given(options), store, clock })
  }
}
