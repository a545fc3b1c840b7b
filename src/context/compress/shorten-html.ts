// Shortens HTML to the text that a reader would see, with the same converter as `web_fetch`. Always lossy.
import { convertHtml } from '../../tools/web/html-to-markdown.ts'
import type { Shortener } from './text-kind.ts'

/** The text form shows no link addresses, so the base address does not matter. */
const NOWHERE = new URL('about:blank')

export const shortenHtml: Shortener = async (text, { lossless, signal }) => {
  if (lossless) return null
  const read = await convertHtml(text, { format: 'text', from: NOWHERE, signal })
  // A page that scripts fill has no text.
  return read.trim() === '' ? null : { text: read, lossy: true }
}
