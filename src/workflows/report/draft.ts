// The report as Markdown: the questions, the answers with exact quotes, the missing answers, and the sources. Pure and without a date:
// the same facts give the same bytes.
import type { Fact, Source } from './facts.ts'
import type { Plan } from './plan.ts'
import type { LeftOut } from './sources.ts'
import { told } from '../block.ts'
import { clippedTrimmed, collapsed } from './text.ts'
import { counted } from '../../view/text.ts'

/** The results of the search besides its sources. */
export type Searched = {
  readonly count: number
  /** The number of other documents with answers. */
  readonly more?: number
  /** The first documents without an answer. */
  readonly silent: readonly string[]
  readonly leftOut: readonly LeftOut[]
}
export type Material = {
  readonly topic: string
  readonly plan: Plan
  readonly searched: Searched
  readonly sources: readonly Source[]
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
export const NOTHING = 'No passage was found.'
export const SHOWN_MAX = 20

/** Put together by fixed rules. */
export function draftOf(material: Material): string {
  const how =
    'This report was put together by fixed rules, without a language model: sentences were chosen by the words of the questions, and nobody weighed or summed up what they say.'
  return framed(material, material.plan.questions.map((_, index) => answered(material, index)).join('\n\n'), how)
}

/** The frame around a model's draft. */
export function draftAround(material: Material, answer: string): string {
  const how =
    'The questions and the text between the quotes were written by a language model, and reviewed by another call of one.'
  return framed(material, verbatim(unfenced(answer), material.facts), how)
}

/** Replaces a quote as shown to the model by the text of its source. */
function verbatim(body: string, facts: readonly Fact[]): string {
  const quotes = new Map(facts.map((fact) => [told(quoted(fact)), quoted(fact)]))
  return body
    .split('\n')
    .map((line) => quotes.get(line.trim()) ?? line)
    .join('\n')
}

/** A model may put its whole answer into a fence. */
function unfenced(answer: string): string {
  const inside = /^```[\w-]*\n([\s\S]*?)\n```$/.exec(answer.trim())
  return (inside?.[1] ?? answer).trim()
}

function framed({ topic, plan, searched, sources, facts, dropped }: Material, body: string, how: string): string {
  const answering = sources.length + (searched.more ?? 0)
  const quotes = body.split('\n').filter(isQuote).length
  const parts = [
    `# ${titled(topic)}`,
    `## ${SECTIONS.asked}`,
    askedText(plan),
    `${answering} of ${counted(searched.count, 'document')} ${answering === 1 ? 'says' : 'say'} something about it; ${counted(quotes, 'passage')} ${quotes === 1 ? 'is' : 'are'} quoted below.${leftOutText(dropped)}`,
    body,
    `## ${SECTIONS.missing}`,
    missing({ plan, facts, sources, searched }),
    `## ${SECTIONS.sources}`,
    ['| document | title | SHA-256 |', '|---|---|---|', ...sources.map(row)].join('\n'),
    `## ${SECTIONS.made}`,
    `${how} Every quoted sentence stands word for word in its source, at the line that is named; line breaks of the source are spaces here, and marks of lists and quotes and invisible characters are left out.`,
  ]
  return `${parts.join('\n\n')}\n`
}

function leftOutText(dropped: number): string {
  if (dropped === 0) return ''
  const what = dropped === 1 ? 'was left out, not standing in its' : 'were left out, not standing in their'
  return ` ${counted(dropped, 'passage')} ${what} source any more.`
}

/** The questions, as the report lists them. */
export function askedText({ questions }: Plan): string {
  if (questions.length === 1) return questions[0]?.text ?? ''
  return questions.map(({ text }, i) => `${i + 1}. ${text}`).join('\n')
}

/** The first letter is a capital, and a list after a colon stays one. */
function titled(topic: string): string {
  const line = clippedTrimmed(collapsed(topic), 120)
  return line.slice(0, 1).toUpperCase() + line.slice(1)
}

function answered({ plan, facts, sources }: Material, index: number): string {
  const own = facts.filter(({ question }) => question === index)
  const files = [...new Set(own.map(({ file }) => file))]
  const parts = files.flatMap((file) => [
    labelOf(sources.find((source) => source.file === file) ?? { file, title: '' }),
    ...own.filter((fact) => fact.file === file).map(quoted),
  ])
  return [`## ${plan.questions[index]?.text ?? ''}`, ...(parts.length > 0 ? parts : [NOTHING])].join('\n\n')
}

/** Names a source, and claims nothing. */
export function labelOf({ file, title }: Pick<Source, 'file' | 'title'>): string {
  return title === '' ? `**${file}**` : `**${file}** · ${title}`
}

export function quoted({ quote, file, line }: Pick<Fact, 'quote' | 'file' | 'line'>): string {
  return `> ${quote} [${file}:${line}]`
}

/** A line with a quote. */
export function isQuote(line: string): boolean {
  return /^\s*>/.test(line)
}

export function row({ file, title, sha256 }: Source): string {
  return `| ${file} | ${title.replaceAll('|', '/')} | \`${sha256}\` |`
}

function missing({ plan, facts, sources, searched }: Omit<Material, 'topic' | 'dropped'>): string {
  const { count, more = 0, silent, leftOut } = searched
  const open = plan.questions.filter((_, index) => !facts.some(({ question }) => question === index))
  const named = silent.slice(0, SHOWN_MAX)
  const unnamed = count - more - sources.length - named.length
  const lines = [
    ...open.map(({ text }) => `- No passage answers: ${text}`),
    ...(more > 0
      ? [`- ${counted(more, 'more document')} ${more === 1 ? 'answers' : 'answer'} too; none of that is quoted.`]
      : []),
    ...named.map((file) => `- ${file} has no sentence with the words that were looked for.`),
    ...(unnamed > 0 ? [`- The same is true of ${counted(unnamed, 'more document')}.`] : []),
    ...leftOut.slice(0, SHOWN_MAX).map(({ file, why }) => `- ${collapsed(file)} was not read: ${why}.`),
    ...(leftOut.length > SHOWN_MAX ? ['- More was not read.'] : []),
  ]
  return lines.length > 0 ? lines.join('\n') : 'Every question found a passage.'
}
