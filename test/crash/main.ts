// Real kills: workers on a real SQLite file are killed with SIGKILL, one after another, while a client goes on; then all that
// was promised is compared with what is there. `npm run crash -- --rounds 100 [--seed N]`. Exit 1 on any violation.
// More than 250 rounds are run in parts beside each other, `--parallel N` at once, and `--resume FILE` goes on with a run that was ended
// (parts.ts). With `--trees` each round is a parent with twenty children, and the kills fall where children are made, end and report
// (trees.ts). With `--triggers` a server takes signed deliveries in and is killed, while their sender repeats them (triggers.ts).
// It shows safety against the death of a process. It shows nothing about power loss: the page cache survives a SIGKILL.
// With `--store postgres` the same on a server that it starts itself, under four workers, one of them killed a round; what else may happen
// there is in weather.ts: `--kill-server`, `--partition`, `--lock`, `--pooler`.
import { mkdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { argumentsOf, refuse, wholeNumber } from '../../sim/arguments.ts'
import { noPooler } from '../postgres/pgbouncer.ts'
import { noPostgres, Server } from '../postgres/server.ts'
import { Ground } from './ground.ts'
import { killWorkers, LEASE_MS, type StoreKind } from './kills.ts'
import { lineOf, runParts } from './parts.ts'
import { printSummary } from './summary.ts'
import { killTrees } from './trees.ts'
import { killTriggers } from './triggers.ts'
import type { Weather } from './weather.ts'

/** Servers that take deliveries in. */
const SERVERS = { sqlite: 1, postgres: 2 }
const ROUNDS_OF_PART = '250'

const { values } = argumentsOf('crash', {
  options: {
    rounds: { type: 'string' },
    seed: { type: 'string' },
    trees: { type: 'boolean' },
    triggers: { type: 'boolean' },
    store: { type: 'string' },
    'kill-server': { type: 'boolean' },
    partition: { type: 'boolean' },
    lock: { type: 'boolean' },
    pooler: { type: 'boolean' },
    parallel: { type: 'string' },
    part: { type: 'string' },
    resume: { type: 'string' },
    // Said by parts.ts to each of its processes: which part it is.
    as: { type: 'string' },
  },
})
const rounds = wholeNumber(values.rounds ?? '100', 'rounds')
const seed = wholeNumber(values.seed ?? String(Date.now() % 1_000_000), 'seed')
const roundsOfPart = wholeNumber(values.part ?? ROUNDS_OF_PART, 'part', 1)
const parallel = wholeNumber(values.parallel ?? String(availableParallelism() + 1), 'parallel', 1)
const kind = storeOf(values.store)
const weather: Weather = {
  killServer: values['kill-server'] === true,
  partition: values.partition === true,
  lock: values.lock === true,
  pooler: values.pooler === true,
}
checkTogether()
const options = [
  ...(values.trees ? ['--trees'] : []),
  ...(values.triggers ? ['--triggers'] : []),
  ...(kind === 'postgres' ? ['--store', 'postgres'] : []),
  ...(['kill-server', 'partition', 'lock', 'pooler'] as const).flatMap((name) => (values[name] ? [`--${name}`] : [])),
]
/** One part stays one, however large it is. */
const undivided = rounds > Number(ROUNDS_OF_PART) && rounds <= roundsOfPart ? [`--part ${rounds}`] : []
const again = ['npm run crash --', ...options, `--rounds ${rounds}`, ...undivided, `--seed ${seed}`].join(' ')
// A part ends with the run that it belongs to, also when that one was killed.
if (values.as !== undefined) process.stdin.resume().on('end', () => process.exit(3))
try {
  if (!(await run())) process.exitCode = 1
} catch (error) {
  console.error(error)
  console.log(`again with: ${again}`)
  process.exitCode = 1
}
if (values.as !== undefined) process.stdin.destroy()

function storeOf(name = 'sqlite'): StoreKind {
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

/** Refuses what makes no sense together. */
function checkTogether(): void {
  const { trees, triggers } = values
  if (weather.killServer && kind !== 'postgres')
    refuse('There is no server to kill. Use --kill-server with: --store postgres')
  const [first] = (['partition', 'lock', 'pooler'] as const).filter((name) => weather[name])
  if (first && kind !== 'postgres') refuse(`--${first} is about a server of its own. Use it with: --store postgres`)
  if (weather.killServer && trees) refuse('--trees kills workers alone. Leave out --kill-server, or --trees.')
  if (weather.killServer && triggers) refuse('--triggers kills processes of Terret alone. Leave out --kill-server.')
  if (first && (trees || triggers)) refuse(`--trees and --triggers take no other trouble. Leave out --${first}.`)
  if (trees && triggers) refuse('--trees and --triggers are two runs. Leave out one of them.')
  if (weather.pooler && noPooler) refuse('pgbouncer is not installed here. Install it, or leave out --pooler.')
  const [whole] = (['parallel', 'part', 'resume'] as const).filter((name) => values[name] !== undefined)
  if (whole && (trees || triggers))
    refuse(`--trees and --triggers are run in one process. Leave out --${whole}, and start it more than once.`)
}

/** Whether all was well. */
async function run(): Promise<boolean> {
  if (values.trees || values.triggers) return (await onGround()).length === 0
  if (values.as === undefined && (rounds > roundsOfPart || values.resume !== undefined)) {
    mkdirSync('.build', { recursive: true })
    const path = values.resume ?? `.build/crash-${seed}-${process.pid}.jsonl`
    return runParts({ rounds, seed, roundsOfPart, parallel, path, options })
  }
  const server = await startServer()
  try {
    const summary = await killWorkers({ seed, rounds, kind, weather, again }, server)
    printSummary(summary)
    if (values.as !== undefined) console.log(JSON.stringify(lineOf(wholeNumber(values.as, 'as'), seed, summary)))
    return summary.violations.length === 0
  } finally {
    await server?.close()
  }
}

async function startServer(): Promise<Server | null> {
  return kind === 'postgres' ? Server.start({ fsync: weather.killServer }) : null
}

/** The runs that have one client or none: with trees, and with deliveries. */
async function onGround(): Promise<readonly string[]> {
  const server = await startServer()
  const ground = new Ground(server?.url())
  const { places, database } = ground
  const common = { seed, rounds, places, database, again }
  const startServing = () => ground.startServer(LEASE_MS[kind])
  let wrong = true
  try {
    const violations = values.trees
      ? await killTrees({ ...common, startWorker: () => ground.startWorker(LEASE_MS[kind]) })
      : await killTriggers({ ...common, servers: SERVERS[kind], startServer: startServing })
    wrong = violations.length > 0
    return violations
  } finally {
    await ground.end(wrong)
    await server?.close()
  }
}
