// Consumers of the log: each receives the events of the sessions that this worker drives, after they are on disk. Only
// positions are kept, no events: a slow consumer's next events are read from the store. Loaded by the first harness
// that has a consumer.
import type { Event, OwnerEvent } from '../../kernel/event.ts'
import type { Store } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import { cloneJson } from '../state/clone-json.ts'
import { sleep } from '../state/sleep.ts'

/**
 * Receives a copy of each event after it is on disk, in the order of its session. It never delays a run, and receives
 * each event at most once: events that a crash kept from it are not sent again.
 */
export type Consumer = (event: Event, at: { readonly session: string; readonly agent: string }) => unknown

/** A consumer, and the plugin that owns it. */
export type NamedConsumer = { readonly plugin: string; readonly consume: Consumer }

/** The consumer's view of its harness. */
export type ConsumerHost = {
  readonly store: Pick<Store, 'read'>
  readonly clock: Clock
  readonly report: (plugin: string, error: unknown) => void
}

/** The position in one session: the last event that was delivered, and the last one on disk. */
type FeedProgress = { readonly agent: string; told: number; upTo: number; telling: Promise<void> | null }

const PAGE = 200
/** How many sessions keep their position while nothing of them is being delivered. */
const SESSIONS_KEPT = 1_000
const CLOSE_MS = 30_000

export class Consumers {
  readonly #all: readonly ConsumerFeed[]
  readonly #clock: Clock

  constructor(consumers: readonly NamedConsumer[], host: ConsumerHost) {
    this.#all = consumers.map((consumer) => new ConsumerFeed(consumer, host))
    this.#clock = host.clock
  }

  committed(session: string, agent: string, events: readonly OwnerEvent[]): void {
    for (const one of this.#all) one.committed(session, agent, events)
  }

  /** Events on disk are still delivered, for a limited time. */
  async close(): Promise<void> {
    const done = new AbortController()
    await Promise.race([
      Promise.all(this.#all.map((one) => one.end())),
      sleep(this.#clock, CLOSE_MS, done.signal).then(() => {
        for (const one of this.#all) one.giveUp()
      }),
    ])
    done.abort()
  }
}

/** One consumer. A slow one delays no other. */
class ConsumerFeed {
  readonly #consumer: NamedConsumer
  readonly #host: ConsumerHost
  readonly #sessions = new Map<string, FeedProgress>()
  #gone = false

  constructor(consumer: NamedConsumer, host: ConsumerHost) {
    this.#consumer = consumer
    this.#host = host
  }

  committed(session: string, agent: string, events: readonly OwnerEvent[]): void {
    const [first] = events
    const upTo = events.at(-1)?.seq
    if (first === undefined || upTo === undefined || this.#gone) return
    const known = this.#sessions.get(session)
    // The id of a removed session may be used again.
    const progress =
      known && known.upTo < first.seq ? known : { agent, told: seqBeforeFirst(events, first), upTo, telling: null }
    progress.upTo = upTo
    this.#sessions.delete(session)
    this.#sessions.set(session, progress)
    progress.telling ??= this.#tell(session, progress).finally(() => {
      progress.telling = null
    })
    this.#forget()
  }

  async end(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map(async ({ telling }) => telling))
  }

  giveUp(): void {
    this.#gone = true
    const late = [...this.#sessions.values()].filter(({ telling }) => telling !== null).length
    if (late > 0) this.#report(new Error(`A consumer did not take the events of ${late} sessions in ${CLOSE_MS} ms.`))
  }

  async #tell(session: string, progress: FeedProgress): Promise<void> {
    const at = { session, agent: progress.agent }
    while (progress.told < progress.upTo && !this.#gone) {
      const page = await this.#read(session, progress)
      for (const event of page) {
        if (this.#gone) return
        // At most once, even if the consumer fails.
        progress.told = event.seq
        try {
          await this.#consumer.consume(cloneJson(event), at)
        } catch (error) {
          this.#report(error)
        }
      }
      if (page.length === 0) return
    }
  }

  async #read(session: string, { told, upTo }: FeedProgress): Promise<readonly Event[]> {
    try {
      return (await this.#host.store.read(session, told, Math.min(PAGE, upTo - told))).events
    } catch (error) {
      this.#report(error)
      return []
    }
  }

  #report(error: unknown): void {
    this.#host.report(this.#consumer.plugin, error)
  }

  #forget(): void {
    if (this.#sessions.size <= SESSIONS_KEPT) return
    for (const [session, { telling }] of this.#sessions) {
      if (telling === null) this.#sessions.delete(session)
      if (this.#sessions.size <= SESSIONS_KEPT) return
    }
  }
}

/**
 * The seq before the first event to deliver: a run begins with the message that opens it, and a session with its first
 * event.
 */
function seqBeforeFirst(events: readonly OwnerEvent[], first: OwnerEvent): number {
  const opened = events.flatMap((event) => (event.type === 'run.started' ? event.inputs : []))
  const from = Math.min(first.seq, ...opened) - 1
  return from <= 1 ? 0 : from
}
