// A real harness and a tracer beside it, for tests of tracing: runs that settle, children that really run, and sinks that
// keep what they were given. No expectations here.
import {
  Harness,
  type HarnessOptions,
  memory,
  type Script,
  scripted,
  type CompleteStore,
  type Store,
} from '../../src/index.ts'
import type { Clock } from '../../src/ports/system.ts'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { type Capture, type ExportContext, type Sink, type Span, Tracer } from '../../src/tracing/index.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'

export type Stage = {
  readonly harness: Harness
  readonly store: CompleteStore
  /** Runs one input in a new session; the id of the session. */
  readonly run: (input?: string) => Promise<string>
  /** Tells a tracer of the last run of a session. */
  readonly tell: (tracer: Tracer, session: string) => Promise<void>
}

export function stage(script: Script = () => 'done', options: Partial<HarnessOptions> = {}): Stage {
  const store = completeStore(options.store ?? memory())
  const harness = new Harness({ model: scripted(script, 'scripted:test'), ...options, store })
  return {
    harness,
    store,
    run: async (input = 'go') => (await harness.run(input)).sessionId,
    tell: async (tracer, session) => tracer.settled(session, await lastRun(store, session)),
  }
}

export async function lastRun(store: CompleteStore, session: string): Promise<number> {
  const { events } = await store.read(session, 0)
  return events.findLast((event) => event.type === 'run.started')?.seq ?? 0
}

/** Keeps what it gets. `hold` makes it wait before it takes anything. */
export class Kept implements Sink {
  readonly name: string
  readonly capture: Capture
  readonly batches: (readonly Span[])[] = []
  readonly texts = new Map<string, string>()
  closed = false
  hold: Promise<void> = Promise.resolve()

  constructor(name = 'kept', capture: Capture = 'none') {
    this.name = name
    this.capture = capture
  }

  async export(spans: readonly Span[], { texts }: ExportContext): Promise<void> {
    await this.hold
    this.batches.push(spans)
    for (const [hash, text] of texts) this.texts.set(hash, text)
  }

  async close(): Promise<void> {
    this.closed = true
  }
}

/** Takes nothing. */
export function broken(): Sink {
  return { name: 'broken', export: () => Promise.reject(new Error('no space left')), close: () => Promise.resolve() }
}

export function tracerOn(store: Store, sinks: readonly Sink[], clock: Clock = runtimeClock): Tracer {
  return new Tracer({ store, sinks, clock })
}
