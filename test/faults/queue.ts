// Eight workers at one queue: of all sessions that they ask for, hardly one is another's already.
import { setTimeout as sleep } from 'node:timers/promises'
import { Appender, digestOf, type JournalLine } from '../crash/evidence.ts'
import type { Ground } from '../crash/ground.ts'
import { CREATED, creation, message } from '../crash/stage.ts'

const WORKERS = 8
const LEASE_MS = 10_000
const VAIN_MAX = 0.01
const SETTLE_MS = 300_000
const READY_MS = 30_000

export async function queue(ground: Ground, count: number): Promise<void> {
  const body = message('m', { turns: [] })
  const journal = new Appender<JournalLine>(ground.places.journal)
  await ground.look(async (store) => {
    const sessions = Array.from({ length: count }, (_, i) => `q${i}`)
    const make = async (session: string): Promise<void> => {
      journal.add({ type: 'try', session, id: 'created', digest: digestOf(CREATED) })
      journal.add({ type: 'try', session, id: body.id, digest: digestOf(body) })
      await store.commit([creation(session, store.now())])
      const [receipt] = await store.commit([{ session, lane: 'inbox', events: [body] }])
      journal.add({ type: 'ack', session, id: body.id, seq: receipt?.seqs[0] ?? 0, verb: 'send' })
    }
    await Promise.all(sessions.map(make))
    const workers = Array.from({ length: WORKERS }, () => ground.startWorker(LEASE_MS))
    const begun = performance.now()
    for (const worker of workers) worker.say('go')
    for (const worker of workers)
      if (!(await worker.heard('ready', READY_MS))) ground.troubles.push(`a worker was not ready: ${worker.stderr}`)
    while ((await store.list({ status: 'idle', limit: count })).filter(({ outcome }) => outcome).length < count) {
      if (performance.now() - begun > SETTLE_MS) throw new Error(`not settled after ${SETTLE_MS} ms`)
      await sleep(100)
    }
    const seconds = (performance.now() - begun) / 1_000
    await ground.stop(workers)
    const claims = workers.map((worker) => (worker.said('claims ') ?? '').split(' ').slice(1).map(Number))
    const [asked, vain] = [0, 1].map((i) => claims.reduce((sum, each) => sum + (each[i] ?? Number.NaN), 0)) as [
      number,
      number,
    ]
    const shares = claims.map(([each]) => each).join(', ')
    console.log(
      `  ${WORKERS} workers, ${count} due: claims ${asked} (${shares}), in vain ${vain}; all done after ${seconds.toFixed(1)} s`,
    )
    if (!(vain <= asked * VAIN_MAX)) ground.troubles.push(`${vain} of ${asked} claims were in vain`)
  })
}
