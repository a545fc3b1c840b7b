// Reads the growing log of one report, with the projection of `terret inspect`, and knows which process wrote each
// event. It only reads.
import { type ReportState, reportNodeText } from './report/report-graph.ts'
import type { Event, CompleteStore } from '../../kernel/index.ts'
import { readEvents } from '../state/read-log.ts'
import { type NodeStop, stateIn, stopsOf } from '../../view/node-stops.ts'

/** The store reports most writes of other processes at once. This is how often the log is read besides. */
const LOOK_MS = 50

export class LogReader {
  readonly events: Event[] = []
  /** The process id of the current worker. */
  pid: number | null = null
  readonly #store: CompleteStore
  readonly #session: string
  /** By epoch: the worker that ran when it began; null for a process that was started elsewhere. */
  readonly #pids = new Map<number, number | null>()

  constructor(store: CompleteStore, session: string) {
    this.#store = store
    this.#session = session
  }

  get stops(): readonly NodeStop[] {
    return stopsOf(this.events, reportNodeText)
  }

  get state(): Partial<ReportState> {
    return stateIn<ReportState>(this.events) ?? {}
  }

  get isSettled(): boolean {
    return this.events.at(-1)?.type === 'run.settled'
  }

  /** The node that the current worker has begun and that has no result yet. */
  get running(): string | null {
    const stop = this.stops.find(({ status }) => status === 'runs')
    return stop && this.pid !== null && this.writerOf(stop) === this.pid ? stop.node : null
  }

  /** The process that wrote the last event of a node: its start or its result. Null: not a worker of the demo. */
  writerOf({ call }: NodeStop): number | null {
    const last = this.events.findLast((event) => 'call' in event && event.call === call && event.epoch > 0)
    return this.#pids.get(last?.epoch ?? 0) ?? null
  }

  /** The tokens that a model counted. */
  get tokens(): number {
    const used = this.events.map((event) => (event.type === 'agent.message' ? event.usage : undefined))
    return used.reduce((sum, each) => sum + (each?.inputTokens ?? 0) + (each?.outputTokens ?? 0), 0)
  }

  async look(): Promise<void> {
    const { seq = 0 } = this.events.at(-1) ?? {}
    for await (const event of readEvents(this.#store, this.#session, seq)) {
      this.events.push(event)
      if (!this.#pids.has(event.epoch)) this.#pids.set(event.epoch, this.pid)
    }
  }

  /** Reads the log repeatedly until `found` returns a value. Null if `over` is aborted before. */
  async until<T>(found: () => T | null, over: AbortSignal): Promise<T | null> {
    let news = (): void => {}
    const tell = (): void => news()
    const unwatch = this.#store.watch(this.#session, tell)
    over.addEventListener('abort', tell)
    try {
      for (;;) {
        let timer: NodeJS.Timeout | undefined
        const next = new Promise<void>((resolve) => {
          news = resolve
          timer = setTimeout(resolve, LOOK_MS)
        })
        await this.look()
        const one = found()
        if (one === null && !over.aborted) await next
        clearTimeout(timer)
        if (one !== null || over.aborted) return one
      }
    } finally {
      over.removeEventListener('abort', tell)
      unwatch()
    }
  }
}
