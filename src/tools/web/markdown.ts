// HTML to markdown or to text, by `turndown`, which is loaded by the first page that needs it. It is recursive and never pauses, so it
// only ever gets small pieces of what tidy.ts made; between them others get their turn, and it can be stopped.
import { Tidy } from './tidy.ts'
import { tokensOf } from './tokens.ts'

export type Conversion = {
  readonly format: 'markdown' | 'text'
  /** What its links are relative to. */
  readonly from: URL
  readonly signal: AbortSignal
}

/** What is used of an element of a page. */
type Element = { readonly getAttribute: (name: string) => string | null }

const TOKENS_AT_A_TIME = 5_000
const LINK_CHARS_MAX = 2_000

export async function convert(html: string, { format, from, signal }: Conversion): Promise<string> {
  const { default: Turndown } = await import('turndown')
  const service = new Turndown({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-', hr: '---' })
  if (format === 'text') service.escape = (text) => text
  service.addRule('link', { filter: 'a', replacement: (content, node) => link(content, node as Element, from) })
  service.addRule('image', { filter: 'img', replacement: (_, node) => image(node as Element, from) })
  const tidy = new Tidy(format === 'text')
  const parts: string[] = []
  const take = async (): Promise<void> => {
    const { pieces } = tidy
    tidy.pieces = []
    for (const piece of pieces) {
      parts.push(service.turndown(piece))
      await turn(signal)
    }
  }
  let count = 0
  for (const token of tokensOf(html)) {
    tidy.push(token)
    count += 1
    if (tidy.pieces.length > 0) await take()
    else if (count % TOKENS_AT_A_TIME === 0) await turn(signal)
  }
  tidy.finish()
  await take()
  return parts.filter((part) => part !== '').join('\n\n')
}

async function turn(signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
  signal.throwIfAborted()
}

function link(content: string, node: Element, from: URL): string {
  const lines = content.split('\n').map((line) => line.trim())
  const words = lines.filter((line) => line !== '').join(' ')
  const to = webAddress(node.getAttribute('href'), from)
  return to === null || words === '' ? content : `[${words}](${to})`
}

function image(node: Element, from: URL): string {
  const words = (node.getAttribute('alt') ?? '').replace(/[[\]\s]+/g, ' ').trim()
  const at = webAddress(node.getAttribute('src'), from)
  return at === null ? words : `![${words}](${at})`
}

/** A whole address that a next call could fetch; nothing that is code, data or of this page. */
function webAddress(written: string | null, from: URL): string | null {
  if (written === null || written.startsWith('#') || !URL.canParse(written, from.href)) return null
  const url = new URL(written, from.href)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return null
  const text = url.href.replaceAll('(', '%28').replaceAll(')', '%29')
  return text.length <= LINK_CHARS_MAX ? text : null
}
