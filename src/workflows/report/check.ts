// The review without a model: every section exists, every quote is in its source, and nothing is claimed without one. Drafts of models
// are checked the same way. Pure.
import { askedText, isQuote, labelOf, NOTHING, row, SECTIONS } from './draft.ts'
import type { Fact, Source } from './facts.ts'
import type { Plan } from './plan.ts'
import { told } from '../block.ts'
import { collapsed, clippedTrimmed } from './text.ts'

export type Finding = {
  readonly type: 'section' | 'quote' | 'citation' | 'source' | 'reviewer'
  readonly text: string
  /** The passage it is about. */
  readonly file?: string
  readonly line?: number
}
export type Checked = {
  readonly draft: string
  readonly plan: Plan
  readonly sources: readonly Source[]
  readonly facts: readonly Fact[]
}

const FINDINGS_MAX = 20
/** Shorter text in quotation marks is not checked as a quote. */
const QUOTED_CHARS_MIN = 25
const QUOTE_LINE = /^\s*>\s?(.*) \[([^[\]]+):(\d+)\]$/u
/** The numbers in the frame. */
const COUNTED =
  /^\d+ of \d+ documents? says? something about it; \d+ passages? (?:is|are) quoted below\.(?: \d+ passages? (?:was|were) left out, not standing in (?:its|their) source any more\.)?$/
const CITATION = /\[([^[\]]+):(\d+)\]/gu

export function checkDraft(checked: Checked): readonly Finding[] {
  return [...sections(checked), ...passages(checked), ...sourceRows(checked)].slice(0, FINDINGS_MAX)
}

function sections({ draft, plan }: Checked): readonly Finding[] {
  const lines = new Set(draft.split('\n').map((line) => line.trimEnd()))
  const wanted = [...Object.values(SECTIONS), ...plan.questions.map(({ text }) => text)]
  const titles = draft.startsWith('# ') ? [] : ['a title']
  const gone = wanted.filter((name) => !lines.has(`## ${name}`)).map((name) => `the section "## ${name}"`)
  return [...titles, ...gone].map((what) => ({ type: 'section', text: `The draft lacks ${what}.` }))
}

/** The part between the questions and the missing answers: headings, quotes, source names, and prose with citations. */
function passages(checked: Checked): readonly Finding[] {
  return bodyOf(checked).flatMap((block) => {
    const lines = block.split('\n')
    const heads = lines.filter((line) => /^\s*#/.test(line))
    const quotes = lines.filter(isQuote)
    const prose = lines
      .filter((line) => !/^\s*[#>]/.test(line))
      .join('\n')
      .trim()
    return [
      ...heads.flatMap((line) => headFindings(checked, line)),
      ...quotes.flatMap((line) => quoteFindings(checked, line)),
      ...(prose === '' ? [] : proseFindings(checked, prose)),
    ]
  })
}

/** Without the text of the frame. */
function bodyOf({ draft, plan }: Checked): readonly string[] {
  const head = `\n## ${SECTIONS.asked}\n`
  const begin = draft.indexOf(head)
  const end = draft.lastIndexOf(`\n## ${SECTIONS.missing}\n`)
  const own = new Set([askedText(plan)])
  const blocks = draft.slice(begin < 0 ? 0 : begin + head.length, end < 0 ? undefined : end).split(/\n\s*\n/u)
  return blocks.map((block) => block.trim()).filter((block) => block !== '' && !own.has(block) && !COUNTED.test(block))
}

function headFindings({ plan }: Checked, line: string): readonly Finding[] {
  if (plan.questions.some(({ text }) => line.trimEnd() === `## ${text}`)) return []
  return [{ type: 'section', text: `This heading is no question: ${clippedTrimmed(line, 120)}` }]
}

function quoteFindings({ facts }: Checked, line: string): readonly Finding[] {
  const [, quote = '', file = '', at = ''] = QUOTE_LINE.exec(line) ?? []
  if (quote === '') return [{ type: 'quote', text: `A quote has no source: ${clippedTrimmed(line, 120)}` }]
  const fact = facts.find((each) => each.file === file && each.line === Number(at) && each.quote === collapsed(quote))
  if (fact) return []
  const text = `This quote does not stand in ${file} at line ${at}: ${clippedTrimmed(quote, 120)}`
  return [{ type: 'quote', text, file, line: Number(at) }]
}

function proseFindings(checked: Checked, block: string): readonly Finding[] {
  const { facts, sources } = checked
  if (block === NOTHING || sources.some((source) => labelOf(source) === block)) return []
  const cited = [...block.matchAll(CITATION)].map(([, file = '', line = '']) => ({ file, line: Number(line) }))
  const unknown = cited.filter(({ file, line }) => !facts.some((fact) => fact.file === file && fact.line === line))
  const uncited =
    cited.length === 0
      ? [{ type: 'citation', text: `This cites no source: ${clippedTrimmed(block, 120)}` } as const]
      : []
  return [
    ...uncited,
    ...unknown.map(({ file, line }): Finding => {
      return { type: 'citation', text: `There is no passage [${file}:${line}] among the facts.`, file, line }
    }),
    ...madeUp(checked, block),
  ]
}

/** Text in quotation marks must be in a source. */
function madeUp({ facts }: Checked, block: string): readonly Finding[] {
  const said = [...block.matchAll(/[“"]([^“”"]+)[”"]/gu)].map(([, text = '']) => collapsed(text))
  return said
    .filter((text) => text.length >= QUOTED_CHARS_MIN && !facts.some(({ quote }) => told(quote).includes(told(text))))
    .map((text) => ({ type: 'quote', text: `No source says: ${clippedTrimmed(text, 120)}` }))
}

/** Each quoted source is listed with the hash of the text read. */
function sourceRows({ draft, sources, facts }: Checked): readonly Finding[] {
  const lines = new Set(draft.split('\n'))
  const used = sources.filter(({ file }) => facts.some((fact) => fact.file === file))
  return used
    .filter((source) => !lines.has(row(source)))
    .map(({ file }) => ({ type: 'source', text: `${file} is not listed with its SHA-256.`, file }))
}

/** The answer of a reviewer. */
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
 * The findings of a reviewer, whose answer was validated already. A no without a reason is a finding too; findings on a passed draft
 * are remarks.
 */
export function reviewedBy(answer: string): {
  readonly findings: readonly Finding[]
  readonly remarks: readonly string[]
} {
  const { passed, findings } = JSON.parse(answer) as { readonly passed: boolean; readonly findings: readonly string[] }
  const said = findings.map(collapsed)
  if (passed) return { findings: [], remarks: said }
  const reasons = said.length > 0 ? said : ['The reviewer did not pass it, and said no reason.']
  return { findings: reasons.map((text) => ({ type: 'reviewer', text })), remarks: [] }
}
