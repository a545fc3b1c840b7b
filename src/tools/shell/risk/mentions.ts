// Texts in a command that are data for the shell, and that a program might still run: quoted words, here-documents, values of
// variables. Only rules that ask or deny look at them.
import type { Case } from './call.ts'
import type { Syntax, SyntaxNode } from './parse.ts'
import { UNKNOWN, wordsIn } from './words.ts'

const TEXTS: ReadonlySet<string> = new Set(
  'word string raw_string ansi_c_string translated_string concatenation'.split(' '),
)
/** Only with one of these can a text be more than one word. */
const SPECIAL = /[\s;|&<>()`$'"\\]/
/** `NAME=`, `name.of.setting=` and `--option=` before a text, and the mark of git for a command. */
const PREFIX = /^(?:(?:[A-Za-z_][\w.]*\+?|--?[\w-]+)=!?|!)/
/** What is used in place of a variable that is not set. */
const REPLACEMENT = /^\$\{!?[^:}=+?-]*:?[-=+?]([^]+)\}$/

export function mentionsIn({ text, nodes }: Syntax, where: Case): void {
  for (const node of nodes) {
    if (TEXTS.has(node.type)) mentionWord(node, text, where)
    else if (node.type === 'heredoc_body') where.mention(text.slice(node.start, node.end))
    else if (node.type === 'array') {
      const words = wordsIn(node.children, text)
      if (words.length > 0) where.run({ words, programs: [] })
    } else if (node.type === 'expansion') {
      const [, given] = REPLACEMENT.exec(text.slice(node.start, node.end)) ?? []
      if (given !== undefined) where.mention(given)
    }
  }
}

function mentionWord(node: SyntaxNode, source: string, { mention }: Case): void {
  if (node.parent?.type === 'concatenation' || node.parent?.type === 'translated_string') return
  if (node.type === 'word' && !source.slice(node.start, node.end).includes('\\')) return
  for (const word of wordsIn([node], source)) {
    const text = word.text.replaceAll(UNKNOWN, '$unknown ')
    if (!SPECIAL.test(word.text)) continue
    mention(text)
    if (PREFIX.test(text)) mention(text.replace(PREFIX, ''))
  }
}
