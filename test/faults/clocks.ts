// Three workers whose clocks are an hour ahead, an hour behind and right, and sessions that wake at times of the database: each wake
// comes to the second, and nobody spins meanwhile.
import { setTimeout as sleep } from 'node:timers/promises'
import type { OwnerBody } from '../../src/kernel/event.ts'
import { EMPTY } from '../../src/kernel/session.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import { Appender, digestOf, type JournalLine } from '../crash/evidence.ts'
import type { Ground } from '../crash/ground.ts'
import { CREATED, ownerWrite } from '../crash/stage.ts'
import { Proxy } from '../postgres/proxy.ts'
import type { Server } from '../postgres/server.ts'

const HOUR_MS = 3_600_000
const LEASE_MS = 2_000
/** After the workers are ready: they have nothing to do until then. */
const FIRST_MS = 6_000
const APART_MS = 100
/** By then they have heard of the sessions, or found them by a look. */
const HEARD_MS = 1_500
/** What an idle worker may ask in a second. */
const ASKED_MAX = 3
const SETTLE_MS = 30_000

export async function clocks(ground: Ground, server: Server, count: number, lateMsMax: number): Promise<void> {
  const name = new URL(ground.database).pathname.slice(1)
  const proxies = await Promise.all([0, HOUR_MS, -HOUR_MS].map(() => Proxy.to(server.port)))
  const workers = [0, HOUR_MS, -HOUR_MS].map((aheadMs, i) =>
    ground.startWorker(LEASE_MS, server.url(name, undefined, proxies[i]?.port), aheadMs),
  )
  for (const worker of workers) worker.say('go')
  for (const worker of workers)
    if (!(await worker.heard('ready', 20_000))) ground.troubles.push(`a worker was not ready: ${worker.stderr}`)
  await ground.look(async (store) => {
    const first = store.now() + FIRST_MS
    const dues = Array.from({ length: count }, (_, i) => first + i * APART_MS)
    const journal = new Appender<JournalLine>(ground.places.journal)
    await Promise.all(dues.map((due, i) => asleep(store, `w${i}`, due, journal)))
    // What they ask when they have heard of it is not what they ask while they wait.
    await sleep(HEARD_MS)
    const idleMs = first - store.now() - 200
    const before = proxies.map(({ asked }) => asked.length)
    await sleep(idleMs)
    const rates = proxies.map(({ asked }, i) => ((asked.length - (before[i] ?? 0)) * 1_000) / idleMs)
    await atRest(store, dues.at(-1) ?? first)
    const late = await Promise.all(dues.map((due, i) => latenessOf(store, `w${i}`, due)))
    const worst = [Math.min(...late), Math.max(...late)] as const
    console.log(
      `  clocks right, an hour ahead and an hour behind: ${count} wakes, ${worst[0]} to ${worst[1]} ms after their time; asked a second while idle ${rates.map((rate) => rate.toFixed(1)).join(', ')}`,
    )
    if (!(worst[0] >= 0 && worst[1] <= lateMsMax)) ground.troubles.push(`a wake came ${worst.join(' to ')} ms late`)
    if (Math.max(...rates) > ASKED_MAX)
      ground.troubles.push(`an idle worker asked ${Math.max(...rates)} times a second`)
  })
  await ground.stop(workers)
  for (const proxy of proxies) await proxy.close()
}

async function asleep(
  store: CompleteStore,
  session: string,
  due: number,
  journal: Appender<JournalLine>,
): Promise<void> {
  const wake: OwnerBody = { type: 'wake.scheduled', due, key: 'w', reason: 'its time has come' }
  journal.add({ type: 'try', session, id: 'created', digest: digestOf(CREATED) })
  journal.add({ type: 'try', session, id: wake.type, digest: digestOf(wake) })
  await store.commit([ownerWrite(session, EMPTY, { at: store.now(), epoch: 0, bodies: [CREATED, wake] })])
}

async function atRest(store: CompleteStore, last: number): Promise<void> {
  for (;;) {
    const cards = await store.list({ limit: 10_000 })
    if (cards.every(({ status, due }) => status === 'idle' && due === null) || store.now() > last + SETTLE_MS) return
    await sleep(50)
  }
}

/** How long after its time the first event of its worker is. */
async function latenessOf(store: CompleteStore, session: string, due: number): Promise<number> {
  const { events } = await store.read(session, 0)
  return (events.find(({ epoch }) => epoch > 0)?.at ?? Number.POSITIVE_INFINITY) - due
}
