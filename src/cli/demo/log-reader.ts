// Reads the log of one report as it grows, by the projection of `terret inspect`, and knows which process wrote what. It only reads.
import { type ReportState, reportFound } from '../../graphs/index.ts'
import type { Event, Store } from '../../kernel/index.ts'
import { eventsOf } from '../state/log.ts'
import { type Stop, stateIn, stopsOf } from '../../view/node-stops.ts'

/** The store tells at once of most that other processes write; this is how often to look beside that. */
const LOOK_MS = 50

export class LogReader {
  readonly events: Event[] = []
  /** The worker that runs now. */
  pid: number | null = null
  readonly #store: Store
  readonly #session: string
  /** By epoch: the worker that ran when it began; null for a process that was started elsewhere. */
  readonly #pids = new Map<number, number | null>()

  constructor(store: Store, session: string) {
    this.#store = store
    this.#session = session
  }

  get stops(): readonly Stop[] {
    return stopsOf(this.events, reportFound)
  }

  get state(): Partial<ReportState> {
    return stateIn<ReportState>(this.events) ?? {}
  }

  get isSettled(): boolean {
    return this.events.at(-1)?.type === 'run.settled'
  }

  /** The node that the worker of now has begun, and that has no result yet. */
  get running(): string | null {
    const stop = this.stops.find(({ status }) => status === 'runs')
    return stop && this.pid !== null && this.writerOf(stop) === this.pid ? stop.node : null
  }

  /** Who wrote last of a node: its start, or its result. Null: no worker of the demo. */
  writerOf({ call }: Stop): number | null {
    const last = this.events.findLast((event) => 'call' in event && event.call === call && event.epoch > 0)
    return this.#pids.get(last?.epoch ?? 0) ?? null
  }

  /** Those that a model counted. */
  get tokens(): number {
    const used = this.events.map((event) => (event.type === 'agent.message' ? event.usage : undefined))
    return used.reduce((sum, each) => sum + (each?.inputTokens ?? 0) + (each?.outputTokens ?? 0), 0)
  }

  async look(): Promise<void> {
    const { seq = 0 } = this.events.at(-1) ?? {}
    for await (const event of eventsOf(this.#store, this.#session, seq)) {
      this.events.push(event)
      if (!this.#pids.has(event.epoch)) this.#pids.set(event.epoch, this.pid)
    }
  }

  /** Looks again and again until something is found. Null if it is over before. */
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
