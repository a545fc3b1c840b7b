// Writes the tokens of a stranger's HTML as Markdown or as plain text, in one pass: hidden elements are left out, and
// each block is written when it ends. There is no tree, so nesting costs nothing, and the kept state is bounded.
import { readAttribute, type HtmlToken } from './html-tokens.ts'

export type WriterOptions = {
  /** Only text: no links, no images, no marks except those of list items. */
  readonly plain: boolean
  /** Decode character references, in text and in values of attributes. */
  readonly decodeText: (text: string) => string
  readonly decodeValue: (value: string) => string
  /** Returns the address of a link or an image as it is written down; null if it has none. */
  readonly addressOf: (written: string) => string | null
}

/** Elements whose content is not for reading. */
const DROPPED = new Set(
  'script style template svg math iframe object canvas noembed noframes select textarea audio video'.split(' '),
)
const VOID = new Set('area base br col embed hr img input link meta source track wbr'.split(' '))
/** Elements that only begin a new line. */
const BLOCKS = new Set(
  [
    'address article aside body caption center dd details dialog dir div dl dt fieldset figcaption figure footer form',
    'header hgroup legend main menu nav p section summary table tbody tfoot thead title tr xmp',
  ].flatMap((line) => line.split(' ')),
)
const HEADING = /^h[1-6]$/
/** Elements within a line, with the mark around them. The marks of links and of code depend on their content. */
const INLINE: ReadonlyMap<string, string> = new Map([
  ['a', 'a'],
  ['b', '**'],
  ['strong', '**'],
  ['i', '_'],
  ['em', '_'],
  ['code', 'code'],
  ['kbd', 'code'],
  ['samp', 'code'],
])
const HIDING_STYLE =
  /display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d]*[1-9])|opacity\s*:\s*0(?![.\d]*[1-9])/i
/**
 * Markdown's own characters: those that count anywhere, and those that count only at the start of a line. `_` within a
 * word is plain.
 */
const MARKS = /[\\*`[\]]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu
const MARKS_AT_START = /^(?:[->]|\+(?= )|=+|#{1,6}(?= )|~~~)/
const NUMBER_AT_START = /^(\d+)(?=\. )/

const DEPTH_MAX = 12

type OpenTag = Extract<HtmlToken, { readonly type: 'open' }>
type Container = {
  readonly name: 'ul' | 'ol' | 'li' | 'blockquote'
  /** `pad` begins every line in it, including those of the containers around it; `mark` begins its own first line. */
  readonly pad: string
  readonly mark: string
  isBegun: boolean
  items: number
}
/**
 * A mark is open once text was written in it. Marks that are open at the end of a block are opened again in the next.
 */
type InlineMark = { readonly kind: string; readonly to: string | null; isOpen: boolean }

export class MarkdownWriter {
  readonly #as: WriterOptions
  readonly #out: string[] = []
  /** The current block: its kind, its parts, and the blank or line end to write if more text follows. */
  #block = 'p'
  #parts: string[] = []
  #blank: '' | ' ' | '\n' = ''
  #codeFrom = 0
  #containers: readonly Container[] = []
  /** The containers of the block that was written last. */
  #last: readonly Container[] = []
  /** The number of containers that were too deep to enter. */
  #ignored = 0
  /** Code is always the last of them: no other mark has a meaning in it. */
  #inlines: InlineMark[] = []
  #dropping: { readonly name: string; depth: number } | null = null

  constructor(writing: WriterOptions) {
    this.#as = writing
  }

  push(token: HtmlToken): void {
    if (this.#dropping !== null && !endsDropped(token, this.#dropping.name)) return this.#drop(token, this.#dropping)
    this.#dropping = null
    if (token.type === 'text') this.#text(this.#as.decodeText(token.text))
    else if (token.type === 'open') this.#start(token)
    else this.#end(token.name)
  }

  finish(): string {
    this.#next('p')
    return this.#out.join('')
  }

  #drop(token: HtmlToken, dropping: { readonly name: string; depth: number }): void {
    if (token.type === 'text' || token.name !== dropping.name || isEmpty(token)) return
    dropping.depth += token.type === 'open' ? 1 : -1
    if (dropping.depth === 0) this.#dropping = null
  }

  #start(token: OpenTag): void {
    const { name, inside } = token
    if (VOID.has(name)) return this.#void(name, inside)
    if (DROPPED.has(name) || isHidden(inside)) {
      // A hidden paragraph still ends the one before it.
      if (BLOCKS.has(name)) this.#next(this.#block)
      if (!isEmpty(token)) this.#dropping = { name, depth: 1 }
      return
    }
    if (this.#block === 'pre') return this.#lineInPre(name)
    const inline = INLINE.get(name)
    if (inline !== undefined) this.#startInline(inline, inside)
    else if (name === 'td' || name === 'th') this.#cell()
    else if (HEADING.test(name) || name === 'pre') this.#next(name)
    else if (BLOCKS.has(name)) this.#next('p')
    else if (name === 'ul' || name === 'ol') this.#enter(name, '')
    else if (name === 'blockquote') this.#enter(name, this.#as.plain ? '' : '> ')
    else if (name === 'li') this.#item()
  }

  #end(name: string): void {
    if (this.#block === 'pre' && name !== 'pre') return this.#lineInPre(name)
    const inline = INLINE.get(name)
    if (inline !== undefined) this.#endInline(inline)
    else if (HEADING.test(name) || name === 'pre' || BLOCKS.has(name)) this.#next('p')
    else if (name === 'ul' || name === 'ol' || name === 'blockquote' || name === 'li') this.#leave(name)
  }

  #void(name: string, inside: string): void {
    if (name === 'br') return this.#lineEnd()
    if (this.#as.plain || this.#block === 'pre') return
    if (name === 'hr') {
      this.#next('p')
      this.#write('---')
    } else if (name === 'img' && !isHidden(inside)) {
      const words = this.#value(inside, 'alt')
        .replace(/[[\]\s]+/g, ' ')
        .trim()
      const at = this.#as.addressOf(this.#value(inside, 'src'))
      if (words !== '') this.#say(at === null ? words : `![${words}](${at})`)
    }
  }

  #text(text: string): void {
    // As in browsers, a line end directly after the tag is ignored.
    if (this.#block === 'pre') return void this.#parts.push(this.#parts.length === 0 ? text.replace(/^\n/, '') : text)
    const words = text.replace(/[ \t\n\f]+/g, ' ')
    const [from, to] = [words.startsWith(' ') ? 1 : 0, words.endsWith(' ') ? words.length - 1 : words.length]
    if (from === 1) this.#blank ||= ' '
    if (from >= to) return
    this.#say(this.#escaped(words.slice(from, to)))
    if (to < words.length) this.#blank = ' '
  }

  #escaped(text: string): string {
    if (this.#as.plain || this.#inlines.at(-1)?.kind === 'code') return text
    const marked = text.replace(MARKS, '\\$&')
    if (this.#parts.length > 0 && this.#blank !== '\n') return marked
    return marked.replace(MARKS_AT_START, '\\$&').replace(NUMBER_AT_START, '$1\\')
  }

  /** Writes into the current line, after the pending blank and the opening marks. */
  #say(text: string): void {
    if (this.#parts.length > 0) this.#parts.push(this.#blank === '\n' && !this.#as.plain ? '  \n' : this.#blank)
    this.#blank = ''
    for (const inline of this.#inlines) {
      if (inline.isOpen) continue
      inline.isOpen = true
      if (inline.kind === 'code') this.#codeFrom = this.#parts.length
      else this.#parts.push(inline.kind === 'a' ? (inline.to === null ? '' : '[') : inline.kind)
    }
    this.#parts.push(text)
  }

  #lineEnd(): void {
    if (this.#block === 'pre') this.#parts.push('\n')
    // Many pages write paragraphs with two of them.
    else if (this.#blank === '\n') this.#next(this.#block)
    else if (this.#parts.length > 0) this.#blank = this.#isOneLine ? ' ' : '\n'
  }

  /** Headings, links and code end with their line. */
  get #isOneLine(): boolean {
    return this.#block !== 'p' || this.#inlines.some(({ kind }) => kind === 'a' || kind === 'code')
  }

  #lineInPre(name: string): void {
    if (BLOCKS.has(name) && this.#parts.at(-1)?.endsWith('\n') === false) this.#parts.push('\n')
  }

  #cell(): void {
    if (this.#parts.length === 0) return
    for (const inline of this.#inlines.toReversed()) this.#close(inline)
    this.#parts.push(' |')
    this.#blank = ' '
  }

  /** Ends the block and begins one of this kind. */
  #next(block: string): void {
    for (const inline of this.#inlines.toReversed()) this.#close(inline)
    const text = this.#parts.join('')
    if (text.trim() !== '') this.#write(this.#blockOf(text))
    this.#parts = []
    this.#blank = ''
    this.#block = block
  }

  #blockOf(text: string): string {
    if (this.#block === 'pre') {
      const fence = '`'.repeat(Math.max(3, longestRun(text) + 1))
      return this.#as.plain ? text.trimEnd() : `${fence}\n${text.trimEnd()}\n${fence}`
    }
    return `${this.#block === 'p' || this.#as.plain ? '' : `${'#'.repeat(Number(this.#block[1]))} `}${text.trim()}`
  }

  /**
   * Writes a block below the last one. Between items of a list, and between an item and its inner list, there is no
   * empty line.
   */
  #write(block: string): void {
    const here = this.#containers
    const shared = here.findIndex((container, i) => container !== this.#last[i])
    const around = here.at(shared < 0 ? -1 : shared - 1)
    const isTight = shared > 0 && isOfList(around) && isOfList(here[shared]) && !this.#as.plain
    const gap = shared === 0 ? '' : (around?.pad.trimEnd() ?? '')
    if (this.#out.length > 0) this.#out.push(isTight ? '\n' : `\n${gap}\n`)
    const pad = here.at(-1)?.pad ?? ''
    // The containers whose first line this is are the innermost ones.
    const begun = here.findLast(({ isBegun }) => isBegun)
    this.#out.push(begun?.pad ?? '')
    for (const container of here) {
      if (!container.isBegun) this.#out.push(container.mark)
      container.isBegun = true
    }
    this.#out.push(block.replace(/\n(?=(\n?))/g, (_, empty) => `\n${empty === '' ? pad : pad.trimEnd()}`))
    this.#last = here
  }

  #startInline(kind: string, inside: string): void {
    if (this.#as.plain) return
    this.#endInline(kind)
    const to = kind === 'a' ? this.#as.addressOf(this.#value(inside, 'href')) : null
    const code = this.#inlines.at(-1)
    if (kind !== 'code' && code?.kind === 'code') {
      this.#close(code)
      this.#inlines.splice(-1, 0, { kind, to, isOpen: false })
    } else this.#inlines.push({ kind, to, isOpen: false })
  }

  #endInline(kind: string): void {
    const at = this.#inlines.findIndex((one) => one.kind === kind)
    if (at < 0) return
    for (const inline of this.#inlines.slice(at).toReversed()) this.#close(inline)
    this.#inlines.splice(at, 1)
  }

  #close(inline: InlineMark): void {
    if (!inline.isOpen) return
    inline.isOpen = false
    if (inline.kind === 'code') this.#parts.push(fenceCode(this.#parts.splice(this.#codeFrom).join('')))
    else if (inline.kind !== 'a') this.#parts.push(inline.kind)
    else if (inline.to !== null) this.#parts.push(`](${inline.to})`)
  }

  #enter(name: Container['name'], mark: string): void {
    this.#next('p')
    if (this.#containers.length >= DEPTH_MAX) {
      this.#ignored += 1
      return
    }
    const pad = this.#as.plain ? '' : name === 'blockquote' ? mark : ' '.repeat(mark.length)
    const around = this.#containers.at(-1)?.pad ?? ''
    this.#containers = [...this.#containers, { name, pad: around + pad, mark, isBegun: false, items: 0 }]
  }

  #item(): void {
    this.#next('p')
    if (this.#ignored > 0) return
    const list = this.#containers.findLastIndex(({ name }) => name !== 'li')
    const found = this.#containers[list]
    if (found === undefined || found.name === 'blockquote') this.#enter('ul', '')
    else this.#containers = this.#containers.slice(0, list + 1)
    const parent = this.#containers.at(-1)
    if (parent === undefined || parent.name === 'blockquote') return
    parent.items += 1
    this.#enter('li', this.#as.plain ? '- ' : parent.name === 'ol' ? `${parent.items}.  ` : '-   ')
  }

  #leave(name: Container['name']): void {
    this.#next('p')
    if (this.#ignored > 0) {
      // Among containers that were too deep only the lists are counted: their items were never entered.
      if (name !== 'li') this.#ignored -= 1
      return
    }
    const at = this.#containers.findLastIndex((one) => one.name === name)
    if (at >= 0) this.#containers = this.#containers.slice(0, at)
  }

  #value(inside: string, name: string): string {
    return this.#as.decodeValue(readAttribute(inside, name) ?? '')
  }
}

/** Only drawings and formulas can be self-closing. */
function isEmpty(token: HtmlToken): boolean {
  return token.type === 'open' && (token.name === 'svg' || token.name === 'math') && token.inside.endsWith('/')
}

/** A paragraph within a dropped paragraph begins the next one. */
function endsDropped(token: HtmlToken, dropped: string): boolean {
  return token.type === 'open' && token.name === 'p' && dropped === 'p'
}

function isOfList(container: Container | undefined): boolean {
  return container !== undefined && container.name !== 'blockquote'
}

function fenceCode(text: string): string {
  const fence = '`'.repeat(longestRun(text) + 1)
  const space = text.startsWith('`') || text.endsWith('`') ? ' ' : ''
  return `${fence}${space}${text}${space}${fence}`
}

/** The longest run of backticks. */
function longestRun(text: string): number {
  let longest = 0
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length)
  return longest
}

function isHidden(inside: string): boolean {
  if (!/hidden|style/i.test(inside)) return false
  if (readAttribute(inside, 'hidden') !== null) return true
  if (readAttribute(inside, 'aria-hidden')?.trim().toLowerCase() === 'true') return true
  return HIDING_STYLE.test(readAttribute(inside, 'style') ?? '')
}
