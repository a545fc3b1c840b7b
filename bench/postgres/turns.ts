// `postgres.turn` and `postgres.run`: a turn, and a run of one answer, on Postgres beside the same on SQLite. Wall time: a turn waits for
// two commits. `postgres.pooled`: a run behind a pooler beside one without. `postgres.wal` and `postgres.bytes`: what many small turns write, and what they leave, to the bytes of their events.
import { join } from 'node:path'
import type pg from 'pg'
import { Harness, scripted } from '../../src/index.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { noPooler, startPooler } from '../../test/postgres/pgbouncer.ts'
import { type Case, type Family, medianOf } from '../family.ts'
import { ask, LIMITS, lookup } from '../turn.ts'
import { lacks, numberOf, onGround, SCHEMA } from './ground.ts'

const TURNS = 50
const ANSWERS = 20
const WARM_UP = 6
const ROUNDS = 24
const SESSIONS = 20
const LONG = 250

/** Each session makes as many turns as its first message says, and the model finds out from the request which one it is. */
function harnessOn(store: CompleteStore): Harness {
  const model = scripted((request) => {
    const [first] = request.messages
    const turns = Number(JSON.stringify(first).match(/turns (\d+)/)?.[1] ?? 0)
    const done = request.messages.filter(({ role }) => role === 'assistant').length
    return done < turns ? ask(done) : 'done'
  })
  return new Harness({ model, tools: [lookup], limits: LIMITS, store })
}

async function run(harness: Harness, turns: number): Promise<void> {
  const { status, usage } = await harness.run(`turns ${turns}`)
  if (status !== 'completed' || usage.toolCalls !== turns) throw new Error(`the run ${status}`)
}

async function timed(act: () => Promise<void>): Promise<number> {
  const begun = performance.now()
  await act()
  return performance.now() - begun
}

const compare: Case = (folder) =>
  onGround(folder, async ({ store }) => {
    const file = sqlite(join(folder, `turns-${process.pid}.db`))
    const sides = [harnessOn(store), harnessOn(file)]
    const times = sides.map(() => ({ turn: [] as number[], run: [] as number[] }))
    for (let round = 0; round < WARM_UP + ROUNDS; round++) {
      for (const [i, harness] of sides.entries()) {
        const turn = await timed(() => run(harness, TURNS))
        const answered = await timed(async () => {
          for (let n = 0; n < ANSWERS; n++) await run(harness, 0)
        })
        times[i]?.turn.push(turn / TURNS)
        times[i]?.run.push(answered / ANSWERS)
      }
    }
    for (const harness of sides) await harness.close()
    await file.close()
    const typical = (i: number, of: 'turn' | 'run'): number => medianOf(times[i]?.[of].slice(WARM_UP) ?? [])
    return {
      turn: typical(0, 'turn'),
      localTurn: typical(1, 'turn'),
      run: typical(0, 'run'),
      localRun: typical(1, 'run'),
    }
  })

const POOLED_ROUNDS = 10
const CONNECTIONS = 4

/**
 * From sending a message to its result, by a worker that waits for work: straight to a server with its own defaults, and through a pooler
 * in transaction mode, where hints are heard from the server itself.
 */
const pooling: Case = (folder) =>
  onGround(folder, async ({ server }) => {
    const pooler = await startPooler(server, CONNECTIONS)
    const direct = server.url()
    const options = {
      direct: { url: direct },
      pooled: { url: server.url('postgres', undefined, pooler.port), direct, pooled: true },
    }
    const typical: Record<string, number> = {}
    for (const [name, option] of Object.entries(options)) {
      const stores = [postgres(option), postgres(option)] as const
      const worker = harnessOn(stores[0])
      const sender = new Harness({ model: scripted([]), store: stores[1], worker: { drives: false }, limits: LIMITS })
      const over = new AbortController()
      const working = worker.work({ signal: over.signal })
      const times: number[] = []
      for (let round = 0; round < WARM_UP + POOLED_ROUNDS; round++)
        times.push(await timed(async () => void (await (await sender.open()).run('turns 0'))))
      over.abort()
      await working
      await Promise.all([worker.close(), sender.close()])
      await Promise.all(stores.map((each) => each.close()))
      typical[name] = medianOf(times.slice(WARM_UP))
    }
    await pooler.close()
    return typical
  })

/** Alone, so that each commit is a statement of its own; the first sessions meet pages that are not in the log since it began. */
const written: Case = (folder) =>
  onGround(folder, async ({ store, bare }) => {
    const harness = harnessOn(store)
    const empty = await size(bare)
    await run(harness, LONG)
    const [bodies, lsn] = [await bodyBytes(bare), await walBytes(bare)]
    for (let i = 0; i < SESSIONS; i++) await run(harness, LONG)
    const grown = (await bodyBytes(bare)) - bodies
    const wal = (await walBytes(bare)) - lsn
    await harness.close()
    const stored = (await size(bare)) - empty
    return { wal: wal / grown, stored: stored / (bodies + grown), turn: grown / SESSIONS / LONG }
  })

function bodyBytes(bare: pg.Client): Promise<number> {
  return numberOf(bare, `select sum(octet_length(body)) from ${SCHEMA}.events`)
}

function walBytes(bare: pg.Client): Promise<number> {
  return numberOf(bare, "select pg_current_wal_lsn() - '0/0'::pg_lsn")
}

/** All tables with their indexes. */
function size(bare: pg.Client): Promise<number> {
  const tables = `select oid from pg_class where relnamespace = '${SCHEMA}'::regnamespace and relkind in ('r', 'p')`
  return numberOf(bare, `select sum(pg_total_relation_size(oid)) from (${tables}) t`)
}

export const turns: Family = {
  repetitions: 3,
  lacks,
  cases: { compare },
  figures: [
    {
      name: 'postgres.turn',
      unit: '× SQLite',
      target: 1.5,
      value: (median) => median('compare.turn') / median('compare.localTurn'),
      floor: () => 1,
      note: (median) =>
        `${median('compare.turn').toFixed(2)} ms a turn, ${median('compare.localTurn').toFixed(2)} on SQLite`,
    },
    {
      name: 'postgres.run',
      unit: '× SQLite',
      target: 1.8,
      value: (median) => median('compare.run') / median('compare.localRun'),
      floor: () => 1,
      note: (median) =>
        `${median('compare.run').toFixed(2)} ms a run, ${median('compare.localRun').toFixed(2)} on SQLite`,
    },
  ],
}

export const pooled: Family = {
  repetitions: 3,
  lacks: lacks ?? (noPooler ? 'there is no pgbouncer on this machine' : null),
  cases: { pooling },
  figures: [
    {
      name: 'postgres.pooled',
      unit: '× direct',
      target: 3,
      value: (median) => median('pooling.pooled') / median('pooling.direct'),
      floor: () => 1,
      note: (median) =>
        `${median('pooling.pooled').toFixed(2)} ms a run behind a pooler, ${median('pooling.direct').toFixed(2)} without`,
    },
  ],
}

export const bytes: Family = {
  repetitions: 1,
  lacks,
  cases: { written },
  figures: [
    {
      name: 'postgres.wal',
      unit: '× body bytes',
      target: 3.5,
      value: (median) => median('written.wal'),
      floor: () => 1,
      note: (median) => `turns of ${Math.round(median('written.turn'))} bytes, one session at a time`,
    },
    {
      name: 'postgres.bytes',
      unit: '× body bytes',
      target: 1.6,
      value: (median) => median('written.stored'),
      floor: () => 1,
    },
  ],
}
