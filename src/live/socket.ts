// Live deltas across the processes of one machine, for a store that several of them share (SQLite). The process that drives a
// session serves its deltas on a unix socket named in the worker's row; readers connect there. It carries nothing
// that the log does not say again, so every trouble ends in silence, never in an error. The two ends of the socket are
// in server.ts and client.ts. Where there are no unix sockets (Windows) it is LocalLive and no more.
import { tmpdir } from 'node:os'
import type { Store } from '../ports/store.ts'
import type { Delta } from '../ports/model.ts'
import type { Clock } from '../ports/system.ts'
import type { Live } from './live.ts'
import { type Listener, type LiveDelta, LocalLive } from './live.ts'
import { LiveClient } from './client.ts'
import { LiveServer } from './server.ts'

/** A store may forget a worker that was idle for long, and its address with it. */
const ANNOUNCE_EVERY_MS = 60 * 60 * 1000

export type SocketLiveOptions = {
  readonly store: Pick<Store, 'announce' | 'address' | 'watch'>
  readonly clock: Clock
  /** Where the socket's own folder is made. Too long a path for a unix socket is replaced by `/tmp`. */
  readonly folder?: string
}

export class SocketLive implements Live {
  readonly #options: SocketLiveOptions
  readonly #local = new LocalLive()
  readonly #followers = new Set<LiveClient>()
  /** Until when the store is sure to know each worker's address. */
  readonly #announced = new Map<string, number>()
  #server: LiveServer | null = null
  #starting: Promise<LiveServer | null> | null = null
  #closed = false

  constructor(options: SocketLiveOptions) {
    this.#options = options
  }

  /**
   * Lets other processes reach what this worker's sessions say; the first call opens the socket. Await it before each
   * claim: followers look when `model.started` is committed, and must find the address then. Nearly always it
   * has nothing to do. Never rejects: without a socket, or with no address in the store, only this process hears.
   */
  async serve(worker: string, ttlMs: number): Promise<void> {
    const { store, clock } = this.#options
    if (clock.now() < (this.#announced.get(worker) ?? 0)) return
    this.#starting ??= this.#start()
    const server = await this.#starting
    if (!server || this.#closed) return
    try {
      await store.announce(worker, server.address, ttlMs)
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
    this.#server?.settle(session)
  }

  said(session: string): readonly LiveDelta[] {
    return this.#local.said(session)
  }

  subscribe(session: string, listener: Listener): () => void {
    if (this.#closed) return () => {}
    const { store } = this.#options
    const follower = new LiveClient({ store, session, listener, own: () => this.#server?.address ?? null })
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
    await this.#local.close()
    await (await this.#starting)?.close()
  }

  async #start(): Promise<LiveServer | null> {
    const { clock, folder = tmpdir() } = this.#options
    this.#server = await LiveServer.open(this.#local, clock, folder).catch(() => null)
    return this.#server
  }
}
