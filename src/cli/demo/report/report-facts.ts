// Finds the answers to the questions of a plan: which documents are sources, and which sentences to quote. Pure: the
// same documents always give the same facts.
import { type ReportPlan, type CountTerms, makeTermCounter } from './report-plan.ts'
import type { ReportDocument } from './report-sources.ts'
import { type Sentence, sentencesOf, stemsIn, documentTitle } from './sentences.ts'

export type ReportSource = {
  readonly file: string
  readonly title: string
  readonly sha256: string
  readonly bytes: number
  /** The number of its sentences that answer a question. */
  readonly hits: number
}
/** One sentence of one source, word for word. `question` is its position in the plan. */
export type Fact = { readonly question: number; readonly quote: string; readonly file: string; readonly line: number }

const FACTS_OF_QUESTION_MAX = 5
const FACTS_OF_SOURCE_MAX = 4

/** Yields to other work; throws after an abort. */
export type YieldToOthers = () => Promise<void>

const SENTENCES_AT_A_TIME = 1_000
/** The most sentences of one source that are compared with others. */
const CANDIDATES_MAX = 100

/** The documents with answers, most answers first. */
export async function rankSources(
  documents: readonly ReportDocument[],
  { questions }: ReportPlan,
  pace: YieldToOthers,
): Promise<readonly ReportSource[]> {
  const seeks = questions.map(makeTermCounter)
  const sources: ReportSource[] = []
  for (const { file, text, sha256, bytes } of documents) {
    let hits = 0
    await visitSentences(text, pace, (_, stems) => {
      if (seeks.some((count) => count(stems) > 0)) hits += 1
    })
    if (hits > 0) sources.push({ file, title: documentTitle(text), sha256, bytes, hits })
  }
  return sources.sort((a, b) => b.hits - a.hits || (a.file < b.file ? -1 : 1))
}

type Candidate = Fact & { readonly score: number }

/** Returns the number of sentences. */
async function visitSentences(
  text: string,
  pace: YieldToOthers,
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

/** Quotes no sentence twice, and does not let one source fill a question that others answer too. */
export async function findFacts(
  documents: Iterable<ReportDocument> | AsyncIterable<ReportDocument>,
  { questions }: ReportPlan,
  pace: YieldToOthers,
): Promise<readonly Fact[]> {
  const seeks = questions.map(makeTermCounter)
  const candidates: Candidate[] = []
  for await (const document of documents) {
    for (const found of await findCandidates(document, seeks, pace)) candidates.push(...found)
  }
  const taken = new Set<string>()
  return seeks.flatMap((_, index) => {
    const own = candidates.filter(({ question }) => question === index).sort(compareCandidates)
    const chosen = chooseCandidates(own.filter(({ quote }) => !taken.has(quote)))
    for (const { quote } of chosen) taken.add(quote)
    return groupBySource(chosen)
  })
}

function compareCandidates(a: Candidate, b: Candidate): number {
  return b.score - a.score || compareByPlace(a, b)
}

function compareByPlace(a: Fact, b: Fact): number {
  return a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1
}

/**
 * A document with many answers is about the subject, so all of its sentences score higher. Elsewhere the same word may
 * be a passing mention.
 */
async function findCandidates(
  { file, text }: ReportDocument,
  seeks: readonly CountTerms[],
  pace: YieldToOthers,
): Promise<readonly (readonly Candidate[])[]> {
  const found = seeks.map((): Candidate[] => [])
  const sentences = await visitSentences(text, pace, ({ text: quote, line }, stems) => {
    for (const [question, count] of seeks.entries()) {
      const hits = count(stems)
      if (hits > 0)
        found[question]?.push({ question, quote, file, line, score: hits * 10 + scorePlainness(quote, hits) })
    }
  })
  return found.map((own) => {
    const about = (own.length / Math.max(10, sentences)) * 20
    const best = uniqueQuotes(own.sort(compareCandidates)).slice(0, CANDIDATES_MAX)
    return best.map((each) => ({ ...each, score: each.score + about }))
  })
}

const RULES = /\b(?:never|always|only|must|should|ought|best|worst|most|every|cannot|because|therefore|means)\b/giu
/** Such a sentence depends on the one before it, which is not quoted. */
const LEANS =
  /^(?:it|this|that|these|those|they|he|she|here|there|then|such|and|but|so|for|yet|yes|no|nor|again|also|one)\b/iu

/** Short sentences rarely name their subject, so they are quoted only if nothing else answers. */
const SHORT_CHARS = 30

/** A short statement scores higher than a passing mention in a long sentence; a question answers nothing. */
function scorePlainness(quote: string, hits: number): number {
  const words = quote.split(' ').length
  const dense = (hits * 20) / Math.max(10, words)
  const rules = Math.min(2, quote.match(RULES)?.length ?? 0)
  const length = words > 45 ? 3 : quote.length < SHORT_CHARS ? 12 : 0
  return dense + rules * 2 - (quote.includes('?') ? 6 : 0) - (LEANS.test(quote) ? 3 : 0) - length
}

function chooseCandidates(candidates: readonly Candidate[]): readonly Candidate[] {
  const byFile = new Map<string, number>()
  const spread = uniqueQuotes(candidates).filter(({ file }) => {
    const before = byFile.get(file) ?? 0
    byFile.set(file, before + 1)
    return before < FACTS_OF_SOURCE_MAX
  })
  return spread.slice(0, FACTS_OF_QUESTION_MAX)
}

function uniqueQuotes(candidates: readonly Candidate[]): readonly Candidate[] {
  const quotes = new Set<string>()
  return candidates.filter(({ quote }) => !quotes.has(quote) && quotes.add(quote))
}

/** The source with the best answer first; within a source, in the order of its text. */
function groupBySource(chosen: readonly Candidate[]): readonly Fact[] {
  const files = [...new Set(chosen.map(({ file }) => file))]
  return files.flatMap((file) => {
    const own = chosen.filter((each) => each.file === file).sort(compareByPlace)
    return own.map(({ score: _score, ...fact }) => fact)
  })
}
