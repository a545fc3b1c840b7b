// A bounded choice of lines or rows, and lines that are cut to a number of characters.
import { clip } from '../../tools/core/bound-content.ts'
import { signalPosition } from './signals.ts'

export type BoundedChoice = {
  /** Takes a line if there is room for it. */
  readonly take: (line: number) => boolean
  readonly has: (line: number) => boolean
  /** The number of lines that would be shown now, including those that mark gaps. */
  readonly size: () => number
}

/** A choice of at most `most` lines, the gaps between them included. */
export function newBoundedChoice(count: number, most: number): BoundedChoice {
  const taken = new Uint8Array(count)
  let [chosen, gaps] = [0, 1]
  const open = (line: number): number => (line >= 0 && line < count && taken[line] === 0 ? 1 : 0)
  const take = (line: number): boolean => {
    if (open(line) === 0) return false
    // A line replaces a gap, and leaves a gap on each side whose line is not chosen.
    const after = gaps - 1 + open(line - 1) + open(line + 1)
    if (chosen + 1 + after > most) return false
    taken[line] = 1
    chosen += 1
    gaps = after
    return true
  }
  return { take, has: (line) => taken[line] === 1, size: () => chosen + gaps }
}

/** At most this many characters of a line, with a mark if it has more. */
export function cutLine(line: string, chars: number): string {
  return line.length <= chars ? line : `${clip(line, chars)}…`
}

/**
 * At most about this many characters of a line: its beginning, its end, and the first signals of failure between them.
 */
export function cutBothEnds(line: string, chars: number): string {
  if (line.length <= chars) return line
  const head = clip(line, Math.ceil(chars * 0.6))
  const tail = line.slice(-Math.floor(chars * 0.4)).replace(/^[\uDC00-\uDFFF]/, '')
  const middle = line.slice(head.length, line.length - tail.length)
  const shown: string[] = []
  for (let from = 0; shown.length < SIGNALS_MAX; ) {
    const signal = signalPosition(middle.slice(from))
    if (signal < 0) break
    from += Math.max(0, signal - SIGNAL_BEFORE)
    const part = clip(middle.slice(from), SIGNAL_CHARS).replace(/^[\uDC00-\uDFFF]/, '')
    shown.push(`…${part}`)
    from += SIGNAL_CHARS
  }
  const left = middle.length - shown.reduce((sum, part) => sum + part.length - 1, 0)
  return `${head}${shown.join('')}…[${left} more]…${tail}`
}

/** The number of signals in the middle of a long line that are shown, and the characters around each. */
const SIGNALS_MAX = 5
const SIGNAL_BEFORE = 20
const SIGNAL_CHARS = 80
