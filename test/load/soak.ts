// Servers for a long time under bad luck: `npm run soak -- --hours 24 [--seed N]`, or `--minutes N`, or `--seconds N`. Two servers and two workers
// share one folder: one of each is never killed, the other of each is, some times a minute, and started again. Readers lose their
// connections, tabs are reloaded, decisions are made, contexts are compacted, cron jobs fire and signed deliveries come in. Every reader must have each
// event once and in order, the page each message once, each delivery one session and each minute its run. A line a minute says how much memory,
// disk and time it takes, and none of it may grow (slope.ts). The seed decides who is hit and when; what the machine makes of it is not in the seed.
// `--plant memory` (or descriptors, latency, disk) is the control: the server that is never killed leaks, and it must be found.
import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { chromium } from 'playwright-core'
import { argumentsOf, refuse, wholeNumber } from '../../sim/arguments.ts'
import { Chance } from '../crash/random.ts'
import { chromiumPath } from '../ui/chromium.ts'
import { Chores, SECRETS, TRIGGERS } from './chores.ts'
import { Figures } from './figures.ts'
import { Reader, type Seen } from './reader.ts'
import { dataOf, prepareFolder, ServerProcess, startProvider, WorkerProcess } from './server.ts'
import { Tab } from './tab.ts'

const SESSIONS = 20
const RETRY_MS = 200
/** How long everything has to come to rest at the end. */
const SETTLE_MS = 120_000
/** What a session reads each time, so that its context fills and is compacted. */
const NOTE_CHARS = 4_000
const WINDOW_TOKENS = 32_000
const REST_MS = [500, 4_000] as const
const LUCK_MS = [500, 6_000] as const
const DELIVERY_MS = [2_000, 8_000] as const
/** A run of some minutes has a line each few seconds, so that a slope can be seen. */
const LINES_LEAST = 40
const LINE_MS = 60_000
/** Shorter than this, a server is still filling its caches. */
const JUDGED_SECONDS = 600
const LEAKS = ['memory', 'descriptors', 'latency', 'disk']

const { values } = argumentsOf('soak', {
  options: {
    hours: { type: 'string' },
    minutes: { type: 'string' },
    seconds: { type: 'string' },
    seed: { type: 'string' },
    plant: { type: 'string' },
  },
})
const { plant } = values
if (plant !== undefined && !LEAKS.includes(plant)) refuse(`--plant must be one of ${LEAKS.join(', ')}, not "${plant}".`)
const seconds = secondsOf()
const seed = wholeNumber(values.seed ?? String(Date.now() % 1_000_000), 'seed')
const chance = new Chance(seed)
const counts = { kills: 0, stops: 0, cuts: 0, reloads: 0, decisions: 0, messages: 0, compactions: 0 }
const wrong: string[] = []
/** How many messages each session was sent. */
const sent = new Map<string, number>()

mkdirSync('.build', { recursive: true })
const folder = mkdtempSync(resolve('.build', 'soak-'))
const provider = await startProvider('10', '100')
prepareFolder(folder, provider.url, { context: { compaction: { windowTokens: WINDOW_TOKENS } }, ...TRIGGERS })
const width = ['--width', String(SESSIONS)]
const leak = plant === undefined ? {} : { TERRET_LEAK: plant }
/** The first of each is never killed. */
const servers = [
  new ServerProcess(folder, width, { ...SECRETS, ...leak }),
  new ServerProcess(folder, width, SECRETS),
] as const
const workers = [new WorkerProcess(folder, SECRETS), new WorkerProcess(folder, SECRETS)] as const
const browser =
  chromiumPath === undefined ? null : await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] })
let isOver = false
const stop = async (): Promise<void> => {
  isOver = true
  await browser?.close()
  await Promise.all([...servers, ...workers].map((one) => one.end('SIGKILL')))
  provider.child.kill()
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop().then(() => process.exit(1)))
let grown: readonly string[] = []
try {
  const tabs = browser ? '' : '; no Chromium, so no tabs'
  console.log(`seed ${seed}: ${seconds} seconds, ${SESSIONS} sessions${plant ? `, a leak of ${plant}` : ''}${tabs}`)
  grown = await soak()
} finally {
  await stop()
  if (wrong.length === 0) rmSync(folder, { recursive: true, force: true })
}
finish()

function secondsOf(): number {
  const given = wholeNumber(values.seconds ?? '0', 'seconds')
  if (given > 0) return given
  if (values.hours !== undefined) return 3_600 * wholeNumber(values.hours, 'hours', 1)
  return 60 * wholeNumber(values.minutes ?? '30', 'minutes', 1)
}

function finish(): void {
  if (plant === undefined && seconds >= JUDGED_SECONDS) wrong.push(...grown.map((text) => `it grows: ${text}`))
  if (plant !== undefined && grown.length === 0) wrong.push(`the leak of ${plant} that was planted was not found`)
  for (const line of wrong.slice(0, 20)) console.log(`✗ ${line}`)
  const again = ['npm run soak --', `--seconds ${seconds} --seed ${seed}`, ...(plant ? [`--plant ${plant}`] : [])].join(
    ' ',
  )
  console.log(
    wrong.length > 0
      ? `✗ ${wrong.length} wrong. Again with: ${again}`
      : plant
        ? `✓ nothing missing, nothing doubled, and the leak of ${plant} was found`
        : '✓ nothing missing, nothing doubled, nothing grows',
  )
  process.exitCode = wrong.length === 0 ? 0 : 1
}

async function soak(): Promise<readonly string[]> {
  await servers[0].start(plant ? ['--import', resolve('.build/test/load/leak.js')] : [])
  await servers[1].start()
  for (const worker of workers) worker.start()
  const settled = new Map<string, number>()
  const tabs: Tab[] = []
  const figures = new Figures({
    server: servers[0],
    worker: workers[0],
    data: dataOf(folder),
    tabMb: async () => (await tabs[0]?.heapMb()) ?? null,
    kills: () => counts.kills + counts.stops,
  })
  const onEvent = ({ seq, type, bytes, lateMs }: Seen, { session, server }: Reader): void => {
    figures.see({ type, bytes, lateMs: server === servers[0] ? lateMs : null })
    if (type === 'context.compacted') counts.compactions += 1
    if (type !== 'run.settled') return
    settled.set(session, seq)
    setTimeout(() => !isOver && void send(server, session), chance.between(...REST_MS))
  }
  const readers: Reader[] = []
  for (let n = 0; n < SESSIONS; n += 1) {
    const server = servers[n % 2 === 0 ? 0 : 1]
    readers.push(new Reader(server, await opened(server), onEvent))
  }
  const [shown] = readers
  if (browser && shown)
    for (const path of [`/s/${shown.session}`, '/']) tabs.push(await Tab.open(browser, servers[0], path))
  const chores = new Chores(servers, new Chance(chance.integer(0, 1_000_000)))
  await chores.begin()
  const until = performance.now() + seconds * 1_000
  const beside = [decide(), deliver(chores), measure(figures)]
  await bringBadLuck(readers, tabs, until)
  isOver = true
  await Promise.all(beside)
  const last = await chores.end()
  await atRest(readers, settled)
  wrong.push(...(await compare(readers)), ...(await chores.check(last)))
  if (tabs[0]) wrong.push(...(await tabs[0].check()))
  for (const reader of readers) reader.close()
  wrong.push(...readers.flatMap((reader) => reader.wrong))
  const all = { ...counts, deliveries: chores.deliveries }
  console.log(
    Object.entries(all)
      .map(([name, count]) => `${count} ${name}`)
      .join(', '),
  )
  return figures.grown()
}

/** A short run goes on until somebody has been killed and cut, and its tabs reloaded. */
async function bringBadLuck(readers: readonly Reader[], tabs: readonly Tab[], until: number): Promise<void> {
  const isHurt = (): boolean => counts.kills > 0 && counts.cuts > 0 && (counts.reloads > 0 || tabs.length === 0)
  while (performance.now() < until || !isHurt()) {
    await sleep(chance.between(...LUCK_MS))
    const hit = chance.weighted([
      ['cut', 5],
      ['reload', 2],
      ['kill', 2],
      ['stop', 0.5],
    ] as const)
    if (hit === 'cut') {
      counts.cuts += 1
      chance.pick(readers).cut()
    } else if (hit === 'reload') {
      if (tabs.length === 0) continue
      await chance.pick(tabs).reload()
      counts.reloads += 1
    } else {
      counts[hit === 'kill' ? 'kills' : 'stops'] += 1
      const victim = chance.happens(0.5) ? servers[1] : workers[1]
      await victim.end(hit === 'kill' ? 'SIGKILL' : 'SIGTERM')
      await sleep(chance.between(0, 1_000))
      await victim.start()
    }
  }
}

async function measure(figures: Figures): Promise<void> {
  const everyMs = Math.min(LINE_MS, (seconds * 1_000) / LINES_LEAST)
  for (let next = performance.now() + everyMs; !isOver; next += everyMs) {
    while (!isOver && performance.now() < next) await sleep(Math.min(500, next - performance.now()))
    await figures.measure().catch((error: unknown) => wrong.push(`a measurement failed: ${String(error)}`))
  }
}

async function deliver(chores: Chores): Promise<void> {
  while (!isOver) {
    await chores.deliver()
    const until = performance.now() + chance.between(...DELIVERY_MS)
    while (!isOver && performance.now() < until) await sleep(200)
  }
}

/** The same key until it is answered: a server that died in between has done it or not, and the key says which. */
async function insist(server: ServerProcess, path: string, body: object): Promise<string> {
  const key = randomUUID()
  for (;;) {
    try {
      const { status, text } = await server.ask('POST', path, body, { 'idempotency-key': key })
      if (status < 300) return text
      // Decided before its answer was lost, or by now there is nothing to decide.
      if (status === 409 || status === 404) return text
      if (status !== 503) wrong.push(`${path}: ${status} ${text}`)
    } catch {}
    await sleep(RETRY_MS)
  }
}

async function opened(server: ServerProcess): Promise<string> {
  return (JSON.parse(await insist(server, 'sessions', { input: 'Begin.' })) as { readonly session: string }).session
}

/** Numbered, so that the page can be read: each must be there once. */
async function send(server: ServerProcess, session: string): Promise<void> {
  const n = (sent.get(session) ?? 0) + 1
  sent.set(session, n)
  counts.messages += 1
  const input = `note-${n} ${n % 7 === 0 ? 'decide' : 'go on'}`.padEnd(NOTE_CHARS, ' and on')
  await insist(server, `sessions/${session}/messages`, { input })
}

type Waiting = { readonly callId: string; readonly digest?: string; readonly sessionId: string }

async function decide(): Promise<void> {
  for (let rest = 20; rest > 0; rest -= isOver ? 1 : 0) {
    await sleep(1_000)
    const { pending } = await servers[0]
      .json<{ readonly pending: readonly Waiting[] }>('GET', 'pending')
      .catch(() => ({ pending: [] }))
    for (const { callId, digest, sessionId } of pending) {
      counts.decisions += 1
      await insist(servers[0], `sessions/${sessionId}/decisions`, { callId, digest, allow: chance.happens(0.5) })
    }
  }
}

async function atRest(readers: readonly Reader[], settled: ReadonlyMap<string, number>): Promise<void> {
  const until = performance.now() + SETTLE_MS
  const isDone = async (): Promise<boolean> =>
    readers.every(({ session, last }) => settled.get(session) === last) &&
    (await servers[0].json<{ readonly due: number }>('GET', 'health')).due === 0
  while (performance.now() < until && !(await isDone())) await sleep(RETRY_MS)
}

async function compare(readers: readonly Reader[]): Promise<readonly string[]> {
  const missing: string[] = []
  for (const { session, last } of readers) {
    const { head } = await servers[0].json<{ readonly head: number }>('GET', `sessions/${session}`)
    if (head !== last) missing.push(`${session}: ${last} of ${head} events came`)
  }
  return missing
}

function sleep(ms: number): Promise<void> {
  return new Promise((done) => void setTimeout(done, ms))
}
