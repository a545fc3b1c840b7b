// Splits HTML into tags and text, in one pass of linear cost whatever the HTML is. It builds no tree and decodes no
// character references.

export type HtmlToken =
  | { readonly type: 'text'; readonly text: string }
  /** `inside` is the text between the name and the end of the tag. */
  | { readonly type: 'open'; readonly name: string; readonly inside: string }
  | { readonly type: 'close'; readonly name: string }

/** Elements whose content is not markup. */
const RAW = new Set(['script', 'style', 'textarea', 'title', 'xmp', 'iframe', 'noembed', 'noframes'])
const ATTRIBUTES_CHARS_MAX = 8_192
const TEXT_CHARS_MAX = 16_384
const REFERENCE_CHARS_MAX = 40

export function* tokenizeHtml(html: string): Generator<HtmlToken> {
  const markup = /<(?=[A-Za-z/!?])/g
  let at = 0
  while (at < html.length) {
    markup.lastIndex = at
    const start = markup.exec(html)?.index ?? html.length
    yield* textTokens(html, at, start)
    if (start === html.length) return
    const tag = readTag(html, start)
    if (tag.token !== null) yield tag.token
    at = tag.end
    if (tag.token?.type !== 'open' || !RAW.has(tag.token.name)) continue
    const close = new RegExp(`</${tag.token.name}(?=[\\s/>])`, 'gi')
    close.lastIndex = at
    const end = close.exec(html)?.index ?? html.length
    yield* textTokens(html, at, end)
    at = end
  }
}

/** The value of an attribute as written; empty for an attribute without a value, null for a missing one. */
export function readAttribute(inside: string, wanted: string): string | null {
  const pattern = /([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?/g
  for (const [, name = '', double, single, bare] of inside.slice(0, ATTRIBUTES_CHARS_MAX).matchAll(pattern)) {
    if (name.toLowerCase() === wanted) return double ?? single ?? bare ?? ''
  }
  return null
}

/** Yields the text in bounded parts, none of which ends within a character reference. */
function* textTokens(html: string, from: number, to: number): Generator<HtmlToken> {
  for (let at = from; at < to; ) {
    const end = Math.min(at + TEXT_CHARS_MAX, to)
    const reference = end < to ? html.slice(end - REFERENCE_CHARS_MAX, end).lastIndexOf('&') : -1
    const cut = reference < 0 ? end : end - REFERENCE_CHARS_MAX + reference
    yield { type: 'text', text: html.slice(at, cut) }
    at = cut
  }
}

type TagResult = { readonly token: HtmlToken | null; readonly end: number }

function readTag(html: string, start: number): TagResult {
  if (html.startsWith('<!--', start)) return { token: null, end: indexAfter(html, '-->', start + 2) }
  const closing = html[start + 1] === '/'
  const first = start + (closing ? 2 : 1)
  const name = /[A-Za-z][^\s/>]{0,40}/y
  name.lastIndex = first
  const found = name.exec(html)?.[0]
  // Neither a tag nor a comment: browsers hide it up to the next ">".
  if (found === undefined) return { token: null, end: indexAfter(html, '>', start) }
  const end = endOfTag(html, first + found.length)
  const lower = found.toLowerCase()
  if (closing) return { token: { type: 'close', name: lower }, end: end + 1 }
  return { token: { type: 'open', name: lower, inside: html.slice(first + found.length, end) }, end: end + 1 }
}

/** Finds the ">" that ends the tag. One within a quoted value does not count; quotes count only after "=". */
function endOfTag(html: string, from: number): number {
  let isValue = false
  for (let at = from; at < html.length; at++) {
    const char = html[at] ?? ''
    if (char === '>') return at
    if (isValue && (char === '"' || char === "'")) at = indexAfter(html, char, at + 1) - 1
    if (char === '=') isValue = true
    else if (!/\s/.test(char)) isValue = false
  }
  return html.length
}

function indexAfter(html: string, what: string, from: number): number {
  const found = html.indexOf(what, from)
  return found < 0 ? html.length : found + what.length
}
