// The tracer: reads the log and turns runs into traces after they have settled. It adds nothing to the log, and nothing
// waits for it. It counts what it loses; the log loses nothing, so every trace can be made again with `spansOf`.
import type { Store } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import {
  functionCheck,
  type Checks,
  clockCheck,
  countCheck,
  flagCheck,
  withoutUndefined,
  methodsCheck,
  listCheck,
  requiredCheck,
  optionsChecker,
} from '../options.ts'
import { type DropReport, ExportQueue, type ExportQueueStats } from './export-queue.ts'
import type { Sink } from './sink.ts'

/** Options of a `Tracer`: the store it reads, its sinks, and what it does with spans it cannot deliver. */
export type TracerOptions = {
  /** The store whose logs the spans are made from. */
  readonly store: Store
  /** The clock that exports wait by. */
  readonly clock: Clock
  /** Any number. Each has its own queue, so a slow sink does not delay the others. */
  readonly sinks: readonly Sink[]
  /** How many settled runs may wait for a sink. Default: 1,024. */
  readonly queueMax?: number
  /** Send each span of an open run soon after it has ended, not only when the run has settled. Default: false. */
  readonly live?: boolean
  /**
   * Model requests have the header `traceparent` and tools get theirs, even in runs without a given one. Default:
   * false.
   */
  readonly propagate?: boolean
  /** Called when something was lost: at once for the first time, then at most every five minutes for each sink. */
  readonly onDrop?: (report: DropReport) => void
}

type TracingOptions = Omit<TracerOptions, 'store' | 'clock'>
const TRACING: Checks<TracingOptions> = {
  sinks: requiredCheck(listCheck(methodsCheck('give sinks such as localTraces() or otlp()', 'export'))),
  queueMax: countCheck(1),
  live: flagCheck,
  propagate: flagCheck,
  onDrop: functionCheck,
}
const checkTracing = optionsChecker<TracingOptions>('tracing', TRACING)
const checkTracer = optionsChecker<TracerOptions>('new Tracer', {
  ...TRACING,
  store: requiredCheck(methodsCheck('give the store of the harness', 'read')),
  clock: requiredCheck(clockCheck),
})

const QUEUE_MAX = 1_024
const CLOSE_MS = 5_000

/**
 * Makes spans out of logs and hands them to its sinks, without ever delaying a run. `tracing` makes one for a
 * harness.
 */
export class Tracer {
  /** Whether model requests pass the trace on. */
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

  /** How many runs each sink has received, and how many were lost. */
  get stats(): readonly ExportQueueStats[] {
    return this.#lanes.map((lane) => lane.stats)
  }

  /**
   * Call it after a commit that ends a model request or a call of the open run `run`. Returns at once and never throws.
   */
  progressed(session: string, run: number): void {
    if (this.#live && run > 0) for (const lane of this.#lanes) lane.progress({ session, run })
  }

  /** Call it after the commit with `run.settled`, for roots and children. Returns at once and never throws. */
  settled(session: string, run: number): void {
    if (run > 0) for (const lane of this.#lanes) lane.push({ session, run })
  }

  /** Resolves when all runs that settled before are exported or given up. */
  async flush(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.flush()))
  }

  /** Exports the rest within a bounded time, and closes the sinks. Call it while the store is still open. */
  async close(timeoutMs = CLOSE_MS): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.close(timeoutMs)))
  }
}

/** The parts of a harness that its tracer uses. */
export type TracerContext = {
  /** The store of the harness, whose logs the spans are made from. */
  readonly store: Store
  /** The clock of the harness. */
  readonly clock: Clock
  /** Receives what was lost, as the harness's `onError`. */
  readonly report: (error: unknown) => void
}

/** Tracing for a harness: `new Harness({ model, tracing: tracing({ sinks: [localTraces()] }) })`. It reports losses. */
export function tracing(options: TracingOptions): (place: TracerContext) => Tracer {
  checkTracing(options)
  return ({ store, clock, report }) => {
    const onDrop = ({ sink, dropped, failed, message }: DropReport): void =>
      report(new Error(`${dropped + failed} traces were lost on the way to the ${sink}. ${message}`))
    return new Tracer({ onDrop, ...withoutUndefined(options), store, clock })
  }
}
