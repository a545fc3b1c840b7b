// Bounding what a tool says: head and tail stay in the content, the whole text is kept as a blob, and the gap says how to
// read on. It does not decide what a tool says.
import type { Metadata } from './output.ts'
import type { ToolContext } from './tool.ts'

export const CONTENT_CHARS_MAX = 40_000

export type Bounded = { readonly content: string; readonly metadata: Metadata }
/** `headShare` is the part of the budget given to the beginning; the rest is the end. A short text comes back unchanged. */
export function bound(
  said: string,
  { keep, redact, reader }: Pick<ToolContext, 'keep' | 'redact' | 'reader'>,
  charsMax = CONTENT_CHARS_MAX,
  headShare = 0.5,
): Bounded {
  if (said.length <= charsMax) return { content: said, metadata: {} }
  // Before the cut: half of a secret is not recognized.
  const text = redact(said)
  const { hash, bytes } = keep(text)
  const head = text.slice(0, cutBefore(text, Math.floor(charsMax * headShare)))
  const tail = text.slice(cutAfter(text, text.length - (charsMax - Math.floor(charsMax * headShare))))
  const left = text.length - head.length - tail.length
  const gap = `[… ${left} of ${text.length} characters left out; ${readOn(hash, reader)} …]`
  return { content: `${head}\n${gap}\n${tail}`, metadata: { truncated: true, bytes, blob: hash } }
}

/** How the model gets at the rest, with a tool that it has. */
export function readOn(hash: string, reader: string | undefined): string {
  return reader === undefined ? 'no tool here can read them' : `read on with ${reader}, path "${blobPath(hash)}"`
}

/** How a kept text is named where a path is expected. */
function blobPath(hash: string): string {
  return `blob:${hash}`
}

export function blobHash(path: string): string | null {
  return path.startsWith('blob:') ? path.slice('blob:'.length) : null
}

/** At most `chars` characters, and no half of a surrogate pair at the end. */
export function clip(text: string, chars: number): string {
  return text.length <= chars ? text : text.slice(0, wholeAt(text, chars))
}

/** A line end close before the cut is the better cut: half lines mislead. */
function cutBefore(text: string, at: number): number {
  const line = text.lastIndexOf('\n', at - 1)
  return line > at * 0.8 ? line : wholeAt(text, at)
}

function cutAfter(text: string, at: number): number {
  const line = text.indexOf('\n', at)
  return line >= 0 && line + 1 - at < (text.length - at) * 0.2 ? line + 1 : wholeAt(text, at)
}

function wholeAt(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return at > 0 && code >= 0xdc00 && code <= 0xdfff ? at - 1 : at
}
