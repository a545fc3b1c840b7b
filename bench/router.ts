// `router`: what the content router makes of a fixed set of outputs, and what that costs. The texts are those of its tests: what real
// programs printed, and generated ones that are larger and more regular.
import { compressContent, type ContentKind } from '../src/index.ts'
import { CORPUS, logLines, type Sample as Text } from '../test/context/corpus.ts'
import { OUTPUTS } from '../test/context/outputs.ts'
import { ALL, isTuned, missingIn } from '../test/context/machine-outputs.ts'
import { type Case, cpuMs, type Family, type Figure, medianOf, type Sample } from './family.ts'

/** As many as a long session has, so that V8 has compiled what it will. */
const WARM = 30
const ROUNDS = 15
const BYTES = 100 * 1_024
const TEXTS: readonly Text[] = [...OUTPUTS, ...CORPUS]
const KINDS: readonly ContentKind[] = ['json', 'code', 'log', 'search', 'diff', 'html']
const keep = (): string => '0'.repeat(32)

/** CPU ms of one round, when it is warm. */
async function typical(round: () => Promise<unknown>, warm = WARM): Promise<number> {
  for (let i = 0; i < warm; i++) await round()
  const rounds: number[] = []
  for (let i = 0; i < ROUNDS; i++) {
    const before = cpuMs()
    await round()
    rounds.push(cpuMs() - before)
  }
  return medianOf(rounds)
}

const corpus: Case = async () => {
  const sample: Record<string, number> = {}
  for (const { id, text, hint } of TEXTS) {
    sample[`${id}_ms`] = await typical(() => compressContent(text, hint, { keep }))
    const full = await compressContent(text, hint, { keep })
    const light = await compressContent(text, hint, { keep, profile: 'light' })
    sample[`${id}_before`] = full.bytesBefore
    sample[`${id}_full`] = full.bytesAfter
    sample[`${id}_light`] = light.bytesAfter
  }
  return sample
}

/** The lines that must stay, and the bytes, in the half of the outputs that rules were tuned on and in the other one. */
const kept: Case = async (): Promise<Sample> => {
  const sample: Record<string, number> = {}
  const add = (key: string, count: number): void => void (sample[key] = (sample[key] ?? 0) + count)
  for (const output of ALL) {
    const half = isTuned(output) ? 'tuned' : 'other'
    const { content, bytesBefore, bytesAfter } = await compressContent(output.text, output.hint, { keep })
    add(`${half}_parts`, output.stays.length)
    add(`${half}_lost`, missingIn(output, content).length)
    add(`${half}_before`, bytesBefore)
    add(`${half}_after`, bytesAfter)
    add(`${half}_outputs`, 1)
  }
  return sample
}

/** A log of 100,000 lines. */
const lines: Case = async (): Promise<Sample> => {
  const text = logLines(100_000)
  return { ms: await typical(() => compressContent(text, {}, { keep }), 5) }
}

const splitLines: Case = async (): Promise<Sample> => {
  const text = logLines(100_000)
  return { ms: await typical(async () => text.split('\n'), 5) }
}

/** The least that reads a text: its lines. */
const floor: Case = async (): Promise<Sample> => {
  const sample: Record<string, number> = {}
  for (const { id, text } of TEXTS) sample[`${id}_ms`] = await typical(async () => text.split('\n'))
  return sample
}

type Read = (key: string) => number

function costOf(texts: readonly Text[], name: 'corpus' | 'floor'): (median: Read) => number {
  return (median) => {
    const sum = (key: (id: string) => string): number => texts.reduce((all, { id }) => all + median(key(id)), 0)
    return (sum((id) => `${name}.${id}_ms`) * BYTES) / sum((id) => `corpus.${id}_before`)
  }
}

function costFigure(name: string, texts: readonly Text[]): Figure {
  const [value, least] = [costOf(texts, 'corpus'), costOf(texts, 'floor')]
  const bytes = texts.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
  const note = (): string => `${texts.length} texts, ${bytes} bytes`
  return { name, unit: 'CPU ms for 100 KB', target: 1, value, floor: least, note }
}

function sizeFigure({ id, name }: Text): Figure {
  return {
    name: `router.${id}`,
    unit: '% of the bytes',
    target: OUTPUTS.some((output) => output.id === id) ? 100 : 50,
    value: (median) => (100 * median(`corpus.${id}_full`)) / median(`corpus.${id}_before`),
    floor: () => 100,
    note: (median) => {
      const [before, full, light] = ['before', 'full', 'light'].map((key) => median(`corpus.${id}_${key}`))
      return `${name}: ${before} bytes, full ${full}, light ${light}, ${median(`corpus.${id}_ms`).toFixed(2)} ms`
    },
  }
}

function keptFigure(half: 'tuned' | 'other'): Figure {
  return {
    name: `router.lost.${half}`,
    unit: '% of the lines that must stay',
    target: 5,
    value: (median) => (100 * median(`kept.${half}_lost`)) / median(`kept.${half}_parts`),
    floor: () => 0,
    note: (median) => {
      const [parts, lost, before, after] = ['parts', 'lost', 'before', 'after'].map((key) =>
        median(`kept.${half}_${key}`),
      )
      const size = ((100 * (after ?? 0)) / (before ?? 1)).toFixed(1)
      return `${median(`kept.${half}_outputs`)} outputs, ${lost} of ${parts} lines lost, ${size} % of the bytes`
    },
  }
}

export const router: Family = {
  repetitions: 5,
  cases: { corpus, floor, kept, lines, splitLines },
  figures: [
    costFigure('router', TEXTS),
    ...KINDS.map((kind) =>
      costFigure(
        `router.kind.${kind}`,
        TEXTS.filter((text) => text.kind === kind),
      ),
    ),
    {
      name: 'router.lines',
      unit: 'CPU ms',
      target: 50,
      value: (median) => median('lines.ms'),
      floor: (median) => median('splitLines.ms'),
      note: () => 'a log of 100,000 lines',
    },
    keptFigure('tuned'),
    keptFigure('other'),
    ...TEXTS.map(sizeFigure),
  ],
}
