// Shortens source code: signatures stay, bodies of functions from eight lines on are counted. It goes by braces, and
// for Python by indentation; code whose braces do not match is left as it is. Always lossy.
import { languageOf } from './detect-kind.ts'
import type { Shortener } from './text-kind.ts'

const BODY_LINES_MIN = 8
const HEAD_CHARS = 300
const SIGNATURE_LINES_MAX = 30

/** Lines of a body, counted from 0: the first that is left out, and the first after them. */
type FunctionBody = { readonly from: number; readonly to: number }

export const shortenCode: Shortener = (text, { lossless, hint }) => {
  if (lossless) return null
  const lines = text.split('\n')
  const bodies = isPython(text, languageOf(hint)) ? pythonBodies(lines) : braceBodies(text)
  if (bodies === null || bodies.length === 0) return null
  const shown: string[] = []
  let at = 0
  for (const { from, to } of bodies) {
    for (; at < from; at++) shown.push(lines[at] ?? '')
    const [, indent = ''] = /^(\s{0,80})/.exec(lines[from] ?? '') ?? []
    shown.push(`${indent}… ${to - from} lines …`)
    at = to
  }
  for (; at < lines.length; at++) shown.push(lines[at] ?? '')
  return { text: shown.join('\n'), lossy: true }
}

function isPython(text: string, language: string): boolean {
  if (language === 'py' || language === 'pyi') return true
  return !/[{;]\s*$/m.test(text.slice(0, 100_000)) && DEF.test(text.slice(0, 100_000))
}

const DEF = /^\s{0,80}(?:async )?def \w/m

function pythonBodies(lines: readonly string[]): readonly FunctionBody[] {
  const bodies: FunctionBody[] = []
  for (let at = 0; at < lines.length; at++) {
    if (!DEF.test(lines[at] ?? '')) continue
    const indent = indentOf(lines[at] ?? '')
    const first = signatureEnd(lines, at)
    const end = blockEnd(lines, first, indent)
    // The first line of a docstring says what the function is for.
    const from = /^\s*[rbu]?(?:"""|''')/.test(lines[first] ?? '') ? first + 1 : first
    if (end - from >= BODY_LINES_MIN) bodies.push({ from, to: end })
    at = Math.max(at, end - 1)
  }
  return bodies
}

/** The line after the one that closes the parentheses of a signature. */
function signatureEnd(lines: readonly string[], at: number): number {
  let depth = 0
  for (let line = at; line < Math.min(lines.length, at + SIGNATURE_LINES_MAX); line++) {
    for (const sign of lines[line] ?? '') {
      if (sign === '(' || sign === '[') depth += 1
      else if (sign === ')' || sign === ']') depth -= 1
    }
    if (depth <= 0) return line + 1
  }
  return at + 1
}

/** The line after the last one with more indentation. The lines of a string literal may have any indentation. */
function blockEnd(lines: readonly string[], from: number, indent: number): number {
  let [end, quoted] = [from, false]
  for (let line = from; line < lines.length; line++) {
    const text = lines[line] ?? ''
    if (!quoted && text.trim() !== '' && indentOf(text) <= indent) return end
    if ((countOccurrences(text, '"""') + countOccurrences(text, "'''")) % 2 === 1) quoted = !quoted
    if (text.trim() !== '') end = line + 1
  }
  return end
}

function countOccurrences(text: string, part: string): number {
  let count = 0
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) count += 1
  return count
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length
}

const [NEWLINE, OPENED, CLOSED, SEMICOLON, BEGIN, END] = Array.from('\n();{}', (sign) => sign.charCodeAt(0))
/** All other characters say nothing about where a body begins or ends. */
const NOTED = /[\n();{}/`"']/g

type OpenBrace = { readonly line: number; readonly body: boolean }

/** The outermost bodies. Null if the braces do not close. */
function braceBodies(text: string): readonly FunctionBody[] | null {
  const open: OpenBrace[] = []
  const bodies: FunctionBody[] = []
  let [line, head, parens, inside] = [0, 0, 0, 0]
  NOTED.lastIndex = 0
  for (let found = NOTED.exec(text); found !== null; found = NOTED.exec(text)) {
    const at = found.index
    const sign = text.charCodeAt(at)
    const end = literalEnd(text, at)
    if (end > at) {
      line += countOccurrences(text.slice(at, end), '\n')
      NOTED.lastIndex = end
    } else if (sign === NEWLINE) line += 1
    else if (sign === OPENED) parens += 1
    else if (sign === CLOSED) parens = Math.max(0, parens - 1)
    else if (sign === SEMICOLON && parens === 0) head = at + 1
    else if (sign === BEGIN) {
      const body = inside === 0 && isFunction(text.slice(Math.max(head, at - HEAD_CHARS), at))
      open.push({ line, body })
      if (body || inside > 0) inside += 1
      head = at + 1
      parens = 0
    } else if (sign === END) {
      const brace = open.pop()
      if (brace === undefined) return null
      inside = Math.max(0, inside - 1)
      if (brace.body && line - brace.line - 1 >= BODY_LINES_MIN) bodies.push({ from: brace.line + 1, to: line })
      head = at + 1
    }
  }
  return open.length === 0 ? bodies : null
}

/** The end of the comment, string or regular expression that begins here; `at` itself if none does. */
function literalEnd(text: string, at: number): number {
  const sign = text[at]
  if (sign === '/') {
    if (text[at + 1] === '/') return foundOrEnd(text, text.indexOf('\n', at))
    if (text[at + 1] === '*') return foundOrEnd(text, text.indexOf('*/', at + 2), 2)
    return /[(,=:[!&|?{};]\s{0,8}$|return\s$/.test(text.slice(Math.max(0, at - 10), at)) ? quoteEnd(text, at) : at
  }
  if (sign === '`') return templateEnd(text, at)
  return sign === '"' || sign === "'" ? quoteEnd(text, at) : at
}

function foundOrEnd(text: string, found: number, more = 0): number {
  return found < 0 ? text.length : found + more
}

/**
 * The place after the closing sign in the same line. Without one the sign opens nothing, such as a lifetime in Rust.
 */
function quoteEnd(text: string, open: number): number {
  for (let at = open + 1; at < text.length && text[at] !== '\n'; at++) {
    if (text[at] === '\\') at += 1
    else if (text[at] === text[open]) return at + 1
  }
  return open
}

/** The content is not parsed: a template inside a template ends it early, and then the braces hardly match. */
function templateEnd(text: string, open: number): number {
  for (let at = open + 1; at < text.length; at++) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '`') return at + 1
  }
  return open
}

const HOLDS_MORE =
  /^\s*(?:(?:export|default|pub|abstract|declare|public|private|final|static)\s+)*(?:class|interface|struct|enum|impl|trait|mod|namespace|module|union|extern|if|for|while|switch|match|loop|else|do|try|catch|finally|unsafe|with|when|select)\b/
const NAMES_FUNCTION = /\b(?:fn|func|function|fun|def)\b|=>\s*$/
const RETURNS = /^\s*(?:$|:|->|throws\b|const\b|override\b|noexcept\b|where\b)/

/** Whether the text before a brace opens the body of a function. */
function isFunction(head: string): boolean {
  if (NAMES_FUNCTION.test(head)) return true
  const close = head.lastIndexOf(')')
  return close >= 0 && !HOLDS_MORE.test(head) && RETURNS.test(head.slice(close + 1))
}
