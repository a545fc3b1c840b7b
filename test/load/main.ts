// Many sessions at once through the real server, each with its own reader and some followers: `npm run load`. A provider, `terret serve` and this process, which reads every stream, are
// three processes on one machine. How late an event is: from the time it was stamped, before its commit, to its arrival here, on one clock.
// Exit 1 if an event is missing or doubled, or a bound is missed; `--unbounded` only checks the events.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { argumentsOf, wholeNumber } from '../../sim/arguments.ts'
import { deadReader, pollingTab, Reader, type Seen, streamTab } from './reader.ts'
import { cpuMsOf, memoryOf, prepareFolder, ServerProcess, startProvider } from './server.ts'

const BOUNDS = { p99Ms: 100, rssMb: 1_024 }
const IDLE_TABS = { streams: 40, polling: 160, everyMs: 20_000 }
/** More than the sockets of a dead reader take. */
const FAT = { messages: 60, chars: 200_000 }
const SETTLE_MS = 180_000
const OPENERS = 20
const CONNECTERS = 200
/** Readers of each session beside its own. */
const FOLLOWERS_EACH = 5
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
    followers: { type: 'string' },
  },
})
const sessions = wholeNumber(values.sessions ?? '1000', 'sessions', 1)
const seconds = wholeNumber(values.seconds ?? '30', 'seconds', 1)
const pieces = values.pieces ?? '40'
const everyMs = values.every ?? '400'
const lists = wholeNumber(values.lists ?? '2', 'lists')
const dead = wholeNumber(values.dead ?? '50', 'dead')
const followers = wholeNumber(values.followers ?? String(FOLLOWERS_EACH * sessions), 'followers')

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

/** How late events came to some readers, in order. */
type Late = { readonly name: string; readonly all: number[] }

function atShare({ all }: Late, share: number): number {
  return all[Math.min(all.length - 1, Math.floor(all.length * share))] ?? 0
}

async function load(): Promise<boolean> {
  let [isMeasured, isOver] = [false, false]
  const [owners, others]: readonly [Late, Late] = [
    { name: "to the session's reader", all: [] },
    { name: 'to its followers', all: [] },
  ]
  const settled = new Map<string, number>()
  const failed: string[] = []
  const onEvent = ({ seq, lateMs, type }: Seen, { session }: Reader): void => {
    if (isMeasured) owners.all.push(lateMs)
    if (type !== 'run.settled') return
    settled.set(session, seq)
    if (!isOver)
      server.json('POST', `sessions/${session}/messages`, { input: 'Go on.' }).catch((e) => failed.push(String(e)))
  }
  const idle = await opened({})
  const begun = performance.now()
  const readers = await atOnce(
    sessions,
    OPENERS,
    async () => new Reader(server, await opened({ input: 'Go.' }), onEvent),
  )
  const openS = (performance.now() - begun) / 1_000
  // Node takes one new connection in each turn of its loop: a busy server is long at it.
  await eventually(() => readers.every(({ last }) => last > 0))
  const onFollowed = ({ lateMs }: Seen): void => void (isMeasured && others.all.push(lateMs))
  const following = await atOnce(followers, CONNECTERS, async (n) => {
    const follower = new Reader(server, readers[n % readers.length]?.session ?? '', onFollowed)
    await eventually(() => follower.last > 0)
    return follower
  })
  const all = [...readers, ...following]
  const connectedS = (performance.now() - begun) / 1_000
  const stopTabs = await openTabs(idle)
  await sleep(WARM_MS)
  const [cpuMs, ownCpu] = [cpuMsOf(server.pid), process.cpuUsage()]
  isMeasured = true
  await sleep(seconds * 1_000)
  // On a machine that is busy with other work there may be none yet.
  await eventually(() => owners.all.length > 0)
  isMeasured = false
  const cpu = { server: cpuMsOf(server.pid) - cpuMs, own: process.cpuUsage(ownCpu) }
  const memory = memoryOf(server.pid)
  const streams = (await server.json<{ readonly streams: number }>('GET', 'health')).streams
  isOver = true
  await eventually(() => all.every(({ session, last }) => settled.get(session) === last))
  const wrong = [...failed, ...all.flatMap((reader) => reader.wrong), ...(await missing(all))]
  for (const reader of all) reader.close()
  stopTabs()
  for (const late of [owners, others]) late.all.sort((a, b) => a - b)
  return report({ late: [owners, others], openS, connectedS, streams, cpu, memory, wrong })
}

/** So many of them, some at a time. */
async function atOnce<T>(count: number, width: number, make: (n: number) => Promise<T>): Promise<readonly T[]> {
  const made: T[] = []
  let next = 0
  const some = async (): Promise<void> => {
    while (next < count) {
      next += 1
      made.push(await make(next - 1))
    }
  }
  await Promise.all(Array.from({ length: width }, some))
  return made
}

type Measured = {
  readonly late: readonly Late[]
  readonly openS: number
  readonly connectedS: number
  readonly streams: number
  readonly cpu: { readonly server: number; readonly own: NodeJS.CpuUsage }
  readonly memory: { readonly rss: number; readonly peak: number }
  readonly wrong: readonly string[]
}
type Row = readonly [name: string, text: string, ok: boolean | null]

function report({ late, openS, connectedS, streams, cpu, memory, wrong }: Measured): boolean {
  const share = (ms: number): string => `${((100 * ms) / (seconds * 1_000)).toFixed(0)} % of a core`
  const replyS = (Number(pieces) * Number(everyMs)) / 1_000
  const opening = `opened in ${openS.toFixed(1)} s, read by all after ${connectedS.toFixed(1)} s; ${streams} streams`
  const rows: readonly Row[] = [
    [
      'sessions',
      `${sessions} and ${followers} followers, ${opening}; each reply ${pieces} pieces in ${replyS} s`,
      null,
    ],
    ['missing or doubled', String(wrong.length), wrong.length === 0],
    ...late.filter(({ all }) => all.length > 0).flatMap(lateRows),
    ['CPU', `server ${share(cpu.server)}, readers ${share((cpu.own.user + cpu.own.system) / 1_000)}`, null],
    [
      'memory of the server',
      `${memory.rss} MB, at most ${memory.peak} MB (bound ${BOUNDS.rssMb})`,
      memory.peak < BOUNDS.rssMb,
    ],
  ]
  for (const [name, text, ok] of rows) console.log(`${ok === null ? ' ' : ok ? '✓' : '✗'} ${name.padEnd(24)} ${text}`)
  for (const line of wrong.slice(0, 10)) console.log(`  ${line}`)
  return values.unbounded ? wrong.length === 0 : rows.every(([, , ok]) => ok !== false)
}

/** From the time an event was stamped, before its commit, to its arrival. */
function lateRows(late: Late): readonly Row[] {
  const [p50, p99, last] = [atShare(late, 0.5), atShare(late, 0.99), late.all.at(-1) ?? 0]
  const events = `${late.all.length} events, ${Math.round(late.all.length / seconds)} a second`
  const text = `p50 ${p50} ms, p99 ${p99} ms (bound ${BOUNDS.p99Ms}), the latest ${last} ms; ${events}`
  return [[late.name, text, p99 < BOUNDS.p99Ms]]
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
  const heads = new Map<string, number>()
  for (const { session } of readers) {
    if (heads.has(session)) continue
    heads.set(session, (await server.json<{ readonly head: number }>('GET', `sessions/${session}`)).head)
  }
  const wrong: string[] = []
  for (const { session, last } of readers) {
    const head = heads.get(session)
    if (head !== last) wrong.push(`${session}: ${last} of ${head} events came`)
  }
  return wrong
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms))
}
