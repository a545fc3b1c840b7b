// A stranger's HTML made small and plain, in pieces: only the few elements that markdown has words for, properly nested and not
// deep, without what is not shown. What it gives can be parsed and converted by recursion, a bounded piece at a time.
import { attributeIn, type Token } from './tokens.ts'

/** Elements whose content is not for reading. */
// biome-ignore format: a list
const DROPPED = new Set([
  'script', 'style', 'template', 'svg', 'math', 'iframe', 'object', 'canvas', 'noembed', 'noframes', 'select', 'textarea',
  'audio', 'video',
])
// biome-ignore format: a list
const VOID = new Set(['area', 'base', 'br', 'col', 'embed', 'hr', 'img', 'input', 'link', 'meta', 'source', 'track', 'wbr'])
/** A line of its own, and nothing more. */
// biome-ignore format: a list
const BLOCKS = new Set([
  'address', 'article', 'aside', 'body', 'caption', 'center', 'dd', 'details', 'dialog', 'dir', 'div', 'dl', 'dt', 'fieldset',
  'figcaption', 'figure', 'footer', 'form', 'header', 'hgroup', 'legend', 'main', 'menu', 'nav', 'p', 'section', 'summary',
  'table', 'tbody', 'tfoot', 'thead', 'title', 'tr', 'xmp',
])
const HEADING = /^h[1-6]$/
const INLINE: Readonly<Record<string, string>> = {
  a: 'a',
  b: 'strong',
  strong: 'strong',
  i: 'em',
  em: 'em',
  code: 'code',
  kbd: 'code',
  samp: 'code',
}
const HIDING_STYLE =
  /display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d]*[1-9])|opacity\s*:\s*0(?![.\d]*[1-9])/i

const DEPTH_MAX = 12
const INLINES_MAX = 4
/** A piece ends with the first block past these, and in any case at four times of them. */
const PIECE_TAGS = 300
const PIECE_CHARS = 16_384
/** Beyond so many elements a page is only text. */
const TAGS_MAX = 20_000
const TEXT_CHARS_MAX = 16_384
/** The converter takes quadratic time on blanks; nobody reads so many. */
const BLANKS = /(\s{100})\s+/g

const GAP = '\n\n'

type Opening = Extract<Token, { readonly type: 'open' }>
/** `items` counts those of a list, and the blocks of an item. */
type Container = { readonly name: 'ul' | 'ol' | 'li' | 'blockquote'; items: number }
type Inline = { readonly name: string; readonly tag: string }

export class Tidy {
  /** Finished pieces, in order. Whoever converts them takes them out. */
  pieces: string[] = []
  #plain: boolean
  #out: string[] = []
  #chars = 0
  #tags = 0
  #allTags = 0
  #containers: Container[] = []
  /** Containers that were too deep to be opened. */
  #ignored = 0
  #inlines: Inline[] = []
  /** The block that holds text now, and the one the next text will be in. */
  #open: string | null = null
  #wanted = 'p'
  /** What the next text begins with, where lists are only text. */
  #bullet = ''
  #dropping: { readonly name: string; depth: number } | null = null

  /** `plain` for nothing but text. */
  constructor(plain: boolean) {
    this.#plain = plain
  }

  push(token: Token): void {
    this.#bound()
    if (this.#dropping !== null && !endsDropped(token, this.#dropping.name)) return this.#drop(token, this.#dropping)
    this.#dropping = null
    if (token.type === 'text') this.#text(token.text)
    else if (token.type === 'open') this.#start(token)
    else this.#end(token.name)
  }

  finish(): void {
    this.#closeBlock()
    this.#cut()
  }

  #drop(token: Token, dropping: { readonly name: string; depth: number }): void {
    if (token.type === 'text' || token.name !== dropping.name || isEmpty(token)) return
    dropping.depth += token.type === 'open' ? 1 : -1
    if (dropping.depth === 0) this.#dropping = null
  }

  #start(token: Opening): void {
    const { name, inside } = token
    if (VOID.has(name)) return this.#void(name, inside)
    if (DROPPED.has(name) || isHidden(inside)) {
      // A paragraph that is not shown still ends the one before it.
      if (BLOCKS.has(name)) this.#closeBlock()
      if (!isEmpty(token)) this.#dropping = { name, depth: 1 }
      return
    }
    if (this.#wanted === 'pre') return this.#lineInPre(name)
    const inline = Object.hasOwn(INLINE, name) ? INLINE[name] : undefined
    if (inline !== undefined) return this.#startInline(inline, inside)
    if (name === 'td' || name === 'th') return this.#cell()
    if (HEADING.test(name) || name === 'pre') this.#block(name)
    else if (BLOCKS.has(name)) this.#block('p')
    else if (name === 'ul' || name === 'ol' || name === 'blockquote') this.#enter(name)
    else if (name === 'li') this.#item()
  }

  #end(name: string): void {
    if (this.#wanted === 'pre' && name !== 'pre') return this.#lineInPre(name)
    const inline = Object.hasOwn(INLINE, name) ? INLINE[name] : undefined
    if (inline !== undefined) this.#endInline(inline)
    else if (HEADING.test(name) || name === 'pre' || BLOCKS.has(name)) this.#block('p')
    else if (name === 'ul' || name === 'ol' || name === 'blockquote' || name === 'li') this.#leave(name)
  }

  #void(name: string, inside: string): void {
    if (name === 'br' && this.#open !== null) this.#write(this.#isPreserved ? '\n' : '<br>', 1)
    if (this.#plain || this.#wanted === 'pre') return
    if (name === 'hr') {
      this.#closeBlock()
      this.#write('<hr>', 1)
    } else if (name === 'img' && (attributeIn(inside, 'alt') ?? '').trim() !== '' && !isHidden(inside)) {
      this.#openBlock()
      this.#write(`<img${attribute(inside, 'alt')}${attribute(inside, 'src')}>`, 1)
    }
  }

  #text(text: string): void {
    if ((this.#open === null || this.#bullet !== '') && text.trim() === '') return
    // As browsers do: the line end right after the tag is none.
    const shown = this.#open === null && this.#wanted === 'pre' ? text.replace(/^\r?\n/, '') : text
    for (let at = 0; at < shown.length; at += TEXT_CHARS_MAX) {
      this.#bound()
      this.#openBlock()
      const part = shown
        .slice(at, at + TEXT_CHARS_MAX)
        .replace(BLANKS, '$1')
        .replaceAll('<', '&lt;')
      this.#write(this.#bullet, 0)
      this.#write(this.#plain && this.#wanted !== 'pre' ? part.replace(/[ \t\n\r\f]+/g, ' ') : part, 0)
      this.#bullet = ''
    }
  }

  /** Line ends are kept as they are. */
  get #isPreserved(): boolean {
    return this.#plain || this.#wanted === 'pre'
  }

  #lineInPre(name: string): void {
    if (BLOCKS.has(name) && this.#open !== null) this.#write('\n', 0)
  }

  #block(wanted: string): void {
    this.#closeBlock()
    this.#wanted = wanted
  }

  #openBlock(): void {
    if (this.#open !== null) return
    this.#open = this.#plain ? 'plain' : this.#blockHere()
    if (this.#plain) return this.#write('<pre>', 1)
    this.#write(this.#open === 'pre' ? '<pre><code>' : `<${this.#open}>`, 1)
    if (this.#open !== 'pre') for (const { tag } of this.#inlines) this.#write(tag, 1)
  }

  /** The first text of an item is no paragraph: lists of paragraphs are written with empty lines between them. */
  #blockHere(): string {
    const item = this.#containers.at(-1)
    if (item?.name !== 'li' || item.items > 0) return this.#wanted
    item.items += 1
    return this.#wanted === 'p' ? 'span' : this.#wanted
  }

  #closeBlock(): void {
    if (this.#open === null) return
    // Plain text is one block, in which the others are lines.
    if (this.#open === 'plain' && this.#chars < PIECE_CHARS) {
      if (this.#out.at(-1) !== GAP) this.#out.push(GAP)
      return
    }
    this.#endBlock()
    if (this.#tags > PIECE_TAGS || this.#chars > PIECE_CHARS) this.#cut()
  }

  /** No block makes a piece too long. */
  #bound(): void {
    if (this.#tags > PIECE_TAGS * 4 || this.#chars > PIECE_CHARS * 4) {
      this.#endBlock()
      this.#cut()
    }
    if (this.#allTags > TAGS_MAX && !this.#plain) this.#bePlain()
  }

  #endBlock(): void {
    if (this.#open === null) return
    const isPre = this.#open === 'pre' || this.#open === 'plain'
    if (!isPre) for (const { name } of this.#inlines.toReversed()) this.#out.push(`</${name}>`)
    this.#out.push(this.#open === 'plain' ? '</pre>' : isPre ? '</code></pre>' : `</${this.#open}>`)
    this.#open = null
  }

  #bePlain(): void {
    this.#endBlock()
    this.#cut()
    this.#plain = true
    this.#out = []
    this.#containers = []
    this.#inlines = []
  }

  #startInline(name: string, inside: string): void {
    if (this.#plain) return
    if (this.#inlines.some((one) => one.name === name)) this.#endInline(name)
    if (this.#inlines.length >= INLINES_MAX) return
    const tag = name === 'a' ? `<a${attribute(inside, 'href')}>` : `<${name}>`
    this.#inlines.push({ name, tag })
    if (this.#open !== null) this.#write(tag, 1)
  }

  #endInline(name: string): void {
    const at = this.#inlines.findLastIndex((one) => one.name === name)
    if (at < 0) return
    const after = this.#inlines.slice(at + 1)
    this.#inlines.splice(at, 1)
    if (this.#open === null) return
    this.#write([...after.toReversed(), { name }].map((one) => `</${one.name}>`).join(''), 0)
    this.#write(after.map(({ tag }) => tag).join(''), after.length)
  }

  #cell(): void {
    if (this.#open !== null && this.#out.at(-1) !== GAP) this.#write(' | ', 0)
  }

  #enter(name: Container['name']): void {
    this.#block('p')
    if (this.#plain) return
    if (this.#containers.length >= DEPTH_MAX) {
      this.#ignored += 1
      return
    }
    const container = { name, items: 0 }
    this.#containers.push(container)
    this.#write(opening(container), 1)
  }

  #item(): void {
    this.#block('p')
    if (this.#plain) this.#bullet = '- '
    if (this.#plain || this.#ignored > 0) return
    const list = this.#containers.findLastIndex(({ name }) => name !== 'li')
    const found = this.#containers[list]
    if (found === undefined || found.name === 'blockquote') this.#enter('ul')
    else this.#closeTo(list + 1)
    const parent = this.#containers.at(-1)
    if (parent === undefined || parent.name === 'blockquote') return
    parent.items += 1
    this.#enter('li')
  }

  #leave(name: Container['name']): void {
    this.#block('p')
    if (this.#plain) return
    if (this.#ignored > 0) {
      // Of what was too deep only the lists are counted: items were never entered.
      if (name !== 'li') this.#ignored -= 1
      return
    }
    const at = this.#containers.findLastIndex((one) => one.name === name)
    if (at >= 0) this.#closeTo(at)
  }

  #closeTo(length: number): void {
    while (this.#containers.length > length) this.#out.push(`</${this.#containers.pop()?.name}>`)
  }

  #write(text: string, tags: number): void {
    this.#out.push(text)
    this.#chars += text.length
    this.#tags += tags
    this.#allTags += tags
  }

  /** Ends the piece between two blocks: what is open around them is closed in this one and open in the next. */
  #cut(): void {
    const closing = this.#containers.toReversed().map(({ name }) => `</${name}>`)
    if (this.#out.length > 0) this.pieces.push([...this.#out, ...closing].join(''))
    this.#out = this.#containers.map(opening)
    this.#chars = 0
    this.#tags = this.#containers.length
  }
}

/** Only drawings and formulas can end where they begin. */
function isEmpty(token: Token): boolean {
  return token.type === 'open' && (token.name === 'svg' || token.name === 'math') && token.inside.endsWith('/')
}

/** A paragraph within a paragraph is the next one. */
function endsDropped(token: Token, dropped: string): boolean {
  return token.type === 'open' && token.name === 'p' && dropped === 'p'
}

function opening({ name, items }: Container): string {
  return name === 'ol' && items > 0 ? `<ol start="${items + 1}">` : `<${name}>`
}

function attribute(inside: string, name: string): string {
  const value = attributeIn(inside, name)
  return value === null ? '' : ` ${name}="${value.replaceAll('"', '&quot;')}"`
}

function isHidden(inside: string): boolean {
  if (!/hidden|style/i.test(inside)) return false
  if (attributeIn(inside, 'hidden') !== null) return true
  if (attributeIn(inside, 'aria-hidden')?.trim().toLowerCase() === 'true') return true
  return HIDING_STYLE.test(attributeIn(inside, 'style') ?? '')
}
