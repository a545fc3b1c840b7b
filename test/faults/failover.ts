// A primary that dies or stops under workers and a client, and its synchronous copy that is promoted. `npm run failover [-- --rounds N]`.
// Odd rounds kill the primary: work goes on within two seconds of the promotion. Even rounds stop it, promote the copy and wake it again:
// nobody writes to it, and whoever comes new finds the right one. Then all that was promised is compared with what is there.
// Exit 1 on a violation. `--within MS` is another bound, for a machine that is busy with other things.
import { setTimeout as sleep } from 'node:timers/promises'
import { PostgresConnections } from '../../src/stores/postgres/connections.ts'
import { argumentsOf, refuse, wholeNumber } from '../../sim/arguments.ts'
import { type MarkLine, Tail } from '../crash/evidence.ts'
import { Ground } from '../crash/ground.ts'
import type { Child } from '../crash/process.ts'
import { Chance } from '../crash/random.ts'
import { printVerdict } from '../crash/summary.ts'
import { noPostgres, Server, urlOf } from '../postgres/server.ts'

const LEASE_MS = 1_000
const WORKERS = 4
const WORK_MS = 2_000
const AFTER_MS = 3_000
const GIVE_UP_MS = 30_000
const NEWCOMERS = 3

const { values } = argumentsOf('failover', {
  options: { rounds: { type: 'string' }, seed: { type: 'string' }, within: { type: 'string' } },
})
const rounds = wholeNumber(values.rounds ?? '4', 'rounds', 1)
const seed = wholeNumber(values.seed ?? String(Date.now() % 1_000_000), 'seed')
const withinMs = wholeNumber(values.within ?? '2000', 'within', 1)
if (noPostgres)
  refuse('Postgres is not installed here. Install it, or set TERRET_POSTGRES_BIN to the folder with its initdb.')
const again = `npm run failover -- --rounds ${rounds} --within ${withinMs} --seed ${seed}`
const chance = new Chance(seed)
try {
  for (let round = 1; round <= rounds; round++) await play(round)
} catch (error) {
  console.error(error)
  console.log(`again with: ${again}`)
  process.exitCode = 1
}

type Pair = { readonly old: Server; readonly next: Server; readonly url: string }

async function play(round: number): Promise<void> {
  const old = await Server.start({ fsync: true })
  const next = await old.standby()
  // The standby is named first, so that it is not the order that finds the primary.
  const ground = new Ground(urlOf([next, old]))
  let wrong = true
  try {
    const client = await ground.startClient(seed + round)
    const workers = Array.from({ length: WORKERS }, () => ground.startWorker(LEASE_MS))
    for (const worker of workers) worker.say('go')
    for (const worker of workers) await worker.heard('ready', GIVE_UP_MS)
    await sleep(WORK_MS + chance.between(0, 1_000))
    const pair = { old, next, url: ground.database }
    if (round % 2 === 1) await killed(ground, pair, workers)
    else workers.push(...(await stopped(ground, pair, workers)))
    await ground.settle(client, workers)
    const verdict = await ground.verdict()
    const violations = ground.violations(verdict)
    wrong = violations.length > 0
    printVerdict({ strikes: ground.strikes, verdict, violations, again })
  } finally {
    if (wrong) process.exitCode = 1
    await ground.end(wrong)
    await Promise.all([old.close(), next.close()])
  }
}

async function killed(ground: Ground, { old, next }: Pair, workers: readonly Child[]): Promise<void> {
  await old.kill()
  await sleep(chance.between(0, 1_000))
  const { onMs, promoteMs } = await promoted(ground, next, workers)
  if (onMs > withinMs)
    ground.troubles.push(`work went on ${onMs} ms after the promotion, and not within ${withinMs} ms`)
  const acks = await acknowledgedIn(ground, workers, AFTER_MS)
  console.log(
    `failover: primary killed, copy promoted in ${promoteMs} ms; the first commit after the promotion came ${onMs} ms later, ${acks} more in the next ${AFTER_MS / 1_000} s`,
  )
}

async function stopped(ground: Ground, { old, next, url }: Pair, workers: readonly Child[]): Promise<readonly Child[]> {
  old.pause()
  await sleep(chance.between(0, 1_000))
  const { onMs, promoteMs, at } = await promoted(ground, next, workers)
  old.resume()
  const newcomers = [ground.startWorker(LEASE_MS)]
  for (const worker of newcomers) worker.say('go')
  const acks = await acknowledgedIn(ground, workers, AFTER_MS)
  const written = await writtenAfter(old, at)
  if (written > 0) ground.troubles.push(`${written} events were written to the primary that was replaced`)
  let right = 0
  for (let i = 0; i < NEWCOMERS; i++) if ((await portOf(url)) === next.port) right += 1
  if (right < NEWCOMERS)
    ground.troubles.push(`${NEWCOMERS - right} of ${NEWCOMERS} new connections found the wrong one`)
  console.log(
    `failover: primary stopped, copy promoted in ${promoteMs} ms; the first commit after the promotion came ${onMs} ms later; primary woken: events written to it ${written}, new connections that found the right one ${right} of ${NEWCOMERS}, ${acks} commits in ${AFTER_MS / 1_000} s`,
  )
  return newcomers
}

type Promoted = { readonly promoteMs: number; readonly onMs: number; readonly at: number }

/** The copy becomes the primary. How long it takes until a worker has the answer to a commit that it began after that. */
async function promoted(ground: Ground, next: Server, workers: readonly Child[]): Promise<Promoted> {
  const began = performance.now()
  await next.promote()
  const [from, at] = [performance.now(), Date.now()]
  const acknowledged = acknowledgements(ground, workers)
  acknowledged()
  while (acknowledged() === 0) {
    if (performance.now() - from > GIVE_UP_MS) throw new Error(`no commit in ${GIVE_UP_MS} ms after the promotion`)
    await sleep(5)
  }
  const onMs = Math.round(performance.now() - from)
  return { promoteMs: Math.round(from - began), onMs, at }
}

async function acknowledgedIn(ground: Ground, workers: readonly Child[], ms: number): Promise<number> {
  const acknowledged = acknowledgements(ground, workers)
  acknowledged()
  await sleep(ms)
  return acknowledged()
}

/** Each call counts the commits that were answered since the last. */
function acknowledgements({ places }: Ground, workers: readonly Child[]): () => number {
  const tails = workers.map(({ serial }) => new Tail<MarkLine>(places.marks(serial)))
  return () => tails.flatMap((tail) => tail.read()).filter((mark) => mark.type === 'end' && mark.ok).length
}

/** Events on a server whose time is after this one. */
async function writtenAfter(server: Server, at: number): Promise<number> {
  const text = `select count(*)::int as count from terret.events where (substring(body from '"at":([0-9]+)'))::float8 > ${at}`
  const [row] = await server.query<{ count: number }>(text)
  return row?.count ?? Number.NaN
}

async function portOf(url: string): Promise<number> {
  const made = new PostgresConnections({ url })
  const [row] = await made.lane.ask<{ port: number }>('where', 'select inet_server_port() as port')
  await made.close()
  return row?.port ?? 0
}
