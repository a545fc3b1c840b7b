// A program that has nothing to do with Terret keeps rows locked: that of a session in hand, then an account. Three workers go on with
// everything else, lose no lease and no call, and finish what waited when the lock is gone.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Appender, digestOf, type JournalLine } from '../crash/evidence.ts'
import type { Ground } from '../crash/ground.ts'
import type { PlannedTurn } from '../crash/plan.ts'
import { CREATED, creation, message } from '../crash/stage.ts'
import type { CompleteStore } from '../../src/ports/store.ts'

const WORKERS = 3
const SESSIONS = 12
const TURNS = 40
const LEASE_MS = 1_500
const SETTLE_MS = 180_000
const IN_HAND_MS = 30_000

type InHand = { readonly id: string; readonly worker: string; readonly epoch: number; readonly seq: number }

export async function locked(ground: Ground, ms: number): Promise<void> {
  const turn: PlannedTurn = { thinkMs: 50, flaky: false, calls: [{ tool: 'send', ms: 300, bytes: 10 }] }
  const body = message('m', { turns: Array.from({ length: TURNS }, () => turn) })
  const journal = new Appender<JournalLine>(ground.places.journal)
  await ground.look(async (store) => {
    for (let i = 0; i < SESSIONS; i++) {
      const session = `l${i}`
      journal.add({ type: 'try', session, id: 'created', digest: digestOf(CREATED) })
      journal.add({ type: 'try', session, id: body.id, digest: digestOf(body) })
      await store.commit([creation(session, store.now())])
      const [receipt] = await store.commit([{ session, lane: 'inbox', events: [body] }])
      journal.add({ type: 'ack', session, id: body.id, seq: receipt?.seqs[0] ?? 0, verb: 'send' })
    }
    const workers = Array.from({ length: WORKERS }, () => ground.startWorker(LEASE_MS))
    for (const worker of workers) worker.say('go')
    await lockOne(ground, store, ms)
    for (let waited = 0; (await store.list({ limit: SESSIONS })).some(({ outcome }) => !outcome); waited += 100) {
      if (waited > SETTLE_MS) throw new Error(`not settled after ${SETTLE_MS} ms`)
      await sleep(100)
    }
    await ground.stop(workers)
  })
  const { effects } = await ground.verdict()
  console.log(`  after it: calls with an unknown outcome ${effects.unknown} of ${effects.ran.once}`)
  if (effects.unknown > 0) ground.troubles.push(`${effects.unknown} calls became unknown by a lock of another program`)
}

/** Locks the row of a session that a worker drives, for longer than its lease, and counts what became of all others. */
async function lockOne(ground: Ground, store: CompleteStore, ms: number): Promise<void> {
  const other = new pg.Client({ connectionString: ground.database })
  await other.connect()
  try {
    const before = await allInHand(other)
    const [victim] = before
    if (victim === undefined) throw new Error('no worker had a session')
    await other.query('begin')
    await other.query('select 1 from terret.sessions where id = $1 for update', [victim.id])
    await sleep(ms)
    const now = await store.list({ limit: SESSIONS })
    await other.query('commit')
    const others = before.filter(({ id }) => id !== victim.id)
    const held = await inHand(other)
    const lost = others.filter(({ id, epoch }) => held.some((row) => row.id === id && row.epoch > epoch))
    const still = others.filter(({ id, seq }) => (now.find(({ session }) => session === id)?.seq ?? 0) <= seq)
    console.log(
      `  row of one session locked for ${ms / 1_000} s, lease ${LEASE_MS} ms: others in hand ${others.length}, taken away ${lost.length}, without progress ${still.length}`,
    )
    if (lost.length > 0) ground.troubles.push(`${lost.length} sessions were lost by a lock on another one`)
    if (still.length > 0) ground.troubles.push(`${still.length} sessions stood still by a lock on another one`)
  } finally {
    await other.end()
  }
}

async function allInHand(other: pg.Client): Promise<readonly InHand[]> {
  for (let waited = 0; waited < IN_HAND_MS; waited += 50) {
    const rows = await inHand(other)
    if (rows.length === SESSIONS) return rows
    await sleep(50)
  }
  return inHand(other)
}

async function inHand(other: pg.Client): Promise<readonly InHand[]> {
  const text = 'select id, worker, epoch::int, seq from terret.sessions where worker is not null order by id'
  return (await other.query<InHand>(text)).rows
}
