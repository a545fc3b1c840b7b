// The report workflow: plan, search, extract, draft, review, propose, and finalize behind an approval. One graph by fixed rules, and
// one of the same shape in which child agents plan, draft and review. The runner owns the order in both; no model does.
import { hash } from 'node:crypto'
import { resolve } from 'node:path'
import type { ToolContext } from '../../tools/core/tool.ts'
import type { SubagentOptions } from '../../sessions/agent.ts'
import { filled, flag, needed, optionsOf } from '../../options.ts'
import { append, last, type StateOf } from '../../graphs/channel.ts'
import type { Graph } from '../../graphs/definition.ts'
import { type EdgeOption, withState } from '../../graphs/graph.ts'
import {
  REVIEW_INSTRUCTIONS,
  PLAN_INSTRUCTIONS,
  planTask,
  reviewTask,
  WRITE_INSTRUCTIONS,
  writeTask,
} from './agents.ts'
import { checkDraft, type Finding, REVIEW_SCHEMA, reviewedBy } from './check.ts'
import { draftAround, draftOf, type Material, type Searched, SHOWN_MAX } from './draft.ts'
import { type Fact, factsOf, type Pace, rankedSources, type Source } from './facts.ts'
import { finalize, isProposed, type Proposal, propose, type Written } from './out.ts'
import { PLAN_SCHEMA, type Plan, planOf, plannedBy } from './plan.ts'
import { type Document, type Ground, type LeftOut, readAgain, readLibrary, trouble } from './sources.ts'
import { collapsed, standsIn } from './text.ts'
import { command, END, START } from '../../graphs/step.ts'
import { counted } from '../../view/text.ts'

export type ReportOptions = {
  /** The root of its paths: for reading documents and for writing the report. */
  readonly root: string
  /** Allows paths outside of the root. Only if the owner of the machine chooses them. Default: false. */
  readonly anywhere?: boolean
}

const checkOptions = optionsOf<ReportOptions>('the report', { root: needed(filled), anywhere: flag })

/** An intermediate result stored as a blob, by its hash. */
type Artifact = { readonly name: string; readonly sha256: string; readonly bytes: number; readonly path?: string }

const NO_PLAN: Plan = { questions: [] }
const NOT_SEARCHED: Searched = { count: 0, silent: [], leftOut: [] }
const CHANNELS = {
  topic: last(''),
  documents: last(''),
  out: last(''),
  plan: last(NO_PLAN),
  searched: last(NOT_SEARCHED),
  sources: last<readonly Source[]>([]),
  facts: last<readonly Fact[]>([]),
  draft: last(''),
  /** The number of drafts. */
  drafts: last(0),
  findings: last<readonly Finding[]>([]),
  /** The hash of the draft that passed the review. */
  reviewed: last(''),
  /** A person edited the draft: it passes unchanged or not at all. */
  edited: last(false),
  /** Notes for the approver. */
  remarks: last<readonly string[]>([]),
  /** Who planned it: an agent by its name, or `rules`. */
  planner: last(''),
  /** What the reviewer said last, word for word. */
  review: last(''),
  artifacts: append<Artifact>(),
  proposal: last<Proposal>(),
  written: last<Written>(),
}
export type ReportState = StateOf<typeof CHANNELS>

/** How often a failed draft is written again. */
const REDRAFTS_MAX = 2
/** The most documents quoted. */
const SOURCES_MAX = 40
const MARKDOWN = 'text/markdown'

const { node, agentNode, graph } = withState(CHANNELS)
const NAMES = ['plan', 'search', 'extract', 'draft', 'review', 'propose', 'finalize'] as const
const EDGES: readonly EdgeOption<ReportState, (typeof NAMES)[number]>[] = [
  [START, 'plan'],
  ['plan', 'search'],
  ['search', 'extract'],
  ['extract', 'draft'],
  ['draft', 'review'],
  { from: 'review', to: ['propose', 'draft'], by: ({ findings }) => (findings.length === 0 ? 'propose' : 'draft') },
  ['propose', 'finalize'],
  ['finalize', END],
]

/** By fixed rules, without a model. */
export function reportGraph(options: ReportOptions): Graph {
  checkOptions(options)
  const ground = groundOf(options)
  return graph({
    name: 'report',
    nodes: {
      plan: node({
        description: 'makes questions of the topic',
        effect: 'read',
        reads: asked,
        run: ({ topic }) => ({ plan: answerable(planOf(topic)), ...ANEW, planner: 'rules' }),
      }),
      ...readers(ground),
      draft: node({
        description: 'writes the report, without what the review found wrong',
        effect: 'read',
        reads: material,
        run: (given, context) => drafted(draftOf(given), given, context),
      }),
      review: node({
        description: 'looks whether every quote stands in its source',
        effect: 'read',
        reads: ({ draft, plan, sources, facts, documents, drafts, edited }) => ({
          draft,
          plan,
          sources,
          facts,
          documents,
          drafts,
          edited,
        }),
        run: async ({ documents, drafts, edited, ...checked }, context) => {
          const found = [...checkDraft(checked), ...(await fallen(ground, documents, checked, paceOf(context)))]
          const review = JSON.stringify({ findings: found })
          return passedOr({ findings: found, remarks: [], review }, { drafts, edited, draft: checked.draft })
        },
      }),
      ...writers(ground),
    },
    edges: EDGES,
  })
}

/** The same, with child agents: give the harness `reportAgents` as its subagents. */
export function reportWithModelGraph(options: ReportOptions): Graph {
  checkOptions(options)
  const ground = groundOf(options)
  return graph({
    name: 'report_with_model',
    nodes: {
      plan: agentNode({
        description: 'makes questions of the topic',
        agent: 'report_planner',
        retries: 1,
        task: (state) => planTask(asked(state).topic),
        take: (answer) => ({ plan: answerable(plannedBy(answer)), ...ANEW, planner: 'report_planner' }),
      }),
      ...readers(ground),
      draft: agentNode({
        description: 'writes the report from the passages',
        agent: 'report_writer',
        retries: 1,
        task: writeTask,
        take: (answer, state) => ({
          draft: draftAround(material(state), answer),
          drafts: state.drafts + 1,
          edited: false,
        }),
      }),
      review: agentNode({
        description: 'judges the draft; every quote is also looked up',
        agent: 'report_reviewer',
        retries: 1,
        task: reviewTask,
        take: (answer, state) => {
          const { findings, remarks } = reviewedBy(answer)
          return passedOr({ findings: [...checkDraft(state), ...findings], remarks, review: answer }, state)
        },
      }),
      ...writers(ground),
    },
    edges: EDGES,
  })
}

const ALONE = { tools: [], allow: [], limits: { modelRequests: 4, outputRetries: 2 } } as const

/** The agents that plan, draft and review. They have no tools. */
export const reportAgents: Readonly<Record<string, SubagentOptions>> = {
  report_planner: {
    ...ALONE,
    description: 'plans a report',
    instructions: PLAN_INSTRUCTIONS,
    output: { schema: PLAN_SCHEMA, mode: 'prompted' },
  },
  report_writer: { ...ALONE, description: 'drafts a report', instructions: WRITE_INSTRUCTIONS },
  report_reviewer: {
    ...ALONE,
    description: 'reviews a report',
    instructions: REVIEW_INSTRUCTIONS,
    output: { schema: REVIEW_SCHEMA, mode: 'prompted' },
  },
}

function groundOf({ root, anywhere = false }: ReportOptions): Ground {
  return { root: resolve(root), anywhere }
}

/** A plan begins a report and clears an earlier one. */
const ANEW = {
  searched: NOT_SEARCHED,
  sources: [],
  facts: [],
  draft: '',
  drafts: 0,
  findings: [],
  reviewed: '',
  edited: false,
  remarks: [],
  review: '',
} as const

function asked({ topic, documents, out }: ReportState): Pick<ReportState, 'topic' | 'documents' | 'out'> {
  const fields: readonly unknown[] = [topic, documents, out]
  if (fields.every((field) => typeof field === 'string' && field.trim() !== '')) return { topic, documents, out }
  const text =
    'Say what it is about, where its documents are and where it goes: {"topic": "…", "documents": "FOLDER", "out": "FILE"}.'
  throw trouble('InvalidInput', text)
}

/** Throws for a question without search words. */
function answerable(plan: Plan): Plan {
  const empty = plan.questions.find(({ text, terms }) => text === '' || terms.length === 0)
  if (!empty) return plan
  throw trouble(
    'NoWords',
    `"${empty.text}" has no word that could be looked for. Begin again, and say what it is about.`,
  )
}

/** Long reading yields to other work, and stops on an abort. */
function paceOf({ signal }: ToolContext): Pace {
  return async () => {
    await new Promise((resolved) => setImmediate(resolved))
    signal.throwIfAborted()
  }
}

/** Drops quotes that did not pass the review. */
function material(state: ReportState): Material & Pick<ReportState, 'drafts'> {
  const { topic, plan, searched, sources, facts, findings, drafts } = state
  const wrong = (fact: Fact): boolean => findings.some(({ file, line }) => file === fact.file && line === fact.line)
  const standing = facts.filter((fact) => !wrong(fact))
  return { topic, plan, searched, sources, facts: standing, dropped: facts.length - standing.length, drafts }
}

function drafted(draft: string, { drafts, facts }: ReturnType<typeof material>, context: ToolContext) {
  if (facts.length === 0) throw trouble('NothingLeft', 'No passage is left that stands in its source. Begin again.')
  const { hash: sha256, bytes } = context.keep(draft, MARKDOWN)
  return { draft, drafts: drafts + 1, edited: false, artifacts: [{ name: `draft ${drafts + 1}`, sha256, bytes }] }
}

type Reviewed = Pick<ReportState, 'findings' | 'remarks' | 'review'>
type Passed = Reviewed & Partial<Pick<ReportState, 'reviewed'>>

/**
 * With findings the draft is written again, up to the limit; then the run ends with them, and a retry reviews again. A draft edited by a
 * person is not replaced.
 */
function passedOr(said: Reviewed, { draft, drafts, edited }: Pick<ReportState, 'draft' | 'drafts' | 'edited'>): Passed {
  const { findings } = said
  if (findings.length === 0) return { ...said, reviewed: hash('sha256', draft) }
  if (drafts <= REDRAFTS_MAX && !edited) return said
  const list = findings.map(({ text }) => `- ${text}`).join('\n')
  const what = edited ? 'The edited draft' : counted(drafts, 'draft')
  throw trouble('ReviewFailed', `${what} did not pass the review.\n${list}`)
}

/** Quotes whose source has changed. */
async function fallen(
  ground: Ground,
  folder: string,
  { draft, facts }: Pick<ReportState, 'draft' | 'facts'>,
  pace: Pace,
): Promise<readonly Finding[]> {
  const quotedHere = facts.filter(({ quote }) => draft.includes(quote))
  const findings: Finding[] = []
  for (const file of new Set(quotedHere.map((fact) => fact.file))) {
    const { text } = await readAgain(ground, folder, file)
    for (const { quote, line } of quotedHere.filter((fact) => fact.file === file)) {
      await pace()
      if (standsIn(text, quote, line)) continue
      findings.push({ type: 'quote', text: `${file} says something else at line ${line} by now.`, file, line })
    }
  }
  return findings
}

function readers(ground: Ground) {
  return {
    search: node({
      description: 'finds the documents that say something about the questions',
      effect: 'read',
      reads: ({ documents, plan }: ReportState) => ({ documents, plan }),
      run: ({ documents, plan }, context) => searchIn(ground, documents, plan, paceOf(context)),
    }),
    extract: node({
      description: 'takes the sentences that answer, word for word',
      effect: 'read',
      reads: ({ documents, plan, sources }: ReportState) => ({ documents, plan, sources }),
      run: async ({ documents, plan, sources }, context) => {
        return { facts: await factsOf(again(ground, documents, sources), plan, paceOf(context)) }
      },
    }),
  }
}

async function searchIn(ground: Ground, folder: string, plan: Plan, pace: Pace) {
  const { documents, leftOut } = await readLibrary(ground, folder)
  if (documents.length === 0)
    throw trouble(
      'NoDocuments',
      `The folder ${folder} has no .txt or .md document that can be read. Put some there, and go on.${leftOutText(leftOut)}`,
    )
  const ranked = await rankedSources(documents, plan, pace)
  if (ranked.length === 0) {
    const words = plan.questions.flatMap(({ terms }) => terms).join(', ')
    const text = `None of ${counted(documents.length, 'document')} in ${folder} says anything about ${words}. Add documents and go on, or begin with other words.`
    throw trouble('NothingFound', text)
  }
  const answering = new Set(ranked.map(({ file }) => file))
  const silent = documents.map(({ file }) => file).filter((file) => !answering.has(file))
  const sources = ranked.slice(0, SOURCES_MAX)
  const more = ranked.length - sources.length
  const searched: Searched = { count: documents.length, silent: silent.slice(0, SHOWN_MAX), leftOut }
  return { sources, searched: more > 0 ? { ...searched, more } : searched }
}

function leftOutText(leftOut: readonly LeftOut[]): string {
  const list = leftOut.slice(0, SHOWN_MAX).map(({ file, why }) => `\n- ${collapsed(file)} was not read: ${why}.`)
  return list.join('')
}

async function* again(ground: Ground, folder: string, sources: readonly Source[]): AsyncGenerator<Document> {
  for (const source of sources) yield await same(ground, folder, source)
}

/** A source must be unchanged since it was found. */
async function same(ground: Ground, folder: string, { file, sha256 }: Source): Promise<Document> {
  const now = await readAgain(ground, folder, file)
  if (now.sha256 === sha256) return now
  throw trouble('SourceChanged', `${file} was changed after it was found. Put it back and go on, or begin again.`)
}

function writers(ground: Ground) {
  return {
    propose: node({
      description: 'fixes the exact bytes and looks at what they would replace',
      effect: 'read',
      to: ['review'],
      // Only a reviewed draft is proposed.
      reads: ({ out, draft, reviewed }: ReportState) => {
        if (reviewed === hash('sha256', draft)) return { out, draft }
        return command({ update: { edited: true }, goto: 'review' })
      },
      run: async ({ out, draft }, context) => {
        const proposal = await propose(ground, out, draft)
        const { hash: sha256, bytes } = context.keep(draft, MARKDOWN)
        return { proposal, artifacts: [{ name: 'report', sha256, bytes, path: proposal.path }] }
      },
    }),
    finalize: node({
      description: 'writes exactly these bytes to this path',
      effect: 'idempotent',
      approval: 'ask',
      to: ['propose'],
      // After an edit the draft is proposed again, so that the shown, approved and written text are the same.
      reads: ({ proposal, out, draft, remarks }: ReportState) => {
        if (!proposal || !isProposed(ground, proposal, out, draft)) return command({ goto: 'propose' })
        return { ...proposal, text: draft, ...(remarks.length > 0 ? { remarks } : {}) }
      },
      run: async (args, context) => {
        const written = await finalize(ground, args, context)
        if (written) return { written }
        const changed = `${args.path} is not what it was when this was proposed before, so nothing was written.`
        return command({ update: { remarks: [...new Set([...(args.remarks ?? []), changed])] }, goto: 'propose' })
      },
    }),
  }
}

/** The result of a node in a few words, from the state after it. */
export function reportFound(name: string, state: Partial<ReportState>): string {
  const { plan = NO_PLAN, sources = [], facts = [], searched = NOT_SEARCHED, draft = '', findings = [] } = state
  const { remarks = [] } = state
  switch (name) {
    case 'plan':
      return counted(plan.questions.length, 'question')
    case 'search':
      return `${sources.length + (searched.more ?? 0)} of ${counted(searched.count, 'document')}`
    case 'extract':
      return `${counted(facts.length, 'passage')} from ${counted(new Set(facts.map(({ file }) => file)).size, 'document')}`
    case 'draft':
      return `${Buffer.byteLength(draft)} bytes`
    case 'review':
      if (findings.length > 0) return counted(findings.length, 'finding')
      return remarks.length === 0 ? 'passed' : `passed, with ${counted(remarks.length, 'remark')}`
    case 'propose':
      return state.proposal
        ? `${state.proposal.path}${state.proposal.replaces ? ', in the place of what is there' : ', a new file'}`
        : ''
    case 'finalize':
      return state.written ? `${state.written.path}${state.written.changed ? '' : ', which was there already'}` : ''
    default:
      return ''
  }
}
