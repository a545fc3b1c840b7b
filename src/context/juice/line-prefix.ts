// Many programs begin each line with the same word of signs and digits: `==4711==`, `[INFO]`, a time. What such a line says, and how far
// it is indented, stands behind that word.
import type { LineKinds } from './line-kinds.ts'

/** Lines that are looked at for the word, and the share of them that must begin with it. */
const LOOKED_LINES = 60
const SHARE = 0.6
const PREFIX_CHARS_MAX = 40

/** The same lines without the word that most of them begin with; as they are if there is none. */
export function withoutPrefix(kinds: LineKinds): LineKinds {
  const shape = sharedShape(kinds)
  if (shape === null) return kinds
  const at = (line: number): string => {
    const said = kinds.at(line)
    return beginsWith(said, shape) ? said.slice(shape.length) : said
  }
  return { ...kinds, at }
}

function sharedShape({ count, at }: LineKinds): string | null {
  const shapes = new Map<string, number>()
  const step = Math.max(1, Math.floor(count / LOOKED_LINES))
  let looked = 0
  for (let line = 0; line < count; line += step) {
    const said = at(line)
    if (said === '') continue
    looked += 1
    const shape = shapeOf(said)
    if (shape !== '') shapes.set(shape, (shapes.get(shape) ?? 0) + 1)
  }
  return [...shapes].find(([, times]) => times >= looked * SHARE)?.[0] ?? null
}

/** The first word of a line with zeros for its digits, if it begins with a sign or a digit: words of a message are none. */
function shapeOf(said: string): string {
  const first = said.charCodeAt(0) | 32
  if (first >= 97 && first <= 122) return ''
  let end = 0
  for (; end < said.length && end <= PREFIX_CHARS_MAX; end++) {
    const code = said.charCodeAt(end)
    if (code === 32 || code === 9) break
  }
  return end <= PREFIX_CHARS_MAX ? said.slice(0, end).replace(/\d/g, '0') : ''
}

function beginsWith(said: string, shape: string): boolean {
  const after = said.charCodeAt(shape.length)
  if (said.length < shape.length || (after !== 32 && after !== 9 && said.length > shape.length)) return false
  for (let i = 0; i < shape.length; i++) {
    const code = said.charCodeAt(i)
    if ((code >= 48 && code <= 57 ? 48 : code) !== shape.charCodeAt(i)) return false
  }
  return true
}
