// Parses the beginning of a JSON text: open brackets are closed, and an incomplete value is left out. Pure.
import type { Json } from '../kernel/content.ts'
import { parseJson } from '../view/untrusted-json.ts'

/** Undefined while there is no value yet. */
export function readPartialJson(text: string): Json | undefined {
  const closers: string[] = []
  let isQuoted = false
  /** The end of the last complete value, and the brackets open there. */
  let whole = { end: 0, closing: '' }
  for (let i = 0; i < text.length; i++) {
    const letter = text[i]
    if (isQuoted) {
      if (letter === '\\') i += 1
      else if (letter === '"') isQuoted = false
    } else if (letter === '"') isQuoted = true
    else if (letter === '{' || letter === '[') {
      closers.unshift(letter === '{' ? '}' : ']')
      whole = { end: i + 1, closing: closers.join('') }
    } else if (letter === '}' || letter === ']') closers.shift()
    else if (letter === ',') whole = { end: i, closing: closers.join('') }
  }
  const closing = closers.join('')
  const open = isQuoted ? `${text}"${closing}` : text + closing
  return parseJson(open) ?? parseJson(text.slice(0, whole.end) + whole.closing)
}
