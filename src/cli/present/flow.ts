// Runs of styled text, wrapped by columns and painted. Pure: its text is clean already, and it draws nothing.
import { breakSpans, widthOf, wrapSpans } from './terminal-text.ts'

/** `codes`: the numbers of a colour sequence, such as `1;31`; empty for plain text. */
export type Run = { readonly text: string; readonly codes: string }
export type Runs = readonly Run[]

export function plainRuns(text: string): Runs {
  return text === '' ? [] : [{ text, codes: '' }]
}

export function textOfRuns(runs: Runs): string {
  return runs.map(({ text }) => text).join('')
}

/** A colour never continues where a row ends. */
export function paintRuns(runs: Runs, hasColours: boolean): string {
  const paint = ({ text, codes }: Run): string =>
    hasColours && codes !== '' && text !== '' ? `\u001b[${codes}m${text}\u001b[0m` : text
  return runs.map(paint).join('')
}

/** The runs of a part of the text. */
export function sliceRuns(runs: Runs, from: number, to: number): Runs {
  let at = 0
  return runs.flatMap(({ text, codes }) => {
    const piece = text.slice(Math.max(0, from - at), Math.max(0, to - at))
    at += text.length
    return piece === '' ? [] : [{ text: piece, codes }]
  })
}

/** `end`: where the next row begins in the text. */
export type FlowRow = { readonly runs: Runs; readonly end: number }

/** Rows of this width, broken between words. Line breaks in the text are kept. More text changes only the last row. */
export function wrapRuns(runs: Runs, width: number): readonly FlowRow[] {
  const text = textOfRuns(runs)
  const rows: FlowRow[] = []
  for (let from = 0; from <= text.length; ) {
    const newline = text.indexOf('\n', from)
    const to = newline < 0 ? text.length : newline
    const spans = wrapSpans(text.slice(from, to), width)
    for (const [i, span] of spans.entries()) {
      const next = spans[i + 1]
      const end = next ? from + next.from : to + 1
      rows.push({ runs: sliceRuns(runs, from + span.from, from + span.to), end })
    }
    from = to + 1
  }
  return rows
}

/** Breaks runs into rows of this width, also inside words. */
export function breakRuns(runs: Runs, width: number): readonly Runs[] {
  const text = textOfRuns(runs)
  if (widthOf(text) <= width) return [runs]
  return breakSpans(text, width).map(({ from, to }) => sliceRuns(runs, from, to))
}
