// Finds the prefix of signs and digits with which a program begins each line: `==4711==`, `[INFO]`, a time. The message
// of such a line, and its indentation, stand behind the prefix.
import type { LineKinds } from './line-kinds.ts'

/** The number of lines that are checked for the prefix, and the share of them that must begin with it. */
const LOOKED_LINES = 60
const SHARE = 0.6
const PREFIX_CHARS_MAX = 40

/** The same lines without the prefix that most of them share; unchanged if there is none. */
export function stripLinePrefix(kinds: LineKinds): LineKinds {
  const shape = sharedShape(kinds)
  if (shape === null) return kinds
  const at = (line: number): string => {
    const said = kinds.at(line)
    return hasPrefixShape(said, shape) ? said.slice(shape.length) : said
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
    const shape = prefixShape(said)
    if (shape !== '') shapes.set(shape, (shapes.get(shape) ?? 0) + 1)
  }
  return [...shapes].find(([, times]) => times >= looked * SHARE)?.[0] ?? null
}

/**
 * The first word of a line with zeros for its digits, if it begins with a sign or a digit; empty for the words of a
 * message.
 */
function prefixShape(said: string): string {
  const first = said.charCodeAt(0) | 32
  if (first >= 97 && first <= 122) return ''
  let end = 0
  for (; end < said.length && end <= PREFIX_CHARS_MAX; end++) {
    const code = said.charCodeAt(end)
    if (code === 32 || code === 9) break
  }
  return end <= PREFIX_CHARS_MAX ? said.slice(0, end).replace(/\d/g, '0') : ''
}

function hasPrefixShape(said: string, shape: string): boolean {
  const after = said.charCodeAt(shape.length)
  if (said.length < shape.length || (after !== 32 && after !== 9 && said.length > shape.length)) return false
  for (let i = 0; i < shape.length; i++) {
    const code = said.charCodeAt(i)
    if ((code >= 48 && code <= 57 ? 48 : code) !== shape.charCodeAt(i)) return false
  }
  return true
}
