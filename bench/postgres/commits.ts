// `postgres`, `.8`, `.64` and `postgres.sqlite`, `.sqlite8`, `.sqlite64`: so many sessions commit two events each at the same moment. How
// near the store comes to one statement written by hand that guards and writes the same, and to the store in a file. Wall time,
// because throughput is what is asked; all three take turns, because disks vary.
import { join } from 'node:path'
import type pg from 'pg'
import type { CompleteStore } from '../../src/ports/store.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { type Case, type Family, type Figure, medianOf } from '../family.ts'
import { begin, nextPair, type Owner, writeOf } from '../group.ts'
import type { Pair } from '../turn.ts'
import { lacks, onGround } from './ground.ts'

const COUNTS = [1, 8, 64] as const
const WARM_UP = 60
const ROUNDS = 240

const BARE_TABLES = `create schema bare;
  create table bare.sessions (n bigint primary key, v bigint not null, seq int not null, at float8 not null, due float8, card text not null)
    with (fillfactor = 60);
  create table bare.events (n bigint not null, seq int not null, body text not null, primary key (n, seq));`

/** If every session is as it was read: the events, and the row that indexes read. */
const BARE_WRITE = `with u as (select * from unnest($1::bigint[], $2::bigint[], $3::int[], $4::float8[], $5::float8[], $6::text[])
    u(n, v, seq, at, due, card)),
  h as (update bare.sessions s set v = s.v + 1, seq = u.seq, at = u.at, due = u.due, card = u.card from u
    where s.n = u.n and s.v = u.v returning 1),
  e as (insert into bare.events select * from unnest($7::bigint[], $8::int[], $9::text[]))
  select 1 / ((select count(*) from h) = cardinality($1::bigint[]))::int, clock_timestamp()`

const compare: Case = (folder) =>
  onGround(folder, async ({ store, bare }) => {
    const file = sqlite(join(folder, `commits-${process.pid}.db`))
    await bare.query(BARE_TABLES)
    const sample: Record<string, number> = {}
    for (const count of COUNTS) {
      const sides = [await storeSide(store, count), await bareSide(bare, count), await storeSide(file, count)]
      const times = sides.map((): number[] => [])
      for (let round = 0; round < WARM_UP + ROUNDS; round++)
        for (const [i, side] of sides.entries()) times[i]?.push(await side(round))
      const [ours = 0, floor = 0, local = 0] = times.map((all) => medianOf(all.slice(WARM_UP)))
      sample[`bare${count}`] = floor / ours
      sample[`sqlite${count}`] = local / ours
      sample[`pace${count}`] = (count * 1_000) / ours
    }
    await file.close()
    return sample
  })

/** Commits once in each session, and says how long that took. */
type Side = (round: number) => Promise<number>

async function storeSide(store: CompleteStore, count: number): Promise<Side> {
  const owners = await begin(store, `${count}-`, count)
  return async (round) => {
    const begun = performance.now()
    const pairs = owners.map((owner) => nextPair(store, owner, round))
    await Promise.all(owners.map((owner, i) => store.commit([writeOf(owner, pairs[i] as Pair)])))
    for (const owner of owners) owner.seq += 2
    return performance.now() - begun
  }
}

async function bareSide(bare: pg.Client, count: number): Promise<Side> {
  const owners: Owner[] = Array.from({ length: count }, (_, i) => ({ id: `${count}-${i}`, epoch: 1, seq: 1 }))
  const ns = owners.map((_, i) => count * 1_000 + i)
  await bare.query("insert into bare.sessions select n, 0, 1, 0, 0, '' from unnest($1::bigint[]) n", [ns])
  return async (round) => {
    const begun = performance.now()
    const pairs = owners.map((owner) => nextPair({ now: Date.now }, owner, round))
    const writes = owners.map((owner, i) => writeOf(owner, pairs[i] as Pair))
    const cards = writes.map(({ card }) => card)
    const rows = pairs.flatMap((pair, i) => pair.map((event) => [ns[i], event.seq, JSON.stringify(event)] as const))
    await bare.query({
      name: 'write',
      text: BARE_WRITE,
      values: [
        ns,
        ns.map(() => round),
        cards.map(({ seq }) => seq),
        cards.map(({ at }) => at),
        cards.map(({ due }) => due),
        cards.map((card) => JSON.stringify(card)),
        ...[0, 1, 2].map((column) => rows.map((row) => row[column])),
      ],
    })
    for (const owner of owners) owner.seq += 2
    return performance.now() - begun
  }
}

function figure(of: 'bare' | 'sqlite', count: number, target: number): Figure {
  const name = of === 'bare' ? (count === 1 ? 'postgres' : `postgres.${count}`) : 'postgres.sqlite'
  return {
    name: of === 'sqlite' && count > 1 ? `${name}${count}` : name,
    unit: of === 'bare' ? '× bare SQL' : '× SQLite',
    target,
    atLeast: true,
    value: (median) => median(`compare.${of}${count}`),
    floor: () => 1,
    note: (median) => `${Math.round(median(`compare.pace${count}`))} commits/s`,
  }
}

export const commits: Family = {
  repetitions: 5,
  lacks,
  cases: { compare },
  figures: [
    figure('bare', 1, 0.9),
    figure('bare', 8, 0.65),
    figure('bare', 64, 0.6),
    figure('sqlite', 1, 0.5),
    figure('sqlite', 8, 0.35),
    figure('sqlite', 64, 0.3),
  ],
}
