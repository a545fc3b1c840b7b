// The process that is killed: one worker on a real SQLite file or Postgres server, driving whatever is due. It is started ahead of time and
// waits for "go", so that a round does not pay for the start of a process. It never kills itself and knows of no kill. Told to
// "hold" at a commit, it stands still there as a whole, so that a kill falls right before or right after that commit.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Event } from '../../src/kernel/event.ts'
import { Bug, Fault } from '../../src/kernel/failure.ts'
import type { Claim, CompleteStore, Write } from '../../src/ports/store.ts'
import { runtimeClock, systemRandom } from '../../src/runtime/state/machine.ts'
import { Worker } from '../../src/runtime/loop/worker.ts'
import { storeWith } from '../../sim/store-with.ts'
import { Appender, digestOf, type ErrorLine, type MarkLine, placesIn, type Written } from './evidence.ts'
import { openStore } from './open.ts'
import { agentOf } from './workload.ts'
import { DEEP, servicesOf } from './stage.ts'

const [folder = '', database = '', leaseMs = '250', aheadMs = '0'] = process.argv.slice(2)
const serial = process.env['TERRET_CRASH_WORKER'] ?? '0'
const places = placesIn(folder)
const errors = new Appender<ErrorLine>(places.errors)
const agent = agentOf(new Appender(places.oracle), places.oracle)
const store = marked(openStore(database), new Appender(places.marks(Number(serial))))
// A process whose machine has another time: what it measures by is off from its beginning on.
const clock = { ...runtimeClock, now: () => runtimeClock.now() + Number(aheadMs) }
const worker = new Worker(
  { ...servicesOf(store, agent), clock },
  {
    id: `worker-${process.pid}-${systemRandom.id()}`,
    leaseMs: Number(leaseMs),
    // The kills come from outside, not from a session: no session may be left alone for them.
    attemptsMax: Number.MAX_SAFE_INTEGER,
    onError: report,
  },
)

let held: { readonly when: string; readonly what: string; left: number } | null = null
const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  if (line === 'go') go().catch((error: unknown) => report('', error))
  else if (line.startsWith('hold ')) hold(line)
  else if (line === 'stop') stop().catch((error: unknown) => report('', error))
})
// The parent process is gone, so it cannot stop this one any more.
lines.on('close', () => process.exit(2))

/** May be told again. */
async function go(): Promise<void> {
  await store.open()
  await store.due(0)
  worker.start()
  process.stdout.write('ready\n')
}

async function stop(): Promise<void> {
  await worker.close()
  const { asked, vain } = worker.claims
  process.stdout.write(`claims ${asked} ${vain}\n`)
  await store.close()
  process.exit(0)
}

function report(session: string, error: unknown): void {
  const kind = error instanceof Bug ? 'Bug' : error instanceof Fault ? 'Fault' : 'Error'
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  errors.add({ kind, code: error instanceof Fault ? error.code : '', session, text })
}

/** The same store, with a mark before each commit and one after it returned: a kill between the two has hit a commit. */
function marked(inner: CompleteStore, marks: Appender<MarkLine>): CompleteStore {
  let commits = 0
  const claimed = (session: string, { epoch }: Claim): void =>
    marks.add({ type: 'claim', session, epoch, at: Date.now() })
  const own: Partial<CompleteStore> = {
    async commit(writes) {
      commits += 1
      const n = commits
      holdAt('before', writes)
      marks.add({ type: 'begin', n, writes: writes.map(writtenBy) })
      const receipts = await inner.commit(writes).catch((error: unknown) => {
        marks.add({ type: 'end', n, ok: false })
        throw error
      })
      marks.add({ type: 'end', n, ok: true })
      holdAt('after', writes)
      return receipts
    },
    async claim(session, id, ttlMs, self) {
      const claim = await inner.claim(session, id, ttlMs, self)
      if (claim) claimed(session, claim)
      return claim
    },
    release(session, ...rest) {
      marks.add({ type: 'release', session })
      return inner.release(session, ...rest)
    },
  }
  if (!inner.take) return storeWith(inner, own)
  return storeWith(inner, {
    ...own,
    async take(id, ttlMs, wanted) {
      const taken = (await inner.take?.(id, ttlMs, wanted)) ?? new Map<string, Claim>()
      for (const [session, claim] of taken) claimed(session, claim)
      return taken
    },
  })
}

/** Such as "hold after end 7": right after the seventh commit in which a child ends. */
function hold(line: string): void {
  const [, when = '', what = '', nth = ''] = line.split(' ')
  held = { when, what, left: Number(nth) }
}

function holdAt(when: 'before' | 'after', writes: readonly Write[]): void {
  if (held?.when !== when || !writes.some((write) => isOf(held?.what ?? '', write))) return
  held.left -= 1
  if (held.left > 0) return
  writeSync(1, 'held\n')
  // The whole process stands still: nothing else gets to the disk before the kill.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

const HELD_AT: Readonly<Record<string, Event['type']>> = {
  birth: 'session.created',
  start: 'run.started',
  end: 'run.settled',
  ask: 'model.started',
}

/** `stop` is the end of any run that was stopped in a deep tree. `ask` is a request of a parent of twenty, all others are of its children. */
function isOf(what: string, { session, ...write }: Write): boolean {
  if (write.lane !== 'owner' || session.startsWith(DEEP) !== (what === 'stop')) return false
  if (what === 'stop')
    return write.events.some((event) => event.type === 'run.settled' && event.outcome.type === 'interrupted')
  if (session.includes('~') === (what === 'ask')) return false
  return write.events.some(({ type }) => type === HELD_AT[what])
}

/** Enough to find out after a kill whether the commit is on disk. */
function writtenBy(write: Write): Written {
  const events = write.lane === 'owner' ? write.events : []
  const release = write.lane === 'owner' && write.release ? { release: true as const } : {}
  return { session: write.session, seq: events[0]?.seq ?? 0, digests: events.map(digestOf), ...release }
}
