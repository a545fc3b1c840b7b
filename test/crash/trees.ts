// Twenty children a round, on one file, and the worker killed: at a random moment, or held at a commit that matters and killed there.
// Beside them works a tree of three levels, which a person stops (deep.ts). After each round all logs of both are compared.
// `npm run crash -- --trees --rounds 200`.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Services } from '../../src/runtime/state/runtime-ports.ts'
import type { Card, CompleteStore } from '../../src/ports/store.ts'
import { beginDeep, checkDeep, goOn, missedStops, noStops, REST_MS, stopDeep, type Stops, stopsText } from './deep.ts'
import { checkEffects } from './effect-check.ts'
import { Appender, type ErrorLine, type OracleLine, type Places, readLines, Tail } from './evidence.ts'
import { callsOf } from './log-check.ts'
import { openStore } from './open.ts'
import type { Child } from './process.ts'
import { Chance } from './random.ts'
import { Rows } from './rows.ts'
import { creation, DEEP, message, servicesOf } from './stage.ts'
import { checkTrees, type Logs } from './tree-check.ts'
import { checkLog, troublesIn } from './verify.ts'
import type { Plan } from './plan.ts'
import { agentOf } from './workload.ts'

const CHILDREN = 20
const SETTLE_MS = 90_000
const HOLD_MS = 10_000

/** Where a worker is held to be killed: right before, or right after, the nth commit of a kind reached the disk. */
const AIMS = [
  'before birth',
  'after birth',
  'before start',
  'after start',
  'before end',
  'after end',
  'before ask',
  'after ask',
  'before stop',
  'after stop',
] as const
/** So many rounds show each of what a person may do, and each place of a kill. */
const ROUNDS_ENOUGH = 60

export type Trees = {
  readonly seed: number
  readonly rounds: number
  readonly places: Places
  readonly database: string
  readonly startWorker: () => Child
  /** The command that does the same again. */
  readonly again: string
}

type Sums = { children: number; reports: number; shown: number; lost: number; twice: number }

/** What all rounds share. */
type Stage = {
  readonly services: Services
  readonly chance: Chance
  readonly startWorker: () => Child
  readonly oracle: Tail<OracleLine>
  readonly kills: Kill[]
  readonly sums: Sums
  readonly rows: Rows
  readonly stops: Stops
  /** The keys of all calls that the logs of earlier rounds have. */
  readonly earlier: Set<string>
}

/** Returns what was wrong, in sentences. */
export async function killTrees({
  seed,
  rounds,
  places,
  database,
  startWorker,
  again,
}: Trees): Promise<readonly string[]> {
  const begun = performance.now()
  const store = openStore(database)
  await store.open()
  const stage: Stage = {
    services: servicesOf(store, agentOf(new Appender(places.oracle), places.oracle)),
    chance: new Chance(seed),
    startWorker,
    oracle: new Tail(places.oracle),
    kills: [],
    sums: { children: 0, reports: 0, shown: 0, lost: 0, twice: 0 },
    rows: new Rows(),
    stops: noStops(),
    earlier: new Set(),
  }
  const { kills, sums, rows, stops } = stage
  const wrong: string[] = []
  let worker = startWorker()
  worker.say('go')
  for (let round = 1; round <= rounds; round++) {
    // The first rounds are held at each place in turn, so that a few rounds show them all.
    const aim = AIMS[round - 1] ?? (stage.chance.happens(0.4) ? 'any' : stage.chance.pick(AIMS))
    const played = await play(stage, worker, aim, round)
    wrong.push(...played.wrong.map((text) => `${text} (killed ${aim})`))
    worker = played.worker
  }
  worker.say('stop')
  await worker.exited
  await store.close()
  stage.oracle.close()
  wrong.push(...troublesIn(readLines<ErrorLine>(places.errors)))
  if (rounds >= ROUNDS_ENOUGH) wrong.push(...missedStops(stops), ...rows.missed)
  print({ rounds, again, seconds: (performance.now() - begun) / 1_000, kills, sums, rows, stops, wrong })
  return wrong
}

type Played = { readonly worker: Child; readonly wrong: readonly string[] }

/** One round: both trees begin, the worker is killed, the person does what a person does, and all comes to rest. */
async function play(stage: Stage, before: Child, aim: Strike['aim'], round: number): Promise<Played> {
  const { services, chance, startWorker, oracle, kills, sums, rows, stops } = stage
  const { store } = services
  const [root, deep] = [`tree-${round}`, `${DEEP}${round}`]
  const earlier = kills.length
  // What the person does is not to depend on when a worker was killed.
  const person = new Chance(chance.integer(0, 1_000_000))
  const strike = struck({ worker: before, startWorker, chance, aim, kills }, () => begin(store, root, chance))
  await beginDeep(services, deep, person)
  const [worker] = await Promise.all([strike, stopDeep(services, deep, person, stops)])
  const goesOn = person.happens(0.5)
  const stopped = await stoppedTree(services, deep, goesOn)
  const wide = await settled(store, root, SETTLE_MS)
  const wrong: string[] = []
  if (stopped === null) wrong.push(await unrested(store, deep))
  else wrong.push(...checkDeep(deep, stopped, goesOn, stops))
  if (wide === null) wrong.push(`${root}: not settled after ${SETTLE_MS} ms`)
  else {
    wrong.push(...compared(root, wide, sums))
    const times = kills.slice(earlier).map(({ at }) => at)
    rows.take(root, wide, times)
  }
  wrong.push(...checkedEach(new Map([...(wide ?? []), ...(stopped ?? [])]), oracle.read(), stage.earlier))
  return { worker, wrong }
}

/** The logs of a tree that a person has stopped, or null. If it `goesOn`, it is told something more once it rests. */
async function stoppedTree(services: Services, root: string, goesOn: boolean): Promise<Logs | null> {
  const rested = await settled(services.store, root, REST_MS)
  if (rested === null || !goesOn) return rested
  await goOn(services, root)
  return settled(services.store, root, REST_MS)
}

async function unrested(store: CompleteStore, root: string): Promise<string> {
  const cards = await store.list({ root, limit: 1_000 })
  const open = cards.filter(({ status, due }) => !isAtRest(status, due)).map(({ session }) => session)
  return `${root} was stopped, and ${open.join(', ')} did not rest within ${REST_MS} ms`
}

type Kill = { readonly where: string; readonly at: number }

type Strike = {
  readonly worker: Child
  readonly startWorker: () => Child
  readonly chance: Chance
  readonly aim: (typeof AIMS)[number] | 'any'
  readonly kills: Kill[]
}

/** Kills the worker in the round that `go` begins, now and then its heir too. Returns the worker that lives. */
async function struck(strike: Strike, go: () => Promise<void>): Promise<Child> {
  const { worker, startWorker, chance, aim, kills } = strike
  const heir = startWorker()
  const nth = aim.endsWith('birth') ? 1 : /ask|stop/.test(aim) ? chance.integer(1, 3) : chance.integer(1, CHILDREN)
  if (aim !== 'any') worker.say(`hold ${aim} ${nth}`)
  await go()
  const held = aim !== 'any' && (await worker.heard('held', HOLD_MS))
  if (aim === 'any') await sleep(chance.between(0, 1_500))
  await killed(worker, held ? aim : 'any', kills)
  heir.say('go')
  if (!chance.happens(0.25)) return heir
  const next = startWorker()
  await heir.heard('ready', HOLD_MS)
  await sleep(chance.between(0, 800))
  await killed(heir, 'any', kills)
  next.say('go')
  return next
}

async function killed(worker: Child, where: string, kills: Kill[]): Promise<void> {
  worker.kill()
  await worker.exited
  kills.push({ where, at: Date.now() })
}

/** A parent that starts twenty children in two calls, and then works on while they end. */
async function begin(store: CompleteStore, root: string, chance: Chance): Promise<void> {
  const quick = (tool: string, ms: number) => ({ tool, ms, bytes: 20 })
  const task = (): Plan => ({
    turns: [{ thinkMs: chance.integer(0, 200), flaky: false, calls: [quick('send', chance.integer(0, 200))] }],
  })
  const ten = () => ({ order: 'many', tasks: Array.from({ length: CHILDREN / 2 }, task) }) as const
  const turns = [
    { thinkMs: 5, flaky: false, calls: [ten(), ten()] },
    { thinkMs: 5, flaky: false, calls: [quick('put', 700)] },
  ]
  await store.commit([creation(root, store.now())])
  await store.commit([{ session: root, lane: 'inbox', events: [message('m', { turns })] }])
}

/** The logs of a tree that rests; null if it did not in time. */
async function settled(store: CompleteStore, root: string, withinMs: number): Promise<Logs | null> {
  const until = performance.now() + withinMs
  for (;;) {
    const cards = await store.list({ root, limit: 1_000 })
    if (cards.length > 0 && cards.every(({ status, due }) => isAtRest(status, due))) {
      const logs = cards.map(async ({ session }) => [session, (await store.read(session, 0)).events] as const)
      return new Map(await Promise.all(logs))
    }
    if (performance.now() > until) return null
    await sleep(20)
  }
}

function isAtRest(status: Card['status'], due: Card['due']): boolean {
  return (status === 'idle' || status === 'terminated') && due === null
}

/** What must hold in each log, and between the logs and the effects of the round. */
function checkedEach(logs: Logs, oracle: readonly OracleLine[], earlier: Set<string>): readonly string[] {
  const calls = [...logs].flatMap(([session, events]) => callsOf(session, events))
  // A handler whose worker lost its lease, and that does not obey, may end after its round. It must not begin then.
  const ofRound = oracle.filter(({ key, phase }) => phase === 'start' || !earlier.has(key))
  const wrong = [...checkEffects(calls, ofRound).wrong]
  for (const { key } of calls) earlier.add(key)
  for (const [session, events] of logs) wrong.push(...checkLog(events).map((text) => `${session}: ${text}`))
  return wrong
}

function compared(root: string, logs: Logs, sums: Sums): readonly string[] {
  const trees = checkTrees(logs)
  const wrong = [...trees.wrong]
  const children = logs.size - 1
  if (children !== CHILDREN) wrong.push(`${root} has ${children} children, not ${CHILDREN}`)
  if (trees.shown !== CHILDREN) wrong.push(`${root} was shown ${trees.shown} reports, not ${CHILDREN}`)
  sums.children += children
  sums.reports += trees.reports
  sums.shown += trees.shown
  sums.lost += trees.lost
  sums.twice += trees.twice
  return wrong
}

type Printed = Pick<Trees, 'rounds' | 'again'> & {
  readonly seconds: number
  readonly kills: readonly Kill[]
  readonly sums: Sums
  readonly rows: Rows
  readonly stops: Stops
  readonly wrong: readonly string[]
}

const SHOWN_MAX = 20

function print({ rounds, again, seconds, kills, sums, rows, stops, wrong }: Printed): void {
  const { children, reports, shown, lost, twice } = sums
  const places = [...new Set(kills.map(({ where }) => where))].sort()
  const counts = places.map((place) => `${place} ${kills.filter(({ where }) => where === place).length}`)
  console.log(`trees: ${rounds} rounds in ${seconds.toFixed(1)} s on node ${process.version}`)
  console.log(`  kills ${kills.length} (${counts.join(', ')})`)
  console.log(
    `  parents of ${CHILDREN}: children ${children}, reports ${reports}, shown ${shown}, lost ${lost}, twice ${twice}`,
  )
  for (const line of [...rows.text, ...stopsText(stops)]) console.log(`  ${line}`)
  for (const text of wrong.slice(0, SHOWN_MAX)) console.log(`  VIOLATION ${text}`)
  console.log(`violations ${wrong.length}; again with: ${again}`)
}
