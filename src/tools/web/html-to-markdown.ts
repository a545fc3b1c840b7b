// Converts HTML to Markdown or to text, token by token, and yields to other work on long pages. The package `entities`
// decodes character references; the first page that needs it loads it.
import { tokenizeHtml } from './html-tokens.ts'
import { MarkdownWriter } from './markdown-writer.ts'

export type Conversion = {
  readonly format: 'markdown' | 'text'
  /** The base URL of its links. */
  readonly from: URL
  readonly signal: AbortSignal
}

/** The characters to read between two pauses; a tag counts as some of them. */
const CHARS_AT_A_TIME = 200_000
const TAG_CHARS = 40
const LINK_CHARS_MAX = 2_000

export async function convertHtml(html: string, { format, from, signal }: Conversion): Promise<string> {
  const { decodeHTML, decodeHTMLAttribute } = await import('entities/decode')
  const writer = new MarkdownWriter({
    plain: format === 'text',
    decodeText: decodeHTML,
    decodeValue: decodeHTMLAttribute,
    addressOf: (written) => webAddress(written, from),
  })
  let chars = 0
  for (const token of tokenizeHtml(html.replace(/\r\n?/g, '\n'))) {
    writer.push(token)
    chars += token.type === 'text' ? token.text.length : TAG_CHARS
    if (chars < CHARS_AT_A_TIME) continue
    chars = 0
    await new Promise((resolve) => setImmediate(resolve))
    signal.throwIfAborted()
  }
  return writer.finish()
}

/** Returns an absolute address that a later call could fetch; null for code, data and links within the page. */
function webAddress(written: string, from: URL): string | null {
  if (written === '' || written.startsWith('#') || !URL.canParse(written, from.href)) return null
  const url = new URL(written, from.href)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return null
  const text = url.href.replaceAll('(', '%28').replaceAll(')', '%29')
  return text.length <= LINK_CHARS_MAX ? text : null
}
