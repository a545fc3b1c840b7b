// Documents as the report workflow reads them: sentences with the line they begin on, words, and whether a quote stands in a text.
// Pure. A line break of a document counts as a space; every other character of a quote is the document's own.

export type Sentence = { readonly text: string; readonly line: number }

/** A quote is a whole sentence: long enough to say something, short enough to be read. */
const SENTENCE_CHARS = { least: 10, most: 420 } as const

/** Every run of white space is one space. */
export function collapsed(text: string): string {
  return text.replace(/\s+/gu, ' ').trim()
}

/** Whether a quote stands word for word in a text, beginning on this line. */
export function standsIn(text: string, quote: string, line: number): boolean {
  const lines = text.split('\n').slice(line - 1)
  const first = collapsed(lines[0] ?? '')
  if (quote === '' || first === '') return false
  const at = collapsed(lines.join('\n')).indexOf(quote)
  return at >= 0 && at < first.length
}

/** The first line that says anything, without what Markdown puts before a heading. */
export function titleOf(text: string): string {
  const line = text.split('\n').find((each) => /[\p{L}\p{N}]/u.test(each)) ?? ''
  return clipped(collapsed(line).replace(/^#+\s*/, ''), 80)
}

export function clipped(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).trimEnd()}…`
}

type Block = { readonly lines: readonly string[]; readonly line: number }

/** In the order of the text. Headings, tables and code are not sentences. */
export function sentencesOf(text: string): readonly Sentence[] {
  return blocksOf(text).flatMap(sentencesIn)
}

const FENCE = /^\s*(```|~~~)/
const HEADING = /^\s*(#{1,6}\s|\||=+\s*$|-{3,}\s*$)/
const ITEM = /^\s*(?:[-*+]|\d{1,3}[.)])\s+/

/** Paragraphs and list items: what a sentence cannot reach across. */
function blocksOf(text: string): readonly Block[] {
  const blocks: Block[] = []
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

/** Words that end with a point and no sentence. */
const ABBREVIATED =
  /(?:^|[\s(])(?:Mr|Mrs|Ms|Dr|St|Prof|Sr|Jr|No|Nos|vol|Fig|cf|viz|etc|&c|e\.g|i\.e|lb|lbs|oz|vs|approx|\p{Lu})\.$/u
const ENDS = /[.!?…]["'”’)\]]*(?=\s+["'“‘([]?[\p{Lu}\p{N}])/gu

function sentencesIn({ lines, line }: Block): readonly Sentence[] {
  const { text, starts } = joined(lines)
  const found: Sentence[] = []
  let from = 0
  const take = (to: number): void => {
    const sentence = text.slice(from, to).trim()
    const start = from + (text.slice(from, to).length - text.slice(from, to).trimStart().length)
    from = to
    if (isSentence(sentence)) found.push({ text: sentence, line: line + lineAt(starts, start) })
  }
  for (const { index, 0: end } of text.matchAll(ENDS)) {
    if (!ABBREVIATED.test(text.slice(Math.max(0, index - 8), index + 1))) take(index + end.length)
  }
  take(text.length)
  return found
}

/** The block on one line, and where each of its lines begins there. */
function joined(lines: readonly string[]): { readonly text: string; readonly starts: readonly number[] } {
  let text = ''
  const starts: number[] = []
  for (const [i, line] of lines.entries()) {
    const plain = collapsed(i === 0 ? line.replace(ITEM, '') : line)
    if (text !== '' && plain !== '') text += ' '
    starts.push(text.length)
    text += plain
  }
  return { text, starts }
}

function lineAt(starts: readonly number[], at: number): number {
  return Math.max(
    0,
    starts.findLastIndex((start) => start <= at),
  )
}

function isSentence(text: string): boolean {
  const { least, most } = SENTENCE_CHARS
  return text.length >= least && text.length <= most && /[.!?…]["'”’)\]]*$/.test(text) && /\p{Ll}/u.test(text)
}

const STOP = new Set(
  `a about above after again against all also an and any are as at be because been before being below best better between both but by can could
  did do does doing down during each few for from further good great had has have having he her here hers him his how i if in into is it its
  just like made make makes many may me more most much must my need needed needs no nor not now of off on once only or other our out over own said same say
  says she should so some such tell than that the their them then there these they thing things this those through to too under until
  up upon us very was we were what when where which while who whom why will with would you your document documents report`
    .split(/\s+/)
    .filter((word) => word !== ''),
)

/** The words of a text that mean something, in order, as they stand in it. */
export function termsIn(text: string): readonly string[] {
  return [...new Set(wordsOf(text).filter((word) => word.length > 1 && !STOP.has(word)))]
}

/** The stems of all words of a text. */
export function stemsIn(text: string): ReadonlySet<string> {
  return new Set(wordsOf(text).map(stemOf))
}

function wordsOf(text: string): readonly string[] {
  return (text.toLowerCase().match(/[\p{L}\p{N}]+(?:['’]\p{L}+)*/gu) ?? []).map((word) => word.replace(/['’]s?$/u, ''))
}

/** What several forms of a word have in common. Rough: it only has to find sentences. */
export function stemOf(word: string): string {
  const singular = word
    .replace(/ies$/, 'y')
    .replace(/(?<=[^sui])s$/, '')
    .replace(/(?:li|i)?ness$/, '')
  const bare = singular.replace(/(?<=\p{L}{3})(?:ing|ed|ly)$/u, '')
  return bare.replace(/([^aeiou\W])\1$/u, '$1').replace(/(?<=\p{L}{3})e$/u, '')
}
