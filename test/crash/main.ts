// Real kills: workers on a real SQLite file are killed with SIGKILL, one after another, while a client goes on; then all that
// was promised is compared with what is there. `npm run crash -- --rounds 100 [--seed N]`. Exit 1 on any violation.
// With `--trees` each round is a parent with twenty children, and the kills fall where children are made, end and report (trees.ts).
// With `--triggers` a server takes signed deliveries in and is killed, while their sender repeats them (triggers.ts).
// It shows safety against the death of a process. It shows nothing about power loss: the page cache survives a SIGKILL.
// With `--store postgres` the same on a server that it starts itself, under four workers, one of them killed a round; with
// `--kill-server` each fourth round kills the server instead, and about half of the time a worker with it.
import { setTimeout as sleep } from 'node:timers/promises'
import { argumentsOf, refuse, wholeNumber } from '../../sim/arguments.ts'
import { noPostgres, Server } from '../postgres/server.ts'
import { Ground } from './ground.ts'
import { shoot, takeAim, waitFor } from './killer.ts'
import type { Child } from './process.ts'
import { Chance } from './random.ts'
import { printSummary } from './summary.ts'
import { killTrees } from './trees.ts'
import { killTriggers } from './triggers.ts'

/** Short, so that a session is taken up again soon after its worker was killed. */
const LEASE_MS = { sqlite: 250, postgres: 1_000 }
const LAST_LEASE_MS = 2_000
/** Servers that take deliveries in. */
const SERVERS = { sqlite: 1, postgres: 2 }
const WORKERS = { sqlite: 1, postgres: 4 }
/** How long a server stays away, at most. */
const AWAY_MS_MAX = 1_500
const SERVER_EACH = 4

const { values } = argumentsOf('crash', {
  options: {
    rounds: { type: 'string' },
    seed: { type: 'string' },
    trees: { type: 'boolean' },
    triggers: { type: 'boolean' },
    store: { type: 'string' },
    'kill-server': { type: 'boolean' },
  },
})
const rounds = wholeNumber(values.rounds ?? '100', 'rounds')
const seed = wholeNumber(values.seed ?? String(Date.now() % 1_000_000), 'seed')
const kind = storeOf(values.store)
const killsServer = values['kill-server'] === true
if (killsServer && kind !== 'postgres') refuse('There is no server to kill. Use --kill-server with: --store postgres')
if (killsServer && values.trees) refuse('--trees kills workers alone. Leave out --kill-server, or --trees.')
if (killsServer && values.triggers) refuse('--triggers kills processes of Terret alone. Leave out --kill-server.')
if (values.trees && values.triggers) refuse('--trees and --triggers are two runs. Leave out one of them.')
const given = [
  values.trees && '--trees',
  values.triggers && '--triggers',
  kind === 'postgres' && '--store postgres',
  killsServer && '--kill-server',
]
const again = ['npm run crash --', ...given.filter(Boolean), `--rounds ${rounds} --seed ${seed}`].join(' ')
const server = kind === 'postgres' ? await Server.start({ fsync: killsServer }) : null
const ground = new Ground(server?.url())
const begun = performance.now()
let serverKills = 0
try {
  const violations = values.trees ? await trees() : values.triggers ? await triggers() : await plain()
  if (violations.length > 0) process.exitCode = 1
} catch (error) {
  console.error(error)
  console.log(`again with: ${again}`)
  process.exitCode = 1
} finally {
  await ground.end(Boolean(process.exitCode))
  await server?.close()
}

function storeOf(name = 'sqlite'): 'sqlite' | 'postgres' {
  if (name === 'memory')
    return refuse(
      'A store in memory dies with its process, so there is nothing to recover. Use --store sqlite or postgres.',
    )
  if (name !== 'sqlite' && name !== 'postgres') return refuse(`--store must be sqlite or postgres, not "${name}".`)
  if (name === 'postgres' && noPostgres)
    return refuse(
      'Postgres is not installed here. Install it, or set TERRET_POSTGRES_BIN to the folder with its initdb.',
    )
  return name
}

function trees(): Promise<readonly string[]> {
  const { places, database } = ground
  return killTrees({ seed, rounds, places, database, again, startWorker: () => startWorker(0) })
}

function triggers(): Promise<readonly string[]> {
  const { places, database } = ground
  const startServer = () => ground.startServer(LEASE_MS[kind])
  return killTriggers({ seed, rounds, servers: SERVERS[kind], places, database, again, startServer })
}

async function plain(): Promise<readonly string[]> {
  await crash()
  const verdict = await ground.verdict()
  const seconds = (performance.now() - begun) / 1_000
  const violations = [...missed(), ...ground.violations(verdict)]
  printSummary({ rounds, again, seconds, serverKills, strikes: ground.strikes, verdict, violations })
  return violations
}

async function crash(): Promise<void> {
  const chance = new Chance(seed)
  const client = await ground.startClient(seed)
  const workers = Array.from({ length: WORKERS[kind] }, () => startWorker(0))
  for (let round = 1; round <= rounds; round++) {
    const i = workers.length === 1 ? 0 : chance.integer(0, workers.length - 1)
    workers.forEach((other, at) => at !== i && other.say('go'))
    if (killsServer && round % SERVER_EACH === 0) await strikeServer(chance, workers[i] as Child)
    if (!killsServer || round % SERVER_EACH !== 0 || chance.happens(0.5)) await strike(chance, workers, i, round)
    if (!client.alive) throw new Error(`the client ended: ${client.stderr}`)
  }
  await ground.settle(client, workers)
}

/** One worker is killed, and another takes its place. */
async function strike(chance: Chance, workers: Child[], i: number, round: number): Promise<void> {
  const worker = workers[i] as Child
  const heir = startWorker(round)
  const trouble = await shoot({ worker, heir }, ground.places, takeAim(chance, ground.strikes.struck.kills))
  if (trouble !== null) ground.troubles.push(`round ${round}: ${trouble}`)
  workers[i] = heir
  await ground.judge(worker)
}

/** The server is killed near a commit of this worker, and is away for a while. */
async function strikeServer(chance: Chance, worker: Child): Promise<void> {
  worker.say('go')
  await worker.heard('ready', 20_000)
  await sleep(chance.between(0, 300))
  await waitFor('commit', worker, ground.places)
  await sleep(chance.between(0, 5))
  await server?.kill()
  serverKills += 1
  await sleep(chance.between(0, AWAY_MS_MAX))
  await server?.up()
}

function startWorker(round: number): Child {
  return ground.startWorker(round === rounds ? LAST_LEASE_MS : LEASE_MS[kind])
}

/** A run that never hit a class shows nothing about it. A few rounds cannot promise to hit them all. */
function missed(): readonly string[] {
  if (rounds < 50) return []
  const classes = Object.entries(ground.strikes.struck.kills)
  return classes.flatMap(([name, kills]) => (kills > 0 ? [] : [`no kill fell into the class "${name}"`]))
}
