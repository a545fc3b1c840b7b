// Reads the JSON of a foreign file: one value, or one on each line. A line that cannot be read is undefined, since a
// program may have been stopped while it wrote. Linear in the text.
import type { Json } from '../../kernel/content.ts'
import { parseJson } from '../../view/untrusted-json.ts'

/** The same as for the arguments of a live call. */
const DEPTH_MAX = 200

/** The values of all lines that are not empty. */
export function parseLines(text: string): readonly (Json | undefined)[] {
  const values: (Json | undefined)[] = []
  for (let at = text.startsWith('\uFEFF') ? 1 : 0; at < text.length; ) {
    const line = text.indexOf('\n', at)
    const end = line < 0 ? text.length : line
    const body = text.slice(at, end).trim()
    if (body !== '') values.push(parseShallow(body))
    at = end + 1
  }
  return values
}

/** Undefined if it is not JSON, or nested too deeply. */
export function parseShallow(text: string): Json | undefined {
  let depth = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (quoted) {
      if (code === BACKSLASH) at += 1
      else if (code === QUOTE) quoted = false
    } else if (code === QUOTE) quoted = true
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      depth += 1
      if (depth > DEPTH_MAX) return undefined
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth -= 1
  }
  return parseJson(text)
}

const [QUOTE, BACKSLASH] = [34, 92]
const [OPEN_LIST, CLOSE_LIST] = [91, 93]
const [OPEN_OBJECT, CLOSE_OBJECT] = [123, 125]
