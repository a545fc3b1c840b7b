// The meaning of a bash word after quoting, as far as its text shows. Only $HOME is expanded.
import type { SyntaxNode } from './parse-bash.ts'

export type ShellWord = {
  /** The text without quotes. `\0` stands for each part that is known only at run time, `~` for the home folder. */
  readonly text: string
  /** A part of it is known only at run time. */
  readonly computed: boolean
  /** It holds an unquoted pattern, so it may become any number of words. */
  readonly pattern: boolean
}

/** Stands for each part of a word that is known only at run time. */
export const UNKNOWN_PART = '\0'

export function plainWord(text: string): ShellWord {
  return { text, computed: text.includes(UNKNOWN_PART), pattern: false }
}

/** The types of nodes that are words or parts of words. */
const WORDS: ReadonlySet<string> = new Set([
  'command_name',
  'word',
  'number',
  'string',
  'raw_string',
  'ansi_c_string',
  'translated_string',
  'concatenation',
  'simple_expansion',
  'expansion',
  'command_substitution',
  'process_substitution',
  'arithmetic_expansion',
  'brace_expression',
  '$',
])

/** The words among these nodes. The grammar splits some words: adjacent nodes are one. */
export function wordsIn(nodes: readonly SyntaxNode[], source: string): readonly ShellWord[] {
  const words: ShellWord[] = []
  let reached = -1
  nodes.forEach((node, i) => {
    if (!WORDS.has(node.type) || isDescriptor(node, source)) return
    const word = isDollar(node, nodes[i + 1], source) ? plainWord('') : readWord(node, source)
    const before = node.start === reached ? words.pop() : undefined
    words.push(before ? mergeWords(before, word) : word)
    reached = node.end
  })
  return words
}

/** `0<<<` and `{fd}>`: bash takes a number or a name directly before a redirection as part of it. */
function isDescriptor({ start, end }: SyntaxNode, source: string): boolean {
  if (!/^[<>](?!\()/.test(source.slice(end, end + 2))) return false
  return /^(\d+|\{\w+\})$/.test(source.slice(start, end))
}

function mergeWords(first: ShellWord, second: ShellWord): ShellWord {
  const pattern = first.pattern || second.pattern
  return { text: first.text + second.text, computed: first.computed || second.computed, pattern }
}

function readWord(node: SyntaxNode, source: string): ShellWord {
  let text = ''
  let pattern = false
  for (const part of wordParts(node, source)) {
    const raw = source.slice(part.start, part.end)
    text += part.type === 'string' ? quotedText(part, source) : simpleText(part, raw)
    if (part.type === 'brace_expression') pattern = true
    if (part.type === 'word' && /[*?[{]/.test(raw.replace(/\\[^]/g, ''))) pattern = true
  }
  return { text, computed: text.includes(UNKNOWN_PART), pattern }
}

function wordParts(node: SyntaxNode, source: string): readonly SyntaxNode[] {
  const inner = node.type === 'command_name' && node.children[0] ? node.children[0] : node
  if (inner.type !== 'concatenation' && inner.type !== 'translated_string') return [inner]
  return inner.children.filter((child, i) => !isDollar(child, inner.children[i + 1], source))
}

/** `$"…"` is a string too; its dollar is a node of its own. */
function isDollar(node: SyntaxNode, next: SyntaxNode | undefined, source: string): boolean {
  return (
    node.type === '$' &&
    source.slice(node.start, node.end) === '$' &&
    next?.type === 'string' &&
    next.start === node.end
  )
}

function simpleText(part: SyntaxNode, raw: string): string {
  switch (part.type) {
    case 'word':
    case 'number':
    case '$':
      return raw.replace(/\\(\n|[^])/g, (_, character: string) => (character === '\n' ? '' : character))
    case 'raw_string':
      return raw.slice(1, -1)
    case 'ansi_c_string':
      return decodeAnsi(raw.slice(2, -1))
    case 'simple_expansion':
    case 'expansion':
      return /^\$(HOME|\{HOME\})$/.test(raw) ? '~' : UNKNOWN_PART
    default:
      return UNKNOWN_PART
  }
}

function quotedText(node: SyntaxNode, source: string): string {
  let text = ''
  let reached = node.start + 1
  const literal = (to: number): void => {
    text += source.slice(reached, to).replace(/\\([$`"\\\n])/g, (_, c: string) => (c === '\n' ? '' : c))
  }
  for (const child of node.children) {
    if (child.type === 'string_content' || child.type === '"') continue
    literal(child.start)
    text += simpleText(child, source.slice(child.start, child.end))
    reached = child.end
  }
  literal(node.end - 1)
  return text
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  e: '\x1b',
  E: '\x1b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

function decodeAnsi(raw: string): string {
  const escape = /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c([^])|([^]))/g
  return raw.replace(escape, (...found: (string | undefined)[]) => {
    const [whole = '', hex, short, long, octal, control, letter] = found
    const code = octal === undefined ? Number.parseInt(hex ?? short ?? long ?? '', 16) : Number.parseInt(octal, 8) % 256
    // Bash ends the string at a NUL, and no legitimate command holds one or a control character.
    if (control !== undefined || code === 0 || code > 0x10ffff) return UNKNOWN_PART
    if (!Number.isNaN(code)) return String.fromCodePoint(code)
    return letter === undefined ? whole : (ESCAPES[letter] ?? (/["'?\\]/.test(letter) ? letter : `\\${letter}`))
  })
}

export type WordOptions = {
  /** The letters of `-abc`. */
  readonly letters: ReadonlySet<string>
  /** The long options (`--long`), without values. */
  readonly long: readonly string[]
  readonly operands: readonly ShellWord[]
}

/**
 * Parses as getopt does, with options after operands too. Values of options count as operands, so rules see more, not
 * less.
 */
export function parseOptions(args: readonly ShellWord[]): WordOptions {
  const letters = new Set<string>()
  const long: string[] = []
  const operands: ShellWord[] = []
  let ended = false
  for (const word of args) {
    if (ended || !word.text.startsWith('-') || word.text === '-') operands.push(word)
    else if (word.text === '--') ended = true
    else if (word.text.startsWith('--')) long.push(word.text.split('=')[0] ?? '')
    else for (const letter of word.text.slice(1)) letters.add(letter)
  }
  return { letters, long, operands }
}

/** Long options may be abbreviated, so `--rec` is `--recursive`. */
export function hasOption(options: WordOptions, letters: string, ...long: readonly string[]): boolean {
  for (const letter of letters) if (options.letters.has(letter)) return true
  return options.long.some((given) => given.length > 2 && long.some((name) => name.startsWith(given)))
}
