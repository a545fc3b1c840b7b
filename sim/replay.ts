// The replay check's command line: `npm run replay -- --sessions 1000 | --seed N`. The simulator writes the sessions of each
// seed; then every log is folded anew and decided anew. A difference prints the one command that shows it again.
import { fileURLToPath } from 'node:url'
import type { Event } from '../src/kernel/event.ts'
import { fold } from '../src/kernel/fold.ts'
import type { CompleteStore } from '../src/ports/store.ts'
import { EMPTY, FOLD_VERSION } from '../src/kernel/session.ts'
import { canonicalJson } from '../src/tools/core/canonical-json.ts'
import { type ReplayStore, refoldSession } from '../src/archive/replay-refold.ts'
import { readLog } from '../src/view/session-log.ts'
import { redecide, findUnwritten } from '../src/archive/replay-decide.ts'
import { argumentsOf, wholeNumber } from './arguments.ts'
import { playShare, shareSeeds } from './shares.ts'
import { simulate } from './simulate.ts'

const { values } = argumentsOf('replay', {
  options: {
    /** How many seeds: each writes some sessions. */
    sessions: { type: 'string', default: '1000' },
    first: { type: 'string', default: '1' },
    seed: { type: 'string' },
    /** It is one core's share, and is told its seeds. */
    lines: { type: 'boolean', default: false },
  },
})

const SESSIONS_MAX = 1_000
const SHOWN_MAX = 3

type Tally = {
  sessions: number
  events: number
  owner: number
  snapshots: number
  bytes: number
  cutShort: number
}
/** Of one seed. */
type Checked = { readonly seed: number; readonly found: readonly string[]; readonly tally: Tally }

const first = wholeNumber(values.first, 'first')
const count = wholeNumber(values.sessions, 'sessions', 1)

if (values.lines) await playShare(checked)
else await all()
// Simulated processes are left where they stood.
process.exit()

async function all(): Promise<void> {
  const begun = performance.now()
  const file = fileURLToPath(import.meta.url)
  const one = values.seed === undefined ? null : wholeNumber(values.seed, 'seed')
  const results: Checked[] = []
  if (one !== null) results.push(await checked(one))
  else {
    const seeds = Array.from({ length: count }, (_, i) => first + i)
    await shareSeeds<Checked>({ file, command: 'npm run replay', seeds, take: (line) => results.push(line) < 0 })
  }
  const bad = results.filter(({ found }) => found.length > 0).sort((a, b) => a.seed - b.seed)
  for (const { seed, found } of bad) {
    const shown = one === null ? found.slice(0, SHOWN_MAX) : found
    console.log(`seed ${seed}: ${shown.join('\n  ')}\n  replay: npm run replay -- --seed ${seed}`)
  }
  const sum = (of: keyof Tally): number => results.reduce((all, { tally }) => all + tally[of], 0)
  const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
  console.log(
    `${results.length} seeds, ${sum('sessions')} sessions, ${bad.length} seeds with a difference, ${seconds} s`,
  )
  console.log(
    `  refolded ${sum('events')} events to ${sum('bytes')} bytes of state, ${sum('snapshots')} snapshots compared`,
  )
  // A worker that was stopped or frozen writes finished results and nothing more: the log cannot tell that from other rules.
  console.log(
    `  redecided ${sum('owner')} events of owners; ${sum('cutShort')} attempts ended with something left to write`,
  )
  if (bad.length > 0 || sum('sessions') === 0 || results.length !== (one === null ? count : 1)) process.exitCode = 1
}

async function checked(seed: number): Promise<Checked> {
  const tally: Tally = { sessions: 0, events: 0, owner: 0, snapshots: 0, bytes: 0, cutShort: 0 }
  const found: string[] = []
  const { violations } = await simulate(seed, {
    look: async (store) => void found.push(...(await check(store, tally))),
  })
  if (violations.length > 0) found.push(`the simulator itself: ${violations[0]}`)
  return { seed, found, tally }
}

async function check(store: CompleteStore, tally: Tally): Promise<readonly string[]> {
  const found: string[] = []
  for (const { session } of await store.list({ limit: SESSIONS_MAX })) {
    const events = await readLog(store, session)
    const logs = [store, halfway(store, events)]
    const folds = await Promise.all(logs.map((log) => refoldSession(log, session)))
    tally.sessions += 1
    tally.bytes += Buffer.byteLength(folds[0]?.state ?? '')
    tally.snapshots += folds.filter(({ snapshot }) => snapshot === 'compared').length
    const misfold = folds.find(({ difference }) => difference !== null)?.difference
    if (misfold) {
      found.push(`${session}@${misfold.seq} refold: ${canonicalJson(misfold)}`)
      continue
    }
    tally.events += events.length
    tally.cutShort += findUnwritten(events).length
    tally.owner += events.filter((event) => event.epoch > 0).length
    for (const { seq, ...difference } of redecide(events))
      found.push(`${session}@${seq} redecide: ${canonicalJson(difference)}`)
  }
  return found
}

/** The same log with a snapshot of its first half: few simulated sessions are long enough to have one of their own. */
function halfway(store: CompleteStore, events: readonly Event[]): ReplayStore {
  const half = events.slice(0, Math.ceil(events.length / 2))
  const snapshot = { seq: half.length, version: FOLD_VERSION, body: JSON.stringify(half.reduce(fold, EMPTY)) }
  return { read: (session, after, limit) => store.read(session, after, limit), snapshot: async () => snapshot }
}
