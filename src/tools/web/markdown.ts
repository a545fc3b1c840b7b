// HTML to Markdown or to text, token by token, with a turn for others on long pages. Character references are the package
// `entities`'s, which is loaded by the first page that needs it.
import { tokensOf } from './tokens.ts'
import { Writer } from './writer.ts'

export type Conversion = {
  readonly format: 'markdown' | 'text'
  /** What its links are relative to. */
  readonly from: URL
  readonly signal: AbortSignal
}

/** Characters read between two turns; a tag counts as some of them. */
const CHARS_AT_A_TIME = 200_000
const TAG_CHARS = 40
const LINK_CHARS_MAX = 2_000

export async function convert(html: string, { format, from, signal }: Conversion): Promise<string> {
  const { decodeHTML, decodeHTMLAttribute } = await import('entities/decode')
  const writer = new Writer({
    plain: format === 'text',
    decodeText: decodeHTML,
    decodeValue: decodeHTMLAttribute,
    addressOf: (written) => webAddress(written, from),
  })
  let chars = 0
  for (const token of tokensOf(html.replace(/\r\n?/g, '\n'))) {
    writer.push(token)
    chars += token.type === 'text' ? token.text.length : TAG_CHARS
    if (chars < CHARS_AT_A_TIME) continue
    chars = 0
    await new Promise((resolve) => setImmediate(resolve))
    signal.throwIfAborted()
  }
  return writer.finish()
}

/** A whole address that a next call could fetch; nothing that is code, data or of this page. */
function webAddress(written: string, from: URL): string | null {
  if (written === '' || written.startsWith('#') || !URL.canParse(written, from.href)) return null
  const url = new URL(written, from.href)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return null
  const text = url.href.replaceAll('(', '%28').replaceAll(')', '%29')
  return text.length <= LINK_CHARS_MAX ? text : null
}
