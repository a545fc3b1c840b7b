// The report workflow: plan, search, extract, draft, review, propose, and finalize behind an approval. One graph works
// by fixed rules; in the other, of the same shape, child agents plan, draft and review. The order is fixed in both; no
// model decides it.
import { hash } from 'node:crypto'
import { resolve } from 'node:path'
import type { ToolContext } from '../../../tools/core/tool.ts'
import type { SubagentOptions } from '../../../index.ts'
import { nonEmptyCheck, flagCheck, requiredCheck, optionsChecker } from '../../../options.ts'
import { append, last, type StateOf } from '../../../graphs/channel.ts'
import type { Graph } from '../../../graphs/graph-definition.ts'
import { type EdgeOption, withState } from '../../../graphs/with-state.ts'
import {
  REVIEW_INSTRUCTIONS,
  PLAN_INSTRUCTIONS,
  reportPlanTask,
  reportReviewTask,
  WRITE_INSTRUCTIONS,
  reportWriteTask,
} from './report-prompts.ts'
import { checkDraft, type ReportFinding, REVIEW_SCHEMA, readReportReview } from './check-draft.ts'
import { draftFromModel, draftByRules, type ReportMaterial, type SearchSummary, SHOWN_MAX } from './report-draft.ts'
import { type Fact, findFacts, type YieldToOthers, rankSources, type ReportSource } from './report-facts.ts'
import { writeReport, isProposed, type WriteProposal, proposeWrite, type WrittenReport } from './write-report.ts'
import { PLAN_SCHEMA, type ReportPlan, planByRules, readReportPlan } from './report-plan.ts'
import {
  type ReportDocument,
  type ReportPaths,
  type UnreadDocument,
  rereadDocument,
  readLibrary,
  reportError,
} from './report-sources.ts'
import { collapseText, containsQuote } from './sentences.ts'
import { command, END, START } from '../../../graphs/planner-node.ts'
import { countNoun } from '../../../view/shown-text.ts'

export type ReportOptions = {
  /** The root of its paths, for reading documents and for writing the report. */
  readonly root: string
  /**
   * Allows paths outside of the root. Only for a host where the owner of the machine chooses the paths. Default: false.
   */
  readonly anywhere?: boolean
}

const checkOptions = optionsChecker<ReportOptions>('the report', {
  root: requiredCheck(nonEmptyCheck),
  anywhere: flagCheck,
})

/** An intermediate result, stored as a blob under its hash. */
type Artifact = { readonly name: string; readonly sha256: string; readonly bytes: number; readonly path?: string }

const NO_PLAN: ReportPlan = { questions: [] }
const NOT_SEARCHED: SearchSummary = { count: 0, silent: [], leftOut: [] }
const CHANNELS = {
  topic: last(''),
  documents: last(''),
  out: last(''),
  plan: last(NO_PLAN),
  searched: last(NOT_SEARCHED),
  sources: last<readonly ReportSource[]>([]),
  facts: last<readonly Fact[]>([]),
  draft: last(''),
  /** The number of drafts. */
  drafts: last(0),
  findings: last<readonly ReportFinding[]>([]),
  /** The hash of the draft that passed the review. */
  reviewed: last(''),
  /** A person edited the draft, so it must pass unchanged. */
  edited: last(false),
  /** Notes for the approver. */
  remarks: last<readonly string[]>([]),
  /** The name of the agent that planned it, or `rules`. */
  planner: last(''),
  /** The last answer of the reviewer, word for word. */
  review: last(''),
  artifacts: append<Artifact>(),
  proposal: last<WriteProposal>(),
  written: last<WrittenReport>(),
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

/** The workflow by fixed rules, without a model. */
export function reportGraph(options: ReportOptions): Graph {
  checkOptions(options)
  const ground = reportPathsOf(options)
  return graph({
    name: 'report',
    nodes: {
      plan: node({
        description: 'makes questions of the topic',
        effect: 'read',
        reads: checkReportInput,
        run: ({ topic }) => ({ plan: checkSearchable(planByRules(topic)), ...ANEW, planner: 'rules' }),
      }),
      ...readingNodes(ground),
      draft: node({
        description: 'writes the report, without what the review found wrong',
        effect: 'read',
        reads: reportMaterial,
        run: (given, context) => draftUpdate(draftByRules(given), given, context),
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
          const found = [
            ...checkDraft(checked),
            ...(await findChangedQuotes(ground, documents, checked, makeYield(context))),
          ]
          const review = JSON.stringify({ findings: found })
          return settleReview({ findings: found, remarks: [], review }, { drafts, edited, draft: checked.draft })
        },
      }),
      ...writingNodes(ground),
    },
    edges: EDGES,
  })
}

/** The same workflow with child agents. Give the harness `reportAgents` as its subagents. */
export function reportWithModelGraph(options: ReportOptions): Graph {
  checkOptions(options)
  const ground = reportPathsOf(options)
  return graph({
    name: 'report_with_model',
    nodes: {
      plan: agentNode({
        description: 'makes questions of the topic',
        agent: 'report_planner',
        retries: 1,
        task: (state) => reportPlanTask(checkReportInput(state).topic),
        take: (answer) => ({ plan: checkSearchable(readReportPlan(answer)), ...ANEW, planner: 'report_planner' }),
      }),
      ...readingNodes(ground),
      draft: agentNode({
        description: 'writes the report from the passages',
        agent: 'report_writer',
        retries: 1,
        task: reportWriteTask,
        take: (answer, state) => ({
          draft: draftFromModel(reportMaterial(state), answer),
          drafts: state.drafts + 1,
          edited: false,
        }),
      }),
      review: agentNode({
        description: 'judges the draft; every quote is also looked up',
        agent: 'report_reviewer',
        retries: 1,
        task: reportReviewTask,
        take: (answer, state) => {
          const { findings, remarks } = readReportReview(answer)
          return settleReview({ findings: [...checkDraft(state), ...findings], remarks, review: answer }, state)
        },
      }),
      ...writingNodes(ground),
    },
    edges: EDGES,
  })
}

const ALONE = { tools: [], toolAccess: { allow: [] }, limits: { modelRequests: 4, outputRetries: 2 } } as const

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

function reportPathsOf({ root, anywhere = false }: ReportOptions): ReportPaths {
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

function checkReportInput({ topic, documents, out }: ReportState): Pick<ReportState, 'topic' | 'documents' | 'out'> {
  const fields: readonly unknown[] = [topic, documents, out]
  if (fields.every((field) => typeof field === 'string' && field.trim() !== '')) return { topic, documents, out }
  const text =
    'Say what it is about, where its documents are and where it goes: {"topic": "…", "documents": "FOLDER", "out": "FILE"}.'
  throw reportError('InvalidInput', text)
}

/** Throws for a question without search words. */
function checkSearchable(plan: ReportPlan): ReportPlan {
  const empty = plan.questions.find(({ text, terms }) => text === '' || terms.length === 0)
  if (!empty) return plan
  throw reportError(
    'NoWords',
    `"${empty.text}" has no word that could be looked for. Begin again, and say what it is about.`,
  )
}

/** Lets long reading yield to other work, and stop on an abort. */
function makeYield({ signal }: ToolContext): YieldToOthers {
  return async () => {
    await new Promise((resolved) => setImmediate(resolved))
    signal.throwIfAborted()
  }
}

/** The material for a draft, without the quotes that failed the review. */
function reportMaterial(state: ReportState): ReportMaterial & Pick<ReportState, 'drafts'> {
  const { topic, plan, searched, sources, facts, findings, drafts } = state
  const wrong = (fact: Fact): boolean => findings.some(({ file, line }) => file === fact.file && line === fact.line)
  const standing = facts.filter((fact) => !wrong(fact))
  return { topic, plan, searched, sources, facts: standing, dropped: facts.length - standing.length, drafts }
}

function draftUpdate(draft: string, { drafts, facts }: ReturnType<typeof reportMaterial>, context: ToolContext) {
  if (facts.length === 0) throw reportError('NothingLeft', 'No passage is left that stands in its source. Begin again.')
  const { hash: sha256, bytes } = context.keep(draft, MARKDOWN)
  return { draft, drafts: drafts + 1, edited: false, artifacts: [{ name: `draft ${drafts + 1}`, sha256, bytes }] }
}

type ReviewUpdate = Pick<ReportState, 'findings' | 'remarks' | 'review'>
type PassedReview = ReviewUpdate & Partial<Pick<ReportState, 'reviewed'>>

/**
 * With findings the draft is written again, up to the limit. After that the run ends with the findings, and a retry
 * reviews again. A draft that a person edited is not replaced.
 */
function settleReview(
  said: ReviewUpdate,
  { draft, drafts, edited }: Pick<ReportState, 'draft' | 'drafts' | 'edited'>,
): PassedReview {
  const { findings } = said
  if (findings.length === 0) return { ...said, reviewed: hash('sha256', draft) }
  if (drafts <= REDRAFTS_MAX && !edited) return said
  const list = findings.map(({ text }) => `- ${text}`).join('\n')
  const what = edited ? 'The edited draft' : countNoun(drafts, 'draft')
  throw reportError('ReviewFailed', `${what} did not pass the review.\n${list}`)
}

/** Finds quotes whose source has changed. */
async function findChangedQuotes(
  ground: ReportPaths,
  folder: string,
  { draft, facts }: Pick<ReportState, 'draft' | 'facts'>,
  pace: YieldToOthers,
): Promise<readonly ReportFinding[]> {
  const quotedHere = facts.filter(({ quote }) => draft.includes(quote))
  const findings: ReportFinding[] = []
  for (const file of new Set(quotedHere.map((fact) => fact.file))) {
    const { text } = await rereadDocument(ground, folder, file)
    for (const { quote, line } of quotedHere.filter((fact) => fact.file === file)) {
      await pace()
      if (containsQuote(text, quote, line)) continue
      findings.push({ type: 'quote', text: `${file} says something else at line ${line} by now.`, file, line })
    }
  }
  return findings
}

function readingNodes(ground: ReportPaths) {
  return {
    search: node({
      description: 'finds the documents that say something about the questions',
      effect: 'read',
      reads: ({ documents, plan }: ReportState) => ({ documents, plan }),
      run: ({ documents, plan }, context) => searchDocuments(ground, documents, plan, makeYield(context)),
    }),
    extract: node({
      description: 'takes the sentences that answer, word for word',
      effect: 'read',
      reads: ({ documents, plan, sources }: ReportState) => ({ documents, plan, sources }),
      run: async ({ documents, plan, sources }, context) => {
        return { facts: await findFacts(readSourcesAgain(ground, documents, sources), plan, makeYield(context)) }
      },
    }),
  }
}

async function searchDocuments(ground: ReportPaths, folder: string, plan: ReportPlan, pace: YieldToOthers) {
  const { documents, leftOut } = await readLibrary(ground, folder)
  if (documents.length === 0)
    throw reportError(
      'NoDocuments',
      `The folder ${folder} has no .txt or .md document that can be read. Put some there, and go on.${unreadText(leftOut)}`,
    )
  const ranked = await rankSources(documents, plan, pace)
  if (ranked.length === 0) {
    const words = plan.questions.flatMap(({ terms }) => terms).join(', ')
    const text = `None of ${countNoun(documents.length, 'document')} in ${folder} says anything about ${words}. Add documents and go on, or begin with other words.`
    throw reportError('NothingFound', text)
  }
  const answering = new Set(ranked.map(({ file }) => file))
  const silent = documents.map(({ file }) => file).filter((file) => !answering.has(file))
  const sources = ranked.slice(0, SOURCES_MAX)
  const more = ranked.length - sources.length
  const searched: SearchSummary = { count: documents.length, silent: silent.slice(0, SHOWN_MAX), leftOut }
  return { sources, searched: more > 0 ? { ...searched, more } : searched }
}

function unreadText(leftOut: readonly UnreadDocument[]): string {
  const list = leftOut.slice(0, SHOWN_MAX).map(({ file, why }) => `\n- ${collapseText(file)} was not read: ${why}.`)
  return list.join('')
}

async function* readSourcesAgain(
  ground: ReportPaths,
  folder: string,
  sources: readonly ReportSource[],
): AsyncGenerator<ReportDocument> {
  for (const source of sources) yield await readUnchanged(ground, folder, source)
}

/** Throws if the source has changed since it was found. */
async function readUnchanged(
  ground: ReportPaths,
  folder: string,
  { file, sha256 }: ReportSource,
): Promise<ReportDocument> {
  const now = await rereadDocument(ground, folder, file)
  if (now.sha256 === sha256) return now
  throw reportError('SourceChanged', `${file} was changed after it was found. Put it back and go on, or begin again.`)
}

function writingNodes(ground: ReportPaths) {
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
        const proposal = await proposeWrite(ground, out, draft)
        const { hash: sha256, bytes } = context.keep(draft, MARKDOWN)
        return { proposal, artifacts: [{ name: 'report', sha256, bytes, path: proposal.path }] }
      },
    }),
    finalize: node({
      description: 'writes exactly these bytes to this path',
      effect: 'idempotent',
      approval: 'ask',
      to: ['propose'],
      // An edited draft is proposed again, so that the text that was shown, approved and written is the same.
      reads: ({ proposal, out, draft, remarks }: ReportState) => {
        if (!proposal || !isProposed(ground, proposal, out, draft)) return command({ goto: 'propose' })
        return { ...proposal, text: draft, ...(remarks.length > 0 ? { remarks } : {}) }
      },
      run: async (args, context) => {
        const written = await writeReport(ground, args, context)
        if (written) return { written }
        const changed = `${args.path} is not what it was when this was proposed before, so nothing was written.`
        return command({ update: { remarks: [...new Set([...(args.remarks ?? []), changed])] }, goto: 'propose' })
      },
    }),
  }
}

/** A short description of a node's result, from the state after it. */
export function reportNodeText(name: string, state: Partial<ReportState>): string {
  const { plan = NO_PLAN, sources = [], facts = [], searched = NOT_SEARCHED, draft = '', findings = [] } = state
  const { remarks = [] } = state
  switch (name) {
    case 'plan':
      return countNoun(plan.questions.length, 'question')
    case 'search':
      return `${sources.length + (searched.more ?? 0)} of ${countNoun(searched.count, 'document')}`
    case 'extract':
      return `${countNoun(facts.length, 'passage')} from ${countNoun(new Set(facts.map(({ file }) => file)).size, 'document')}`
    case 'draft':
      return `${Buffer.byteLength(draft)} bytes`
    case 'review':
      if (findings.length > 0) return countNoun(findings.length, 'finding')
      return remarks.length === 0 ? 'passed' : `passed, with ${countNoun(remarks.length, 'remark')}`
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
