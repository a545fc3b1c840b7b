// Reads and writes a call in a code fence that is marked as one: ```tool_call, then JSON or P-Format, then ```. Also
// finds the fences that only quote. Pure, and linear in the text.
import type { CallReader, ReadCall } from './call-reader.ts'
import { FENCE_MARKER } from './markers.ts'
import { callJson, readTagBody } from './tag.ts'

export const readFence: CallReader = (text, from, reading) => {
  const start = from + FENCE_MARKER.length
  // JSON on one line may stand right before the closing fence, and P-Format may hold no line break.
  return text[start] === '\n' || text.startsWith('\r\n', start) ? readTagBody(text, start, '```', reading) : null
}

export function writeFence(call: ReadCall): string {
  return `${FENCE_MARKER}\n${callJson(call)}\n\`\`\``
}

const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n]{0,200})/

/** The fence that quotes, after this line; null outside of one. */
export function fenceAfter(line: string, open: string | null): string | null {
  const [, mark = '', info = ''] = FENCE.exec(line) ?? []
  if (open !== null) {
    const closes = mark[0] === open[0] && mark.length >= open.length && info.trim() === ''
    return closes ? null : open
  }
  // A fence of backticks has none on the rest of its line.
  return mark === '' || (mark[0] === '`' && info.includes('`')) ? null : mark
}
