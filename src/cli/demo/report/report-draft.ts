// The report as Markdown: the questions, the answers with exact quotes, the missing answers, and the sources. Pure and without a date:
// the same facts give the same bytes.
import type { Fact, ReportSource } from './report-facts.ts'
import type { ReportPlan } from './report-plan.ts'
import type { UnreadDocument } from './report-sources.ts'
import { escapeForPrompt } from '../../../workflows/prompt-block.ts'
import { clipTrimmed, collapseText } from './sentences.ts'
import { countNoun } from '../../../view/shown-text.ts'

/** The results of the search besides its sources. */
export type SearchSummary = {
  readonly count: number
  /** The number of other documents with answers. */
  readonly more?: number
  /** The first documents without an answer. */
  readonly silent: readonly string[]
  readonly leftOut: readonly UnreadDocument[]
}
export type ReportMaterial = {
  readonly topic: string
  readonly plan: ReportPlan
  readonly searched: SearchSummary
  readonly sources: readonly ReportSource[]
  readonly facts: readonly Fact[]
  /** The number of passages no longer in their source. */
  readonly dropped: number
}

export const SECTIONS = {
  asked: 'What was asked',
  missing: 'What was not found',
  sources: 'Sources',
  made: 'How this was made',
} as const
/** The text under a question without an answer. */
export const NO_PASSAGE = 'No passage was found.'
export const SHOWN_MAX = 20

/** Builds the draft by fixed rules, without a model. */
export function draftByRules(material: ReportMaterial): string {
  const how =
    'This report was put together by fixed rules, without a language model: sentences were chosen by the words of the questions, and nobody weighed or summed up what they say.'
  return assembleReport(
    material,
    material.plan.questions.map((_, index) => answerSection(material, index)).join('\n\n'),
    how,
  )
}

/** Puts a model's text between the fixed parts of a report. */
export function draftFromModel(material: ReportMaterial, answer: string): string {
  const how =
    'The questions and the text between the quotes were written by a language model, and reviewed by another call of one.'
  return assembleReport(material, restoreQuotes(stripFence(answer), material.facts), how)
}

/** Replaces each quote that the model copied by the exact text of its source. */
function restoreQuotes(body: string, facts: readonly Fact[]): string {
  const quotes = new Map(facts.map((fact) => [escapeForPrompt(quoteFact(fact)), quoteFact(fact)]))
  return body
    .split('\n')
    .map((line) => quotes.get(line.trim()) ?? line)
    .join('\n')
}

/** Removes a code fence: a model may put its whole answer into one. */
function stripFence(answer: string): string {
  const inside = /^```[\w-]*\n([\s\S]*?)\n```$/.exec(answer.trim())
  return (inside?.[1] ?? answer).trim()
}

function assembleReport(
  { topic, plan, searched, sources, facts, dropped }: ReportMaterial,
  body: string,
  how: string,
): string {
  const answering = sources.length + (searched.more ?? 0)
  const quotes = body.split('\n').filter(isQuote).length
  const parts = [
    `# ${reportTitle(topic)}`,
    `## ${SECTIONS.asked}`,
    questionsText(plan),
    `${answering} of ${countNoun(searched.count, 'document')} ${answering === 1 ? 'says' : 'say'} something about it; ${countNoun(quotes, 'passage')} ${quotes === 1 ? 'is' : 'are'} quoted below.${droppedText(dropped)}`,
    body,
    `## ${SECTIONS.missing}`,
    missingAnswers({ plan, facts, sources, searched }),
    `## ${SECTIONS.sources}`,
    ['| document | title | SHA-256 |', '|---|---|---|', ...sources.map(sourceRow)].join('\n'),
    `## ${SECTIONS.made}`,
    `${how} Every quoted sentence stands word for word in its source, at the line that is named; line breaks of the source are spaces here, and marks of lists and quotes and invisible characters are left out.`,
  ]
  return `${parts.join('\n\n')}\n`
}

function droppedText(dropped: number): string {
  if (dropped === 0) return ''
  const what = dropped === 1 ? 'was left out, not standing in its' : 'were left out, not standing in their'
  return ` ${countNoun(dropped, 'passage')} ${what} source any more.`
}

/** The questions, as the report lists them. */
export function questionsText({ questions }: ReportPlan): string {
  if (questions.length === 1) return questions[0]?.text ?? ''
  return questions.map(({ text }, i) => `${i + 1}. ${text}`).join('\n')
}

/** Capitalizes the first letter and changes nothing else, so a list after a colon stays a list. */
function reportTitle(topic: string): string {
  const line = clipTrimmed(collapseText(topic), 120)
  return line.slice(0, 1).toUpperCase() + line.slice(1)
}

function answerSection({ plan, facts, sources }: ReportMaterial, index: number): string {
  const own = facts.filter(({ question }) => question === index)
  const files = [...new Set(own.map(({ file }) => file))]
  const parts = files.flatMap((file) => [
    sourceLabel(sources.find((source) => source.file === file) ?? { file, title: '' }),
    ...own.filter((fact) => fact.file === file).map(quoteFact),
  ])
  return [`## ${plan.questions[index]?.text ?? ''}`, ...(parts.length > 0 ? parts : [NO_PASSAGE])].join('\n\n')
}

/** A line that only names a source and makes no claim. */
export function sourceLabel({ file, title }: Pick<ReportSource, 'file' | 'title'>): string {
  return title === '' ? `**${file}**` : `**${file}** · ${title}`
}

export function quoteFact({ quote, file, line }: Pick<Fact, 'quote' | 'file' | 'line'>): string {
  return `> ${quote} [${file}:${line}]`
}

/** Whether the line is a quote. */
export function isQuote(line: string): boolean {
  return /^\s*>/.test(line)
}

export function sourceRow({ file, title, sha256 }: ReportSource): string {
  return `| ${file} | ${title.replaceAll('|', '/')} | \`${sha256}\` |`
}

function missingAnswers({ plan, facts, sources, searched }: Omit<ReportMaterial, 'topic' | 'dropped'>): string {
  const { count, more = 0, silent, leftOut } = searched
  const open = plan.questions.filter((_, index) => !facts.some(({ question }) => question === index))
  const named = silent.slice(0, SHOWN_MAX)
  const unnamed = count - more - sources.length - named.length
  const lines = [
    ...open.map(({ text }) => `- No passage answers: ${text}`),
    ...(more > 0
      ? [`- ${countNoun(more, 'more document')} ${more === 1 ? 'answers' : 'answer'} too; none of that is quoted.`]
      : []),
    ...named.map((file) => `- ${file} has no sentence with the words that were looked for.`),
    ...(unnamed > 0 ? [`- The same is true of ${countNoun(unnamed, 'more document')}.`] : []),
    ...leftOut.slice(0, SHOWN_MAX).map(({ file, why }) => `- ${collapseText(file)} was not read: ${why}.`),
    ...(leftOut.length > SHOWN_MAX ? ['- More was not read.'] : []),
  ]
  return lines.length > 0 ? lines.join('\n') : 'Every question found a passage.'
}
