// A text as lines that are looked up and not copied, and a choice of some of them within a number of lines: what is left out between
// two of them is one line that counts it.
import { clip } from '../../tools/core/bound.ts'

export type Lines = {
  readonly count: number
  /** The line from 0 on, without its line end. */
  readonly at: (line: number) => string
  /** The line that holds this place in the text, and where that line ends. */
  readonly of: (place: number) => { readonly line: number; readonly end: number }
}

export function linesOf(text: string): Lines {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  // What a line end closes is the last line, and no empty one comes after it.
  if (starts.length > 1 && starts.at(-1) === text.length) starts.pop()
  const endOf = (line: number): number => {
    const next = starts[line + 1]
    if (next !== undefined) return next - 1
    return text.endsWith('\n') ? text.length - 1 : text.length
  }
  const of = (place: number): { readonly line: number; readonly end: number } => {
    let [low, high] = [0, starts.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((starts[middle] ?? 0) <= place) low = middle
      else high = middle - 1
    }
    return { line: low, end: endOf(low) }
  }
  return { count: starts.length, at: (line) => text.slice(starts[line] ?? text.length, endOf(line)), of }
}

export type Choice = {
  /** Chooses a line if there is room for it. */
  readonly take: (line: number) => boolean
  readonly has: (line: number) => boolean
  /** Lines of what would be shown now, those that count gaps among them. */
  readonly size: () => number
}

/** A choice of at most `most` lines, the gaps between them included. */
export function choiceOf(count: number, most: number): Choice {
  const taken = new Uint8Array(count)
  let [chosen, gaps] = [0, 1]
  const open = (line: number): number => (line >= 0 && line < count && taken[line] === 0 ? 1 : 0)
  const take = (line: number): boolean => {
    if (open(line) === 0) return false
    // A line takes the place of a gap, and leaves one on each side that is not chosen.
    const after = gaps - 1 + open(line - 1) + open(line + 1)
    if (chosen + 1 + after > most) return false
    taken[line] = 1
    chosen += 1
    gaps = after
    return true
  }
  return { take, has: (line) => taken[line] === 1, size: () => chosen + gaps }
}

/** The chosen lines in their order. A gap of one line is that line: it takes no more room than its count. */
export function chosenText(lines: Lines, { has }: Choice, show: (line: number) => string, numbered: boolean): string {
  const shown: string[] = []
  let left = 0
  for (let line = 0; line <= lines.count; line++) {
    if (line < lines.count && !has(line)) {
      left += 1
      continue
    }
    if (left === 1) shown.push(show(line - 1))
    else if (left > 1) shown.push(`[… ${left} lines left out${numbered ? `: ${line - left + 1} to ${line}` : ''} …]`)
    left = 0
    if (line < lines.count) shown.push(show(line))
  }
  return shown.join('\n')
}

/** At most so many characters of a line, with a mark if there are more. */
export function cutLine(line: string, chars: number): string {
  return line.length <= chars ? line : `${clip(line, chars)}…`
}
