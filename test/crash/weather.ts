// What else may happen between the workers of a crash run and their Postgres, beside kills: one worker's network is dark for longer than
// its lease, another program keeps a row locked, a pooler stands between, the server itself is killed. Each comes in some of the rounds.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { startPooler, type Pooler } from '../postgres/pgbouncer.ts'
import { Proxy } from '../postgres/proxy.ts'
import type { Server } from '../postgres/server.ts'
import type { Chance } from './random.ts'

export type Weather = {
  readonly killServer: boolean
  readonly partition: boolean
  readonly lock: boolean
  readonly pooler: boolean
}
export const CALM: Weather = { killServer: false, partition: false, lock: false, pooler: false }

/** Each comes in every so many rounds. */
const EACH = 4
const POOL_SIZE = 12
/** How long it lasts, in leases. */
const LASTS = [1.2, 3] as const

/** How often each came. */
export type Storms = { serverKills: number; partitions: number; latePackets: number; locks: number }

export class Sky {
  readonly counts: Storms = { serverKills: 0, partitions: 0, latePackets: 0, locks: 0 }
  readonly #server: Server
  readonly #weather: Weather
  readonly #leaseMs: number
  readonly #proxies = new Map<number, Proxy>()
  readonly #underWay = new Set<Promise<void>>()
  #pooler: Pooler | null = null

  static async over(server: Server, weather: Weather, leaseMs: number): Promise<Sky> {
    const sky = new Sky(server, weather, leaseMs)
    if (weather.pooler) sky.#pooler = await startPooler(server, POOL_SIZE)
    return sky
  }

  private constructor(server: Server, weather: Weather, leaseMs: number) {
    this.#server = server
    this.#weather = weather
    this.#leaseMs = leaseMs
  }

  get #port(): number {
    return this.#pooler?.port ?? this.#server.port
  }

  /** Where the client and this process go. */
  get url(): string {
    return this.#urlAt(this.#port)
  }

  #urlAt(port: number): string {
    return `${this.#server.url('postgres', undefined, port)}${this.#pooler ? '?pooled=true' : ''}`
  }

  /** Where the worker in this place goes: through a network of its own, if networks are to be cut. */
  async urlOf(place: number): Promise<string> {
    if (!this.#weather.partition) return this.url
    const proxy = this.#proxies.get(place) ?? (await Proxy.to(this.#port))
    this.#proxies.set(place, proxy)
    return this.#urlAt(proxy.port)
  }

  /** What this round brings. It goes on beside the round's kill. */
  begin(round: number, chance: Chance): void {
    if (this.#weather.partition && round % EACH === 1)
      this.#start(this.#partition(chance.integer(0, this.#proxies.size - 1), this.#lasts(chance)))
    if (this.#weather.lock && round % EACH === 2) this.#start(this.#lock(this.#lasts(chance)))
  }

  /** Whether this round is one in which the server is killed. */
  strikesServer(round: number): boolean {
    return this.#weather.killServer && round % EACH === 0
  }

  async killServer(awayMs: number): Promise<void> {
    await this.#server.kill()
    this.counts.serverKills += 1
    await sleep(awayMs)
    await this.#server.up()
  }

  /** Nothing hurts any more. */
  async clear(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  async end(): Promise<void> {
    await this.clear()
    for (const proxy of this.#proxies.values()) await proxy.close()
    await this.#pooler?.close()
  }

  #lasts(chance: Chance): number {
    return this.#leaseMs * chance.between(...LASTS)
  }

  #start(storm: Promise<void>): void {
    this.#underWay.add(storm)
    void storm.finally(() => this.#underWay.delete(storm))
  }

  /** What a worker sent meanwhile arrives later, also when it was killed in the dark. */
  async #partition(place: number, ms: number): Promise<void> {
    const proxy = this.#proxies.get(place)
    if (!proxy || proxy.dark.size > 0) return
    this.counts.partitions += 1
    proxy.goDark()
    await sleep(ms)
    this.counts.latePackets += proxy.held
    proxy.goLight()
  }

  /** The row of a session that a worker has. A server that is killed ends the lock. */
  async #lock(ms: number): Promise<void> {
    const other = new pg.Client({ connectionString: this.#server.url() })
    other.on('error', () => {})
    try {
      await other.connect()
      await other.query('begin')
      const text = 'select 1 from terret.sessions where worker is not null limit 1 for update skip locked'
      if ((await other.query(text)).rowCount === 0) return
      this.counts.locks += 1
      await sleep(ms)
    } catch {
      // The server was killed meanwhile.
    } finally {
      await other.end().catch(() => {})
    }
  }
}
