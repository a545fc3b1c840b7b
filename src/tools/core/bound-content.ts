// Bounds the text of a result: head and tail stay in the content, the whole text is kept as a blob, and the gap says
// how to read on. It does not decide what a tool returns.
import type { OutputMetadata } from './tool-output.ts'
import type { ToolContext } from './tool.ts'

export const CONTENT_CHARS_MAX = 40_000

export type BoundedContent = { readonly content: string; readonly metadata: OutputMetadata }
/**
 * `headShare` is the part of the budget given to the beginning; the rest goes to the end. A short text is returned
 * unchanged.
 */
export function boundContent(
  said: string,
  { keep, redact, reader }: Pick<ToolContext, 'keep' | 'redact' | 'reader'>,
  charsMax = CONTENT_CHARS_MAX,
  headShare = 0.5,
): BoundedContent {
  if (said.length <= charsMax) return { content: said, metadata: {} }
  // Redact before cutting: half of a secret is not recognized.
  const text = redact(said)
  const { hash, bytes } = keep(text)
  const head = text.slice(0, cutBefore(text, Math.floor(charsMax * headShare)))
  const tail = text.slice(cutAfter(text, text.length - (charsMax - Math.floor(charsMax * headShare))))
  const left = text.length - head.length - tail.length
  const gap = `[… ${left} of ${text.length} characters left out; ${readOnHint(hash, reader)} …]`
  return { content: `${head}\n${gap}\n${tail}`, metadata: { truncated: true, bytes, blob: hash } }
}

/** Tells the model how to read the rest, with a tool that it has. */
export function readOnHint(hash: string, reader: string | undefined): string {
  return reader === undefined ? 'no tool here can read them' : `read on with ${reader}, path "${blobPath(hash)}"`
}

/** The path that names a kept text. */
function blobPath(hash: string): string {
  return `blob:${hash}`
}

export function blobHash(path: string): string | null {
  return path.startsWith('blob:') ? path.slice('blob:'.length) : null
}

/** Cuts to at most `chars` characters, without half of a surrogate pair at the end. */
export function clip(text: string, chars: number): string {
  return text.length <= chars ? text : text.slice(0, wholeCharacterAt(text, chars))
}

/** Prefers a line end close before the cut: half lines mislead. */
function cutBefore(text: string, at: number): number {
  const line = text.lastIndexOf('\n', at - 1)
  return line > at * 0.8 ? line : wholeCharacterAt(text, at)
}

function cutAfter(text: string, at: number): number {
  const line = text.indexOf('\n', at)
  return line >= 0 && line + 1 - at < (text.length - at) * 0.2 ? line + 1 : wholeCharacterAt(text, at)
}

function wholeCharacterAt(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return at > 0 && code >= 0xdc00 && code <= 0xdfff ? at - 1 : at
}
