// The run of kills: workers are killed one after another while a client goes on, and then all that was promised is compared with what
// is there. One client, one store, one process; parts.ts runs many of them beside each other.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Server } from '../postgres/server.ts'
import { Ground } from './ground.ts'
import { shoot, takeAim, waitFor } from './killer.ts'
import type { Child } from './process.ts'
import { Chance } from './random.ts'
import type { Summary } from './summary.ts'
import { type Storms, Sky, type Weather } from './weather.ts'

/** Short, so that a session is taken up again soon after its worker was killed. */
export const LEASE_MS = { sqlite: 250, postgres: 1_000 }
const LAST_LEASE_MS = 2_000
const WORKERS = { sqlite: 1, postgres: 4 }
/** How long a server stays away, at most. */
const AWAY_MS_MAX = 1_500
/** A run that never hit a class shows nothing about it. A few rounds cannot promise to hit them all. */
const ROUNDS_ENOUGH = 50
const NO_STORMS: Storms = { serverKills: 0, partitions: 0, latePackets: 0, locks: 0 }

export type StoreKind = 'sqlite' | 'postgres'
export type Kills = {
  readonly seed: number
  readonly rounds: number
  readonly kind: StoreKind
  readonly weather: Weather
  readonly again: string
}

/** What was found; the evidence is kept if something was wrong. Throws when the run itself could not go on. */
export async function killWorkers(kills: Kills, server: Server | null): Promise<Summary> {
  const begun = performance.now()
  const sky = server && (await Sky.over(server, kills.weather, LEASE_MS[kills.kind]))
  const ground = new Ground(sky?.url)
  let wrong = true
  try {
    const run = new Run(kills, ground, sky)
    await run.kill()
    const verdict = await ground.verdict()
    const seconds = (performance.now() - begun) / 1_000
    const violations = [...missed(kills.rounds, ground.strikes.struck.kills), ...ground.violations(verdict)]
    wrong = violations.length > 0
    const { strikes, leases } = ground
    const storms = sky?.counts ?? NO_STORMS
    return { ...kills, seconds, storms, kills: run.kills, strikes, leasesLost: leases.lost, verdict, violations }
  } finally {
    await ground.end(wrong)
    await sky?.end()
  }
}

export function missed(kills: number, classes: Readonly<Record<string, number>>): readonly string[] {
  if (kills < ROUNDS_ENOUGH) return []
  return Object.entries(classes).flatMap(([name, hit]) => (hit > 0 ? [] : [`no kill fell into the class "${name}"`]))
}

class Run {
  readonly #kills: Kills
  readonly #ground: Ground
  readonly #sky: Sky | null
  readonly #chance: Chance
  readonly #workers: Child[] = []
  kills = 0

  constructor(kills: Kills, ground: Ground, sky: Sky | null) {
    this.#kills = kills
    this.#ground = ground
    this.#sky = sky
    this.#chance = new Chance(kills.seed)
  }

  async kill(): Promise<void> {
    const { seed, rounds, kind } = this.#kills
    const [chance, ground, sky, workers] = [this.#chance, this.#ground, this.#sky, this.#workers]
    const client = await ground.startClient(seed)
    for (let i = 0; i < WORKERS[kind]; i++) workers.push(await this.#startWorker(i, 0))
    for (let round = 1; round <= rounds; round++) {
      const i = workers.length === 1 ? 0 : chance.integer(0, workers.length - 1)
      workers.forEach((other, at) => at !== i && other.say('go'))
      sky?.begin(round, chance)
      const strikesServer = sky?.strikesServer(round) === true
      if (strikesServer) await this.#strikeServer(workers[i] as Child)
      if (!strikesServer || chance.happens(0.5)) await this.#strike(i, round)
      if (!client.alive) throw new Error(`the client ended: ${client.stderr}`)
    }
    await sky?.clear()
    await ground.settle(client, workers)
  }

  /** One worker is killed, and another takes its place. */
  async #strike(i: number, round: number): Promise<void> {
    const ground = this.#ground
    const worker = this.#workers[i] as Child
    const heir = await this.#startWorker(i, round)
    const aim = takeAim(this.#chance, ground.strikes.struck.kills)
    const trouble = await shoot({ worker, heir }, ground.places, aim)
    this.kills += 1
    if (trouble !== null) ground.troubles.push(`round ${round}: ${trouble}`)
    this.#workers[i] = heir
    await ground.judge(worker)
  }

  /** The server is killed near a commit of this worker, and is away for a while. */
  async #strikeServer(worker: Child): Promise<void> {
    const chance = this.#chance
    worker.say('go')
    await worker.heard('ready', 20_000)
    await sleep(chance.between(0, 300))
    await waitFor('commit', worker, this.#ground.places)
    await sleep(chance.between(0, 5))
    await this.#sky?.killServer(chance.between(0, AWAY_MS_MAX))
  }

  async #startWorker(i: number, round: number): Promise<Child> {
    const { rounds, kind } = this.#kills
    const leaseMs = round === rounds ? LAST_LEASE_MS : LEASE_MS[kind]
    return this.#ground.startWorker(leaseMs, await this.#sky?.urlOf(i))
  }
}
