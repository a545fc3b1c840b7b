// Reads documents for the report workflow: sentences with their first line, words, and whether a text contains a quote. A line break
// counts as a space; every other character of a quote must match. Pure.
import { removeInvisible } from '../../../view/invisible.ts'

export type Sentence = { readonly text: string; readonly line: number }

/**
 * Bounds for a sentence to quote, in characters: long enough for a statement, short enough to read. A list item may
 * lack its final point.
 */
const SENTENCE_CHARS = { least: 10, item: 20, most: 420 } as const

/** Scripts without spaces between words, in which one character counts as three. */
const WIDE = /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}]/u

/** Marks of a quote at the beginning of a line. Before a number the mark may mean "more than", so it stays. */
const QUOTE_MARKS = /^[ \t]*(?:>[ \t]*)+(?![ \t>\d=])/gmu

/** A document with plain line ends, and without invisible characters and quote marks. */
export function readableText(text: string): string {
  return removeInvisible(text.replace(/\r\n?/gu, '\n')).text.replace(QUOTE_MARKS, '')
}

/** The text with single spaces and without invisible characters. */
export function collapseText(text: string): string {
  return collapseSpaces(removeInvisible(text).text)
}

function collapseSpaces(text: string): string {
  return text.replace(/\s+/gu, ' ').trim()
}

/** Whether a text contains a quote word for word, beginning on this line. */
export function containsQuote(text: string, quote: string, line: number): boolean {
  const lines = text.split('\n').slice(line - 1)
  const first = collapseText(lines[0] ?? '')
  if (quote === '' || first === '') return false
  const at = collapseText(lines.join('\n')).indexOf(quote)
  return at >= 0 && at < first.length
}

/** The first line with text, without Markdown heading marks. */
export function documentTitle(text: string): string {
  const line = text.split('\n').find((each) => /[\p{L}\p{N}]/u.test(each)) ?? ''
  return clipTrimmed(collapseText(line).replace(/^#+\s*/, ''), 80)
}

export function clipTrimmed(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).trimEnd()}…`
}

type TextBlock = { readonly lines: readonly string[]; readonly line: number }

/** The sentences in the order of the text. Headings, tables and code have none. */
export function sentencesOf(text: string): readonly Sentence[] {
  return blocksOf(text).flatMap(sentencesIn)
}

const FENCE = /^\s*(```|~~~)/
const HEADING = /^\s*(#{1,6}\s|\||=+\s*$|-{3,}\s*$)/
const ITEM = /^\s*(?:[-*+•]|\d{1,3}[.)])\s+/

/** Paragraphs and list items. No sentence goes beyond its block. */
function blocksOf(text: string): readonly TextBlock[] {
  const blocks: TextBlock[] = []
  let open: { lines: string[]; line: number } | null = null
  let code = false
  const close = (): void => {
    if (open) blocks.push(open)
    open = null
  }
  for (const [i, line] of text.split('\n').entries()) {
    const fence = FENCE.test(line)
    if (fence) code = !code
    if (fence || code || line.trim() === '' || HEADING.test(line)) close()
    else {
      if (ITEM.test(line)) close()
      open ??= { lines: [], line: i + 1 }
      open.lines.push(line)
    }
  }
  close()
  return blocks
}

/** Abbreviations, whose point does not end a sentence. */
const ABBREVIATED =
  /(?:^|[\s(])(?:Mr|Mrs|Ms|Dr|St|Prof|Sr|Jr|No|Nos|vol|Fig|cf|viz|etc|&c|e\.g|i\.e|lb|lbs|oz|vs|approx|\p{Lu})\.$/u
/** A point ends a sentence if another can begin after it; the marks of other scripts always end one. */
const ENDS = /[。！？｡।॥؟۔]["'”’)\]»」』）】》]*|[.!?…]["'”’)\]»]*(?=\s+["'“‘([«]?[\p{Lu}\p{Lt}\p{Lo}\p{N}])/gu
const ENDED = /[.!?…。！？｡।॥؟۔]["'”’)\]»」』）】》]*$/u

function sentencesIn({ lines, line }: TextBlock): readonly Sentence[] {
  const { text, starts } = joinLines(lines)
  const item = ITEM.test(lines[0] ?? '')
  const found: Sentence[] = []
  let from = 0
  const take = (to: number): void => {
    const sentence = text.slice(from, to).trim()
    const start = from + (to - from - text.slice(from, to).trimStart().length)
    from = to
    if (isSentence(sentence) || (item && to === text.length && isListItem(sentence)))
      found.push({ text: sentence, line: line + lineAt(starts, start) })
  }
  for (const { index, 0: end } of text.matchAll(ENDS)) {
    if (!ABBREVIATED.test(text.slice(Math.max(0, index - 8), index + 1))) take(index + end.length)
  }
  take(text.length)
  return found
}

/** The block on one line, and the start of each of its lines in it. */
function joinLines(lines: readonly string[]): { readonly text: string; readonly starts: readonly number[] } {
  let text = ''
  const starts: number[] = []
  for (const [i, line] of lines.entries()) {
    const plain = collapseSpaces(i === 0 ? line.replace(ITEM, '') : line)
    if (text !== '' && plain !== '') text += ' '
    starts.push(text.length)
    text += plain
  }
  return { text, starts }
}

function lineAt(starts: readonly number[], at: number): number {
  let low = 0
  let high = starts.length - 1
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if ((starts[middle] ?? 0) <= at) low = middle
    else high = middle - 1
  }
  return low
}

function isSentence(text: string): boolean {
  return isStatement(text, SENTENCE_CHARS.least) && ENDED.test(text)
}

/** The introduction to a list is not a statement. */
function isListItem(text: string): boolean {
  return isStatement(text, SENTENCE_CHARS.item) && !/[:：]$/u.test(text)
}

/** Text in capitals only is a heading; some scripts have no capitals. */
function isStatement(text: string, least: number): boolean {
  if (text.length > SENTENCE_CHARS.most || text.length * 3 < least) return false
  return (text.length >= least || WIDE.test(text)) && /[\p{Ll}\p{Lo}]/u.test(text)
}

const STOP = new Set(
  `a about above after again against all also an and any are as at be because been before being below best better between both but by can could
  did do does doing down during each few for from further good great had has have having he her here hers him his how i if in into is it its
  just like made make makes many may me more most much must my need needed needs no nor not now of off on once only or other our out over own said same say
  says she should so some such tell than that the their them then there these they thing things this those through to too under until
  up upon us very was we were what when where which while who whom why will with would you your document documents report
  的 了 是 在 有 和 与 吗 呢 什么 怎么 关于 の は が を に で と も か です ます について`
    .split(/\s+/)
    .filter((word) => word !== ''),
)

const PIECES = /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}]|[^\p{scx=Han}\p{scx=Hira}\p{scx=Kana}]+/gu
const WORDS = /[\p{L}\p{M}\p{N}]+(?:['’]\p{L}+)*/gu

/** The meaningful words of a text, in order. */
export function termsIn(text: string): readonly string[] {
  const words = wordsOf(text).flatMap((word) => (WIDE.test(word) ? segmentsOf(word) : [word]))
  return [...new Set(words.filter((word) => (word.length > 1 || WIDE.test(word)) && !STOP.has(word)))]
}

/** The stem of each word of a text. Where a script has no spaces, each character counts as a word. */
export function stemsIn(text: string): ReadonlySet<string> {
  const words = wordsOf(text)
  if (!WIDE.test(text)) return new Set(words.map(stemOf))
  return new Set(words.flatMap((word) => (word.match(PIECES) ?? []).map(stemOf)))
}

function wordsOf(text: string): readonly string[] {
  const words = text.normalize().toLowerCase().match(WORDS) ?? []
  return words.map((word) => word.replace(/['’]s?$/u, ''))
}

function segmentsOf(run: string): readonly string[] {
  return Array.from(new Intl.Segmenter('zh', { granularity: 'word' }).segment(run), ({ segment }) => segment)
}

/** A rough stem of a word: good enough to find sentences about the same thing. */
function stemOf(word: string): string {
  const singular = word
    .replace(/ies$/, 'y')
    .replace(/(?<=[^sui])s$/, '')
    .replace(/(?:li|i)?ness$/, '')
  const bare = singular.replace(/(?<=\p{L}{3})(?:ing|ed|ly)$/u, '')
  return bare.replace(/([^aeiou\W])\1$/u, '$1').replace(/(?<=\p{L}{3})e$/u, '')
}
