// The server for a long time under bad luck: `npm run soak -- --minutes 30 [--seed N]`, or `--seconds N`. It is killed and started again on its port and
// folder, readers lose their connections, tabs are reloaded, decisions are made. Every reader must have each event once and in order, the page
// each message once, and memory must not grow. The seed decides who is hit and when; what the machine makes of it is not in the seed.
import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { chromium } from 'playwright-core'
import { argumentsOf, wholeNumber } from '../../sim/arguments.ts'
import { Chance } from '../crash/random.ts'
import { chromiumPath } from '../ui/chromium.ts'
import { Reader, type Seen } from './reader.ts'
import { ServerProcess, startProvider } from './server.ts'
import { Tab } from './tab.ts'

const SESSIONS = 20
const RETRY_MS = 200
/** How long everything has to come to rest at the end. */
const SETTLE_MS = 60_000
/** What memory may grow by, from the first third of the measurements to the last: noise, and not a leak. */
const GROWTH_MAX = 1.3
const GROWTH_MB = 25

const { values } = argumentsOf('soak', {
  options: { minutes: { type: 'string' }, seconds: { type: 'string' }, seed: { type: 'string' } },
})
const seconds = wholeNumber(values.seconds ?? '0', 'seconds') || 60 * wholeNumber(values.minutes ?? '30', 'minutes', 1)
const seed = wholeNumber(values.seed ?? String(Date.now() % 1_000_000), 'seed')
const chance = new Chance(seed)
const counts = { kills: 0, stops: 0, cuts: 0, reloads: 0, decisions: 0, messages: 0 }
const wrong: string[] = []
/** How many messages each session was sent. */
const sent = new Map<string, number>()

mkdirSync('.build', { recursive: true })
const folder = mkdtempSync(resolve('.build', 'soak-'))
const provider = await startProvider('10', '100')
const server = new ServerProcess(folder, provider.url, ['--width', String(SESSIONS)])
const browser =
  chromiumPath === undefined ? null : await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] })
let isOver = false
const stop = async (): Promise<void> => {
  isOver = true
  await browser?.close()
  await server.end('SIGKILL')
  provider.child.kill()
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop().then(() => process.exit(1)))
try {
  console.log(`seed ${seed}: ${seconds} seconds, ${SESSIONS} sessions${browser ? '' : '; no Chromium, so no tabs'}`)
  await soak()
} finally {
  await stop()
  if (wrong.length === 0) rmSync(folder, { recursive: true, force: true })
}
for (const line of wrong.slice(0, 20)) console.log(`✗ ${line}`)
console.log(
  wrong.length === 0
    ? '✓ nothing missing, nothing doubled, memory flat'
    : `✗ ${wrong.length} wrong. Again with: npm run soak -- --seconds ${seconds} --seed ${seed}`,
)
process.exitCode = wrong.length === 0 ? 0 : 1

async function soak(): Promise<void> {
  await server.start()
  const readers: Reader[] = []
  const settled = new Map<string, number>()
  const onEvent = ({ seq, type }: Seen, { session }: Reader): void => {
    if (type !== 'run.settled') return
    settled.set(session, seq)
    if (!isOver) void send(session)
  }
  for (let n = 0; n < SESSIONS; n += 1) readers.push(new Reader(server, await opened(), onEvent))
  const [shown] = readers
  const tabs =
    browser && shown
      ? [await Tab.open(browser, server, `/s/${shown.session}`), await Tab.open(browser, server, '/')]
      : []
  const rss: number[] = []
  const heap: number[] = []
  const until = performance.now() + seconds * 1_000
  const deciding = decide()
  // A short one goes on until it has been killed and cut, and its tabs reloaded.
  const isHurt = (): boolean => counts.kills > 0 && counts.cuts > 0 && (counts.reloads > 0 || tabs.length === 0)
  while (performance.now() < until || !isHurt()) {
    await sleep(chance.between(300, 3_000))
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
      if (tabs.length > 0)
        await chance
          .pick(tabs)
          .reload()
          .then(() => (counts.reloads += 1))
    } else {
      rss.push(server.memory().rss)
      counts[hit === 'kill' ? 'kills' : 'stops'] += 1
      await server.end(hit === 'kill' ? 'SIGKILL' : 'SIGTERM')
      await sleep(chance.between(0, 1_000))
      await server.start()
      if (tabs[0]) heap.push(await tabs[0].heapMb())
    }
  }
  isOver = true
  await deciding
  await atRest(readers, settled)
  await compare(readers)
  if (tabs[0]) wrong.push(...(await tabs[0].check()))
  for (const reader of readers) reader.close()
  wrong.push(...readers.flatMap((reader) => reader.wrong))
  console.log(
    Object.entries(counts)
      .map(([name, count]) => `${count} ${name}`)
      .join(', '),
  )
  grown('memory of the server', rss)
  grown('heap of the tab', heap)
}

/** The same key until it is answered: a server that died in between has done it or not, and the key says which. */
async function insist(path: string, body: object): Promise<string> {
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

async function opened(): Promise<string> {
  return (JSON.parse(await insist('sessions', { input: 'Begin.' })) as { readonly session: string }).session
}

/** Numbered, so that the page can be read: each must be there once. */
async function send(session: string): Promise<void> {
  const n = (sent.get(session) ?? 0) + 1
  sent.set(session, n)
  counts.messages += 1
  await insist(`sessions/${session}/messages`, { input: `note-${n} ${n % 7 === 0 ? 'decide' : 'go on'}` })
}

type Waiting = { readonly callId: string; readonly digest?: string; readonly sessionId: string }

async function decide(): Promise<void> {
  for (let rest = 20; rest > 0; rest -= isOver ? 1 : 0) {
    await sleep(1_000)
    const { pending } = await server
      .json<{ readonly pending: readonly Waiting[] }>('GET', 'pending')
      .catch(() => ({ pending: [] }))
    for (const { callId, digest, sessionId } of pending) {
      counts.decisions += 1
      await insist(`sessions/${sessionId}/decisions`, { callId, digest, allow: chance.happens(0.5) })
    }
  }
}

async function atRest(readers: readonly Reader[], settled: ReadonlyMap<string, number>): Promise<void> {
  const until = performance.now() + SETTLE_MS
  while (performance.now() < until && readers.some(({ session, last }) => settled.get(session) !== last))
    await sleep(RETRY_MS)
}

async function compare(readers: readonly Reader[]): Promise<void> {
  for (const { session, last } of readers) {
    const { head } = await server.json<{ readonly head: number }>('GET', `sessions/${session}`)
    if (head !== last) wrong.push(`${session}: ${last} of ${head} events came`)
  }
}

/** The first third of the measurements beside the last. */
function grown(what: string, all: readonly number[]): void {
  const third = Math.floor(all.length / 3)
  if (third === 0) return console.log(`${what}: ${all.length} measurements are too few to compare`)
  const mean = (some: readonly number[]): number => some.reduce((sum, one) => sum + one, 0) / some.length
  const [first, last] = [mean(all.slice(0, third)), mean(all.slice(-third))]
  console.log(
    `${what}: ${first.toFixed(1)} MB in the first third, ${last.toFixed(1)} MB in the last (${all.length} measurements)`,
  )
  if (last > first * GROWTH_MAX + GROWTH_MB)
    wrong.push(`${what} grew from ${first.toFixed(1)} to ${last.toFixed(1)} MB`)
}

function sleep(ms: number): Promise<void> {
  return new Promise((done) => void setTimeout(done, ms))
}
