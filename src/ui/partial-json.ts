// JSON of which only the begin has come, as the value it is so far: what is open is closed, and what is half said is left out. Pure.
import type { Json } from '../kernel/content.ts'
import { parsed } from '../view/json.ts'

/** Undefined while there is no value yet. */
export function readPartialJson(text: string): Json | undefined {
  const closers: string[] = []
  let isQuoted = false
  /** Where the last whole value ended, and what was open there. */
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
  return parsed(open) ?? parsed(text.slice(0, whole.end) + whole.closing)
}
