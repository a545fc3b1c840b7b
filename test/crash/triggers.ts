// Servers that take signed deliveries in are killed at random and begun again, while a sender repeats each delivery until it has its 202.
// Then all deliveries, sessions and effects are compared. `npm run crash -- --triggers --rounds 40`.
import { setTimeout as sleep } from 'node:timers/promises'
import type { CompleteStore } from '../../src/ports/store.ts'
import { type DeliveryEffect, Sender } from './deliveries.ts'
import { type ErrorLine, type Places, readLines, Tail } from './evidence.ts'
import { openStore } from './open.ts'
import type { Child } from './process.ts'
import { Chance } from './random.ts'
import type { Logs } from './tree-check.ts'
import { checkTriggers, type TriggerReport } from './trigger-check.ts'
import { troublesIn } from './verify.ts'

const UP_MS = 30_000
const WATCH_MS = 1_000
const SETTLE_MS = 120_000
const SHOWN_MAX = 20
const AIMS = ['any', 'delivery', 'effect'] as const

export type TriggerRun = {
  readonly seed: number
  readonly rounds: number
  /** How many servers work on the store at once. */
  readonly servers: number
  readonly places: Places
  readonly database: string
  readonly startServer: () => Child
  /** The command that does the same again. */
  readonly again: string
}

type Struck = { deliveries: number; effects: number; idle: number }

/** Returns what was wrong, in sentences. */
export async function killTriggers(run: TriggerRun): Promise<readonly string[]> {
  const { seed, rounds, places, database } = run
  const begun = performance.now()
  const chance = new Chance(seed)
  const sender = new Sender(new Chance(chance.integer(0, 1_000_000)), places.journal)
  const oracle = new Tail<DeliveryEffect>(places.oracle)
  const struck: Struck = { deliveries: 0, effects: 0, idle: 0 }
  const up = await Promise.all(Array.from({ length: run.servers }, () => startUp(run.startServer)))
  sender.ports = up.map(({ port }) => port)
  const sent = sender.send()
  for (let round = 0; round < rounds; round++) {
    const i = chance.integer(0, up.length - 1)
    const server = up[i] as Served
    await aimAt(chance.pick(AIMS), { server, chance, sender, oracle })
    await strike(server, { sender, struck, effects: readLines<DeliveryEffect>(places.oracle) })
    await sleep(chance.between(0, 200))
    up[i] = await startUp(run.startServer)
    sender.ports = up.map(({ port }) => port)
  }
  sender.stop()
  await sent
  oracle.close()
  const store = openStore(database)
  await store.open()
  const rested = await awaitRest(store)
  await store.close()
  const troubles = troublesIn(readLines<ErrorLine>(places.errors))
  const report = checkTriggers({ records: sender.records, logs: rested.logs, oracle: readLines(places.oracle) })
  const all = [...sender.wrong, ...(await stopped(up)), ...troubles, ...rested.wrong, ...report.wrong]
  print({ run, seconds: (performance.now() - begun) / 1_000, sender, struck, report, wrong: all })
  return all
}

type Served = { readonly child: Child; readonly port: number }

async function startUp(start: () => Child): Promise<Served> {
  const child = start()
  const until = performance.now() + UP_MS
  for (;;) {
    const said = child.said('port ')
    if (said !== null) return { child, port: Number(said.slice(5)) }
    if (!child.alive || performance.now() > until) throw new Error(`a server did not come up: ${child.stderr}`)
    await sleep(5)
  }
}

type Aimed = {
  readonly server: Served
  readonly chance: Chance
  readonly sender: Sender
  readonly oracle: Tail<DeliveryEffect>
}

/** Waits for a moment to kill this server: a random one, or one right after it got a delivery or began an effect. */
async function aimAt(aim: (typeof AIMS)[number], { server, chance, sender, oracle }: Aimed): Promise<void> {
  if (aim === 'any') {
    await sleep(chance.between(0, 600))
    return
  }
  await sleep(chance.between(50, 300))
  oracle.read()
  const until = performance.now() + WATCH_MS
  const seen = (): boolean =>
    aim === 'delivery'
      ? (sender.open.get(server.port) ?? 0) > 0
      : oracle.read().some(({ pid, phase }) => pid === server.child.pid && phase === 'start')
  while (!seen() && performance.now() < until) await sleep(1)
  await sleep(chance.between(0, aim === 'delivery' ? 12 : 40))
}

type Hit = { readonly sender: Sender; readonly struck: Struck; readonly effects: readonly DeliveryEffect[] }

async function strike({ child, port }: Served, { sender, struck, effects }: Hit): Promise<void> {
  const deliveries = sender.open.get(port) ?? 0
  const own = effects.filter(({ pid }) => pid === child.pid)
  const ended = new Set(own.flatMap(({ key, phase }) => (phase === 'end' ? [key] : [])))
  const open = own.filter(({ key, phase }) => phase === 'start' && !ended.has(key)).length
  const alive = child.alive
  child.kill()
  await child.exited
  if (!alive) sender.wrong.push(`a server ended before it was killed: ${child.stderr}`)
  struck.deliveries += deliveries
  struck.effects += open
  if (deliveries + open === 0) struck.idle += 1
  sender.ports = sender.ports.filter((other) => other !== port)
}

type Rested = { readonly logs: Logs; readonly wrong: readonly string[] }

/**
 * All logs, once every session rests, or once none has come to rest for two minutes: on a busy machine a thousand
 * sessions take longer than that together.
 */
async function awaitRest(store: CompleteStore): Promise<Rested> {
  let least = Number.POSITIVE_INFINITY
  let until = 0
  for (;;) {
    const cards = await store.list({ limit: 100_000 })
    const open = cards.filter(({ status, due }) => !/idle|terminated/.test(status) || due !== null)
    if (open.length < least) [least, until] = [open.length, performance.now() + SETTLE_MS]
    if (open.length > 0 && performance.now() < until) {
      await sleep(100)
      continue
    }
    const logs = cards.map(async ({ session }) => [session, (await store.read(session, 0)).events] as const)
    const wrong = open.map(({ session, status, due }) => `${session} did not come to rest: it is ${status}, due ${due}`)
    return { logs: new Map(await Promise.all(logs)), wrong }
  }
}

async function stopped(up: readonly Served[]): Promise<readonly string[]> {
  const ends = up.map(async ({ child }) => {
    child.say('stop')
    const deadline = setTimeout(() => child.kill(), UP_MS)
    const code = await child.exited
    clearTimeout(deadline)
    return code === 0 ? [] : [`a server ended with ${code} when it was told to stop: ${child.stderr}`]
  })
  return (await Promise.all(ends)).flat()
}

type Printed = {
  readonly run: TriggerRun
  readonly seconds: number
  readonly sender: Sender
  readonly struck: Struck
  readonly report: TriggerReport
  readonly wrong: readonly string[]
}

function print({ run, seconds, sender, struck, report, wrong }: Printed): void {
  const { records, sums } = sender
  const answers = records.reduce((sum, { accepted }) => sum + accepted.length, 0)
  const first = records.filter(({ accepted }) => accepted[0]?.duplicate === true).length
  console.log(`crash: ${run.rounds} rounds of triggers in ${seconds.toFixed(1)} s on node ${process.version}`)
  const rows: readonly (readonly [string, number, string])[] = [
    ['kills', run.rounds, `with nothing in hand ${struck.idle}`],
    ['deliveries struck', struck.deliveries, 'under way to the server that was killed'],
    ['effects struck', struck.effects, 'begun and not ended'],
    ['deliveries', records.length, `sent ${sums.posts} times, ${sums.cut} without an answer; forged ${sums.forged}`],
    ['answers 202', answers, `first answers that said duplicate, because the one before was lost: ${first}`],
    ['one session and one effect', report.kept, ''],
    ['unknown', report.unknown, 'a once effect that was cut'],
    ['repeated with the same key', report.repeated, 'idempotent only'],
    ['lost', report.lost, ''],
    ['twice', report.twice, ''],
  ]
  for (const [name, value, more] of rows)
    console.log(`  ${name.padEnd(33)}${String(value).padStart(7)}${more === '' ? '' : `   (${more})`}`)
  for (const text of wrong.slice(0, SHOWN_MAX)) console.log(`  VIOLATION ${text}`)
  if (wrong.length > SHOWN_MAX) console.log(`  and ${wrong.length - SHOWN_MAX} more`)
  console.log(`violations ${wrong.length}; again with: ${run.again}`)
}
