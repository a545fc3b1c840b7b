// Scores how near a learning is to a question: the share of words they have in common, from 0 to 1. Pure and bounded.
// The score is the same among a million learnings as for one alone, unlike the rank of a search index.

/** The first words of a longer text are enough to say what it is about. */
export const WORDS_MAX = 32
const QUERY_CHARS_MAX = 4_000

/** The words that matter, each once, in the order they come. */
export function significantWords(text: string): readonly string[] {
  const words = text
    .slice(0, QUERY_CHARS_MAX)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu)
  return [...new Set(words)].filter((word) => !COMMON.has(word) && (word.length > 1 || /\p{N}/u.test(word)))
}

/** A query of the full-text index for any of the words. */
export function matchQuery(words: readonly string[]): string {
  return words.map((word) => `"${word}"`).join(' OR ')
}

export function relevance(query: readonly string[], { title, detail }: TitledText): number {
  const asked = query.slice(0, WORDS_MAX)
  return Math.max(
    shareOfWords(asked, significantWords(title)),
    shareOfWords(asked, significantWords(`${title} ${detail}`)),
  )
}

type TitledText = { readonly title: string; readonly detail: string }

function shareOfWords(asked: readonly string[], said: readonly string[]): number {
  const least = Math.min(asked.length, said.length)
  if (least === 0) return 0
  const found = asked.filter((word) => said.some((other) => isAlike(word, other))).length
  return Math.min(1, found / least)
}

/** The same word, or another form of it. */
function isAlike(a: string, b: string): boolean {
  if (a === b) return true
  const [short, long] = a.length < b.length ? [a, b] : [b, a]
  return short.length >= 4 && long.length - short.length <= 3 && long.startsWith(short)
}

/** English words that are in every text, and do not show its subject. */
const COMMON: ReadonlySet<string> = new Set(
  `the an and or but if then than of to in on at by for with from as into about is are was were be been being do does did done
  has have had not no yes it its this that these those there here you your we our they their he she his her me my us them i
  what which who when where why how can could should would will shall may might must please let get got just also very more
  most some any all each only own same so too up down out over under again once`.split(/\s+/),
)
