// `open` and `open.snapshot`: a session of 100,000 events to its next decision. Only what `next` needs is read: the
// transcript is for a model call, and resume.ts measures it.
import { join } from 'node:path'
import { next } from '../src/kernel/next.ts'
import { SessionCache } from '../src/runtime/state/session-cache.ts'
import { sqlite } from '../src/stores/sqlite/sqlite.ts'
import { openBare, warmDriver } from './bare.ts'
import { type Case, cpuMs, type Family } from './family.ts'
import { buildLog } from './log.ts'

const EVENTS = 100_000
/** As far behind as the driver ever lets a snapshot fall. */
const SNAPSHOT_SEQ = EVENTS - 999

const fixture: Case = async (folder) => {
  const store = sqlite(join(folder, 'store.db'))
  await buildLog(store, { id: 'plain', events: EVENTS })
  await buildLog(store, { id: 'snapshot', events: EVENTS, snapshotSeq: SNAPSHOT_SEQ })
  const bare = openBare(join(folder, 'bare.db'))
  for (let seq = 0; seq < EVENTS; seq += 10_000) {
    const { events } = await store.read('plain', seq, 10_000)
    bare.insert(events.map((event) => JSON.stringify(event)))
  }
  bare.db.exec('CREATE TABLE snapshots (body TEXT)')
  const snapshot = await store.snapshot('snapshot')
  bare.db.prepare('INSERT INTO snapshots (body) VALUES (?)').run(snapshot?.body ?? '')
  bare.close()
  await store.close()
  return {}
}

function openStore(id: string): Case {
  return async (folder) => {
    warmDriver()
    const begun = cpuMs()
    const store = sqlite(join(folder, 'store.db'))
    const book = new SessionCache(id, store)
    await book.open()
    const decision = next(book.session, { now: store.now(), epoch: book.session.epoch + 1 })
    const ms = cpuMs() - begun
    if (book.session.seq !== EVENTS || decision.type !== 'record') throw new Error(`opened to ${decision.type}`)
    await store.close()
    return { ms }
  }
}

const floor: Case = async (folder) => {
  warmDriver()
  const begun = cpuMs()
  const bare = openBare(join(folder, 'bare.db'))
  const read = bare.readChunks(0)
  const ms = cpuMs() - begun
  bare.close()
  if (read !== EVENTS) throw new Error(`read ${read} events`)
  return { ms }
}

const floorSnapshot: Case = async (folder) => {
  warmDriver()
  const begun = cpuMs()
  const bare = openBare(join(folder, 'bare.db'))
  const { body } = bare.db.prepare('SELECT body FROM snapshots').get() as { body: string }
  const snapshot = JSON.parse(body) as { seq: number }
  const tail = bare.readChunks(snapshot.seq)
  const ms = cpuMs() - begun
  bare.close()
  if (snapshot.seq + tail !== EVENTS) throw new Error(`read ${tail} events`)
  return { ms }
}

export const open: Family = {
  repetitions: 7,
  fixture,
  cases: { plain: openStore('plain'), snapshot: openStore('snapshot'), floor, floorSnapshot },
  figures: [
    {
      name: 'open',
      unit: 'CPU ms',
      target: 300,
      value: (median) => median('plain.ms'),
      floor: (median) => median('floor.ms'),
    },
    {
      name: 'open.snapshot',
      unit: 'CPU ms',
      target: 30,
      value: (median) => median('snapshot.ms'),
      floor: (median) => median('floorSnapshot.ms'),
    },
  ],
}
