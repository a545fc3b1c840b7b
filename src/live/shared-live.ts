// Live deltas across processes, for a store that several of them share. A worker's row has the address of the process
// that drives a session; readers follow it there through a transport (delta-transport.ts). Everything here is also in
// the log, so trouble ends in silence, never in an error. Without a transport this is only LocalLive.
import type { CompleteStore } from '../ports/store.ts'
import type { Delta } from '../ports/model.ts'
import type { Clock } from '../ports/system.ts'
import type { Live } from './local-live.ts'
import { type DeltaListener, type LiveDelta, localLive, LocalLive } from './local-live.ts'
import { LiveClient } from './live-client.ts'
import type { DeltaEndpoint, DeltaTransport } from './delta-transport.ts'

/** A store may drop the row of a worker that was idle for long, and its address with it. */
const ANNOUNCE_EVERY_MS = 60 * 60 * 1000

export type SharedLiveOptions = {
  readonly store: Pick<CompleteStore, 'announce' | 'address' | 'watch'>
  readonly clock: Clock
  /** Called once, by the first worker or reader that needs it. */
  readonly openTransport: () => Promise<DeltaTransport>
}

/** The live deltas of a store for all processes that have it open: this one, this machine, or anywhere. */
export function liveOf(store: CompleteStore, clock: Clock): Live {
  if (store.reach === 'process') return localLive(store)
  const post = store.post?.()
  const openTransport = async (): Promise<DeltaTransport> =>
    post
      ? new (await import('./channel-transport.ts')).ChannelTransport(post, clock)
      : (await import('./socket-transport.ts')).socketTransport()
  return new SharedLive({ store, clock, openTransport })
}

export class SharedLive implements Live {
  readonly #options: SharedLiveOptions
  readonly #local = new LocalLive()
  readonly #followers = new Set<LiveClient>()
  /** Until when the store surely knows each worker's address. */
  readonly #announced = new Map<string, number>()
  #door: DeltaEndpoint | null = null
  #starting: Promise<DeltaEndpoint | null> | null = null
  #transport: Promise<DeltaTransport> | null = null
  #closed = false

  constructor(options: SharedLiveOptions) {
    this.#options = options
  }

  /**
   * Lets other processes receive the deltas of this worker's sessions; the first call opens the endpoint. Await it
   * before each claim: followers look when `model.started` is committed, and must find the address then. It nearly
   * always has nothing to do. It never rejects: without an endpoint, or without an address in the store, only this
   * process receives deltas.
   */
  async serve(worker: string, ttlMs: number): Promise<void> {
    const { store, clock } = this.#options
    if (clock.now() < (this.#announced.get(worker) ?? 0)) return
    this.#starting ??= this.#start()
    const door = await this.#starting
    if (!door || this.#closed) return
    try {
      await store.announce(worker, door.address, ttlMs)
      this.#announced.set(worker, clock.now() + ANNOUNCE_EVERY_MS)
    } catch {
      // The claim that follows meets the same trouble and reports it.
    }
  }

  publish(session: string, seq: number, delta: Delta): void {
    this.#local.publish(session, seq, delta)
  }

  finish(session: string, seq: number, part?: number): void {
    this.#local.finish(session, seq, part)
    this.#door?.settle(session)
  }

  said(session: string): readonly LiveDelta[] {
    return this.#local.said(session)
  }

  subscribe(session: string, listener: DeltaListener): () => void {
    if (this.#closed) return () => {}
    const { store } = this.#options
    const own = (): string | null => this.#door?.address ?? null
    const follower = new LiveClient({ store, session, listener, transport: this.#way, own })
    const leave = this.#local.subscribe(session, (delta) => void follower.hear(delta))
    this.#followers.add(follower)
    follower.start()
    return () => {
      leave()
      this.#followers.delete(follower)
      follower.close()
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const follower of this.#followers) follower.close()
    this.#followers.clear()
    await (await this.#starting)?.close()
    const transport = await this.#transport?.catch(() => null)
    transport?.close()
  }

  readonly #way = (): Promise<DeltaTransport> => {
    this.#transport ??= this.#options.openTransport()
    return this.#transport
  }

  async #start(): Promise<DeltaEndpoint | null> {
    try {
      this.#door = await (await this.#way()).open(this.#local, this.#options.clock)
    } catch {
      // The transport cannot be loaded: only this process receives deltas.
    }
    return this.#door
  }
}
