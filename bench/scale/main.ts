// `npm run scale`: a load model as a program. It starts a Postgres of its own, fills it with parked sessions, and lets worker processes
// drive real turns of a scripted model for people who write and allow, faster and faster until the machine does not keep up.
// It prints what that costs, and which budget breaks at which load. docs/scale.md says what follows from it.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { statfsSync } from 'node:fs'
import { cpus } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { argumentsOf, refuse, wholeNumber } from '../../sim/arguments.ts'
import { postgres, type PostgresDatabase } from '../../src/stores/postgres/postgres.ts'
import { noPostgres, Server } from '../../test/postgres/server.ts'
import { type Accounts, harnessOn, MODEL_MS, type Shape } from './agent.ts'
import { broken, FIGURES, KEPT_UP, shown, type Step, verdicts } from './budgets.ts'
import type { Counts, Told } from './child-worker.ts'
import { type Moment, momentOf, takenMs, type Watched } from './figures.ts'
import { fill, sessionOf } from './fill.ts'
import { People } from './people.ts'

const script = fileURLToPath(new URL('child-worker.js', import.meta.url))
const TMPFS = 0x01021994
/** Turns a second: doubled with each step until one is not kept up with. */
const PACES = [50, 100, 200, 400, 800, 1_600, 3_200]
const QUICK_PACES = [25, 50]
/** Into so many steps of the same pace `--minutes` are divided. */
const PARTS = 10
/** Rows of one page of a list. */
const LISTED = 50
const SETTLE_MS = 1_000
const HOT_MS = 3_000
const WOKEN_AT_ONCE = 200

const { values } = argumentsOf('scale', {
  options: {
    sessions: { type: 'string' },
    active: { type: 'string' },
    workers: { type: 'string', default: '2' },
    seconds: { type: 'string' },
    pace: { type: 'string' },
    minutes: { type: 'string' },
    turns: { type: 'string' },
    'turn-bytes': { type: 'string', default: '256' },
    accounts: { type: 'string', default: 'own' },
    quick: { type: 'boolean', default: false },
  },
})

type Asked = Shape & {
  readonly sessions: number
  readonly active: number
  readonly workers: number
  readonly seconds: number
  readonly paces: readonly number[]
  /** Until it is not kept up with. */
  readonly grows: boolean
}

const asked = askedFor()
if (noPostgres)
  refuse('There is no Postgres on this machine. Install one, or name its folder: TERRET_POSTGRES_BIN=/…/bin')
const server = await Server.start({
  fsync: true,
  settings: { shared_buffers: '256MB', max_wal_size: '4GB', max_connections: 200 },
})
try {
  if (statfsSync(server.data).type === TMPFS)
    refuse(
      'The temporary folder is no disk, so no figure would mean anything. Name one that is: TMPDIR=/… npm run scale',
    )
  await measure()
} finally {
  await server.close()
}

function askedFor(): Asked {
  const { quick } = values
  const number = (
    name: 'sessions' | 'active' | 'workers' | 'seconds' | 'pace' | 'minutes' | 'turns' | 'turn-bytes',
    otherwise: number,
  ): number => wholeNumber(values[name] ?? String(otherwise), name, 1)
  const { accounts } = values
  if (accounts !== 'own' && accounts !== 'day' && accounts !== 'none')
    refuse(`--accounts must be "own", "day" (all sessions pay from one) or "none" (no budget), not "${accounts}".`)
  const sessions = number('sessions', quick ? 2_000 : 100_000)
  const active = number('active', quick ? 100 : 2_000)
  if (active > sessions) refuse(`--active must be at most --sessions, which is ${sessions}.`)
  const { pace, minutes, seconds } = values
  if ((pace === undefined) !== (minutes === undefined) || (minutes !== undefined && seconds !== undefined))
    refuse('--pace and --minutes go together, and without --seconds: one load, for so long.')
  return {
    sessions,
    active,
    workers: number('workers', 2),
    seconds: minutes === undefined ? number('seconds', quick ? 3 : 12) : (number('minutes', 1) * 60) / PARTS,
    turns: number('turns', quick ? 5 : 20),
    turnBytes: number('turn-bytes', 256),
    accounts: accounts satisfies Accounts,
    paces: pace === undefined ? (quick ? QUICK_PACES : PACES) : Array<number>(PARTS).fill(number('pace', 1)),
    grows: pace === undefined,
  }
}

async function measure(): Promise<void> {
  const { sessions, active, workers, seconds, turns, turnBytes, accounts } = asked
  const bare = new pg.Client({ connectionString: server.url() })
  const store = postgres(server.url())
  try {
    await bare.connect()
    await store.open()
    const { rows } = await bare.query<{ server_version: string }>('show server_version')
    const machine = `Postgres ${rows[0]?.server_version ?? ''} · node ${process.version} · ${cpus().length} CPUs`
    console.log(`${machine} · fsync and full_page_writes on, data on a disk, all on one machine`)
    console.log(`${sessions} parked sessions, ${active} of them used, ${workers} workers, runs of ${turns} turns,`)
    console.log(`results of ${turnBytes} bytes, accounts: ${accounts}, steps of ${seconds} s\n`)
    const call = await parked(store, bare)
    await hotRows()
    await load(store, bare, call)
  } finally {
    await store.close()
    await bare.end()
  }
}

async function parked(store: PostgresDatabase, bare: pg.Client): Promise<string> {
  const begun = performance.now()
  const call = await fill(store, bare, asked.sessions, asked)
  const seconds = (performance.now() - begun) / 1_000
  const { rows } = await bare.query<{ bytes: number }>('select pg_database_size(current_database())::float8 as bytes')
  const each = (rows[0]?.bytes ?? Number.NaN) / asked.sessions
  await lists(store)
  line('parked sessions', `${asked.sessions}, in ${shown(seconds)} s, ${shown(each)} bytes each with all indexes`)
  return call
}

/** A page of cards, and a page of what waits for people, where every session waits. The second of each: the first one connects. */
async function lists(store: PostgresDatabase): Promise<void> {
  const harness = harnessOn(store, asked, false)
  const pages = {
    'a page of cards': () => harness.list({ order: 'id', limit: LISTED }).then(({ cards }) => cards),
    'a page of pending calls': () => harness.pending({ limit: LISTED }),
  }
  for (const [name, read] of Object.entries(pages)) {
    await read()
    const begun = performance.now()
    const { length } = await read()
    line(name, `${length} in ${shown(performance.now() - begun)} ms`)
  }
  await harness.close()
}

function line(name: string, text: string): void {
  console.log(`${name.padEnd(32)} ${text}`)
}

/** Guarded commits a second on one account and on own ones, by as many processes as there are workers. */
async function hotRows(): Promise<void> {
  for (const width of [1, 16]) {
    const found: number[] = []
    for (const account of ['hot', '']) {
      const children = await Promise.all(
        Array.from({ length: asked.workers }, (_, i) =>
          start([`hot-${width}-${account}-${i}`, account, String(width)]),
        ),
      )
      const begun = performance.now()
      await sleep(asked.paces === QUICK_PACES ? HOT_MS / 3 : HOT_MS)
      const counts = await Promise.all(children.map(stopped))
      found.push((counts.reduce((sum, { commits }) => sum + commits, 0) * 1_000) / (performance.now() - begun))
    }
    const [one = 0, own = 0] = found
    const name = width === 1 ? 'hot row, one commit a process' : `hot row, ${width} at once`
    line(name, `${shown(one)} guarded commits/s on one account, ${shown(own)} on own ones`)
  }
}

async function start(args: readonly string[] = []): Promise<ChildProcess> {
  const child = fork(script, [server.url(), JSON.stringify(asked), ...args])
  await once(child, 'message')
  return child
}

/** What it counted to its end. */
async function stopped(child: ChildProcess): Promise<Counts> {
  let last: Counts | null = null
  child.on('message', ({ counts }: Told) => void (last = counts))
  child.send('stop')
  await once(child, 'exit')
  if (last === null) throw new Error('a worker ended without a word')
  return last
}

async function load(store: PostgresDatabase, bare: pg.Client, call: string): Promise<void> {
  const harness = harnessOn(store, asked, false)
  let trouble = 0
  const people = new People(harness, (error) => {
    trouble += 1
    if (trouble <= 3) console.error(error)
  })
  const children = await Promise.all(Array.from({ length: asked.workers }, () => start()))
  const counts = new Map<ChildProcess, Counts>()
  for (const child of children) {
    child.on('message', (told: Told) => {
      counts.set(child, told.counts)
      people.told(told.rested)
    })
  }
  const every = asked.sessions / asked.active
  const ids = Array.from({ length: asked.active }, (_, i) => sessionOf(Math.floor(i * every)))
  const found = await bare.query<{ n: number }>('select n::float8 as n from terret.sessions where id = any($1)', [ids])
  const pids = children.map(({ pid = 0 }) => pid)
  const watched: Watched = { bare, used: found.rows.map(({ n }) => n), data: server.data, workers: pids }
  const now = () =>
    momentOf(watched, { ...sumOf([...counts.values()]), sent: people.sent + people.allowed, settled: people.settled })
  await wake(people, { ids, call, now })
  const steps: Step[] = []
  for (const pace of asked.paces) {
    people.pace = pace / asked.turns
    // Until as many runs end as begin.
    await sleep(SETTLE_MS + 2 * (asked.turns + 1) * MODEL_MS)
    const [from, since] = [await now(), store.now()]
    await sleep(asked.seconds * 1_000)
    const to = await now()
    const step = {
      pace,
      from,
      to,
      waiting: people.waiting,
      processes: asked.workers + 1,
      takenMs: await takenMs(watched, since),
    }
    steps.push(step)
    console.error(`${pace} turns a second: ${broken(step).join(', ') || 'all budgets hold'}`)
    // One may be a bad moment of the machine.
    if (asked.grows && steps.length > 1 && steps.slice(-2).every((each) => broken(each).includes(KEPT_UP))) break
  }
  people.stop()
  report(steps, trouble)
  await Promise.all(children.map(stopped))
  await harness.close()
}

/** Everything that is used is woken once, by an approval: the pages it lies on are written whole for the first time since the checkpoint. */
async function wake(people: People, { ids, call, now }: Parked): Promise<void> {
  const before = await now()
  for (const id of ids) {
    people.allow(id, call)
    while (people.waiting >= WOKEN_AT_ONCE) await sleep(5)
  }
  while (people.waiting > 0) await sleep(20)
  const after = await now()
  const pages = after.fullPages - before.fullPages
  const each = (after.wal - before.wal) / ids.length
  line(
    'woken by an approval',
    `${ids.length} in ${shown((after.ms - before.ms) / 1_000)} s, ${shown(each)} bytes of WAL each`,
  )
  line('full pages after a checkpoint', `${shown(pages / ids.length)} a session\n`)
}

type Parked = { readonly ids: readonly string[]; readonly call: string; readonly now: () => Promise<Moment> }

function sumOf(all: readonly Counts[]): Counts {
  const sum = (of: keyof Counts): number => all.reduce((total, counts) => total + counts[of], 0)
  return {
    commits: sum('commits'),
    turns: sum('turns'),
    takes: sum('takes'),
    empty: sum('empty'),
    claims: sum('claims'),
    vain: sum('vain'),
  }
}

function report(steps: readonly Step[], trouble: number): void {
  for (const [name, value] of FIGURES) line(name, steps.map((step) => shown(value(step)).padStart(8)).join(''))
  line('refused', String(trouble))
  console.log()
  for (const verdict of verdicts(steps)) console.log(verdict)
}
