// The process that is killed: one worker on a real SQLite file, driving whatever is due. It is started ahead of time and
// waits for "go", so that a round does not pay for the start of a process. It never kills itself and knows of no kill. Told to
// "hold" at a commit, it stands still there as a whole, so that a kill falls right before or right after that commit.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Event } from '../../src/kernel/event.ts'
import { Bug, Fault } from '../../src/kernel/failure.ts'
import type { Store, Write } from '../../src/ports/store.ts'
import { systemRandom } from '../../src/engine/platform.ts'
import { Worker } from '../../src/engine/worker.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { Appender, digestOf, type ErrorLine, type MarkLine, placesIn, type Written } from './evidence.ts'
import { agentOf } from './workload.ts'
import { DEEP, servicesOf } from './stage.ts'

const [folder = '', leaseMs = '250'] = process.argv.slice(2)
const places = placesIn(folder)
const errors = new Appender<ErrorLine>(places.errors)
const agent = agentOf(new Appender(places.oracle), places.oracle)
const store = marked(sqlite(places.database), new Appender(places.marks(process.pid)))
const worker = new Worker(servicesOf(store, agent), {
  id: `worker-${process.pid}-${systemRandom.id()}`,
  leaseMs: Number(leaseMs),
  // The kills come from outside, not from a session: no session may be left alone for them.
  attemptsMax: Number.MAX_SAFE_INTEGER,
  onError: report,
})

let held: { readonly when: string; readonly what: string; left: number } | null = null
const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  if (line === 'go') go().catch((error: unknown) => report('', error))
  else if (line.startsWith('hold ')) hold(line)
  else if (line === 'stop') stop().catch((error: unknown) => report('', error))
})
// The parent process is gone, so it cannot stop this one any more.
lines.on('close', () => process.exit(2))

async function go(): Promise<void> {
  await store.nextDue()
  worker.start()
  process.stdout.write('ready\n')
}

async function stop(): Promise<void> {
  await worker.close()
  await store.close()
  process.exit(0)
}

function report(session: string, error: unknown): void {
  const kind = error instanceof Bug ? 'Bug' : error instanceof Fault ? 'Fault' : 'Error'
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  errors.add({ kind, code: error instanceof Fault ? error.code : '', session, text })
}

/** The same store, with a mark before each commit and one after it returned: a kill between the two has hit a commit. */
function marked(inner: Store, marks: Appender<MarkLine>): Store {
  let commits = 0
  return {
    reach: inner.reach,
    open: () => inner.open(),
    now: () => inner.now(),
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
      if (claim) marks.add({ type: 'claim', session, epoch: claim.epoch })
      return claim
    },
    read: (session, after, limit, bytesMax) => inner.read(session, after, limit, bytesMax),
    sent: (session, id) => inner.sent(session, id),
    snapshot: (session, upTo) => inner.snapshot(session, upTo),
    keep: (session, snapshots) => inner.keep(session, snapshots),
    page: (query) => inner.page(query),
    watch: (session, listener) => inner.watch(session, listener),
    watchCards: (listener) => inner.watchCards(listener),
    watchDue: (listener) => inner.watchDue(listener),
    extend: (id, ttlMs) => inner.extend(id, ttlMs),
    holders: (host) => inner.holders(host),
    expire: (id, gone) => inner.expire(id, gone),
    release: (session, epoch, trouble) => inner.release(session, epoch, trouble),
    card: (session) => inner.card(session),
    due: (limit) => inner.due(limit),
    nextDue: () => inner.nextDue(),
    list: (filter) => inner.list(filter),
    blob: (hash, of) => inner.blob(hash, of),
    account: (id) => inner.account(id),
    announce: (id, address, ttlMs) => inner.announce(id, address, ttlMs),
    address: (session) => inner.address(session),
    remove: (session, by) => inner.remove(session, by),
    removals: (limit) => inner.removals(limit),
    health: () => inner.health(),
    close: () => inner.close(),
  }
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
  return { session: write.session, seq: events[0]?.seq ?? 0, digests: events.map(digestOf) }
}
