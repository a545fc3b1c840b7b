// Live deltas across processes, for a store that several of them share. The process that drives a session is found by the address
// in its worker's row; readers follow it there, by sockets or by post (way.ts). It carries nothing that the log does not say again,
// so every trouble ends in silence, never in an error. Where there is no way it is LocalLive and no more.
import type { Store } from '../ports/store.ts'
import type { Delta } from '../ports/model.ts'
import type { Clock } from '../ports/system.ts'
import type { Live } from './live.ts'
import { type Listener, type LiveDelta, localLive, LocalLive } from './live.ts'
import { LiveClient } from './client.ts'
import { PostWay } from './post.ts'
import { sockets } from './socket.ts'
import type { Door, Way } from './way.ts'

/** A store may forget a worker that was idle for long, and its address with it. */
const ANNOUNCE_EVERY_MS = 60 * 60 * 1000

export type SharedLiveOptions = {
  readonly store: Pick<Store, 'announce' | 'address' | 'watch'>
  readonly clock: Clock
  readonly way: Way
}

/** What is said in the sessions of a store, for all who have it open: this process, this machine, or anywhere. */
export function liveOf(store: Store, clock: Clock): Live {
  if (store.reach === 'process') return localLive(store)
  const post = store.post?.()
  return new SharedLive({ store, clock, way: post ? new PostWay(post, clock) : sockets() })
}

export class SharedLive implements Live {
  readonly #options: SharedLiveOptions
  readonly #local = new LocalLive()
  readonly #followers = new Set<LiveClient>()
  /** Until when the store is sure to know each worker's address. */
  readonly #announced = new Map<string, number>()
  #door: Door | null = null
  #starting: Promise<Door | null> | null = null
  #closed = false

  constructor(options: SharedLiveOptions) {
    this.#options = options
  }

  /**
   * Lets other processes reach what this worker's sessions say; the first call opens the door. Await it before each
   * claim: followers look when `model.started` is committed, and must find the address then. Nearly always it
   * has nothing to do. Never rejects: without a door, or with no address in the store, only this process hears.
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
      // The claim that follows meets the same trouble, and reports it.
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

  subscribe(session: string, listener: Listener): () => void {
    if (this.#closed) return () => {}
    const { store, way } = this.#options
    const follower = new LiveClient({ store, session, listener, way, own: () => this.#door?.address ?? null })
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
    this.#options.way.close()
  }

  async #start(): Promise<Door | null> {
    const { clock, way } = this.#options
    this.#door = await way.open(this.#local, clock)
    return this.#door
  }
}
