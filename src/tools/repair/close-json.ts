// Closes argument text that is not JSON because it ends early or badly. It is never completed: nothing is added except
// closing brackets, and the rest of a `true`, `false` or `null` that can be nothing else.
import { isObject, type JsonObject } from '../../view/untrusted-json.ts'

/**
 * Says how much was lost:
 * - `none`: only closing brackets, or a comma before one, were wrong. Every value is whole.
 * - `tail`: something had begun, or something else followed: a key without a value, a comma, an open bracket, prose. It
 * is dropped.
 * - `value`: it ends inside a string or a number, whose intended value is unknown. `value` holds what came before: it
 * is reported, and never run.
 */
export type ClosedJson = { readonly value: JsonObject; readonly lost: 'none' | 'tail' | 'value' }

/** With more top-level pairs than this, our reading of a broken text is not reliable. */
const PAIRS_MAX = 12
/** Real arguments do not nest so deep, and the parser is slow on texts that do. */
const DEPTH_MAX = 256
const LITERALS = ['true', 'false', 'null'] as const

/** Null if no object can be read. It never throws. */
export function closeJson(text: string): ClosedJson | null {
  const scan = new TruncatedScan(text.replace(/^\s*```\w*\s/, ''))
  const lost = scan.run()
  if (lost === null || scan.pairs > PAIRS_MAX) return null
  try {
    // The scan only finds the end. The parser decides whether the text is JSON.
    const value: unknown = JSON.parse(scan.closed())
    return isObject(value) ? { value, lost } : null
  } catch {
    return null
  }
}

type Expects = 'value' | 'key' | 'colon' | 'comma'

/** One pass over the text. It is a class, because position, brackets and kept tokens change together. */
class TruncatedScan {
  pairs = 0
  readonly #text: string
  readonly #kept: string[] = []
  /** The number of tokens in `#kept` up to the last complete value or opening bracket. */
  #whole = 0
  readonly #open: ('}' | ']')[] = []
  #expects: Expects = 'value'
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  closed(): string {
    return this.#kept.slice(0, this.#whole).join('') + this.#open.toReversed().join('')
  }

  run(): ClosedJson['lost'] | null {
    do {
      const lost = this.#token()
      if (lost !== 'more') return lost
    } while (this.#open.length > 0)
    // Extra brackets and fences are harmless; any other text that follows is not.
    return /^[\s\]},;`]*$/.test(this.#text.slice(this.#at)) ? 'none' : 'tail'
  }

  /** Takes one token. Returns `more` to go on; null if no JSON text begins like this. */
  #token(): ClosedJson['lost'] | 'more' | null {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at += 1
    const char = this.#text[this.#at]
    // After a whole value only brackets are missing. Anywhere else something was still to come.
    if (char === undefined) return this.#open.length === 0 ? null : this.#expects === 'comma' ? 'none' : 'tail'
    if (char === '"') return this.#string()
    if (char === '{' || char === '[') return this.#opens(char)
    if (char === '}' || char === ']') return this.#closes(char)
    if (char === ':' && this.#expects === 'colon') return this.#mark(':', 'value')
    if (char === ',' && this.#expects === 'comma') return this.#mark(',', this.#open.at(-1) === '}' ? 'key' : 'value')
    return this.#expects === 'value' && this.#open.length > 0 ? this.#word() : null
  }

  #mark(char: string, expects: Expects): 'more' {
    this.#at += 1
    this.#kept.push(char)
    this.#expects = expects
    return 'more'
  }

  #opens(char: '{' | '['): 'more' | null {
    if (this.#expects !== 'value' || this.#open.length === DEPTH_MAX) return null
    this.#open.push(char === '{' ? '}' : ']')
    this.#mark(char, char === '{' ? 'key' : 'value')
    this.#whole = this.#kept.length
    return 'more'
  }

  /** Drops a comma before a closing bracket; a key without a value stays an error. */
  #closes(char: '}' | ']'): 'more' | null {
    const comma = this.#kept.at(-1) === ','
    const empty = this.#whole === this.#kept.length
    if (this.#open.at(-1) !== char || !(this.#expects === 'comma' || comma || empty)) return null
    if (comma) this.#kept.pop()
    this.#open.pop()
    return this.#value(char)
  }

  #string(): 'value' | 'tail' | 'more' | null {
    if (this.#expects !== 'key' && (this.#expects !== 'value' || this.#open.length === 0)) return null
    let end = this.#at + 1
    while (end < this.#text.length && this.#text[end] !== '"') end += this.#text[end] === '\\' ? 2 : 1
    const key = this.#expects === 'key'
    if (end >= this.#text.length) return key ? 'tail' : 'value'
    const string = this.#text.slice(this.#at, end + 1)
    this.#at = end
    if (!key) return this.#value(string)
    if (this.#open.length === 1) this.pairs += 1
    return this.#mark(string, 'colon')
  }

  #word(): 'value' | 'more' | null {
    const word = /^[\w+.-]+/.exec(this.#text.slice(this.#at, this.#at + 400))?.[0] ?? ''
    if (word === '') return null
    const ends = this.#at + word.length >= this.#text.length
    const literal = LITERALS.find((one) => one.startsWith(word))
    // A number at the very end may have lost digits, so it is as uncertain as half a string.
    if (ends && literal === undefined) return 'value'
    this.#at += word.length - 1
    return this.#value(ends && literal !== undefined ? literal : word)
  }

  #value(text: string): 'more' {
    this.#mark(text, 'comma')
    this.#whole = this.#kept.length
    return 'more'
  }
}
