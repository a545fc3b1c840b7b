// Reviews a draft without a model: every section exists, every quote is in its source, and every claim cites one.
// Drafts of models are checked the same way. Pure.
import { questionsText, isQuote, sourceLabel, NO_PASSAGE, sourceRow, SECTIONS } from './report-draft.ts'
import type { Fact, ReportSource } from './report-facts.ts'
import type { ReportPlan } from './report-plan.ts'
import { escapeForPrompt } from '../../../workflows/prompt-block.ts'
import { collapseText, clipTrimmed } from './sentences.ts'

export type ReportFinding = {
  readonly type: 'section' | 'quote' | 'citation' | 'source' | 'reviewer'
  readonly text: string
  /** The passage that the finding is about. */
  readonly file?: string
  readonly line?: number
}
export type DraftToCheck = {
  readonly draft: string
  readonly plan: ReportPlan
  readonly sources: readonly ReportSource[]
  readonly facts: readonly Fact[]
}

const FINDINGS_MAX = 20
/** Shorter text in quotation marks is not checked as a quote. */
const QUOTED_CHARS_MIN = 25
const QUOTE_LINE = /^\s*>\s?(.*) \[([^[\]]+):(\d+)\]$/u
/** The sentence with the counts that the report adds by itself. */
const COUNTED =
  /^\d+ of \d+ documents? says? something about it; \d+ passages? (?:is|are) quoted below\.(?: \d+ passages? (?:was|were) left out, not standing in (?:its|their) source any more\.)?$/
const CITATION = /\[([^[\]]+):(\d+)\]/gu

export function checkDraft(checked: DraftToCheck): readonly ReportFinding[] {
  return [...sectionFindings(checked), ...passageFindings(checked), ...sourceFindings(checked)].slice(0, FINDINGS_MAX)
}

function sectionFindings({ draft, plan }: DraftToCheck): readonly ReportFinding[] {
  const lines = new Set(draft.split('\n').map((line) => line.trimEnd()))
  const wanted = [...Object.values(SECTIONS), ...plan.questions.map(({ text }) => text)]
  const titles = draft.startsWith('# ') ? [] : ['a title']
  const gone = wanted.filter((name) => !lines.has(`## ${name}`)).map((name) => `the section "## ${name}"`)
  return [...titles, ...gone].map((what) => ({ type: 'section', text: `The draft lacks ${what}.` }))
}

/** The part between the questions and the missing answers: headings, quotes, source names, and prose with citations. */
function passageFindings(checked: DraftToCheck): readonly ReportFinding[] {
  return bodyOf(checked).flatMap((block) => {
    const lines = block.split('\n')
    const heads = lines.filter((line) => /^\s*#/.test(line))
    const quotes = lines.filter(isQuote)
    const prose = lines
      .filter((line) => !/^\s*[#>]/.test(line))
      .join('\n')
      .trim()
    return [
      ...heads.flatMap((line) => headingFindings(checked, line)),
      ...quotes.flatMap((line) => quoteFindings(checked, line)),
      ...(prose === '' ? [] : proseFindings(checked, prose)),
    ]
  })
}

/** The draft's own text, without the parts that every report has. */
function bodyOf({ draft, plan }: DraftToCheck): readonly string[] {
  const head = `\n## ${SECTIONS.asked}\n`
  const begin = draft.indexOf(head)
  const end = draft.lastIndexOf(`\n## ${SECTIONS.missing}\n`)
  const own = new Set([questionsText(plan)])
  const blocks = draft.slice(begin < 0 ? 0 : begin + head.length, end < 0 ? undefined : end).split(/\n\s*\n/u)
  return blocks.map((block) => block.trim()).filter((block) => block !== '' && !own.has(block) && !COUNTED.test(block))
}

function headingFindings({ plan }: DraftToCheck, line: string): readonly ReportFinding[] {
  if (plan.questions.some(({ text }) => line.trimEnd() === `## ${text}`)) return []
  return [{ type: 'section', text: `This heading is no question: ${clipTrimmed(line, 120)}` }]
}

function quoteFindings({ facts }: DraftToCheck, line: string): readonly ReportFinding[] {
  const [, quote = '', file = '', at = ''] = QUOTE_LINE.exec(line) ?? []
  if (quote === '') return [{ type: 'quote', text: `A quote has no source: ${clipTrimmed(line, 120)}` }]
  const fact = facts.find(
    (each) => each.file === file && each.line === Number(at) && each.quote === collapseText(quote),
  )
  if (fact) return []
  const text = `This quote does not stand in ${file} at line ${at}: ${clipTrimmed(quote, 120)}`
  return [{ type: 'quote', text, file, line: Number(at) }]
}

function proseFindings(checked: DraftToCheck, block: string): readonly ReportFinding[] {
  const { facts, sources } = checked
  if (block === NO_PASSAGE || sources.some((source) => sourceLabel(source) === block)) return []
  const cited = [...block.matchAll(CITATION)].map(([, file = '', line = '']) => ({ file, line: Number(line) }))
  const unknown = cited.filter(({ file, line }) => !facts.some((fact) => fact.file === file && fact.line === line))
  const uncited =
    cited.length === 0 ? [{ type: 'citation', text: `This cites no source: ${clipTrimmed(block, 120)}` } as const] : []
  return [
    ...uncited,
    ...unknown.map(({ file, line }): ReportFinding => {
      return { type: 'citation', text: `There is no passage [${file}:${line}] among the facts.`, file, line }
    }),
    ...inventedQuotes(checked, block),
  ]
}

/** Text in quotation marks must be in a source. */
function inventedQuotes({ facts }: DraftToCheck, block: string): readonly ReportFinding[] {
  const said = [...block.matchAll(/[“"]([^“”"]+)[”"]/gu)].map(([, text = '']) => collapseText(text))
  return said
    .filter(
      (text) =>
        text.length >= QUOTED_CHARS_MIN &&
        !facts.some(({ quote }) => escapeForPrompt(quote).includes(escapeForPrompt(text))),
    )
    .map((text) => ({ type: 'quote', text: `No source says: ${clipTrimmed(text, 120)}` }))
}

/** Each quoted source is listed with the hash of the text read. */
function sourceFindings({ draft, sources, facts }: DraftToCheck): readonly ReportFinding[] {
  const lines = new Set(draft.split('\n'))
  const used = sources.filter(({ file }) => facts.some((fact) => fact.file === file))
  return used
    .filter((source) => !lines.has(sourceRow(source)))
    .map(({ file }) => ({ type: 'source', text: `${file} is not listed with its SHA-256.`, file }))
}

/** The schema of a reviewer's answer. */
export const REVIEW_SCHEMA = {
  type: 'object',
  properties: {
    passed: { type: 'boolean' },
    findings: { type: 'array', maxItems: FINDINGS_MAX, items: { type: 'string', minLength: 1, maxLength: 500 } },
  },
  required: ['passed', 'findings'],
  additionalProperties: false,
} as const

/**
 * Reads a reviewer's answer, which its schema has already checked. A rejection without a reason still counts as a
 * finding; findings on a passed draft are remarks.
 */
export function readReportReview(answer: string): {
  readonly findings: readonly ReportFinding[]
  readonly remarks: readonly string[]
} {
  const { passed, findings } = JSON.parse(answer) as { readonly passed: boolean; readonly findings: readonly string[] }
  const said = findings.map(collapseText)
  if (passed) return { findings: [], remarks: said }
  const reasons = said.length > 0 ? said : ['The reviewer did not pass it, and said no reason.']
  return { findings: reasons.map((text) => ({ type: 'reviewer', text })), remarks: [] }
}
