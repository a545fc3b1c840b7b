// Networks, clocks and processes that fail between workers and one real Postgres. `npm run partition [-- --rounds N] [--seed N]`.
// Three workers, each behind a network of its own, work for a client: one of them is cut off for longer than its lease, and what it had
// sent arrives late; answers of commits are lost; one is stopped past its lease. Then, on databases of their own: clocks that are an
// hour off, a row that another program keeps locked, and eight workers at one queue. After each part all that was promised is compared with what is there. Exit 1 on a violation.
// `--short` is each fault once, and briefly.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Event } from '../../src/kernel/event.ts'
import { argumentsOf, refuse, wholeNumber } from '../../sim/arguments.ts'
import { Ground } from '../crash/ground.ts'
import type { Child } from '../crash/process.ts'
import { Chance } from '../crash/random.ts'
import { printVerdict } from '../crash/summary.ts'
import { Proxy } from '../postgres/proxy.ts'
import { noPostgres, Server } from '../postgres/server.ts'
import { clocks } from './clocks.ts'
import { locked } from './locked.ts'
import { queue } from './queue.ts'

const LEASE_MS = 1_500
const WORKERS = 3
/** The share of answers to commits that are lost. */
const LOST = 0.03
/** How late a wake may be on a machine that does other things too. */
const SLOW_MS = 30_000
/** A worker that was cut off or stopped has so long to send what it still has. */
const AFTER_MS = 2_500
const IN_HAND_MS = 20_000
/** What writes sessions or claims them: the one statement of a batch, that of a take, and the end of a transaction. */
const COMMITS = /^with [^]*( as good|for update of s)|^commit$/

const { values } = argumentsOf('partition', {
  options: { rounds: { type: 'string' }, seed: { type: 'string' }, short: { type: 'boolean' } },
})
const rounds = wholeNumber(values.rounds ?? '1', 'rounds', 1)
const seed = wholeNumber(values.seed ?? String(Date.now() % 1_000_000), 'seed')
const short = values.short === true
if (noPostgres)
  refuse('Postgres is not installed here. Install it, or set TERRET_POSTGRES_BIN to the folder with its initdb.')
const again = `npm run partition -- --rounds ${rounds}${short ? ' --short' : ''} --seed ${seed}`
const chance = new Chance(seed)
const server = await Server.start()
try {
  for (let round = 1; round <= rounds; round++) {
    console.log(`partition: round ${round} of ${rounds}`)
    await part(`network_${round}`, network)
    await part(`clocks_${round}`, (ground) => clocks(ground, server, short ? 6 : 60, short ? SLOW_MS : 1_000))
    await part(`locked_${round}`, (ground) => locked(ground, short ? 4_000 : 12_000))
    await part(`queue_${round}`, (ground) => queue(ground, short ? 200 : 2_000))
  }
} catch (error) {
  console.error(error)
  console.log(`again with: ${again}`)
  process.exitCode = 1
} finally {
  await server.close()
}

/** One part of a round, on an empty database, and the comparison after it. */
async function part(name: string, play: (ground: Ground) => Promise<void>): Promise<void> {
  await server.query(`create database ${name}`)
  const ground = new Ground(server.url(name))
  let wrong = true
  try {
    await play(ground)
    const verdict = await ground.verdict()
    const violations = ground.violations(verdict)
    wrong = violations.length > 0
    printVerdict({ strikes: ground.strikes, verdict, violations, again })
  } finally {
    if (wrong) process.exitCode = 1
    await ground.end(wrong)
  }
}

type Place = { readonly worker: Child; readonly proxy: Proxy }

async function network(ground: Ground): Promise<void> {
  const proxies = await Promise.all(Array.from({ length: WORKERS + 1 }, () => Proxy.to(server.port)))
  const name = new URL(ground.database).pathname.slice(1)
  const urlOf = (proxy: Proxy): string => server.url(name, undefined, proxy.port)
  const [own, ...others] = proxies as [Proxy, ...Proxy[]]
  const client = await ground.startClient(seed, urlOf(own))
  const places = others.map((proxy): Place => ({ proxy, worker: ground.startWorker(LEASE_MS, urlOf(proxy)) }))
  for (const { worker } of places) worker.say('go')
  for (const ms of short ? [4_000] : [5_000, 15_000]) await dark(ground, chance.pick(places), ms)
  await stopped(ground, chance.pick(places))
  await lossy(proxies, short ? 4_000 : 30_000)
  await ground.settle(
    client,
    places.map(({ worker }) => worker),
  )
  for (const proxy of proxies) await proxy.close()
}

type Held = { readonly session: string; readonly epoch: number; readonly seq: number }

/** What the database says that this worker has. */
async function inHand(ground: Ground, worker: Child): Promise<readonly Held[]> {
  const text = `select id as session, epoch::int, seq::int from terret.sessions where worker like 'worker-${worker.pid}-%'`
  for (let waited = 0; waited < IN_HAND_MS; waited += 20) {
    const found = await server.query<Held>(text, new URL(ground.database).pathname.slice(1))
    if (found.length > 0) return found
    await sleep(20)
  }
  ground.troubles.push(`worker ${worker.pid} had no session in ${IN_HAND_MS} ms: ${worker.stderr}`)
  return []
}

/** Nothing passes to or from one worker for longer than its lease, and then all of it does. */
async function dark(ground: Ground, { worker, proxy }: Place, ms: number): Promise<void> {
  const held = await inHand(ground, worker)
  const before = refusedOf(ground, worker)
  proxy.goDark()
  await sleep(ms)
  const now = await rowsOf(ground, held)
  const late = proxy.held
  proxy.goLight()
  await sleep(AFTER_MS)
  const taken = now.filter(({ isTaken }) => isTaken)
  const written = await writtenLate(ground, taken)
  const fenced = refusedOf(ground, worker) - before
  console.log(
    `  dark for ${ms / 1_000} s, lease ${LEASE_MS} ms: sessions in hand ${held.length}, taken by others ${taken.length}; late packets ${late}, commits refused to it ${fenced}, written late ${written}`,
  )
  if (taken.length === 0) ground.troubles.push(`nobody took what a worker had that was dark for ${ms} ms`)
}

/** One worker stands still for longer than its lease, and goes on. */
async function stopped(ground: Ground, { worker }: Place): Promise<void> {
  const held = await inHand(ground, worker)
  const before = refusedOf(ground, worker)
  worker.pause()
  await sleep(LEASE_MS * 3)
  const now = await rowsOf(ground, held)
  worker.resume()
  await sleep(AFTER_MS)
  const [others, own] = [now.filter(({ isTaken }) => isTaken), now.filter(({ isTaken }) => !isTaken)]
  // A session that no other worker took still belongs to it: it may go on, until another one takes it.
  const written = (await writtenLate(ground, others)) + (await writtenAfterOthers(ground, own))
  const taken = others.length
  console.log(
    `  stopped for ${(LEASE_MS * 3) / 1_000} s, lease ${LEASE_MS} ms: sessions in hand ${held.length}, taken by others ${taken}; commits refused to it ${refusedOf(ground, worker) - before}, written after its lease ${written}`,
  )
}

/** Answers of commits and claims are lost, for all workers and the client: the statement has happened, and the connection is cut. */
async function lossy(proxies: readonly Proxy[], ms: number): Promise<void> {
  let commits = 0
  for (const proxy of proxies) {
    proxy.loses = (text) => {
      if (!COMMITS.test(text)) return false
      commits += 1
      return chance.happens(LOST)
    }
  }
  await sleep(ms)
  for (const proxy of proxies) proxy.loses = () => false
  const lost = proxies.reduce((sum, proxy) => sum + proxy.lost, 0)
  const share = ((100 * lost) / commits).toFixed(1)
  console.log(`  answers lost for ${ms / 1_000} s: ${lost} of ${commits} commits and claims (${share} %)`)
}

function refusedOf(ground: Ground, worker: Child): number {
  return ground.marksOf(worker).filter((mark) => mark.type === 'end' && !mark.ok).length
}

/** How far these sessions go by now, and whether another worker has them. */
function rowsOf(ground: Ground, held: readonly Held[]): Promise<readonly (Held & { readonly isTaken: boolean })[]> {
  return ground.look(async (store) => {
    const rows = await server.query<Held>(
      'select id as session, epoch::int, seq::int from terret.sessions',
      new URL(ground.database).pathname.slice(1),
    )
    await store.open()
    return held.flatMap(({ session, epoch }) => {
      const row = rows.find((one) => one.session === session)
      return row ? [{ session, epoch, seq: row.seq, isTaken: row.epoch > epoch }] : []
    })
  })
}

/** Each event of an epoch that was lost, behind what was there, is a violation. */
function writtenLate(ground: Ground, lost: readonly Held[]): Promise<number> {
  return countLate(ground, lost, (events, { epoch }) => events.filter((event) => event.epoch === epoch))
}

/** Each event of an epoch that comes after one of a later epoch is a violation. */
function writtenAfterOthers(ground: Ground, held: readonly Held[]): Promise<number> {
  return countLate(ground, held, (events, { epoch }) => {
    const next = events.findIndex((event) => event.epoch > epoch)
    return next < 0 ? [] : events.slice(next).filter((event) => event.epoch === epoch)
  })
}

function countLate(
  ground: Ground,
  held: readonly Held[],
  lateIn: (events: readonly Event[], one: Held) => readonly Event[],
): Promise<number> {
  return ground.look(async (store) => {
    let written = 0
    for (const one of held) {
      const { events } = await store.read(one.session, one.seq)
      const late = lateIn(events, one)
      written += late.length
      if (late.length > 0)
        ground.troubles.push(`${one.session}: ${late.length} events of epoch ${one.epoch} after it was lost`)
    }
    return written
  })
}
