// The replay check's command line: `npm run replay -- --sessions 1000 | --seed N`. The simulator writes the sessions of each
// seed; then every log is folded anew and decided anew. A difference prints the one command that shows it again.
import { parseArgs } from 'node:util'
import type { Event } from '../src/kernel/event.ts'
import { fold } from '../src/kernel/fold.ts'
import type { Store } from '../src/ports/store.ts'
import { EMPTY, FOLD_VERSION } from '../src/kernel/session.ts'
import { canonicalJson } from '../src/tools/core/canonical.ts'
import { type Log, readLog, refold } from '../src/archive/replay.ts'
import { redecide, unwritten } from '../src/archive/replay-decide.ts'
import { simulate } from './simulate.ts'

const { values } = parseArgs({
  options: {
    /** How many seeds: each writes some sessions. */
    sessions: { type: 'string', default: '1000' },
    first: { type: 'string', default: '1' },
    seed: { type: 'string' },
  },
})

const SESSIONS_MAX = 1_000
const SHOWN_MAX = 3

const tally = { sessions: 0, events: 0, owner: 0, snapshots: 0, bytes: 0, cutShort: 0, bad: 0 }
const begun = performance.now()
const first = Number(values.seed ?? values.first)
const seeds = values.seed === undefined ? Number(values.sessions) : 1
for (let seed = first; seed < first + seeds; seed++) {
  const found: string[] = []
  const { violations } = await simulate(seed, async (store) => void found.push(...(await check(store))))
  if (violations.length > 0) found.push(`the simulator itself: ${violations[0]}`)
  if (found.length === 0) continue
  tally.bad += 1
  const shown = seeds === 1 ? found : found.slice(0, SHOWN_MAX)
  console.log(`seed ${seed}: ${shown.join('\n  ')}\n  replay: npm run replay -- --seed ${seed}`)
}
const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
console.log(`${seeds} seeds, ${tally.sessions} sessions, ${tally.bad} seeds with a difference, ${seconds} s`)
console.log(`  refolded ${tally.events} events to ${tally.bytes} bytes of state, ${tally.snapshots} snapshots compared`)
// A worker that was stopped or frozen writes finished results and nothing more: the log cannot tell that from other rules.
console.log(
  `  redecided ${tally.owner} events of owners; ${tally.cutShort} attempts ended with something left to write`,
)
// Simulated processes are left where they stood.
process.exit(tally.bad === 0 && tally.sessions > 0 ? 0 : 1)

async function check(store: Store): Promise<readonly string[]> {
  const found: string[] = []
  for (const { session } of await store.list({ limit: SESSIONS_MAX })) {
    const events = await readLog(store, session)
    const logs = [store, halfway(store, events)]
    const folds = await Promise.all(logs.map((log) => refold(log, session)))
    tally.sessions += 1
    tally.bytes += Buffer.byteLength(folds[0]?.state ?? '')
    tally.snapshots += folds.filter(({ snapshot }) => snapshot === 'compared').length
    const misfold = folds.find(({ difference }) => difference !== null)?.difference
    if (misfold) {
      found.push(`${session}@${misfold.seq} refold: ${canonicalJson(misfold)}`)
      continue
    }
    tally.events += events.length
    tally.cutShort += unwritten(events).length
    tally.owner += events.filter((event) => event.epoch > 0).length
    for (const { seq, ...difference } of redecide(events))
      found.push(`${session}@${seq} redecide: ${canonicalJson(difference)}`)
  }
  return found
}

/** The same log with a snapshot of its first half: few simulated sessions are long enough to have one of their own. */
function halfway(store: Store, events: readonly Event[]): Log {
  const half = events.slice(0, Math.ceil(events.length / 2))
  const snapshot = { seq: half.length, version: FOLD_VERSION, body: JSON.stringify(half.reduce(fold, EMPTY)) }
  return { read: (session, after, limit) => store.read(session, after, limit), snapshot: async () => snapshot }
}
