// Many sessions at once through the real server: `npm run load`. A provider, `terret serve` and this process, which reads every stream, are
// three processes on one machine. How late an event is: from the time it was stamped, before its commit, to its arrival here, on one clock.
// Exit 1 if an event is missing or doubled, or a bound is missed; `--unbounded` only checks the events.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { argumentsOf, wholeNumber } from '../../sim/arguments.ts'
import { deadReader, pollingTab, Reader, type Seen, streamTab } from './reader.ts'
import { memoryOf, prepareFolder, ServerProcess, startProvider } from './server.ts'

const BOUNDS = { p99Ms: 100, rssMb: 1_024 }
const IDLE_TABS = { streams: 40, polling: 160, everyMs: 20_000 }
/** More than the sockets of a dead reader take. */
const FAT = { messages: 60, chars: 200_000 }
const SETTLE_MS = 60_000
const OPENERS = 20
/** So long after the last session is open, what was done once for each is over. */
const WARM_MS = 5_000

const { values } = argumentsOf('load', {
  options: {
    sessions: { type: 'string' },
    seconds: { type: 'string' },
    pieces: { type: 'string' },
    every: { type: 'string' },
    unbounded: { type: 'boolean' },
    profile: { type: 'boolean' },
    lists: { type: 'string' },
    dead: { type: 'string' },
  },
})
const sessions = wholeNumber(values.sessions ?? '1000', 'sessions', 1)
const seconds = wholeNumber(values.seconds ?? '30', 'seconds', 1)
const pieces = values.pieces ?? '40'
const everyMs = values.every ?? '400'
const lists = wholeNumber(values.lists ?? '2', 'lists')
const dead = wholeNumber(values.dead ?? '50', 'dead')

mkdirSync('.build', { recursive: true })
const folder = mkdtempSync(resolve('.build', 'load-'))
const provider = await startProvider(pieces, everyMs)
prepareFolder(folder, provider.url)
const server = new ServerProcess(folder, ['--width', String(sessions)])
const stop = async (): Promise<void> => {
  await server.end('SIGTERM')
  provider.child.kill()
  if (process.exitCode === 0) rmSync(folder, { recursive: true, force: true })
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop().then(() => process.exit(1)))
try {
  await server.start(values.profile ? ['--cpu-prof', `--cpu-prof-dir=${resolve('.build')}`] : [])
  process.exitCode = (await load()) ? 0 : 1
} finally {
  await stop()
}

async function opened(body: object): Promise<string> {
  return (await server.json<{ readonly session: string }>('POST', 'sessions', body)).session
}

async function load(): Promise<boolean> {
  let [isMeasured, isOver] = [false, false]
  const late: number[] = []
  const settled = new Map<string, number>()
  const failed: string[] = []
  const onEvent = ({ seq, lateMs, type }: Seen, { session }: Reader): void => {
    if (isMeasured) late.push(lateMs)
    if (type !== 'run.settled') return
    settled.set(session, seq)
    if (!isOver)
      server.json('POST', `sessions/${session}/messages`, { input: 'Go on.' }).catch((e) => failed.push(String(e)))
  }
  const idle = await opened({})
  const readers: Reader[] = []
  const begun = performance.now()
  const openSome = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      readers.push(new Reader(server, await opened({ input: 'Go.' }), onEvent))
    }
  }
  let left = sessions
  await Promise.all(Array.from({ length: OPENERS }, openSome))
  const openS = (performance.now() - begun) / 1_000
  // Node takes one new connection in each turn of its loop: a busy server is long at it.
  await eventually(() => readers.every(({ last }) => last > 0))
  const connectedS = (performance.now() - begun) / 1_000
  const stopTabs = await openTabs(idle)
  await sleep(WARM_MS)
  isMeasured = true
  await sleep(seconds * 1_000)
  // On a machine that is busy with other work there may be none yet.
  await eventually(() => late.length > 0)
  isMeasured = false
  const { rss, peak } = memoryOf(server.pid)
  const streams = (await server.json<{ readonly streams: number }>('GET', 'health')).streams
  isOver = true
  await eventually(() => readers.every(({ session, last }) => settled.get(session) === last))
  const wrong = [...failed, ...readers.flatMap((reader) => reader.wrong), ...(await missing(readers))]
  for (const reader of readers) reader.close()
  stopTabs()
  late.sort((a, b) => a - b)
  const at = (share: number): number => late[Math.min(late.length - 1, Math.floor(late.length * share))] ?? 0
  const rows: readonly (readonly [string, string, boolean | null])[] = [
    [
      'sessions',
      `${sessions}, opened in ${openS.toFixed(1)} s, read by all after ${connectedS.toFixed(1)} s; ${streams} streams; each reply ${pieces} pieces in ${(Number(pieces) * Number(everyMs)) / 1_000} s`,
      null,
    ],
    ['events', `${late.length} in ${seconds} s, ${Math.round(late.length / seconds)} a second`, null],
    ['missing or doubled', String(wrong.length), wrong.length === 0],
    ['append to arrival, p50', `${at(0.5)} ms`, null],
    [
      'append to arrival, p99',
      `${at(0.99)} ms (bound ${BOUNDS.p99Ms}); the latest ${late.at(-1) ?? 0} ms`,
      at(0.99) < BOUNDS.p99Ms,
    ],
    ['memory of the server', `${rss} MB, at most ${peak} MB (bound ${BOUNDS.rssMb})`, peak < BOUNDS.rssMb],
  ]
  for (const [name, text, ok] of rows) console.log(`${ok === null ? ' ' : ok ? '✓' : '✗'} ${name.padEnd(24)} ${text}`)
  for (const line of wrong.slice(0, 10)) console.log(`  ${line}`)
  return values.unbounded ? wrong.length === 0 : rows.every(([, , ok]) => ok !== false)
}

/** Tabs that have nothing to do, two that watch the list, and readers that do not read. Gives what closes them. */
async function openTabs(idle: string): Promise<() => void> {
  const fat = await opened({})
  await server.json('POST', `sessions/${fat}/commands`, { commands: [{ type: 'pause' }] })
  const input = 'x'.repeat(FAT.chars)
  for (let n = 0; n < FAT.messages; n += 1)
    await server.json('POST', `sessions/${fat}/messages`, { input, when: 'after' })
  for (let n = 0; n < dead; n += 1) deadReader(server, fat)
  const held = Array.from({ length: IDLE_TABS.streams }, () =>
    streamTab(server, { sessions: { [idle]: 0 }, deltas: true }),
  )
  const listTabs = Array.from({ length: lists }, () => streamTab(server, { cards: true }))
  const polls = Array.from({ length: IDLE_TABS.polling }, () => pollingTab(server, idle, IDLE_TABS.everyMs))
  return () => {
    for (const tab of [...held, ...listTabs]) tab.destroy()
    for (const poll of polls) clearInterval(poll)
  }
}

/** Or not, after a while: then what is missing is counted. */
async function eventually(isSo: () => boolean): Promise<void> {
  const until = performance.now() + SETTLE_MS
  while (performance.now() < until && !isSo()) await sleep(200)
}

async function missing(readers: readonly Reader[]): Promise<readonly string[]> {
  const wrong: string[] = []
  for (const { session, last } of readers) {
    const { head } = await server.json<{ readonly head: number }>('GET', `sessions/${session}`)
    if (head !== last) wrong.push(`${session}: ${last} of ${head} events came`)
  }
  return wrong
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms))
}
