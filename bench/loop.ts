// `loop`: what the harness itself costs a turn. Scripted model, memory store, one session of 6,000 turns in one process: its first
// 200 turns and all 6,000 as a process meets them, with what V8 compiles meanwhile, and the last 1,000, when it has compiled.
// Nothing here touches a disk: durable.ts does.
import { Harness, scripted } from '../src/index.ts'
import { bareRun } from './bare-run.ts'
import { type Case, cpuMs, type Family, medianOf, type Sample } from './family.ts'
import { ask, LIMITS, lookup } from './turn.ts'

export const TURNS = 6_000
const STEADY = 5_000

/** Model calls at which the CPU clock is read. Call n opens turn n + 1. */
const isMark = (n: number): boolean =>
  n === 200 || n === 1_000 || n === TURNS || (n >= STEADY && n <= STEADY + 50) || n >= TURNS - 50

/** Reads the clock at each call of the model that matters, from the first turn of a process on. */
export class Marks {
  readonly #begun = cpuMs()
  readonly #at = new Map<number, number>()

  take(n: number): void {
    if (isMark(n)) this.#at.set(n, cpuMs())
  }

  sample(): Sample {
    const at = (n: number): number => this.#at.get(n) ?? Number.NaN
    // The median of fifty turns: one garbage collection among them would dominate a mean.
    const typical = (from: number): number =>
      medianOf(Array.from({ length: 50 }, (_, i) => at(from + i + 1) - at(from + i)))
    return {
      first200: (at(200) - this.#begun) / 200,
      first1000: (at(1_000) - this.#begun) / 1_000,
      all: at(TURNS) - this.#begun,
      steady: (at(TURNS) - at(STEADY)) / (TURNS - STEADY),
      growth: typical(TURNS - 50) / typical(STEADY),
    }
  }
}

export const harness: Case = async () => {
  const marks = new Marks()
  const model = scripted((_request, n) => {
    marks.take(n)
    return n < TURNS ? ask(n) : 'done'
  })
  const subject = new Harness({ model, tools: [lookup], limits: LIMITS })
  const result = await subject.run('go')
  await subject.close()
  if (result.status !== 'completed' || result.usage.toolCalls !== TURNS) throw new Error(`the run ${result.status}`)
  return marks.sample()
}

const floor: Case = async () => {
  const marks = new Marks()
  await bareRun(TURNS, (n) => marks.take(n))
  return marks.sample()
}

export const loop: Family = {
  repetitions: 7,
  cases: { harness, floor },
  figures: [
    {
      name: 'loop',
      unit: 'CPU ms a turn',
      target: 0.045,
      value: (median) => median('harness.steady'),
      floor: (median) => median('floor.steady'),
    },
    {
      name: 'loop.cold',
      unit: 'CPU ms a turn',
      target: 0.2,
      value: (median) => median('harness.first200'),
      floor: (median) => median('floor.first200'),
      note: (median) => `${median('harness.first1000').toFixed(3)} over the first 1,000`,
    },
    {
      name: 'loop.all',
      unit: 'CPU ms',
      target: 700,
      value: (median) => median('harness.all'),
      floor: (median) => median('floor.all'),
    },
    {
      name: 'loop.growth',
      unit: 'ratio',
      target: 1.3,
      value: (median) => median('harness.growth'),
      floor: (median) => median('floor.growth'),
    },
  ],
}
