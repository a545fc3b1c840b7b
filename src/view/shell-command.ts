// Builds commands that people paste into a shell. Every value is quoted, so that a shell reads it as one word.

const PLAIN = /^[\w./:~-]+$/
/** A tilde that a shell may replace by a folder. */
const HOME = /(?:^|:)~/
/** Characters that must not reach a terminal unescaped, and line breaks, which would end the command. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|[^\P{Zs} ]/u

const encoder = new TextEncoder()

/**
 * One word for a POSIX shell. Invisible characters are written as bytes, such as `$'\033'`, which older versions of
 * dash do not know. A word cannot contain NUL, so it is left out.
 */
export function shellWord(text: string): string {
  if (PLAIN.test(text) && !HOME.test(text)) return text
  if (!HIDDEN.test(text)) return `'${text.replaceAll("'", String.raw`'\''`)}'`
  const bytes = encoder.encode(text.replaceAll('\0', ''))
  return `$'${Array.from(bytes, (byte) => (isPlainByte(byte) ? String.fromCharCode(byte) : octal(byte))).join('')}'`
}

/** Printable ASCII without a meaning between `$'` and `'`, or in the history of a shell. */
function isPlainByte(byte: number): boolean {
  return byte >= 0x20 && byte < 0x7f && !`'\\!`.includes(String.fromCharCode(byte))
}

function octal(byte: number): string {
  return `\\${byte.toString(8).padStart(3, '0')}`
}

type CommandWord = { readonly text: string; readonly isLiteral: boolean; readonly isDashed: boolean }

/**
 * A command line as a template: its own text stays unchanged, and each value becomes part of a word. Positional words
 * come before the flags. A value that begins with `-` would be read as a flag; then `--` and all positional words come
 * last, and the value of a flag is joined with `=`.
 */
export function shellCommand(parts: TemplateStringsArray, ...values: readonly string[]): string {
  return shellCommandWith([], parts, values)
}

/** The same with more flags, each already quoted. */
export function shellCommandWith(
  more: readonly string[],
  parts: TemplateStringsArray,
  values: readonly string[],
): string {
  const [name, ...words] = commandWords(parts, values)
  const first = words.findIndex(({ text, isLiteral }) => isLiteral && text.startsWith('--'))
  const positional = first < 0 ? words : words.slice(0, first)
  const flags = [...joinFlags(first < 0 ? [] : words.slice(first)), ...more]
  const said = positional.map(({ text }) => text)
  // `terret delete -- -a`: the command's name is not one of its words.
  const verbs = said.splice(0, name?.text === 'terret' ? 1 : 0)
  const all = positional.some(({ isDashed }) => isDashed) ? [...flags, '--', ...said] : [...said, ...flags]
  return [name?.text ?? '', ...verbs, ...all].join(' ')
}

const LITERAL = { isLiteral: true, isDashed: false } as const

function commandWords(parts: TemplateStringsArray, values: readonly string[]): readonly CommandWord[] {
  const words: CommandWord[] = []
  let open = null as CommandWord | null
  for (const [at, literal] of parts.entries()) {
    for (const piece of literal.split(/( +)/)) {
      if (piece === '') continue
      if (piece.startsWith(' ')) {
        if (open) words.push(open)
        open = null
      } else open = { ...(open ?? LITERAL), text: `${open?.text ?? ''}${piece}` }
    }
    const value = values[at]
    if (value === undefined) continue
    const isDashed = open ? open.isDashed : value.startsWith('-')
    open = { text: `${open?.text ?? ''}${shellWord(value)}`, isLiteral: open?.isLiteral ?? false, isDashed }
  }
  return open ? [...words, open] : words
}

/** Joins flags with their values. */
function joinFlags(words: readonly CommandWord[]): readonly string[] {
  const said: string[] = []
  for (const { text, isDashed } of words) {
    const flag = isDashed ? said.pop() : undefined
    said.push(flag === undefined ? text : `${flag}=${text}`)
  }
  return said
}
