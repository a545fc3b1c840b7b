// Draws Markdown tokens as rows of styled runs. Pure. HTML is shown as text, nothing is loaded, and an address is shown
// beside its link. markdown-stream.ts says which tokens are final.
import type { Marked, Token, Tokens } from 'marked'
import { type Run, type Runs, breakRuns, paintRuns, plainRuns, sliceRuns, textOfRuns, wrapRuns } from './flow.ts'
import { MARGIN_COLUMNS, MORE, SAID, widthOf } from './terminal-text.ts'
import { colourLine } from './colour.ts'
import { TAB } from '../../view/lookalike.ts'

export type TextStyle = { readonly columns: number; readonly hasColours: boolean }

/** One row of a text, without its margin. Code is not broken between words. */
export type TextRow = { readonly runs: Runs }

/** Deeper quotes and lists are shown as they were written. */
const DEPTH_MAX = 40
const WIDTH_MIN = 8

let loaded: Marked | null = null

/** Loads the lexer. Until then text is drawn as it was written, so that a start does not wait for it. */
export async function loadMarkdown(): Promise<void> {
  if (loaded) return
  const { Marked } = await import('marked')
  const none = (): undefined => undefined
  // The meaning of a text must not change when more of it arrives: definitions and HTML may reach over any distance.
  loaded = new Marked({ gfm: true, tokenizer: { def: none, html: none, tag: none } })
}

/** The tokens of a text, or null if it cannot be read as Markdown. */
export function lexMarkdown(text: string): readonly Token[] | null {
  if (!loaded || isCostly(text)) return null
  try {
    return loaded.lexer(text)
  } catch {
    return null
  }
}

/** The lexer takes quadratic time for marks that close nothing, and for what is nested deeply. */
const MARKS_MAX = 1_000
const NESTED = new RegExp(`(?:(?:>|[-*+]|\\d{1,9}[.)])[ \\t]*){${DEPTH_MAX + 1},}[^-*+\\s]`)
const FENCED = /^[ \t]*(```|~~~)[\s\S]*?(?:^[ \t]*\1|(?![\s\S]))/gm
const PARAGRAPHS = /\n(?=[ \t]*(?:\n|[-+*#>][ \t]|\d{1,9}[.)][ \t]|\|))/

function isCostly(text: string): boolean {
  const prose = text.replace(FENCED, '')
  return NESTED.test(prose) || prose.split(PARAGRAPHS).some((each) => countMarks(each) > MARKS_MAX)
}

function countMarks(text: string): number {
  return text.match(/[*_~`[(<&\\]/g)?.length ?? 0
}

/** Adds the margin that no row of this program begins with, and breaks what is too wide. */
export function marginRows({ runs }: TextRow, { columns, hasColours }: TextStyle): readonly string[] {
  const expanded = runs.map(({ text, codes }) => ({ text: text.replaceAll('\t', TAB), codes }))
  const pieces = Number.isFinite(columns) ? breakRuns(expanded, columns - MARGIN_COLUMNS) : [expanded]
  return pieces.map((piece, i) => {
    const margin = { text: i === 0 ? SAID : MORE, codes: DIM }
    return paintRuns([margin, ...piece], hasColours).trimEnd()
  })
}

export function isFence(token: Token): token is Tokens.Code {
  return token.type === 'code' && token['codeBlockStyle'] !== 'indented'
}

export function endsWithBlank(raw: string): boolean {
  return /\n[ \t]*\n[ \t]*$/.test(raw)
}

/** Blocks, with a blank row where the text has one between them. */
export function blockRows(tokens: readonly Token[], style: TextStyle, depth = 0): readonly TextRow[] {
  const rows: TextRow[] = []
  let hasBlank = false
  for (const token of tokens) {
    if (token.type === 'space') hasBlank = true
    else {
      const drawn = tokenRows(token, style, depth)
      if (hasBlank && rows.length > 0 && drawn.length > 0) rows.push(BLANK_ROW)
      rows.push(...drawn)
      hasBlank = endsWithBlank(token.raw)
    }
  }
  return rows
}

export const BLANK_ROW: TextRow = { runs: [] }

function tokenRows(token: Token, style: TextStyle, depth: number): readonly TextRow[] {
  if (depth > DEPTH_MAX) return wrapRows(plainRuns(token.raw.trimEnd()), style)
  switch (token.type) {
    // The list item draws its checkbox.
    case 'checkbox':
      return []
    case 'heading':
    case 'paragraph':
    case 'text':
      return wrapRows(inlineRuns(token, style), style)
    case 'blockquote': {
      const inner = blockRows((token as Tokens.Blockquote).tokens, narrowStyle(style, QUOTE), depth + 1)
      return inner.map(({ runs }) => ({ runs: [{ text: QUOTE, codes: DIM }, ...runs] }))
    }
    case 'list':
      return listRows(token as Tokens.List, style, depth)
    case 'code':
      return codeRows(token as Tokens.Code)
    case 'hr':
      return [{ runs: [{ text: '─'.repeat(Math.min(Math.max(WIDTH_MIN, style.columns), RULE_MAX)), codes: DIM }] }]
    case 'table':
      return tableRows(token as Tokens.Table, style, depth)
    default:
      return wrapRows(plainRuns(token.raw.trimEnd()), style)
  }
}

const QUOTE = '┃ '
const RULE_MAX = 72
const DIM = '2'

function wrapRows(runs: Runs, { columns }: TextStyle): readonly TextRow[] {
  return wrapRuns(runs, columns).map((row) => ({ runs: row.runs }))
}

function narrowStyle(style: TextStyle, prefix: string): TextStyle {
  return { ...style, columns: Math.max(WIDTH_MIN, style.columns - widthOf(prefix)) }
}

/** The runs of a heading, a paragraph or a text. */
export function inlineRuns(token: Token, style: TextStyle): Runs {
  const { tokens, text } = token as Tokens.Text
  if (token.type !== 'heading') return tokens ? spanRuns(tokens, { ...style, codes: '', depth: 0 }) : plainRuns(text)
  const { depth } = token as Tokens.Heading
  const codes = depth === 1 ? '1;4' : '1'
  const runs = spanRuns(tokens ?? [], { ...style, codes, depth: 0 })
  return style.hasColours ? runs : [...plainRuns(`${'#'.repeat(depth)} `), ...runs]
}

type SpanStyle = TextStyle & { readonly codes: string; readonly depth: number }

function spanRuns(tokens: readonly Token[], style: SpanStyle): Runs {
  return tokens.flatMap((token) => spanRun(token, style))
}

function spanRun(token: Token, style: SpanStyle): Runs {
  const { codes, depth, hasColours } = style
  const own = (text: string, more = ''): Run => ({ text, codes: [codes, more].filter((each) => each !== '').join(';') })
  const inner = (more = ''): Runs =>
    spanRuns((token as Tokens.Strong).tokens ?? [], { ...style, codes: own('', more).codes, depth: depth + 1 })
  if (depth > DEPTH_MAX) return [own(token.raw)]
  switch (token.type) {
    case 'strong':
      return inner('1')
    case 'em':
      return inner('3')
    case 'del':
      // Without a line through it the text would mean the opposite.
      return hasColours ? inner('9') : [own('~~'), ...inner(), own('~~')]
    case 'codespan': {
      const { text } = token as Tokens.Codespan
      return [hasColours ? own(text, '36') : own(`\`${text}\``)]
    }
    case 'br':
      return [own('\n')]
    case 'checkbox':
      return []
    case 'link': {
      const { href, text } = token as Tokens.Link
      const isSame = href === text || href === `mailto:${text}` || href === `http://${text}`
      return isSame ? [own(text, '4')] : [...inner('4'), own(` (${href})`, DIM)]
    }
    case 'image': {
      const { text, href } = token as Tokens.Image
      return [own(`[picture: ${text || 'without a name'}, ${href}]`)]
    }
    case 'escape':
    case 'text': {
      const { text, tokens } = token as Tokens.Text
      return tokens ? inner() : [own(decodeEntities(text))]
    }
    default:
      return [own(token.raw)]
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&amp;': '&',
  '&quot;': '"',
  '&#39;': "'",
}

/** Only these: a code of another character could be one that is not to be drawn. */
function decodeEntities(text: string): string {
  return text.replace(/&(?:lt|gt|amp|quot|#39);/g, (each) => ENTITIES[each] ?? each)
}

function listRows({ items, ordered }: Tokens.List, style: TextStyle, depth: number): readonly TextRow[] {
  return items.flatMap((item, i) => {
    const before = items[i - 1]
    const blank = before && endsWithBlank(before.raw) ? [BLANK_ROW] : []
    return [...blank, ...itemRows(item, ordered, style, depth)]
  })
}

/** The number stands as it was written: counting would need the items before. */
export function itemRows(item: Tokens.ListItem, ordered: boolean, style: TextStyle, depth = 0): readonly TextRow[] {
  const [, number = '1.'] = /^\s*(\d{1,9}[.)])/.exec(item.raw) ?? []
  const bullet = ordered ? `${number} ` : '• '
  const head = item.task ? `${bullet}${item.checked ? '[x] ' : '[ ] '}` : bullet
  const indent = ' '.repeat(bullet.length)
  const rows = blockRows(item.tokens, narrowStyle(style, head), depth + 1)
  const all = rows.length === 0 ? [BLANK_ROW] : rows
  return all.map(({ runs }, i) => ({ runs: [{ text: i === 0 ? head : indent, codes: '' }, ...runs] }))
}

/** Code is indented, so that it differs from text also without colours. */
export const CODE_INDENT = '  '

function codeRows({ text, lang = '' }: Tokens.Code): readonly TextRow[] {
  if (text === '') return []
  let state = ''
  return text.split('\n').map((line) => {
    const coloured = colourLine(line, languageIn(lang), state)
    state = coloured.state
    return { runs: [...plainRuns(CODE_INDENT), ...coloured.runs] }
  })
}

export function languageIn(info: string): string {
  return /^[\w+#-]*/.exec(info.trim())?.[0] ?? ''
}

const BAR = ' │ '
const CELL_MIN = 4

type Cells = readonly Runs[]

/** A table whose cells are wrapped where it is wider than the screen. */
function tableRows(table: Tokens.Table, style: TextStyle, depth: number): readonly TextRow[] {
  const cells = (row: readonly Tokens.TableCell[], codes: string): Cells =>
    row.map((cell) => spanRuns(cell.tokens, { ...style, codes, depth }))
  const header = cells(table.header, '1')
  const rows = table.rows.map((row) => cells(row, ''))
  const natural = header.map((_, i) =>
    Math.max(1, ...[header, ...rows].map((row) => widthOf(textOfRuns(row[i] ?? [])))),
  )
  const room = style.columns - (header.length - 1) * BAR.length
  const widths = fitWidths(natural, room)
  if (widths === null) return wrapRows(plainRuns(table.raw.trimEnd()), style)
  const draw = (row: Cells): readonly TextRow[] => rowOfCells(row, widths, table.align)
  const rule = widths.map((width) => '─'.repeat(width)).join('─┼─')
  return [...draw(header), { runs: [{ text: rule, codes: DIM }] }, ...rows.flatMap(draw)]
}

/** Takes from the widest columns first. Null: there are too many columns for this width. */
function fitWidths(natural: readonly number[], room: number): readonly number[] | null {
  if (natural.reduce((sum, each) => sum + Math.min(each, CELL_MIN), 0) > room) return null
  let [low, high] = [CELL_MIN, Math.max(...natural)]
  const sumAt = (most: number): number => natural.reduce((sum, each) => sum + Math.min(each, most), 0)
  if (!Number.isFinite(room) || sumAt(high) <= room) return natural
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (sumAt(middle) <= room) low = middle
    else high = middle - 1
  }
  // What is left of the room goes to the first columns that want it.
  let left = room - sumAt(low)
  return natural.map((each) => {
    if (each <= low || left <= 0) return Math.min(each, low)
    left -= 1
    return low + 1
  })
}

function rowOfCells(cells: Cells, widths: readonly number[], align: Tokens.Table['align']): readonly TextRow[] {
  const columns = widths.map((width, i) => wrapRuns(cells[i] ?? [], width).map(({ runs }) => runs))
  const height = Math.max(1, ...columns.map(({ length }) => length))
  return Array.from({ length: height }, (_, line) => ({
    runs: widths.flatMap((width, i) => {
      const runs = columns[i]?.[line] ?? []
      const free = Math.max(0, width - widthOf(textOfRuns(runs)))
      const before = align[i] === 'right' ? free : align[i] === 'center' ? Math.floor(free / 2) : 0
      const bar = i === 0 ? [] : [{ text: BAR, codes: DIM }]
      return [...bar, ...plainRuns(' '.repeat(before)), ...runs, ...plainRuns(' '.repeat(free - before))]
    }),
  }))
}

/** The rows of a paragraph or heading from this character on, and where each of them ends. */
export function restRows(token: Token, style: TextStyle, from: number): ReturnType<typeof wrapRuns> {
  const runs = inlineRuns(token, style)
  const rest = sliceRuns(runs, from, Number.POSITIVE_INFINITY)
  if (from > 0 && rest.length === 0) return []
  return wrapRuns(rest, style.columns).map((row) => ({ runs: row.runs, end: row.end + from }))
}
