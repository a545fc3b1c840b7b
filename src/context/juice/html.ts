// HTML: the text that a reader would see, by the same reader that `web_fetch` uses. Always lossy.
import { convert } from '../../tools/web/markdown.ts'
import type { Shorten } from './kind.ts'

/** Links of a text are not shown, so it does not matter where they lead. */
const NOWHERE = new URL('about:blank')

export const shortenHtml: Shorten = async (text, { lossless, signal }) => {
  if (lossless) return null
  const read = await convert(text, { format: 'text', from: NOWHERE, signal })
  // A page that scripts fill says nothing to a reader.
  return read.trim() === '' ? null : { text: read, lossy: true }
}
