// The simulator's command line: `npm run sim -- --seeds 2000 | --seed N | --planted [--only TEXT] [--share 2/3]`.
// `--store sqlite` or `postgres` runs the seeds on that store, with real files and a real server that it starts itself.
// `--bail` ends everything at the first violation. Splits the seeds over the cores; a violation prints the one command that replays it.
import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { argumentsOf, refuse, wholeNumber } from './arguments.ts'
import { planted } from './planted.ts'
import { shared } from './shares.ts'
import { type Report, simulate } from './simulate.ts'
import type { MakeStore } from './stores.ts'
import { summary } from './summary.ts'

const { values } = argumentsOf('sim', {
  options: {
    seeds: { type: 'string', default: '300' },
    first: { type: 'string', default: '1' },
    seed: { type: 'string' },
    step: { type: 'string', default: '1' },
    planted: { type: 'boolean', default: false },
    only: { type: 'string' },
    share: { type: 'string' },
    lines: { type: 'boolean', default: false },
    bail: { type: 'boolean', default: false },
    store: { type: 'string', default: 'memory' },
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

if (values.planted) process.exitCode = (await planted(values.only, values.share)) ? 0 : 1
else if (values.seed !== undefined) await replay(wholeNumber(values.seed, 'seed'))
else if (values.lines) await share(wholeNumber(values.step, 'step', 1))
else await all()
process.exit()

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
  const ends = ({ violations }: Report): boolean => values.bail && violations.length > 0
  const file = fileURLToPath(import.meta.url)
  const reports = await shared<Report>({
    file,
    command: 'npm run sim',
    first,
    seeds,
    ends,
    args: on,
    ...(make ? { stuckMs: STUCK_MS } : {}),
  })
  const trace = createHash('sha256')
    .update(reports.map((r) => `${r.seed} ${r.hash}`).join('\n'))
    .digest('hex')
  const bad = reports.filter((r) => r.violations.length > 0)
  for (const { seed, violations } of bad.slice(0, 10)) {
    console.log(
      `seed ${seed}: ${violations.slice(0, 3).join('\n  ')}\n  replay: ${['npm run sim --', ...on, '--seed', seed].join(' ')}`,
    )
  }
  console.log(summary(reports, trace, (performance.now() - begun) / 1_000))
  if (bad.length > 0 || reports.length !== seeds) process.exitCode = 1
}

/** One core's share, as lines of JSON: here `--seeds` is the seed after the last. */
async function share(step: number): Promise<void> {
  for (let seed = first; seed < seeds; seed += step) {
    process.stdout.write(`${JSON.stringify(await simulate(seed, { make }))}\n`)
  }
}

async function replay(seed: number): Promise<void> {
  const report = await simulate(seed, { make })
  console.log(JSON.stringify(report, null, 2))
  if (report.violations.length > 0) process.exitCode = 1
}
