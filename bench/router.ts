// `router`: what the content router makes of a fixed set of outputs, and what that costs. The texts are those of its tests.
import { compressContent } from '../src/index.ts'
import { CORPUS, logLines, type Sample as Text } from '../test/context/corpus.ts'
import { type Case, cpuMs, type Family, type Figure, medianOf, type Sample } from './family.ts'

/** As many as a long session has, so that V8 has compiled what it will. */
const WARM = 30
const ROUNDS = 15
const keep = (): string => '0'.repeat(32)

const corpus: Case = async () => {
  const sample: Record<string, number> = {}
  for (const { id, text, hint } of CORPUS) {
    for (let i = 0; i < WARM; i++) await compressContent(text, hint, { keep })
    const rounds: number[] = []
    for (let i = 0; i < ROUNDS; i++) {
      const before = cpuMs()
      await compressContent(text, hint, { keep })
      rounds.push(cpuMs() - before)
    }
    const full = await compressContent(text, hint, { keep })
    const light = await compressContent(text, hint, { keep, profile: 'light' })
    sample[`${id}_before`] = full.bytesBefore
    sample[`${id}_full`] = full.bytesAfter
    sample[`${id}_light`] = light.bytesAfter
    sample[`${id}_ms`] = medianOf(rounds)
  }
  return sample
}

/** A log of 100,000 lines. */
const lines: Case = async (): Promise<Sample> => {
  const text = logLines(100_000)
  for (let i = 0; i < 5; i++) await compressContent(text, {}, { keep })
  const rounds: number[] = []
  for (let i = 0; i < ROUNDS; i++) {
    const before = cpuMs()
    await compressContent(text, {}, { keep })
    rounds.push(cpuMs() - before)
  }
  return { ms: medianOf(rounds) }
}

const splitLines: Case = async (): Promise<Sample> => {
  const text = logLines(100_000)
  const before = cpuMs()
  for (let i = 0; i < ROUNDS; i++) text.split('\n')
  return { ms: (cpuMs() - before) / ROUNDS }
}

/** The least that reads a text: its lines. */
const floor: Case = async (): Promise<Sample> => {
  const split = (): number => CORPUS.reduce((sum, { text }) => sum + text.split('\n').length, 0)
  for (let i = 0; i < WARM; i++) split()
  const before = cpuMs()
  for (let i = 0; i < ROUNDS; i++) split()
  return { ms: (cpuMs() - before) / ROUNDS }
}

type Read = (key: string) => number

function sum(median: Read, of: string): number {
  return CORPUS.reduce((all, { id }) => all + median(`corpus.${id}_${of}`), 0)
}

function of({ id, name }: Text): Figure {
  return {
    name: `router.${id}`,
    unit: '% of the bytes',
    target: 50,
    value: (median) => (100 * median(`corpus.${id}_full`)) / median(`corpus.${id}_before`),
    floor: () => 100,
    note: (median) => {
      const [before, full, light] = ['before', 'full', 'light'].map((key) => median(`corpus.${id}_${key}`))
      return `${name}: ${before} bytes, full ${full}, light ${light}, ${median(`corpus.${id}_ms`).toFixed(2)} ms`
    },
  }
}

export const router: Family = {
  repetitions: 5,
  cases: { corpus, floor, lines, splitLines },
  figures: [
    {
      name: 'router',
      unit: 'CPU ms for 100 KB',
      target: 1,
      value: (median) => (sum(median, 'ms') * 100 * 1_024) / sum(median, 'before'),
      floor: (median) => (median('floor.ms') * 100 * 1_024) / sum(median, 'before'),
    },
    {
      name: 'router.lines',
      unit: 'CPU ms',
      target: 50,
      value: (median) => median('lines.ms'),
      floor: (median) => median('splitLines.ms'),
      note: () => 'a log of 100,000 lines',
    },
    ...CORPUS.map(of),
  ],
}
