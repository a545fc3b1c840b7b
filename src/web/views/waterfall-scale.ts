// The visible range of the waterfall's time scale: positions of moments, axis marks and folded waits.
import type { Waits } from '../../view/timeline.ts'
import { placeOn, type Scale, type Stretch } from '../../view/waterfall.ts'
import { timeTakenText } from '../parts/figures.tsx'

/** From 0 to 1 of the whole scale. */
export type ScaleRange = { readonly from: number; readonly to: number }
export const WHOLE: ScaleRange = { from: 0, to: 1 }

const LEAST = 1e-6
/** The distance between two axis labels. */
const WORD_PX = 84
const LETTER_PX = 7
const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000]
const LONG_STEPS_MS = [300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 86_400_000, 604_800_000]

/** A position from 0 to 1 of the visible range; outside of that it is not visible. */
export function positionInRange(scale: Scale, range: ScaleRange, at: number): number {
  return (placeOn(scale, at) - range.from) / (range.to - range.from)
}

/** The part from `a` to `b` of the visible range, in either order. */
export function zoomTo({ from, to }: ScaleRange, a: number, b: number): ScaleRange {
  const [left, right] = [Math.max(0, Math.min(a, b)), Math.min(1, Math.max(a, b))]
  return boundRange(from + left * (to - from), Math.max(right - left, 0) * (to - from))
}

/** Zooms in by the factor `by` around the middle (2: twice as close). */
export function zoomBy({ from, to }: ScaleRange, by: number): ScaleRange {
  const span = (to - from) / by
  return boundRange((from + to) / 2 - span / 2, span)
}

/** Moves right by the share `by` of its width. */
export function moveBy({ from, to }: ScaleRange, by: number): ScaleRange {
  return boundRange(from + by * (to - from), to - from)
}

function boundRange(from: number, span: number): ScaleRange {
  const wide = Math.min(1, Math.max(LEAST, span))
  const left = Math.min(Math.max(0, from), 1 - wide)
  return { from: left, to: left + wide }
}

/** The moments at both ends of the visible range. */
export function rangeMoments({ from, stretches }: Scale, range: ScaleRange): readonly [number, number] {
  const momentAt = (x: number): number => {
    const stretch = stretches.find((each) => x <= each.x + each.width) ?? stretches.at(-1)
    if (!stretch) return from
    const share = stretch.width === 0 ? 0 : Math.min(1, Math.max(0, (x - stretch.x) / stretch.width))
    return stretch.from + share * (stretch.to - stretch.from)
  }
  return [momentAt(range.from), momentAt(range.to)]
}

export type AxisMark = { readonly x: number; readonly text: string }

/** Labels in time: the clock where a visible stretch begins, and offsets from there. */
export function buildAxisMarks(scale: Scale, range: ScaleRange, width: number): readonly AxisMark[] {
  const [first, last] = rangeMoments(scale, range)
  const marks: AxisMark[] = []
  let free = 0
  for (const stretch of scale.stretches) {
    if (stretch.folded || stretch.to < first || stretch.from > last) continue
    const begin = Math.max(stretch.from, first)
    const px = (stretch.width / (range.to - range.from)) * width
    const step = chooseStep((stretch.to - stretch.from) / Math.max(1, px))
    for (let at = begin; at <= Math.min(stretch.to, last); at += step) {
      const x = positionInRange(scale, range, at) * width
      const text = at === begin ? clockText(at, step) : `+${stepText(at - begin)}`
      if (x < free || x > width - text.length * LETTER_PX) continue
      marks.push({ x, text })
      free = x + WORD_PX
    }
  }
  return marks
}

function chooseStep(msAPixel: number): number {
  const least = msAPixel * WORD_PX
  return [...STEPS_MS, ...LONG_STEPS_MS].find((step) => step >= least) ?? Math.max(1, least)
}

function stepText(ms: number): string {
  return timeTakenText(Math.round(ms)).replace('.0 s', ' s')
}

/** With milliseconds if the marks are less than a second apart. */
export function clockText(at: number, step = 1_000): string {
  const time = new Date(at)
  if (Number.isNaN(time.getTime())) return 'not a date'
  const clock = time.toLocaleTimeString('en', { hour12: false })
  return step < 1_000 ? `${clock}.${String(time.getMilliseconds()).padStart(3, '0')}` : clock
}

export type FoldedWait = { readonly left: number; readonly right: number; readonly ms: number; readonly waits: string }

const FOR: Readonly<Record<Waits, string>> = {
  person: 'waits for a person',
  outside: 'waits for an answer',
  provider: 'waits for the provider',
  input: 'idle',
}

/** Labels above the folded waits: shortened where space is tight, and left out where there is none. */
export function buildFoldLabels(folds: readonly FoldedWait[], width: number): readonly (FoldedWait & AxisMark)[] {
  let free = 0
  return folds.flatMap((fold) => {
    const middle = ((fold.left + fold.right) / 2) * width
    for (const text of [`╫ idle ${timeTakenText(fold.ms)} ╫`, timeTakenText(fold.ms)]) {
      const half = (text.length * LETTER_PX) / 2
      const x = Math.min(middle, width - half)
      if (x - half < free || middle < 0 || middle > width) continue
      free = x + half + LETTER_PX
      return [{ ...fold, x, text }]
    }
    return []
  })
}

/** The visible folded waits, in positions from 0 to 1. */
export function buildFolds(scale: Scale, range: ScaleRange, idles: readonly IdleTime[]): readonly FoldedWait[] {
  const seen = (x: number): number => (x - range.from) / (range.to - range.from)
  return scale.stretches
    .filter(({ folded, x, width }) => folded && x + width > range.from && x < range.to)
    .map((stretch) => {
      const { from, to, x, width } = stretch
      return { left: seen(x), right: seen(x + width), ms: to - from, waits: FOR[longestWaitIn(stretch, idles)] }
    })
}

type IdleTime = { readonly at: number; readonly endedAt: number; readonly waits: Waits }

/** The kind of the longest wait in the stretch. The last wait has no end and so no row yet: it waits for an answer. */
function longestWaitIn({ from, to }: Stretch, idles: readonly IdleTime[]): Waits {
  const within = idles.filter(({ at, endedAt }) => at < to && endedAt > from)
  const [longest] = within.toSorted((a, b) => b.endedAt - b.at - (a.endedAt - a.at))
  return longest?.waits ?? 'outside'
}
