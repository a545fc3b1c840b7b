// Power loss: a store is recorded at work, call by call, and the disk is rebuilt as of any moment without what was not synced by then.
// `npm run powerloss -- --cuts 2000 [--seed N] [--store sqlite|postgres]`. After each cut the store must have every event that was
// acknowledged, byte for byte, and its work goes on to the end. Then the same on a disk that ignores syncs: there something must be
// lost, or this run shows nothing. Exit 1 on any violation.
// `--log FILE` takes a log that an earlier run kept; with `--cut N` it tries that one cut of it again.
// What it shows is the order of calls, not a real disk: docs/reliability.md has its limits.
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { argumentsOf, refuse, wholeNumber } from '../../sim/arguments.ts'
import { noPostgres } from '../postgres/server.ts'
import { type CallLog, readCallLog } from './call-log.ts'
import { compareEnd, type Ground, Recorded, type Shown, tryCut, tryDeafCut } from './cut.ts'
import { sqliteGround } from './ground-sqlite.ts'
import { startPostgresGround, type PostgresGround } from './ground-postgres.ts'
import { recordPostgres } from './record-postgres.ts'
import { DISK, type Recording, recordSqlite } from './record-sqlite.ts'
import { makeFileSystem, makeLibrary, Missing } from './recorder.ts'
import { printSummary, Totals } from './summary.ts'

/** Of one recording. More of them show more of what can happen at the same time. */
const CUTS_EACH = { sqlite: 100, postgres: 50 }
/** On a disk that ignores syncs: one for so many others, and some also in a short run. */
const DEAF_EACH = 10
const DEAF_LEAST = 8
/** What goes on after a cut waits more than it works. There is one server. */
const AT_ONCE = { sqlite: 8, postgres: 1 }
const MEMORY = '/dev/shm'
/** More than a rebuilt disk has. */
const MEMORY_BYTES = 512 * 1024 * 1024
const PART_MS = { sqlite: 600, postgres: 3_000 }

const { values } = argumentsOf('powerloss', {
  options: {
    cuts: { type: 'string' },
    seed: { type: 'string' },
    store: { type: 'string' },
    log: { type: 'string' },
    cut: { type: 'string' },
  },
})
if (values.cut !== undefined && values.log === undefined)
  refuse('--cut needs the log that was cut. Use for example: --log FILE --cut 17')
if (values.cut !== undefined && values.cuts !== undefined) refuse('--cut is one cut. Leave out --cut, or --cuts.')
if (values.log !== undefined && values.store !== undefined)
  refuse('The log says which store it is of. Leave out --store.')
const seed = wholeNumber(values.seed ?? String(Date.now() % 1_000_000), 'seed')
const cuts = wholeNumber(values.cuts ?? '200', 'cuts', 1)
const given = values.log === undefined ? null : logIn(values.log)
const kind = given?.recorded.store ?? storeOf(values.store)

const folder = mkdtempSync(join(memoryFolder(), 'terret-powerloss-'))
// A server's own account must reach its files.
chmodSync(folder, 0o755)
const totals = new Totals()
const begun = performance.now()
let postgresGround: PostgresGround | null = null
/** Told to stop, it ends the cuts at hand and says what was shown so far. */
let stopping = false
process.once('SIGINT', () => (stopping = true))
try {
  const ground: Ground =
    kind === 'sqlite' ? sqliteGround : (postgresGround = await startPostgresGround(join(folder, 'disk-0')))
  if (given !== null) await tryLog(ground, new Recorded(given), values.log ?? '')
  else await recordAndTry(ground)
  printSummary(totals, { kind, seed, seconds: (performance.now() - begun) / 1_000, isWhole: values.cut === undefined })
  if (totals.violations.length > 0) process.exitCode = 1
} catch (error) {
  const isMissing = error instanceof Missing
  console.error(isMissing ? error.message : error)
  process.exitCode = isMissing ? 2 : 1
} finally {
  await postgresGround?.close()
  rmSync(folder, { recursive: true, force: true })
}

/** Rebuilt disks need no disk: in memory the work that goes on there waits for none. */
function memoryFolder(): string {
  const { bavail, bsize } = existsSync(MEMORY) ? statfsSync(MEMORY) : { bavail: 0, bsize: 0 }
  return bavail * bsize > MEMORY_BYTES ? MEMORY : tmpdir()
}

function storeOf(name = 'sqlite'): 'sqlite' | 'postgres' {
  if (name === 'memory') return refuse('A store in memory has no disk. Use --store sqlite or postgres.')
  if (name !== 'sqlite' && name !== 'postgres') return refuse(`--store must be sqlite or postgres, not "${name}".`)
  if (name === 'postgres' && noPostgres)
    return refuse(
      'Postgres is not installed here. Install it, or set TERRET_POSTGRES_BIN to the folder with its initdb.',
    )
  return name
}

function logIn(file: string): CallLog {
  try {
    return readCallLog(file)
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}

async function recordAndTry(ground: Ground): Promise<void> {
  const recorder = kind === 'sqlite' ? makeLibrary(folder) : makeFileSystem(folder)
  const record = kind === 'sqlite' ? recordSqlite : recordPostgres
  for (let first = 0; first < cuts && !stopping; first += CUTS_EACH[kind]) {
    const recording = await record(recorder, seed + first, PART_MS[kind])
    const before = totals.violations.length
    const recorded = new Recorded(readCallLog(recording.log))
    totals.take(recorded.log, compareEnd(recorded, treeIn(recording.root, ground), ground.leavesOut))
    await tryCuts(ground, recorded, recording.log, { first, last: Math.min(cuts, first + CUTS_EACH[kind]) })
    drop(recording, totals.violations.length > before)
    console.log(`${totals.sums.cuts} of ${cuts} cuts, lost ${totals.sums.lost}, violations ${totals.violations.length}`)
  }
}

/** Nothing is left of a recording that showed nothing. */
function drop(recording: Recording, isNeeded: boolean): void {
  if (isNeeded) rmSync(recording.root, { recursive: true, force: true })
  else rmSync(recording.folder, { recursive: true, force: true })
}

async function tryLog(ground: Ground, recorded: Recorded, log: string): Promise<void> {
  totals.take(recorded.log, [])
  if (values.cut === undefined) return tryCuts(ground, recorded, log, { first: 0, last: cuts })
  const number = wholeNumber(values.cut, 'cut')
  note(await tryCut(recorded, recorded.cut(number, seed), { ground, folder: join(folder, 'disk') }), log)
}

async function tryCuts(
  ground: Ground,
  recorded: Recorded,
  log: string,
  { first, last }: { readonly first: number; readonly last: number },
): Promise<void> {
  const numbers = Array.from({ length: last - first }, (_, i) => first + i)
  const deafEach = Math.max(1, Math.min(DEAF_EACH, Math.floor(cuts / DEAF_LEAST)))
  const hand = async (_: unknown, i: number): Promise<void> => {
    const place = { ground, folder: join(folder, `disk-${i}`) }
    for (let number = numbers.shift(); number !== undefined && !stopping; number = numbers.shift()) {
      note(await tryCut(recorded, recorded.cut(number, seed), place), log)
      if (number % deafEach === 0) totals.addDeaf(await tryDeafCut(recorded, recorded.cut(number, seed), place))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE[kind] }, hand))
}

function note(shown: Shown, log: string): void {
  const again = `npm run powerloss -- --log ${log} --seed ${seed} --cut ${shown.cut.number}`
  totals.add(shown, again)
}

/** What the recorder left on the disk. */
function treeIn(root: string, { leavesOut }: Ground): ReadonlyMap<string, Buffer | null> {
  const tree = new Map<string, Buffer | null>()
  for (const entry of readdirSync(join(root, DISK), { recursive: true, encoding: 'utf8' })) {
    const path = join(root, DISK, entry)
    const name = relative(root, path)
    if (!leavesOut(name)) tree.set(name, statSync(path).isDirectory() ? null : readFileSync(path))
  }
  tree.set(DISK, null)
  return tree
}
