// Shortens logs, tables, lists and the output of commands. Lossless forms come first: consecutive equal lines are
// counted, paths of one folder stand in one line. With loss, lines that mean nothing when all is well are counted, and
// of the rest the most informative lines are shown.
import { CHARS_MAX, chooseLines, LINES_MAX } from './choose-lines.ts'
import { noiseFilter } from './command-noise.ts'
import type { TextHint, Shortener, ShortenedText } from './text-kind.ts'
import { isTroubleSignal, findSignal } from './signals.ts'
import { foldPaths, shortenPathList, unfoldPaths } from './path-list.ts'
import { shortenTextTable } from './text-table.ts'

/** This share of a text is shown, but at least CHARS_MIN and at most CHARS_MAX characters. */
const SHARE = 0.36
const CHARS_MIN = 4_800
/** A longer text is not tested as a table or list, and its lines are not tested by the rules of its program. */
const SHAPED_LINES_MAX = 10_000
// oxlint-disable-next-line no-control-regex -- Colours are removed here.
const ANSI = /\u001B\[[0-9;?]{0,24}[A-Za-z]/g

export const shortenLog: Shortener = (text, { lossless, hint }) => {
  if (lossless) return foldText(text)
  const charsMax = Math.max(CHARS_MIN, Math.min(CHARS_MAX, Math.floor(text.length * SHARE)))
  const isLong = countLines(text, SHAPED_LINES_MAX) >= SHAPED_LINES_MAX
  const folded = isLong ? null : foldText(text)
  if (folded !== null && folded.text.length <= charsMax && countLines(folded.text, LINES_MAX + 1) <= LINES_MAX)
    return folded
  return { text: isLong ? chooseLines(cleanText(text), charsMax) : shortenLogText(text, charsMax, hint), lossy: true }
}

function shortenLogText(given: string, charsMax: number, hint: TextHint): string {
  const text = cleanText(given)
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  const noise = noiseFilter(hint.command)
  const shaped = noise === null ? shortenListOrTable(lines, charsMax, hint) : null
  if (shaped !== null) return shaped
  const numbers: number[] = []
  const told = lines.filter((line, i) => {
    // The last line may say how the command ended.
    const isEnd = i === lines.length - 1 && isTroubleSignal(findSignal(line))
    if (!isEnd && noise?.(line)) return false
    numbers.push(i + 1)
    return true
  })
  const left = lines.length - told.length
  const progress = left === 0 ? '' : `\n[${left} lines of progress left out]`
  return `${foldOrChoose(told, charsMax, numbers)}${progress}`
}

/** Counts repeated lines. If the text is still too long, lines are chosen. */
function foldOrChoose(lines: readonly string[], charsMax: number, numbers: readonly number[]): string {
  const text = lines.join('\n')
  const folded = foldRepeats(text)
  if (folded.length <= charsMax && countLines(folded, LINES_MAX + 1) <= LINES_MAX) return folded
  return chooseLines(text, charsMax, (line) => numbers[line] ?? line + 1)
}

/** Null for a text that is neither a list of files nor a table. Lines that do not belong to the list come first. */
function shortenListOrTable(lines: readonly string[], charsMax: number, { path }: TextHint): string | null {
  const list = shortenPathList(lines, charsMax * 0.7)
  if (list !== null) {
    const others = list.others.length === 0 ? '' : `${chooseLines(list.others.join('\n'), charsMax * 0.3)}\n`
    return `${others}${list.text}`
  }
  return shortenTextTable(lines, charsMax, /\.[ct]sv$/i.test(path ?? ''))
}

/** A text as a terminal shows it in the end: without colours, and without overwritten text. */
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

/** The number of lines of a text, counted up to `most`. */
function countLines(text: string, most: number): number {
  let count = 1
  for (let at = text.indexOf('\n'); at >= 0 && count < most; at = text.indexOf('\n', at + 1)) count += 1
  return count
}

/** The shortest form from which the same text can be restored; null if none is shorter. */
function foldText(text: string): ShortenedText | null {
  const forms = [
    { folded: foldRepeats(text), unfold: unfoldRepeats },
    { folded: foldPaths(text.split('\n')), unfold: unfoldPaths },
  ]
  const shorter = forms.filter(({ folded, unfold }) => folded.length < text.length && unfold(folded) === text)
  const best = shorter.sort((a, b) => a.folded.length - b.folded.length)[0]
  return best === undefined ? null : { text: best.folded, lossy: false }
}

/** Writes consecutive equal lines as one line with their number. */
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
/** A text that would unfold to more lines than this is not restored for the comparison. */
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
