// `durable.group`: 64 sessions commit at once. How near the store's group commit comes to a bare loop that makes the same
// events JSON and appends them to one table in one transaction. Wall time, because throughput is what is asked; store
// and loop take turns, because disks vary.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Card } from '../src/ports/store.ts'
import type { OwnerWrite, CompleteStore } from '../src/ports/store.ts'
import { sqlite } from '../src/stores/sqlite/sqlite.ts'
import { openBare } from './bare.ts'
import { type Case, cpuMs, type Family, medianOf } from './family.ts'
import { type Pair, turnEvents } from './turn.ts'

const SESSIONS = 64
const WARM_UP = 50
const ROUNDS = 200

export type Owner = { readonly id: string; readonly epoch: number; seq: number }

const compare: Case = async (folder) => {
  const file = join(folder, `group-${process.pid}.db`)
  const store = sqlite(file)
  const bare = openBare(join(folder, `floor-${process.pid}.db`))
  const owners = await begin(store, 'session-', SESSIONS)
  const opened = transactionsIn(file)
  let transactions = 0
  const ours: Time[] = []
  const bares: Time[] = []
  for (let round = 0; round < WARM_UP + ROUNDS; round++) {
    const pairs = owners.map((owner) => nextPair(store, owner, round))
    const writes = owners.map((owner, i) => writeOf(owner, pairs[i] as Pair))
    ours.push(await timed(() => Promise.all(writes.map((write) => store.commit([write])))))
    bares.push(await timed(async () => bare.insert(pairs.flatMap(bodiesOf))))
    for (const owner of owners) owner.seq += 2
    // Counted early: later on a checkpoint starts the write-ahead log anew.
    if (round === 4) transactions = (transactionsIn(file) - opened) / 5
  }
  await store.close()
  bare.close()
  const wall = (times: readonly Time[]): number => medianOf(times.slice(WARM_UP).map((time) => time.wallMs))
  const cpu = (times: readonly Time[]): number => medianOf(times.slice(WARM_UP).map((time) => time.cpuMs))
  return {
    ratio: wall(bares) / wall(ours),
    cpuRatio: cpu(bares) / cpu(ours),
    perSecond: (SESSIONS * 2 * 1_000) / wall(ours),
    transactions,
  }
}

type Time = { readonly wallMs: number; readonly cpuMs: number }

async function timed(act: () => Promise<unknown>): Promise<Time> {
  const [wall, cpu] = [performance.now(), cpuMs()]
  await act()
  return { wallMs: performance.now() - wall, cpuMs: cpuMs() - cpu }
}

/** So many new sessions, each claimed. */
export async function begin(store: CompleteStore, prefix: string, count: number): Promise<readonly Owner[]> {
  const ids = Array.from({ length: count }, (_, i) => `${prefix}${i}`)
  return Promise.all(
    ids.map(async (id): Promise<Owner> => {
      const created = {
        seq: 1,
        at: store.now(),
        epoch: 0,
        type: 'session.created',
        agent: 'a',
        planner: 'model',
      } as const
      const card = cardOf(id, 1, created.at)
      await store.commit([{ session: id, lane: 'owner', epoch: 0, expectedSeq: 0, events: [created], card }])
      const claim = await store.claim(id, 'bench', 600_000)
      if (!claim) throw new Error(`session ${id} could not be claimed`)
      return { id, epoch: claim.epoch, seq: 1 }
    }),
  )
}

/** A turn is two commits: the reply and its intent, then the result and the next question. */
export function nextPair(store: Pick<CompleteStore, 'now'>, { seq, epoch }: Owner, round: number): Pair {
  const stamp = { at: store.now(), epoch }
  return round % 2 === 0 ? turnEvents(seq, stamp)[0] : turnEvents(seq - 2, stamp)[1]
}

function bodiesOf(pair: Pair): readonly string[] {
  return pair.map((event) => JSON.stringify(event))
}

export function writeOf({ id, epoch, seq }: Owner, events: Pair): OwnerWrite {
  const card = cardOf(id, seq + 2, events[1].at)
  return { session: id, lane: 'owner', epoch, expectedSeq: seq, events, card }
}

function cardOf(session: string, seq: number, at: number): Card {
  const still = { agent: 'a', root: session, status: 'running', cost: 0, asks: [], waits: [], wakes: 0 } as const
  return { session, ...still, due: at, seq, at, outcome: null }
}

/** Counts the commits in a write-ahead log: each is one fsync. Frames of an earlier round of the log carry other salts. */
function transactionsIn(file: string): number {
  const log = readFileSync(`${file}-wal`)
  const frame = log.readUInt32BE(8) + 24
  let count = 0
  for (let at = 32; at + frame <= log.length; at += frame) {
    const current = log.compare(log, 16, 24, at + 8, at + 16) === 0
    if (current && log.readUInt32BE(at + 4) > 0) count += 1
  }
  return count
}

export const group: Family = {
  repetitions: 7,
  cases: { compare },
  figures: [
    {
      name: 'durable.group',
      unit: 'ratio',
      target: 0.7,
      atLeast: true,
      value: (median) => median('compare.ratio'),
      floor: () => 1,
      note: (median) => {
        const commits = `${SESSIONS} commits → ${median('compare.transactions')} fsync`
        const pace = `${Math.round(median('compare.perSecond'))} events/s`
        return `${commits}, ${pace}, ${median('compare.cpuRatio').toFixed(2)} by CPU`
      },
    },
  ],
}
