// Reads JSON from a model's text: fences, prose around it, trailing commas, missing brackets. Pure and linear. It finds
// a value or nothing; the caller validates the value strictly.
import type { Json } from '../kernel/content.ts'
import { parseJson } from './untrusted-json.ts'

/** More missing brackets than this are no slip. */
const CLOSED_MAX = 64
/** Only this many of the last values are tried, because each invalid one costs an exception. */
const SPANS_MAX = 100

/**
 * Returns the first of these that is valid JSON: the whole text, the last fence, the last balanced object, the last
 * balanced list; then the same without trailing commas; then the whole with its last brackets closed. Undefined if
 * there is none. `cut`: the text broke off. Then no bracket is closed, because the rest is unknown.
 */
export function readTolerantJson(said: string, cut = false): Json | undefined {
  const trimmed = said.trim()
  const { pairs, open, quoted } = scanBrackets(trimmed)
  // JSON before an answer that broke off is only a draft.
  if (cut && open.length > 0) return undefined
  const last = pairs.slice(-SPANS_MAX).reverse()
  const spans = last.map(([start, end]) => trimmed.slice(start, end + 1))
  const fence = lastFence(trimmed)
  const texts = [trimmed, ...(fence === null ? [] : [fence]), ...spans.filter(opensObject), ...spans]
  for (const text of texts) {
    const value = parseJson(text)
    if (value !== undefined) return value
  }
  for (const text of texts) {
    const value = parseJson(withoutTrailingCommas(text))
    if (value !== undefined) return value
  }
  // An unfinished string is never an answer.
  if (cut || quoted || open.length === 0 || open.length > CLOSED_MAX) return undefined
  return parseJson(withoutTrailingCommas(closeBrackets(trimmed, open)))
}

function opensObject(text: string): boolean {
  return text.startsWith('{')
}

function lastFence(text: string): string | null {
  const end = text.lastIndexOf('```')
  if (end < 0) return null
  const start = text.lastIndexOf('```', end - 1)
  if (start < 0 || start === end) return null
  const inside = text.slice(start + 3, end)
  const line = inside.indexOf('\n')
  // The first line of a fence names its language.
  const named = line >= 0 && /^[\w-]*$/.test(inside.slice(0, line).trim())
  return (named ? inside.slice(line + 1) : inside).trim()
}

type OpenBracket = { readonly bracket: string; readonly at: number }
type BracketPair = readonly [start: number, end: number]

type BracketScan = {
  readonly pairs: readonly BracketPair[]
  readonly open: readonly OpenBracket[]
  readonly quoted: boolean
}

/** The outermost pairs of brackets, and the brackets still open at the end. Brackets in strings are text. */
function scanBrackets(text: string): BracketScan {
  const pairs: BracketPair[] = []
  let open: OpenBracket[] = []
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (quoted) {
      if (char === '\\') at += 1
      else if (char === '"') quoted = false
    }
    // Quotes outside brackets are prose, not JSON strings.
    else if (char === '"') quoted = open.length > 0
    else if (char === '{' || char === '[') {
      if (BEGINS[char].includes(nextVisible(text, at + 1))) open.push({ bracket: char, at })
    } else if (char === '}' || char === ']') {
      const last = open.pop()
      // Mismatched brackets: start again.
      if (last && (last.bracket === '{') !== (char === '}')) open = []
      else if (last && open.length === 0) pairs.push([last.at, at])
    }
  }
  return { pairs, open, quoted }
}

/** The characters JSON may have after a bracket, unlike brackets in prose. */
const BEGINS = { '{': '"}', '[': '{["-0123456789tfn]' } as const

/** The next character that is not white space; an empty string at the end. */
function nextVisible(text: string, from: number): string {
  let at = from
  while (at < text.length && SPACE.includes(text[at] as string)) at += 1
  return text[at] ?? ''
}

const SPACE = ' \t\n\r'

function closeBrackets(text: string, open: readonly OpenBracket[]): string {
  const ends = open.map(({ bracket }) => (bracket === '{' ? '}' : ']')).reverse()
  return `${text.slice(open[0]?.at)}${ends.join('')}`
}

function withoutTrailingCommas(text: string): string {
  let out = ''
  let quoted = false
  let from = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (quoted) {
      if (char === '\\') at += 1
      else if (char === '"') quoted = false
    } else if (char === '"') quoted = true
    else if (char === ',' && isClosing(text, at + 1)) {
      out += text.slice(from, at)
      from = at + 1
    }
  }
  return out + text.slice(from)
}

function isClosing(text: string, from: number): boolean {
  const next = nextVisible(text, from)
  return next === '}' || next === ']'
}
