// What models, tools and files say, made fit for a terminal: nothing in it can move the cursor, hide text or turn it around.
// The log keeps the raw text; this is only how it is shown.

/** Control characters but tab and newline, directions, joiners, tags, and all else that is drawn as nothing. */
const UNSAFE = /[\p{Cs}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?![\n\t])\p{Cc}/gu

/** What cannot be seen is shown by its number: `\u{1b}`. */
export function clean(text: string): string {
  return text.replace(UNSAFE, (each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`)
}

/** The same on one line, at most so long. What is left out is said. */
export function oneLine(text: string, charsMax = 160): string {
  const line = clean(text.trim())
    .replace(/\s*\n\s*/g, ' ⏎ ')
    .replaceAll('\t', ' ')
  if (line.length <= charsMax) return line
  return `${line.slice(0, charsMax - 20)}… (${text.length} characters)`
}

/** Never cut in silence: the beginning, the end, and how long it is. The end of a long command is what matters most. */
export function headAndTail(text: string, charsMax = 4_000): string {
  if (text.length <= charsMax) return clean(text)
  const head = Math.ceil(charsMax * 0.6)
  const tail = charsMax - head
  const hidden = text.length - charsMax
  const cut = `\n[… ${hidden} of ${text.length} characters are not shown here: --whole or --json shows them …]\n`
  return `${clean(text.slice(0, head))}${cut}${clean(text.slice(-tail))}`
}

/** JSON on one line that is safe to print: the same value, with every character that is not safe escaped. */
export function safeJson(value: unknown): string {
  const text = JSON.stringify(value) ?? 'null'
  return text.replace(UNSAFE, (each) =>
    [...Array(each.length).keys()].map((i) => `\\u${each.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  )
}

/** Arguments of a call as people read them: short ones on a line, texts in full below their name. */
export function shownArgs(args: unknown, charsMax = 4_000): string {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return headAndTail(safeJson(args), charsMax)
  const lines = Object.entries(args).map(([name, value]: [string, unknown]) => {
    if (typeof value !== 'string') return `  ${oneLine(name)}: ${headAndTail(safeJson(value), charsMax)}`
    const text = headAndTail(value, charsMax)
    const multiline = text.includes('\n')
    return `  ${oneLine(name)}:${multiline ? `\n${indented(text)}` : ` ${text}`}`
  })
  return lines.join('\n')
}

function indented(text: string): string {
  return text
    .split('\n')
    .map((line) => `  | ${line}`)
    .join('\n')
}

const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu

/** For texts that a model will read: without what nobody sees, and how much that was. */
export function visible(text: string): { readonly text: string; readonly removed: number } {
  const seen = text.replace(INVISIBLE, '')
  return { text: seen, removed: text.length - seen.length }
}
