// Logs, tables, lists and what commands print. Lossless forms come first: equal lines that follow each other are counted, paths of one
// folder stand in one line. With loss, what says that all is well is counted, and of the rest the lines that say most are shown.
import { CHARS_MAX, chooseLines, LINES_MAX } from './choose-lines.ts'
import { noiseOf } from './command.ts'
import type { Hint, Shorten, Shorter } from './kind.ts'
import { isTrouble, signalIn } from './signals.ts'
import { foldPaths, shortenPathList, unfoldPaths } from './path-list.ts'
import { shortenTextTable } from './text-table.ts'

/** A third of a text is shown, within these numbers of characters. */
const SHARE = 0.36
const CHARS_MIN = 4_800
/** A longer text is no table and no list, and no line of it is compared with the rules of its program. */
const SHAPED_LINES_MAX = 10_000
// oxlint-disable-next-line no-control-regex -- Colours are taken out here.
const ANSI = /\u001B\[[0-9;?]{0,24}[A-Za-z]/g

export const shortenLog: Shorten = (text, { lossless, hint }) => {
  if (lossless) return foldText(text)
  const charsMax = Math.max(CHARS_MIN, Math.min(CHARS_MAX, Math.floor(text.length * SHARE)))
  const isLong = countLines(text, SHAPED_LINES_MAX) >= SHAPED_LINES_MAX
  const folded = isLong ? null : foldText(text)
  if (folded !== null && folded.text.length <= charsMax && countLines(folded.text, LINES_MAX + 1) <= LINES_MAX)
    return folded
  return { text: isLong ? chooseLines(cleanText(text), charsMax) : shortenText(text, charsMax, hint), lossy: true }
}

function shortenText(given: string, charsMax: number, hint: Hint): string {
  const text = cleanText(given)
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  const noise = noiseOf(hint.command)
  const shaped = noise === null ? shortenShape(lines, charsMax, hint) : null
  if (shaped !== null) return shaped
  const numbers: number[] = []
  const told = lines.filter((line, i) => {
    // The last line may say how it ended.
    const isEnd = i === lines.length - 1 && isTrouble(signalIn(line))
    if (!isEnd && noise?.(line)) return false
    numbers.push(i + 1)
    return true
  })
  const left = lines.length - told.length
  const progress = left === 0 ? '' : `\n[${left} lines of progress left out]`
  return `${shownLines(told, charsMax, numbers)}${progress}`
}

/** Repeated lines are counted. If that is not enough, lines are chosen. */
function shownLines(lines: readonly string[], charsMax: number, numbers: readonly number[]): string {
  const text = lines.join('\n')
  const folded = foldRepeats(text)
  if (folded.length <= charsMax && countLines(folded, LINES_MAX + 1) <= LINES_MAX) return folded
  return chooseLines(text, charsMax, (line) => numbers[line] ?? line + 1)
}

/** Null for a text that is neither a list of files nor a table. Lines that do not fit in come first. */
function shortenShape(lines: readonly string[], charsMax: number, { path }: Hint): string | null {
  const list = shortenPathList(lines, charsMax * 0.7)
  if (list !== null) {
    const others = list.others.length === 0 ? '' : `${chooseLines(list.others.join('\n'), charsMax * 0.3)}\n`
    return `${others}${list.text}`
  }
  return shortenTextTable(lines, charsMax, /\.[ct]sv$/i.test(path ?? ''))
}

/** A text as a terminal would leave it: without colours, and without what was written over. */
function cleanText(given: string): string {
  const text = given.includes('\u001B') ? given.replace(ANSI, '') : given
  if (!text.includes('\r')) return text
  return text
    .split('\n')
    .map((line) => {
      const kept = line.endsWith('\r') ? line.slice(0, -1) : line
      return kept.slice(kept.lastIndexOf('\r') + 1)
    })
    .join('\n')
}

/** The number of lines of a text; `most` if it has more. */
function countLines(text: string, most: number): number {
  let count = 1
  for (let at = text.indexOf('\n'); at >= 0 && count < most; at = text.indexOf('\n', at + 1)) count += 1
  return count
}

/** The shortest form from which the same text can be made again; null if none is shorter. */
function foldText(text: string): Shorter | null {
  const forms = [
    { folded: foldRepeats(text), unfold: unfoldRepeats },
    { folded: foldPaths(text.split('\n')), unfold: unfoldPaths },
  ]
  const shorter = forms.filter(({ folded, unfold }) => folded.length < text.length && unfold(folded) === text)
  const best = shorter.sort((a, b) => a.folded.length - b.folded.length)[0]
  return best === undefined ? null : { text: best.folded, lossy: false }
}

/** Equal lines that follow each other, as one line with their number. */
function foldRepeats(text: string): string {
  const shown: string[] = []
  let [last, times]: [string | null, number] = [null, 0]
  const flush = (): void => {
    if (last !== null) shown.push(times > 1 ? `${last} (×${times})` : last)
  }
  for (const line of text.split('\n')) {
    if (line === last) {
      times += 1
      continue
    }
    flush()
    ;[last, times] = [line, 1]
  }
  flush()
  return shown.join('\n')
}

const REPEATED = / \(×(\d{1,9})\)$/
/** No text is made longer than this to find out what it says. */
const UNFOLDED_LINES_MAX = 4_000_000

function unfoldRepeats(folded: string): string | null {
  const lines: string[] = []
  for (const line of folded.split('\n')) {
    const times = Number(REPEATED.exec(line)?.[1] ?? 1)
    if (lines.length + times > UNFOLDED_LINES_MAX) return null
    const said = times > 1 ? line.replace(REPEATED, '') : line
    for (let i = 0; i < times; i++) lines.push(said)
  }
  return lines.join('\n')
}
