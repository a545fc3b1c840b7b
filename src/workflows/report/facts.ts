// Answers of the documents to the questions of a plan: which documents are sources, and which sentences to quote. Pure: the same
// documents always give the same facts.
import { type Plan, type Seek, seek } from './plan.ts'
import type { Document } from './sources.ts'
import { type Sentence, sentencesOf, stemsIn, titleOf } from './text.ts'

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

const FACTS_OF_QUESTION_MAX = 5
const FACTS_OF_SOURCE_MAX = 4

/** Yields to other work; throws after an abort. */
export type Pace = () => Promise<void>

const SENTENCES_AT_A_TIME = 1_000
/** The most sentences of one source that are compared with others. */
const CANDIDATES_MAX = 100

/** The documents with answers, most answers first. */
export async function rankedSources(
  documents: readonly Document[],
  { questions }: Plan,
  pace: Pace,
): Promise<readonly Source[]> {
  const seeks = questions.map(seek)
  const sources: Source[] = []
  for (const { file, text, sha256, bytes } of documents) {
    let hits = 0
    await read(text, pace, (_, stems) => {
      if (seeks.some((count) => count(stems) > 0)) hits += 1
    })
    if (hits > 0) sources.push({ file, title: titleOf(text), sha256, bytes, hits })
  }
  return sources.sort((a, b) => b.hits - a.hits || (a.file < b.file ? -1 : 1))
}

type Candidate = Fact & { readonly score: number }

/** Says how many sentences there were. */
async function read(
  text: string,
  pace: Pace,
  take: (sentence: Sentence, stems: ReadonlySet<string>) => void,
): Promise<number> {
  await pace()
  let count = 0
  for (const sentence of sentencesOf(text)) {
    count += 1
    if (count % SENTENCES_AT_A_TIME === 0) await pace()
    take(sentence, stemsIn(sentence.text))
  }
  return count
}

/** No sentence is quoted twice, and no source fills a question alone where others answer it too. */
export async function factsOf(
  documents: Iterable<Document> | AsyncIterable<Document>,
  { questions }: Plan,
  pace: Pace,
): Promise<readonly Fact[]> {
  const seeks = questions.map(seek)
  const candidates: Candidate[] = []
  for await (const document of documents) {
    for (const found of await candidatesIn(document, seeks, pace)) candidates.push(...found)
  }
  const taken = new Set<string>()
  return seeks.flatMap((_, index) => {
    const own = candidates.filter(({ question }) => question === index).sort(better)
    const chosen = chosenOf(own.filter(({ quote }) => !taken.has(quote)))
    for (const { quote } of chosen) taken.add(quote)
    return grouped(chosen)
  })
}

function better(a: Candidate, b: Candidate): number {
  return b.score - a.score || order(a, b)
}

function order(a: Fact, b: Fact): number {
  return a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1
}

/** The subject of a document counts for each of its sentences: elsewhere the same word may be a passing mention. */
async function candidatesIn(
  { file, text }: Document,
  seeks: readonly Seek[],
  pace: Pace,
): Promise<readonly (readonly Candidate[])[]> {
  const found = seeks.map((): Candidate[] => [])
  const sentences = await read(text, pace, ({ text: quote, line }, stems) => {
    for (const [question, count] of seeks.entries()) {
      const hits = count(stems)
      if (hits > 0) found[question]?.push({ question, quote, file, line, score: hits * 10 + plainness(quote, hits) })
    }
  })
  return found.map((own) => {
    const about = (own.length / Math.max(10, sentences)) * 20
    const best = onceEach(own.sort(better)).slice(0, CANDIDATES_MAX)
    return best.map((each) => ({ ...each, score: each.score + about }))
  })
}

const RULES = /\b(?:never|always|only|must|should|ought|best|worst|most|every|cannot|because|therefore|means)\b/giu
/** It depends on the sentence before it, which is not quoted. */
const LEANS =
  /^(?:it|this|that|these|those|they|he|she|here|there|then|such|and|but|so|for|yet|yes|no|nor|again|also|one)\b/iu

/** Short sentences are quoted only if nothing else answers: they rarely name their subject. */
const SHORT_CHARS = 30

/** A short statement counts more than a passing mention in a long sentence; a question answers nothing. */
function plainness(quote: string, hits: number): number {
  const words = quote.split(' ').length
  const dense = (hits * 20) / Math.max(10, words)
  const rules = Math.min(2, quote.match(RULES)?.length ?? 0)
  const length = words > 45 ? 3 : quote.length < SHORT_CHARS ? 12 : 0
  return dense + rules * 2 - (quote.includes('?') ? 6 : 0) - (LEANS.test(quote) ? 3 : 0) - length
}

function chosenOf(candidates: readonly Candidate[]): readonly Candidate[] {
  const byFile = new Map<string, number>()
  const spread = onceEach(candidates).filter(({ file }) => {
    const before = byFile.get(file) ?? 0
    byFile.set(file, before + 1)
    return before < FACTS_OF_SOURCE_MAX
  })
  return spread.slice(0, FACTS_OF_QUESTION_MAX)
}

function onceEach(candidates: readonly Candidate[]): readonly Candidate[] {
  const quotes = new Set<string>()
  return candidates.filter(({ quote }) => !quotes.has(quote) && quotes.add(quote))
}

/** The source with the most answers first; within a source in its order. */
function grouped(chosen: readonly Candidate[]): readonly Fact[] {
  const files = [...new Set(chosen.map(({ file }) => file))]
  return files.flatMap((file) => {
    const own = chosen.filter((each) => each.file === file).sort(order)
    return own.map(({ score: _score, ...fact }) => fact)
  })
}
