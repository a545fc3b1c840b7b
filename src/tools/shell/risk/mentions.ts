// Reports texts in a command that are data for the shell, and that a program might still run: quoted words,
// here-documents, values of variables. Only rules that ask or deny use them.
import type { RiskReporter } from './judge-call.ts'
import type { BashSyntax, SyntaxNode } from './parse-bash.ts'
import { UNKNOWN_PART, wordsIn } from './shell-words.ts'

const TEXTS: ReadonlySet<string> = new Set(
  'word string raw_string ansi_c_string translated_string concatenation'.split(' '),
)
/** A text is more than one word only if it contains one of these. */
const SPECIAL = /[\s;|&<>()`$'"\\]/
/** `NAME=`, `name.of.setting=` or `--option=` before a text, and git's mark for a command. */
const PREFIX = /^(?:(?:[A-Za-z_][\w.]*\+?|--?[\w-]+)=!?|!)/
/** The text that replaces an unset variable. */
const REPLACEMENT = /^\$\{!?[^:}=+?-]*:?[-=+?]([^]+)\}$/

export function reportMentions({ text, nodes }: BashSyntax, where: RiskReporter): void {
  for (const node of nodes) {
    if (TEXTS.has(node.type)) reportWord(node, text, where)
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

function reportWord(node: SyntaxNode, source: string, { mention }: RiskReporter): void {
  if (node.parent?.type === 'concatenation' || node.parent?.type === 'translated_string') return
  if (node.type === 'word' && !source.slice(node.start, node.end).includes('\\')) return
  for (const word of wordsIn([node], source)) {
    const text = word.text.replaceAll(UNKNOWN_PART, '$unknown ')
    if (!SPECIAL.test(word.text)) continue
    mention(text)
    if (PREFIX.test(text)) mention(text.replace(PREFIX, ''))
  }
}
