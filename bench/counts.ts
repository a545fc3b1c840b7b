// `turn.functions`, `turn.calls`, `call.functions`, `call.calls`: what a turn asks of the interpreter, counted by V8 and not timed, so that
// it is the same on a busy machine. Every further function that runs once in a turn is compiled for little: a cold turn costs what these say.
// Functions of the bench itself do not count.
import { Session } from 'node:inspector'
import { Harness, scripted, type Step } from '../src/index.ts'
import { CALLS } from './fanout.ts'
import type { Case, Family, Sample } from './family.ts'
import { argsOf, ask, LIMITS, lookup } from './turn.ts'

/** A turn in the middle of a run: what is only done once is done, and nothing is far away. */
const TURN = 20

type Coverage = {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly { readonly ranges: readonly { readonly count: number }[] }[]
  }[]
}

class Counter {
  readonly #session = new Session()

  constructor() {
    this.#session.connect()
    this.#session.post('Profiler.enable')
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  }

  /** How many functions were called since it was last asked, at least so many times each, and how often in all. */
  take(leastCalls: number): Sample {
    let found: Coverage = { result: [] }
    this.#session.post('Profiler.takePreciseCoverage', (_error, coverage) => {
      found = coverage
    })
    const own = found.result.filter(({ url }) => url !== '' && !url.startsWith('node:') && !url.includes('/bench/'))
    const counts = own.flatMap(({ functions }) => functions.map(({ ranges }) => ranges[0]?.count ?? 0))
    const called = counts.filter((count) => count >= leastCalls)
    return { functions: called.length, calls: called.reduce((sum, count) => sum + count, 0) }
  }
}

/** Counts from model call `from` to the next one. */
async function count(from: number, leastCalls: number, say: (n: number) => Step): Promise<Sample> {
  const counter = new Counter()
  let counted: Sample = {}
  const model = scripted((_request, n) => {
    if (n === from || n === from + 1) counted = counter.take(leastCalls)
    return n <= from ? say(n) : 'done'
  })
  const harness = new Harness({ model, tools: [lookup], limits: { ...LIMITS, parallel: CALLS }, secrets: {} })
  const { status } = await harness.run('go')
  await harness.close()
  if (status !== 'completed') throw new Error(`the run ${status}`)
  return counted
}

const turn: Case = () => count(TURN, 1, ask)

/** One turn of many calls: what is called at least half as often is called for each of them. */
const call: Case = async () => {
  const calls = Array.from({ length: CALLS }, (_, n) => ({ tool: 'lookup', args: argsOf(n) }))
  const { functions = Number.NaN, calls: all = Number.NaN } = await count(0, CALLS / 2, () => ({ calls }))
  return { functions, calls: all / CALLS }
}

export const counts: Family = {
  repetitions: 1,
  cases: { turn, call },
  figures: [...figures('turn', { functions: 130, calls: 260 }), ...figures('call', { functions: 78, calls: 120 })],
}

/** The floor is nothing: a loop written by hand is a handful of functions. */
function figures(of: 'turn' | 'call', targets: { readonly functions: number; readonly calls: number }) {
  return (['functions', 'calls'] as const).map((what) => ({
    name: `${of}.${what}`,
    unit: what,
    target: targets[what],
    value: (median: (key: string) => number) => median(`${of}.${what}`),
    floor: () => 0,
  }))
}
