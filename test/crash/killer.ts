// When to kill: a random moment, or a random moment near something the worker was seen doing. The killer only watches files
// the worker writes; the worker takes no part in it. Where a kill really fell is judged afterwards, in strike.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import { type MarkLine, type OracleLine, type Places, Tail } from './evidence.ts'
import type { Child } from './process.ts'
import type { Chance } from './random.ts'
import type { KillClass } from './strike.ts'

/** What the killer waits to see before it strikes. */
type Aim = 'opening' | 'any' | 'claim' | 'effect' | 'result' | 'commit'

export type Shot = {
  readonly aim: Aim
  readonly warmUpMs: number
  /** How long after what it waited for. */
  readonly delayMs: number
  /** The next worker runs already before the kill, so a live worker takes over the sessions of the killed one. */
  readonly overlap: boolean
}

const AIMED_AT: Readonly<Record<KillClass, Aim>> = {
  before: 'claim',
  between: 'effect',
  after: 'result',
  commit: 'commit',
}
const DELAY_MS: Readonly<Record<Aim, readonly [number, number]>> = {
  opening: [0, 40],
  any: [0, 150],
  claim: [0, 25],
  effect: [0, 40],
  result: [0, 15],
  commit: [0, 10],
}
/** Longer than it takes on a quiet machine: where others work too, a worker may wait for a core. */
const WATCH_MS = 3_000

/** Half of the shots are free; the rest goes where the fewest kills have fallen so far. */
export function takeAim(chance: Chance, hits: Readonly<Record<KillClass, number>>): Shot {
  const rarest = (Object.keys(AIMED_AT) as KillClass[]).reduce((a, b) => (hits[b] < hits[a] ? b : a))
  const free: Aim = chance.weighted([
    ['opening', 1],
    ['any', 6],
    ['claim', 1],
    ['effect', 2],
    ['result', 2],
    ['commit', 2],
  ])
  const aim = chance.happens(0.5) ? free : AIMED_AT[rarest]
  const [low, high] = DELAY_MS[aim]
  return { aim, warmUpMs: chance.between(0, 120), delayMs: chance.between(low, high), overlap: chance.happens(0.3) }
}

/** Starts the worker and kills it. Returns what was wrong with it before that, or null. */
export async function shoot(pair: { worker: Child; heir: Child }, places: Places, shot: Shot): Promise<string | null> {
  const { worker, heir } = pair
  worker.say('go')
  if (shot.overlap) heir.say('go')
  const trouble = await waitToKill(worker, places, shot)
  worker.kill()
  await worker.exited
  return trouble
}

async function waitToKill(worker: Child, places: Places, { aim, warmUpMs, delayMs }: Shot): Promise<string | null> {
  if (aim !== 'opening') {
    if (!(await worker.heard('ready', 20_000))) return `worker ${worker.pid} was not ready in time: ${worker.stderr}`
    if (aim !== 'any') {
      await sleep(warmUpMs)
      await waitFor(aim, worker, places)
    }
  }
  if (aim === 'commit') spin(delayMs)
  else await sleep(delayMs)
  return worker.alive ? null : `worker ${worker.pid} ended before it was killed: ${worker.stderr}`
}

/** Looks at what the worker writes until it does what is waited for; gives up after a while, and the shot is a free one. */
export async function waitFor(aim: Aim, worker: Child, places: Places): Promise<void> {
  const marks = new Tail<MarkLine>(places.marks(worker.serial))
  const oracle = new Tail<OracleLine>(places.oracle)
  const seen = sightOf(aim, worker.pid, marks, oracle)
  // What happened before is not what is waited for.
  oracle.read()
  seen()
  const until = performance.now() + WATCH_MS
  let found = false
  while (!found && performance.now() < until && worker.alive) {
    await sleep(1)
    found = seen()
    // A commit is over in a moment: it is watched without a pause, some milliseconds at a time.
    const pause = performance.now() + 5
    while (!found && aim === 'commit' && performance.now() < pause) found = seen()
  }
  marks.close()
  oracle.close()
}

function sightOf(aim: Aim, pid: number, marks: Tail<MarkLine>, oracle: Tail<OracleLine>): () => boolean {
  if (aim === 'effect' || aim === 'result') {
    const phase = aim === 'effect' ? 'start' : 'end'
    return () => oracle.read().some((line) => line.pid === pid && line.phase === phase)
  }
  if (aim === 'claim') return () => marks.read().some((line) => line.type === 'claim')
  let open = 0
  return () => {
    for (const { type } of marks.read()) open += type === 'begin' ? 1 : type === 'end' ? -1 : 0
    return open > 0
  }
}

function spin(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}
