// `loop`, `loop.cold`, `loop.growth`: what the harness itself costs a turn. Scripted model, memory store, one session
// of 3,000 turns in one process. Nothing here touches a disk: durable.ts does.
import { Harness, scripted } from '../src/index.ts'
import { type Case, cpuMs, type Family, medianOf, type Sample } from './family.ts'
import { bareRun } from './bare-run.ts'
import { ask, LIMITS, lookup } from './turn.ts'

const TURNS = 3_000
/** Model calls at which the CPU clock is read. Call n opens turn n + 1. */
const isMark = (n: number): boolean => n === 1_000 || (n >= 2_000 && n <= 2_050) || (n >= 2_950 && n <= 3_000)

const harness: Case = async () => {
  const marks = new Map<number, number>()
  const model = scripted((_request, n) => {
    if (isMark(n)) marks.set(n, cpuMs())
    return n < TURNS ? ask(n) : 'done'
  })
  const begun = cpuMs()
  const subject = new Harness({ model, tools: [lookup], limits: LIMITS })
  const result = await subject.run('go')
  await subject.close()
  if (result.status !== 'completed' || result.usage.toolCalls !== TURNS) throw new Error(`the run ${result.status}`)
  return sampleOf(begun, marks)
}

const floor: Case = async () => {
  const marks = new Map<number, number>()
  const begun = cpuMs()
  await bareRun(TURNS, (n) => {
    if (isMark(n)) marks.set(n, cpuMs())
  })
  return sampleOf(begun, marks)
}

function sampleOf(begun: number, marks: ReadonlyMap<number, number>): Sample {
  const at = (n: number): number => marks.get(n) ?? Number.NaN
  // The median turn of the fifty: a collection of garbage that falls among them would say more than all of them.
  const typical = (from: number): number => {
    return medianOf(Array.from({ length: 50 }, (_, i) => at(from + i + 1) - at(from + i)))
  }
  return {
    cold: (at(1_000) - begun) / 1_000,
    warm: (at(3_000) - at(2_000)) / 1_000,
    first: typical(2_000),
    last: typical(2_950),
  }
}

export const loop: Family = {
  repetitions: 11,
  cases: { harness, floor },
  figures: [
    {
      name: 'loop',
      unit: 'CPU ms a turn',
      target: 0.06,
      value: (median) => median('harness.warm'),
      floor: (median) => median('floor.warm'),
    },
    {
      name: 'loop.cold',
      unit: 'CPU ms a turn',
      target: 0.2,
      value: (median) => median('harness.cold'),
      floor: (median) => median('floor.cold'),
    },
    {
      name: 'loop.growth',
      unit: 'ratio',
      target: 1.3,
      value: (median) => median('harness.last') / median('harness.first'),
      floor: (median) => median('floor.last') / median('floor.first'),
    },
  ],
}
