// What the documents say about the questions of a plan: which of them are sources, and which of their sentences are worth quoting.
// Pure: by fixed rules, so the same documents always give the same facts.
import { answers, type Plan, type Question } from './report-plan.ts'
import type { Document } from './report-sources.ts'
import { type Sentence, sentencesOf, stemsIn, titleOf } from './report-text.ts'

export type Source = {
  readonly file: string
  readonly title: string
  readonly sha256: string
  readonly bytes: number
  /** How many of its sentences answer something. */
  readonly hits: number
}
/** One sentence of one source, word for word. `question` is its place in the plan. */
export type Fact = { readonly question: number; readonly quote: string; readonly file: string; readonly line: number }

const SOURCES_MAX = 40
const FACTS_OF_QUESTION_MAX = 5
const FACTS_OF_SOURCE_MAX = 4

/** Those that answer anything, those with the most answers first. */
export function rankedSources(documents: readonly Document[], { questions }: Plan): readonly Source[] {
  const sources = documents.map(({ file, text, sha256, bytes }): Source => {
    const hits = readingOf(text).filter(({ stems }) => questions.some((question) => answers(question, stems) > 0))
    return { file, title: titleOf(text), sha256, bytes, hits: hits.length }
  })
  const found = sources.filter(({ hits }) => hits > 0)
  return found.sort((a, b) => b.hits - a.hits || (a.file < b.file ? -1 : 1)).slice(0, SOURCES_MAX)
}

type Candidate = Fact & { readonly score: number }
type Reading = Sentence & { readonly stems: ReadonlySet<string> }
type Read = { readonly file: string; readonly sentences: readonly Reading[] }

function readingOf(text: string): readonly Reading[] {
  return sentencesOf(text).map((sentence) => ({ ...sentence, stems: stemsIn(sentence.text) }))
}

/** No sentence is quoted twice, and no source fills a question alone where others answer it too. */
export function factsOf(documents: readonly Document[], { questions }: Plan): readonly Fact[] {
  const read = documents.map(({ file, text }): Read => ({ file, sentences: readingOf(text) }))
  const taken = new Set<string>()
  return questions.flatMap((question, index) => {
    const candidates = read.flatMap((each) => candidatesIn(each, question, index))
    const best = candidates.sort((a, b) => b.score - a.score || order(a, b))
    const chosen = chosenOf(best.filter(({ quote }) => !taken.has(quote)))
    for (const { quote } of chosen) taken.add(quote)
    return grouped(chosen)
  })
}

function order(a: Fact, b: Fact): number {
  return a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1
}

/** What a whole document is about counts for each of its sentences: elsewhere the same word may be meant in passing. */
function candidatesIn({ file, sentences }: Read, question: Question, index: number): readonly Candidate[] {
  const found = sentences.flatMap(({ text: quote, line, stems }) => {
    const hits = answers(question, stems)
    return hits === 0 ? [] : [{ question: index, quote, file, line, score: hits * 10 + plainness(quote, hits) }]
  })
  const about = (found.length / Math.max(10, sentences.length)) * 20
  return found.map((each) => ({ ...each, score: each.score + about }))
}

const RULES = /\b(?:never|always|only|must|should|ought|best|worst|most|every|cannot|because|therefore|means)\b/giu
/** It leans on the sentence before it, which is not quoted. */
const LEANS =
  /^(?:it|this|that|these|those|they|he|she|here|there|then|such|and|but|so|for|yet|yes|no|nor|again|also|one)\b/iu

/** Quoted where nothing else answers: by itself so little rarely says what it is about. */
const SHORT_CHARS = 30

/** What is laid down in a short sentence of its own says more than a long one in passing; a question answers nothing. */
function plainness(quote: string, hits: number): number {
  const words = quote.split(' ').length
  const dense = (hits * 20) / Math.max(10, words)
  const rules = Math.min(2, quote.match(RULES)?.length ?? 0)
  const length = words > 45 ? 3 : quote.length < SHORT_CHARS ? 12 : 0
  return dense + rules * 2 - (quote.includes('?') ? 6 : 0) - (LEANS.test(quote) ? 3 : 0) - length
}

function chosenOf(candidates: readonly Candidate[]): readonly Candidate[] {
  const quotes = new Set<string>()
  const once = candidates.filter(({ quote }) => !quotes.has(quote) && quotes.add(quote))
  const spread = once.filter((each, i) => {
    return once.slice(0, i).filter(({ file }) => file === each.file).length < FACTS_OF_SOURCE_MAX
  })
  return spread.slice(0, FACTS_OF_QUESTION_MAX)
}

/** The source that says most about it first; within a source as it goes on. */
function grouped(chosen: readonly Candidate[]): readonly Fact[] {
  const files = [...new Set(chosen.map(({ file }) => file))]
  return files.flatMap((file) => {
    const own = chosen.filter((each) => each.file === file).sort(order)
    return own.map(({ score: _score, ...fact }) => fact)
  })
}
