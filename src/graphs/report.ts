// The report workflow: plan, search, extract, draft, review, propose, and finalize behind an approval. One graph by fixed rules, and
// one of the same shape in which child agents plan, draft and review. The runner owns the order in both; no model does.
import type { ToolContext } from '../tools/tool.ts'
import type { SubagentOptions } from '../runtime/agent.ts'
import { append, last, type StateOf } from './channel.ts'
import type { Graph } from './definition.ts'
import { type EdgeOption, withState } from './graph.ts'
import {
  REVIEW_INSTRUCTIONS,
  PLAN_INSTRUCTIONS,
  planTask,
  reviewTask,
  WRITE_INSTRUCTIONS,
  writeTask,
} from './report-agents.ts'
import { checkDraft, type Finding, REVIEW_SCHEMA, reviewedBy } from './report-check.ts'
import { counted, draftAround, draftOf, type Material, type Searched } from './report-draft.ts'
import { type Fact, factsOf, rankedSources, type Source } from './report-facts.ts'
import { finalize, type Proposal, propose, type Written } from './report-out.ts'
import { PLAN_SCHEMA, type Plan, planOf, plannedBy } from './report-plan.ts'
import { type Document, type Ground, readAgain, readLibrary, trouble } from './report-sources.ts'
import { standsIn } from './report-text.ts'
import { END, START } from './step.ts'

export type ReportOptions = {
  /** What the paths of a report start from: where it looks for documents, and where it may write. */
  readonly root: string
  /** Also places outside of the root. Only where nobody but the owner of the machine says which. Default: false. */
  readonly anywhere?: boolean
}

/** Something that was made on the way and is kept beside the log, by its hash. */
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
  /** How many drafts there were. */
  drafts: last(0),
  findings: last<readonly Finding[]>([]),
  artifacts: append<Artifact>(),
  proposal: last<Proposal>(),
  written: last<Written>(),
}
export type ReportState = StateOf<typeof CHANNELS>

/** A draft that does not pass is written again so often. */
const REDRAFTS_MAX = 2
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
  const ground = groundOf(options)
  return graph({
    name: 'report',
    nodes: {
      plan: node({
        description: 'makes questions of the topic',
        effect: 'read',
        reads: asked,
        run: ({ topic }) => ({ plan: planOf(topic), ...ANEW }),
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
        reads: ({ draft, plan, sources, facts, documents, drafts }) => ({
          draft,
          plan,
          sources,
          facts,
          documents,
          drafts,
        }),
        run: async ({ documents, drafts, ...checked }) => {
          const found = [...checkDraft(checked), ...(await fallen(ground, documents, checked))]
          return passedOr(found, drafts)
        },
      }),
      ...writers(ground),
    },
    edges: EDGES,
  })
}

/** The same, with child agents: give the harness `reportAgents` as its subagents. */
export function reportWithModelGraph(options: ReportOptions): Graph {
  const ground = groundOf(options)
  return graph({
    name: 'report_with_model',
    nodes: {
      plan: agentNode({
        description: 'makes questions of the topic',
        agent: 'report_planner',
        retries: 1,
        task: (state) => planTask(asked(state).topic),
        take: (answer) => ({ plan: plannedBy(answer), ...ANEW }),
      }),
      ...readers(ground),
      draft: agentNode({
        description: 'writes the report from the passages',
        agent: 'report_writer',
        retries: 1,
        task: writeTask,
        take: (answer, state) => ({ draft: draftAround(material(state), answer), drafts: state.drafts + 1 }),
      }),
      review: agentNode({
        description: 'judges the draft; every quote is also looked up',
        agent: 'report_reviewer',
        retries: 1,
        task: reviewTask,
        take: (answer, state) => passedOr([...checkDraft(state), ...reviewedBy(answer)], state.drafts),
      }),
      ...writers(ground),
    },
    edges: EDGES,
  })
}

const ALONE = { tools: [], allow: [], limits: { modelRequests: 4, outputRetries: 2 } } as const

/** Who plans, drafts and reviews. They have no tools: what they say is all they can do. */
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
  return { root, anywhere }
}

/** A plan begins a report: nothing of an earlier one is left. */
const ANEW = { searched: NOT_SEARCHED, sources: [], facts: [], draft: '', drafts: 0, findings: [] } as const

function asked({ topic, documents, out }: ReportState): Pick<ReportState, 'topic' | 'documents' | 'out'> {
  const fields: readonly unknown[] = [topic, documents, out]
  if (fields.every((field) => typeof field === 'string' && field.trim() !== '')) return { topic, documents, out }
  const text =
    'Say what it is about, where its documents are and where it goes: {"topic": "…", "documents": "FOLDER", "out": "FILE"}.'
  throw trouble('InvalidInput', text)
}

/** What passed nobody is not quoted again. */
function material(state: ReportState): Material & Pick<ReportState, 'drafts'> {
  const { topic, plan, searched, sources, facts, findings, drafts } = state
  const wrong = (fact: Fact): boolean => findings.some(({ file, line }) => file === fact.file && line === fact.line)
  const standing = facts.filter((fact) => !wrong(fact))
  return { topic, plan, searched, sources, facts: standing, dropped: facts.length - standing.length, drafts }
}

function drafted(draft: string, { drafts, facts }: ReturnType<typeof material>, context: ToolContext) {
  if (facts.length === 0) throw trouble('NothingLeft', 'No passage is left that stands in its source. Begin again.')
  const { hash: sha256, bytes } = context.keep(draft, MARKDOWN)
  return { draft, drafts: drafts + 1, artifacts: [{ name: `draft ${drafts + 1}`, sha256, bytes }] }
}

/** With findings it is drafted again, so often; then the run ends with them, and a retry reviews again. */
function passedOr(findings: readonly Finding[], drafts: number): { readonly findings: readonly Finding[] } {
  if (findings.length === 0 || drafts <= REDRAFTS_MAX) return { findings }
  const list = findings.map(({ text }) => `- ${text}`).join('\n')
  throw trouble('ReviewFailed', `${counted(drafts, 'draft')} did not pass the review.\n${list}`)
}

/** Quotes whose source says something else by now. */
async function fallen(
  ground: Ground,
  folder: string,
  { draft, facts }: Pick<ReportState, 'draft' | 'facts'>,
): Promise<readonly Finding[]> {
  const quotedHere = facts.filter(({ quote }) => draft.includes(quote))
  const files = [...new Set(quotedHere.map(({ file }) => file))]
  const texts = new Map(
    await Promise.all(files.map(async (file) => [file, await readAgain(ground, folder, file)] as const)),
  )
  return quotedHere
    .filter(({ quote, file, line }) => !standsIn(texts.get(file)?.text ?? '', quote, line))
    .map(({ file, line }) => ({
      type: 'quote',
      text: `${file} says something else at line ${line} by now.`,
      file,
      line,
    }))
}

function readers(ground: Ground) {
  return {
    search: node({
      description: 'finds the documents that say something about the questions',
      effect: 'read',
      reads: ({ documents, plan }: ReportState) => ({ documents, plan }),
      run: ({ documents, plan }) => searchIn(ground, documents, plan),
    }),
    extract: node({
      description: 'takes the sentences that answer, word for word',
      effect: 'read',
      reads: ({ documents, plan, sources }: ReportState) => ({ documents, plan, sources }),
      run: async ({ documents, plan, sources }) => {
        return { facts: factsOf(await Promise.all(sources.map((source) => same(ground, documents, source))), plan) }
      },
    }),
  }
}

async function searchIn(ground: Ground, folder: string, plan: Plan) {
  const { documents, leftOut } = await readLibrary(ground, folder)
  if (documents.length === 0)
    throw trouble(
      'NoDocuments',
      `The folder ${folder} has no .txt or .md document that can be read. Put some there, and go on.`,
    )
  const sources = rankedSources(documents, plan)
  if (sources.length === 0) {
    const words = plan.questions.flatMap(({ terms }) => terms).join(', ')
    const text = `None of ${counted(documents.length, 'document')} in ${folder} says anything about ${words}. Add documents and go on, or begin with other words.`
    throw trouble('NothingFound', text)
  }
  const silent = documents.map(({ file }) => file).filter((file) => !sources.some((source) => source.file === file))
  return { sources, searched: { count: documents.length, silent: silent.slice(0, 100), leftOut } }
}

/** A source is quoted as it was when it was found. */
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
      reads: ({ out, draft }: ReportState) => ({ out, draft }),
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
      reads: ({ proposal, draft }: ReportState) => ({ ...(proposal as Proposal), text: draft }),
      run: async (args, context) => ({ written: await finalize(ground, args, context) }),
    }),
  }
}

/** What a node came to, in a few words, by the state after it. */
export function reportFound(name: string, state: Partial<ReportState>): string {
  const { plan = NO_PLAN, sources = [], facts = [], searched = NOT_SEARCHED, draft = '', findings = [] } = state
  switch (name) {
    case 'plan':
      return counted(plan.questions.length, 'question')
    case 'search':
      return `${sources.length} of ${counted(searched.count, 'document')}`
    case 'extract':
      return `${counted(facts.length, 'passage')} from ${counted(new Set(facts.map(({ file }) => file)).size, 'document')}`
    case 'draft':
      return `${Buffer.byteLength(draft)} bytes`
    case 'review':
      return findings.length === 0 ? 'passed' : counted(findings.length, 'finding')
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
