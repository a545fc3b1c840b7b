// The part of a scale that is seen: where moments stand in it, its marks in time, and the folded stretches among them.
import type { Waits } from '../../view/timeline.ts'
import { placeOn, type Scale, type Stretch } from '../../view/waterfall.ts'
import { tookWords } from '../parts/figures.tsx'

/** From 0 to 1 of the whole scale. */
export type Range = { readonly from: number; readonly to: number }
export const WHOLE: Range = { from: 0, to: 1 }

const LEAST = 1e-6
/** Between two words on the axis. */
const WORD_PX = 84
const LETTER_PX = 7
const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000]
const LONG_STEPS_MS = [300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 86_400_000, 604_800_000]

/** From 0 to 1 of what is seen; beyond that for what is not. */
export function seenAt(scale: Scale, range: Range, at: number): number {
  return (placeOn(scale, at) - range.from) / (range.to - range.from)
}

/** The part `a` to `b` of what is seen, in any order. */
export function zoomed({ from, to }: Range, a: number, b: number): Range {
  const [left, right] = [Math.max(0, Math.min(a, b)), Math.min(1, Math.max(a, b))]
  return bounded(from + left * (to - from), Math.max(right - left, 0) * (to - from))
}

/** `by` of its width closer (2: twice as close), around its middle. */
export function closer({ from, to }: Range, by: number): Range {
  const span = (to - from) / by
  return bounded((from + to) / 2 - span / 2, span)
}

/** `by` of its width to the right. */
export function moved({ from, to }: Range, by: number): Range {
  return bounded(from + by * (to - from), to - from)
}

function bounded(from: number, span: number): Range {
  const wide = Math.min(1, Math.max(LEAST, span))
  const left = Math.min(Math.max(0, from), 1 - wide)
  return { from: left, to: left + wide }
}

/** The moments at the ends of what is seen. */
export function momentsOf({ from, stretches }: Scale, range: Range): readonly [number, number] {
  const momentAt = (x: number): number => {
    const stretch = stretches.find((each) => x <= each.x + each.width) ?? stretches.at(-1)
    if (!stretch) return from
    const share = stretch.width === 0 ? 0 : Math.min(1, Math.max(0, (x - stretch.x) / stretch.width))
    return stretch.from + share * (stretch.to - stretch.from)
  }
  return [momentAt(range.from), momentAt(range.to)]
}

export type Mark = { readonly x: number; readonly text: string }

/** Words in time: the clock where a stretch begins to be seen, and from there how long after it. */
export function marksOf(scale: Scale, range: Range, width: number): readonly Mark[] {
  const [first, last] = momentsOf(scale, range)
  const marks: Mark[] = []
  let free = 0
  for (const stretch of scale.stretches) {
    if (stretch.folded || stretch.to < first || stretch.from > last) continue
    const begin = Math.max(stretch.from, first)
    const px = (stretch.width / (range.to - range.from)) * width
    const step = stepFor((stretch.to - stretch.from) / Math.max(1, px))
    for (let at = begin; at <= Math.min(stretch.to, last); at += step) {
      const x = seenAt(scale, range, at) * width
      const text = at === begin ? clockText(at, step) : `+${stepText(at - begin)}`
      if (x < free || x > width - text.length * LETTER_PX) continue
      marks.push({ x, text })
      free = x + WORD_PX
    }
  }
  return marks
}

function stepFor(msAPixel: number): number {
  const least = msAPixel * WORD_PX
  return [...STEPS_MS, ...LONG_STEPS_MS].find((step) => step >= least) ?? Math.max(1, least)
}

function stepText(ms: number): string {
  return tookWords(Math.round(ms)).replace('.0 s', ' s')
}

/** With milliseconds where the marks stand closer than seconds. */
export function clockText(at: number, step = 1_000): string {
  const time = new Date(at)
  if (Number.isNaN(time.getTime())) return 'not a date'
  const clock = time.toLocaleTimeString('en', { hour12: false })
  return step < 1_000 ? `${clock}.${String(time.getMilliseconds()).padStart(3, '0')}` : clock
}

export type Fold = { readonly left: number; readonly right: number; readonly ms: number; readonly waits: string }

const FOR: Readonly<Record<Waits, string>> = {
  person: 'waits for a person',
  outside: 'waits for an answer',
  provider: 'waits for the provider',
  input: 'idle',
}

/** What is written above the folded stretches: shorter where they stand close, and nothing where there is no room. */
export function foldWords(folds: readonly Fold[], width: number): readonly (Fold & Mark)[] {
  let free = 0
  return folds.flatMap((fold) => {
    const middle = ((fold.left + fold.right) / 2) * width
    for (const text of [`╫ idle ${tookWords(fold.ms)} ╫`, tookWords(fold.ms)]) {
      const half = (text.length * LETTER_PX) / 2
      const x = Math.min(middle, width - half)
      if (x - half < free || middle < 0 || middle > width) continue
      free = x + half + LETTER_PX
      return [{ ...fold, x, text }]
    }
    return []
  })
}

/** The folded stretches that are seen, from 0 to 1 of it. */
export function foldsOf(scale: Scale, range: Range, idles: readonly Idle[]): readonly Fold[] {
  const seen = (x: number): number => (x - range.from) / (range.to - range.from)
  return scale.stretches
    .filter(({ folded, x, width }) => folded && x + width > range.from && x < range.to)
    .map((stretch) => {
      const { from, to, x, width } = stretch
      return { left: seen(x), right: seen(x + width), ms: to - from, waits: FOR[waitsIn(stretch, idles)] }
    })
}

type Idle = { readonly at: number; readonly endedAt: number; readonly waits: Waits }

/** What the longest wait in it was for. Nothing has ended the last one yet, so no row has it: somebody is waited for. */
function waitsIn({ from, to }: Stretch, idles: readonly Idle[]): Waits {
  const within = idles.filter(({ at, endedAt }) => at < to && endedAt > from)
  const [longest] = within.toSorted((a, b) => b.endedAt - b.at - (a.endedAt - a.at))
  return longest?.waits ?? 'outside'
}
