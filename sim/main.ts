// The simulator's command line: `npm run sim -- --seeds 2000 | --seed N | --planted [--only TEXT] [--share 2/3] [--find]`.
// `--store sqlite` or `postgres` runs the seeds on that store, with real files and a real server that it starts itself.
// `--bail` ends everything at the first violation. `--resume FILE` keeps the report of each seed there, and goes on where it ends.
// `--coverage` says what no seed reached. Splits the seeds over the cores; a violation prints the one command that replays it.
import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { argumentsOf, refuse, wholeNumber } from './arguments.ts'
import { reportReach } from './coverage.ts'
import { mutate, type Mutating } from './mutate.ts'
import { planted } from './planted.ts'
import { SeedFile } from './seed-file.ts'
import { playShare, shareSeeds } from './shares.ts'
import { type Report, simulate } from './simulate.ts'
import type { MakeStore } from './stores.ts'
import { Summary } from './summary.ts'

const { values } = argumentsOf('sim', {
  options: {
    seeds: { type: 'string', default: '300' },
    first: { type: 'string', default: '1' },
    seed: { type: 'string' },
    planted: { type: 'boolean', default: false },
    only: { type: 'string' },
    find: { type: 'boolean', default: false },
    share: { type: 'string' },
    lines: { type: 'boolean', default: false },
    bail: { type: 'boolean', default: false },
    resume: { type: 'string' },
    coverage: { type: 'boolean', default: false },
    store: { type: 'string', default: 'memory' },
    mutate: { type: 'string' },
    parallel: { type: 'string', default: `${availableParallelism()}` },
  },
})
const first = wholeNumber(values.first, 'first')
const seeds = wholeNumber(values.seeds, 'seeds', 1)
/** Where the server of this run is, for its shares. */
const DATABASE = 'TERRET_SIM_DATABASE'
/** Statements that go to a server take their time. */
const STUCK_MS = 300_000
const on = values.store === 'memory' ? [] : ['--store', values.store]
const make = await storeOf(values.store)

if (values.planted) process.exitCode = (await planted(values)) ? 0 : 1
else if (values.mutate !== undefined) process.exitCode = (await mutate(mutating(values.mutate))) ? 0 : 1
else if (values.seed !== undefined) await replay(wholeNumber(values.seed, 'seed'))
else if (values.lines) await playShare((seed) => simulate(seed, { make }))
else await all()
process.exit()

function mutating(count: string): Mutating {
  return {
    count: wholeNumber(count, 'mutate', 1),
    seed: wholeNumber(values.seed ?? '1', 'seed'),
    seeds,
    parallel: wholeNumber(values.parallel, 'parallel', 1),
    only: values.only ?? '',
    resume: values.resume,
    on,
  }
}

async function storeOf(name: string): Promise<MakeStore | null> {
  if (name === 'memory') return null
  if (name !== 'sqlite' && name !== 'postgres')
    return refuse(`--store must be memory, sqlite or postgres, not "${name}".`)
  const stores = await import('./stores.ts')
  if (name === 'sqlite') return stores.onSqlite
  process.env[DATABASE] ??= await startServer()
  return stores.onPostgres(process.env[DATABASE])
}

/** A server of the tests, which ends with this process. Its URL is the last word that it says. */
async function startServer(): Promise<string> {
  const path = fileURLToPath(new URL('../test/postgres/child-server.js', import.meta.url))
  const child = fork(path, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  return new Promise((resolve) => {
    child.stdout?.once('data', (said: Buffer) => resolve(said.toString().trim().split(' ').at(-1) ?? ''))
    child.once('exit', () => refuse('Postgres did not start. Install it, or set TERRET_POSTGRES_BIN to its programs.'))
  })
}

async function all(): Promise<void> {
  const begun = performance.now()
  const sums = new Summary()
  const done = new Set<number>()
  const note = (report: Report): void => {
    if (report.seed < first || report.seed >= first + seeds || done.has(report.seed)) return
    done.add(report.seed)
    sums.add(report)
  }
  const reach = values.coverage ? resolve('.build', `reach-${process.pid}`) : null
  const file = values.resume === undefined ? null : new SeedFile(values.resume, on.join(' '))
  await file?.read(note)
  if (done.size > 0) console.log(`${done.size} seeds are done, ${seeds - done.size} are left`)
  await shareSeeds<Report>({
    file: fileURLToPath(import.meta.url),
    command: 'npm run sim',
    seeds: seedsLeft(done),
    take: (report) => {
      note(report)
      file?.add(report)
      return values.bail && report.violations.length > 0
    },
    args: on,
    env: reach === null ? {} : { NODE_V8_COVERAGE: reach },
    ...(make ? { stuckMs: STUCK_MS } : {}),
  })
  const bad = [...sums.broken].sort(([a], [b]) => a - b)
  for (const [seed, violations] of bad.slice(0, 10)) {
    console.log(
      `seed ${seed}: ${violations.slice(0, 3).join('\n  ')}\n  replay: ${['npm run sim --', ...on, '--seed', seed].join(' ')}`,
    )
  }
  console.log(sums.text((performance.now() - begun) / 1_000))
  const isListed = reach === null || reportReach(reach)
  if (bad.length > 0 || sums.seeds !== seeds || !isListed) process.exitCode = 1
}

function* seedsLeft(done: ReadonlySet<number>): Iterable<number> {
  for (let seed = first; seed < first + seeds; seed++) if (!done.has(seed)) yield seed
}

async function replay(seed: number): Promise<void> {
  const report = await simulate(seed, { make })
  console.log(JSON.stringify(report, null, 2))
  if (report.violations.length > 0) process.exitCode = 1
}
