// The report workflow with child agents that plan, draft and review. Their models are scripts; the quotes are still looked up.
import { describe, expect, it } from 'vitest'
import { checkDraft, type Checked } from '../../src/graphs/report-check.ts'
import { type Model, scripted, type Step } from '../../src/index.ts'
import { failureIn } from './stage.ts'
import { INPUT, openBench, quotesIn, stateOf } from './report-stage.ts'

const PLAN = {
  questions: [
    { text: 'What moves the water?', terms: ['tides', 'moon'] },
    { text: 'Who minds the lamp?', terms: ['lamp'] },
  ],
}
const QUOTE = '> The moon raises the tides of the sea. [tides.txt:3]'
const BODY = `## What moves the water?

The moon does [tides.txt:3].

${QUOTE}

## Who minds the lamp?

Its keeper, who sleeps by day [lamps.md:4].`
const PASSED = { passed: true, findings: [] }

type Says = {
  readonly plan?: Step
  readonly write?: (draft: number) => Step
  readonly review?: (review: number) => Step
}

/** One model for all three, which knows them by what they were told to be. */
function crew({ plan, write, review }: Says = {}): { readonly model: Model; readonly tasks: string[] } {
  const tasks: string[] = []
  const count = { write: 0, review: 0 }
  const model = scripted(({ instructions, messages }) => {
    const first = messages.find(({ role }) => role === 'user')
    if (first?.role === 'user') tasks.push(first.parts.map((part) => (part.type === 'text' ? part.text : '')).join(''))
    if (instructions.startsWith('You plan')) return plan ?? JSON.stringify(PLAN)
    if (instructions.startsWith('You write')) return write?.(count.write++) ?? BODY
    return review?.(count.review++) ?? JSON.stringify(PASSED)
  })
  return { model, tasks }
}

async function reported(says: Says = {}) {
  const { model, tasks } = crew(says)
  const bench = openBench({ model })
  const result = await bench.harness.run(INPUT, { agent: 'report_with_model' })
  return { bench, result, tasks, session: bench.harness.session(result.sessionId) }
}

describe('with a model', () => {
  it('B-REPORT-40: planning, drafting and reviewing are children; the frame, the sources and the gate are the same', async () => {
    const { bench, result, session, tasks } = await reported()
    expect(result).toMatchObject({ status: 'requires_action', pending: [{ tool: 'finalize' }] })
    expect(await bench.allowed(session)).toMatchObject({ status: 'completed' })
    const report = bench.read('out/report.md')
    expect(report).toContain(BODY)
    expect(report).toContain('written by a language model')
    expect(report).toMatch(/## Sources\n\n\| document \| title \| SHA-256 \|/)
    expect(quotesIn(report)).toEqual([{ quote: 'The moon raises the tides of the sea.', file: 'tides.txt', line: 3 }])
    const cards = await bench.harness.list({ root: session.id })
    expect(cards.map(({ agent }) => agent).toSorted()).toEqual([
      'report_planner',
      'report_reviewer',
      'report_with_model',
      'report_writer',
    ])
    // Documents reach a model as material, and no model has a tool.
    expect(tasks[1]).toContain(`<data>\n${QUOTE}`)
  })

  // The recorded failure of S3: "Reviewer returned non-JSON output".
  it.each([
    ['in a fence', '```json\n{\n  "passed": true,\n  "findings": []\n}\n```'],
    [
      'in a fence with words around it',
      'Here is my review:\n\n```json\n{"passed": true, "findings": []}\n```\n\nLet me know!',
    ],
    ['with trailing commas', '{"passed": true, "findings": [],}'],
    ['after some words', 'I have read it. {"passed": true, "findings": []}'],
  ])('B-REPORT-41: a review that comes %s is read (S3-12, AC-50)', async (_how, answer) => {
    const { bench, result, session } = await reported({ review: () => answer })
    expect(result.status).toBe('requires_action')
    expect(await bench.allowed(session)).toMatchObject({ status: 'completed' })
  })

  it('B-REPORT-42: a review that is no JSON or does not fit is asked for again, and a plan too; then the run ends, and a retry goes on', async () => {
    const odd = [
      'It is fine.',
      '{"passed": "yes", "findings": []}',
      '{"passed": true}',
      '{"passed": true, "findings": [], "x": 1}',
    ]
    const asked = await reported({ review: (n) => (n === 0 ? (odd[0] ?? '') : JSON.stringify(PASSED)) })
    expect(asked.result.status).toBe('requires_action')
    const ended = await reported({ review: (n) => (n < 6 ? (odd[n % odd.length] ?? '') : JSON.stringify(PASSED)) })
    expect(failureIn(ended.result)).toMatch(/Node "review" failed: The subagent did not finish/)
    expect(await ended.session.run({ retry: true })).toMatchObject({ status: 'requires_action' })
    const planless = await reported({ plan: '{"questions": []}' })
    expect(failureIn(planless.result)).toMatch(/Node "plan" failed/)
  })

  it('B-REPORT-43: what the reviewer finds goes back to the writer, and the next draft may pass', async () => {
    const { bench, result, session, tasks } = await reported({
      review: (n) => JSON.stringify(n === 0 ? { passed: false, findings: ['Say who the keeper is.'] } : PASSED),
    })
    expect(result.status).toBe('requires_action')
    expect(tasks.filter((task) => task.includes('- Say who the keeper is.'))).toHaveLength(1)
    expect(await bench.allowed(session)).toMatchObject({ output: { drafts: 2, findings: [] } })
  })

  it('B-REPORT-44: a made-up quote is a finding whatever the reviewer says; after three drafts the run ends with the findings, and an edited draft can still pass', async () => {
    const lie = BODY.replace('raises the tides', 'lowers the tides')
    const { bench, result, session } = await reported({ write: () => lie })
    expect(failureIn(result)).toMatch(
      /Node "review" failed: ReviewFailed: 3 drafts did not pass the review\.\n- This quote does not stand in tides\.txt at line 3: The moon lowers the tides/,
    )
    const state = await stateOf(session)
    expect(state.drafts).toBe(3)
    expect(state.findings).toMatchObject([{ type: 'quote', file: 'tides.txt', line: 3 }])
    const mended = state.draft.replace('lowers the tides', 'raises the tides')
    expect(await session.run({ edit: { draft: mended } })).toMatchObject({ status: 'requires_action' })
    expect(await bench.allowed(session)).toMatchObject({ status: 'completed' })
  })

  it('B-REPORT-45: a whole answer in a fence is unwrapped, and a provider that fails once is asked again', async () => {
    const { result } = await reported({
      write: (n) => (n === 0 ? { error: 'bad_request' } : `\`\`\`markdown\n${BODY}\n\`\`\``),
    })
    expect(result.status).toBe('requires_action')
  })
})

describe('the review that needs no model', () => {
  const facts = [{ question: 0, quote: 'The moon raises the tides of the sea.', file: 'tides.txt', line: 3 }]
  const sources = [{ file: 'tides.txt', title: 'Tides', sha256: 'abc', bytes: 1, hits: 1 }]
  const plan = { questions: [{ text: 'What moves it?', terms: ['tides'] }] }
  const draft = (body: string): string =>
    `# T\n\n## What was asked\n\nWhat moves it?\n\n${body}\n\n## What was not found\n\n-\n\n## Sources\n\n| tides.txt | Tides | \`abc\` |\n\n## How this was made\n\nSo.\n`
  const found = (body: string, more: Partial<Checked> = {}): readonly string[] =>
    checkDraft({ draft: draft(body), plan, facts, sources, ...more }).map(({ type, text }) => `${type}: ${text}`)
  const whole = '## What moves it?\n\n> The moon raises the tides of the sea. [tides.txt:3]'

  it.each([
    ['all is there', whole, []],
    [
      'a section is gone',
      whole.replace('## What moves it?', ''),
      ['section: The draft lacks the section "## What moves it?".'],
    ],
    [
      'a quote was changed',
      whole.replace('moon', 'sun'),
      [expect.stringMatching(/^quote: This quote does not stand in tides\.txt at line 3/)],
    ],
    ['a quote is at another line', whole.replace(':3]', ':4]'), [expect.stringMatching(/^quote: /)]],
    ['a quote is of another file', whole.replace('[tides', '[tide'), [expect.stringMatching(/^quote: /)]],
    [
      'a quote has no source',
      whole.replace(' [tides.txt:3]', ''),
      [expect.stringMatching(/^quote: A quote has no source/)],
    ],
    ['prose cites nothing', `${whole}\n\nThe moon does it.`, ['citation: This cites no source: The moon does it.']],
    [
      'prose cites what is not there',
      `${whole}\n\nIt does [tides.txt:9].`,
      ['citation: There is no passage [tides.txt:9] among the facts.'],
    ],
    ['prose cites', `${whole}\n\nIt does [tides.txt:3].`, []],
    [
      'prose quotes what nobody said',
      `${whole}\n\nAs it says, “the sea lowers the moon at night” [tides.txt:3].`,
      [expect.stringMatching(/^quote: No source says: the sea lowers/)],
    ],
    ['prose quotes what was said', `${whole}\n\nAs it says, "The moon raises the tides" [tides.txt:3].`, []],
    [
      'prose comes before the first question',
      `The moon is cheese.\n\n${whole}`,
      ['citation: This cites no source: The moon is cheese.'],
    ],
    [
      'a heading is made up',
      `${whole}\n\n## Sources\n\nIt does [tides.txt:3].`,
      ['section: This heading is no question: ## Sources'],
    ],
    ['prose hides behind a quote', `${whole}\nThe moon is cheese.`, [expect.stringMatching(/^citation: |^quote: /)]],
    ['a source is named', `${whole}\n\n**tides.txt** · Tides`, []],
    [
      'bold prose is prose',
      `${whole}\n\n**The moon is cheese.**`,
      [expect.stringMatching(/^citation: This cites no source/)],
    ],
  ])('B-REPORT-46: when %s', (_name, body, expected) => {
    expect(found(body)).toEqual(expected)
  })

  it('B-REPORT-47: a source that is quoted must be listed with the hash of what was read, under a title', () => {
    expect(found(whole, { sources: [{ ...(sources[0] as (typeof sources)[0]), sha256: 'def' }] })).toEqual([
      'source: tides.txt is not listed with its SHA-256.',
    ])
    expect(checkDraft({ draft: 'x', plan, facts, sources }).map(({ type }) => type)).toContain('section')
  })
})
