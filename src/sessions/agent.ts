// Turns the agents that a host describes into the ones that the runtime uses: model, tools, limits, and the agents that
// each may start as children.
import type { Json, Limits } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Model } from '../ports/model.ts'
import type { CompleteStore } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import { RETRIEVE, ROUTED_BYTES_MIN } from '../context/compress/marker.ts'
import { retrieveTool } from '../context/compress/retrieve-tool.ts'
import { isRecorded } from '../runtime/state/recorded-model.ts'
import { FINAL_RESULT, type OutputMode } from '../models/structured-output.ts'
import { whyNotModel, resolveModel } from '../models/resolve-model.ts'
import { workloadOfHint, noRouteFault, type RouteTable } from '../models/router.ts'
import {
  type Check,
  type Checks,
  countCheck,
  nonEmptyCheck,
  flagCheck,
  listCheck,
  requiredCheck,
  oneOf,
  optionsChecker,
  textCheck,
  optionsCheck,
} from '../options.ts'
import type { UnknownTool } from '../tools/core/admit.ts'
import { CHARS_A_TOKEN } from '../view/session-history.ts'
import { FORK } from '../tools/agents/order-tools.ts'
import { LIKE_PARENT, type SubagentTool } from '../tools/agents/subagent.ts'
import { errorCheck, type Tool, toolCheck } from '../tools/core/tool.ts'
import type { AnySchema, AsJson, SchemaOutput, ToolList } from '../tools/core/tool-types.ts'
import { LIMITS, completeLimits } from '../runtime/state/limits.ts'
import type { Budget } from '../runtime/state/agent.ts'
import { Toolbox, type ToolAccess } from '../runtime/state/toolbox.ts'
import type { Compaction } from '../runtime/state/runtime-ports.ts'
import type { Agent, Compression, ResultShortening } from '../runtime/state/agent.ts'
import { agentApprovals, type ApprovalOptions } from '../runtime/state/agent-approvals.ts'
import { type HarnessOutput, outputCheck, planAnswer } from '../runtime/state/agent-output.ts'
import { planChildAgents } from './below.ts'
import type { Sessions } from './verbs.ts'
import type { Tier } from '../runtime/state/model-tiers.ts'

/** How the results of an agent's calls are shortened before its model reads them, and how failed calls are handled. */
export type ResultHandling = {
  /**
   * The content router shortens large results before the model reads them, by their kind. `light` only reformats,
   * `full` also leaves text out and keeps the original, `auto` is `light` for agents that write code. Default: `off` if
   * `summarize` or `bytes` is set. If none of the three is set, results of more than 16,384 bytes are shortened in
   * `full` and then cut to that size.
   */
  readonly compression?: Compression | 'off'
  /**
   * The agent's model summarises results that are still long after `compression`, and the original is kept. Only for
   * sessions that are not children. Default false; `true`: from 4,000 tokens (characters / 4) up to 2,000,000.
   */
  readonly summarize?: boolean | { readonly fromTokens?: number; readonly toTokens?: number }
  /**
   * Cuts results to this number of bytes and keeps the original. `false`: results are not cut, nor shortened by the
   * default.
   */
  readonly bytes?: number | false
  /**
   * The handling of calls of unknown tools. Default `return`: the model reads which tools there are. `fail` ends the
   * run.
   */
  readonly unknownTool?: UnknownTool
  /**
   * The handling of failures of tools without an `onError` of their own. Default `return`: the model reads the failure.
   * `fail` ends the run.
   */
  readonly toolErrors?: 'return' | 'fail'
}

/** The parts of a session that the requests of its agent show. */
export type ContextOptions = {
  /**
   * Instructions and tools of a session are made for its first run and shown byte for byte to later runs, so that
   * providers read them from their caches. Default `keep`: a note tells the model what changed, and the changes count
   * in full with another model or after a compaction. `follow`: the next run shows the current ones.
   */
  readonly prefix?: 'keep' | 'follow'
}

/** The options of an agent. */
export type AgentOptions<
  Tools extends ToolList = ToolList,
  Schema extends AnySchema = AnySchema,
  Mode extends OutputMode = OutputMode,
> = {
  /** A model, or its name: `provider:model`. `hint:NAME` takes the model of that route. */
  readonly model: Model | string
  /** Tools, and sources of tools such as MCP servers. The sources are closed with the harness. */
  readonly tools?: Tools
  /** Which of its tools it has. Default: all. */
  readonly toolAccess?: ToolAccess
  /** What the model is told before the conversation. */
  readonly instructions?: string
  /** The limits of each run. Those that are left out have their defaults. */
  readonly limits?: Partial<Limits>
  /** Plan mode: the model sees only tools that change nothing, and those that a person answers. */
  readonly plan?: boolean
  /** The form of the final answer. Without it any text is an answer. */
  readonly output?: HarnessOutput<Schema, Mode>
  /** The handling of results, and of calls that cannot be made. */
  readonly results?: ResultHandling
  /** The parts of its session that a request shows. */
  readonly context?: ContextOptions
}

/** An agent that others may start as a child. It takes options that are left out from its parent. */
export type SubagentOptions = Partial<Omit<AgentOptions, 'output'>> & {
  /** When to use this agent. The parent's model reads it. */
  readonly description: string
  /** The schema of its answer, which its parent then reads as JSON. */
  readonly output?: HarnessOutput
  /**
   * Whether it also has its parent's sources of tools, such as MCP servers: all of them, or those with these names.
   * Default false.
   */
  readonly inheritSources?: boolean | readonly string[]
  /**
   * `chat` may start `reasoning` and `worker`, `reasoning` may start `worker`, and `worker` starts no agents. Absent:
   * no such rule.
   */
  readonly tier?: Tier
  /** The agents it may start. Absent: all that its tier allows, and without a tier also one like itself. */
  readonly subagents?: readonly string[]
  /** Agents that list it in `subagents` get a tool of this name that starts it. */
  readonly delegateName?: string
  /**
   * The agent takes over the conversation and answers the user itself: its answer is the answer of the run. Agents that
   * may start it get the tool `handoff_to_NAME`, or one named by `delegateName`. Default false: it works on a task, and
   * its parent reads the answer.
   */
  readonly handoff?: boolean
  /** The most characters of its answer that its parent reads. */
  readonly maxResultChars?: number
  /** The time that one run of it may work. Waiting does not count. */
  readonly timeoutMs?: number
}

/** `true`: the agent may start children like itself. Otherwise the agents it may start, by name. */
export type Subagents = true | Readonly<Record<string, SubagentOptions>>

/**
 * The answer types of a harness's agents, by name; `default` is the harness itself. The answer of an agent without a
 * known schema is JSON.
 */
export type AgentAnswers<Schema, Mode, Agents, Graphs = never> = {
  readonly [Name in 'default' | NamesOf<Agents> | OtherNames<Agents, Graphs>]: Name extends 'default'
    ? AgentAnswer<Schema, Mode>
    : Name extends keyof Agents
      ? AnswerOf<Agents[Name]>
      : Json
}
/** Any other name. A plain `string` would include the known names. */
type OtherName = string & {}
/** The names of agents that are not known as types: workflows, and agents of a table that was made elsewhere. */
type OtherNames<Agents, Graphs> = [Graphs] extends [never]
  ? [Agents] extends [never]
    ? never
    : true extends Agents
      ? 'subagent'
      : string extends keyof Agents
        ? OtherName
        : 'subagent'
  : OtherName
type NamesOf<Agents> = string extends keyof Agents ? never : Exclude<keyof Agents & string, keyof true>
/** The log has the answer as JSON. In the mode `textCheck` the model is not asked for the schema. */
type AgentAnswer<Schema, Mode> = [Schema] extends [never]
  ? Json
  : AsJson<SchemaOutput<Schema>> | ('text' extends Mode ? string : never)
type AnswerOf<Options> = Options extends {
  readonly output: { readonly schema: infer Schema; readonly mode: infer Mode }
}
  ? AgentAnswer<Schema, Mode>
  : Options extends { readonly output: { readonly schema: infer Schema } }
    ? AgentAnswer<Schema, 'auto'>
    : Json

/** The tools of subagents, and the tool that starts them. */
export type ToolsBelow<Agents> = [Agents] extends [never]
  ? never
  : SubagentTool | (Agents extends true ? never : ToolsIn<Agents[keyof Agents]>)
type ToolsIn<Options> = Options extends { readonly tools: infer Tools extends ToolList } ? Tools[number] : never

const unknownCheck: Check = (value, name, of) =>
  typeof value === 'object' ? rewriteCheck(value, name, of) : errorCheck(value, name, of)
const rewriteCheck = optionsCheck<{ readonly rewrite: string }>({ rewrite: requiredCheck(nonEmptyCheck) })

const MODEL_HINT = 'Name one, such as openai:gpt-5.1, or hand one over.'
export const modelCheck: Check = whyNotModel
/** The least and the most tokens of a result that is summarised. */
const SUMMARIZED_FROM = 4_000
const SUMMARIZED_FROM_MIN = ROUTED_BYTES_MIN / CHARS_A_TOKEN
const SUMMARIZED_TO = 2_000_000
const BUDGET_BYTES = 16 * 1024
/** With less, there is hardly room beside the marker. */
const BUDGET_BYTES_MIN = 1_024

type Tokens = Exclude<ResultHandling['summarize'], boolean | undefined>
const checkTokens = optionsCheck<Tokens>({ fromTokens: countCheck(SUMMARIZED_FROM_MIN), toTokens: countCheck(1) })
export const CONTEXT_OPTIONS: Checks<ContextOptions> = {
  prefix: oneOf<NonNullable<ContextOptions['prefix']>>({ keep: true, follow: true }),
}
const OPTIONS = {
  model: modelCheck,
  tools: listCheck(toolCheck),
  toolAccess: optionsCheck<ToolAccess>({
    profile: oneOf<NonNullable<ToolAccess['profile']>>({ all: true, read: true, none: true }),
    allow: listCheck(nonEmptyCheck),
    alsoAllow: listCheck(nonEmptyCheck),
    deny: listCheck(nonEmptyCheck),
  }),
  instructions: textCheck,
  limits: optionsCheck<Partial<Limits>>(LIMITS),
  plan: flagCheck,
  output: outputCheck,
  results: optionsCheck<ResultHandling>({
    compression: oneOf<Compression | 'off'>({ auto: true, full: true, light: true, off: true }),
    summarize: (value, name, of) => (typeof value === 'boolean' ? null : checkTokens(value, name, of)),
    bytes: (value, name, of) => (value === false ? null : countCheck(BUDGET_BYTES_MIN)(value, name, of)),
    unknownTool: unknownCheck,
    toolErrors: errorCheck,
  }),
  context: optionsCheck<ContextOptions>(CONTEXT_OPTIONS, {
    compaction: 'It holds for all agents: write it into `context` of the harness.',
  }),
}
/** Earlier names of options, each with the sentence that says where the option is now. */
export const AGENT_ELSEWHERE = { resultBudget: 'Write results: { bytes }.' }
export const AGENT_OPTIONS: Checks<AgentOptions> = { ...OPTIONS, model: requiredCheck(modelCheck, MODEL_HINT) }
const ANSWER_CHARS_MIN = 200
const SUBAGENT_OPTIONS: Checks<SubagentOptions> = {
  ...OPTIONS,
  description: requiredCheck(textCheck),
  inheritSources: (value, name, of) => (typeof value === 'boolean' ? null : listCheck(nonEmptyCheck)(value, name, of)),
  tier: oneOf<Tier>({ chat: true, reasoning: true, worker: true }),
  subagents: listCheck(nonEmptyCheck),
  delegateName: nonEmptyCheck,
  handoff: flagCheck,
  maxResultChars: countCheck(ANSWER_CHARS_MIN),
  timeoutMs: countCheck(1),
}
const checkSubagent = optionsChecker<SubagentOptions>('a subagent', SUBAGENT_OPTIONS, AGENT_ELSEWHERE)

/** Options that all agents of a harness share. */
export type SharedAgentOptions = {
  readonly approvals?: ApprovalOptions
  readonly budget?: Budget
  readonly context?: { readonly compaction?: Compaction | false }
  readonly clock: Clock
  readonly store: CompleteStore
  /** The harness, for planners that open sessions. */
  readonly sessions?: Pick<Sessions, 'open' | 'session' | 'list'>
  /** Called with warnings about missing tools. */
  readonly warn?: (text: string) => void
  readonly subagents?: Subagents
  readonly detached?: boolean
  /** The models of the routes, by workload. Absent: no routes are set. */
  readonly table?: RouteTable | null
  /**
   * Workflows that may be started as children, where agents may start children at all. One with an empty description
   * may not.
   */
  readonly graphs?: readonly { readonly name: string; readonly description: string }[]
}

/** The name of the harness's own agent. */
export const DEFAULT_AGENT = 'default'

export function buildAgents(main: AgentOptions, shared: SharedAgentOptions): ReadonlyMap<string, Agent> {
  const { subagents, graphs = [] } = shared
  const named = Object.entries(subagents === true ? {} : (subagents ?? {}))
  for (const [name, options] of named) {
    checkName(name)
    checkSubagent(options, `the subagent "${name}"`)
  }
  if (subagents === undefined)
    return new Map([[DEFAULT_AGENT, buildAgent(DEFAULT_AGENT, main, { ...shared, own: [], children: [] })]])
  const offered = graphs.filter(({ description }) => description !== '')
  const described = [...named.map(([name, { description }]) => ({ name, description })), ...offered]
  const known = {
    described,
    named: new Map(named),
    detached: shared.detached ?? false,
    delegates: new Map<string, Tool>(),
  }
  // A child with fewer tools than the harness must not get more by starting a child like the harness.
  const placed = (like: string, options: Partial<SubagentOptions> = {}): AgentParts => {
    return { ...shared, ...planChildAgents(like, options, known) }
  }
  const first = placed(LIKE_PARENT)
  const like = inheritOptions(main, { description: '' })
  return new Map([
    [DEFAULT_AGENT, buildAgent(DEFAULT_AGENT, main, first)],
    [LIKE_PARENT, buildAgent(LIKE_PARENT, like, first)],
    ...named.map(
      ([name, options]) => [name, buildAgent(name, inheritOptions(main, options), placed(name, options))] as const,
    ),
  ])
}

function checkName(name: string): void {
  if (name === DEFAULT_AGENT || name === LIKE_PARENT || name === FORK)
    throw new Fault('invalid_config', `"${name}" is an agent of the harness itself. Give the subagent another name.`)
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name))
    throw new Fault('invalid_config', `Agent name "${name}" is not valid: use 1 to 64 letters, digits, "_" or "-".`)
}

/**
 * A child has its parent's options, except the sources of tools and the form of the answer, which only the parent asked
 * for.
 */
function inheritOptions(main: AgentOptions, options: SubagentOptions): InheritedOptions {
  const { inheritSources = false, description: _description, timeoutMs, ...own } = options
  const given = own.tools ?? (main.tools ?? []).filter((tool) => !('type' in tool) && tool.starts === undefined)
  const wanted = (name: string): boolean =>
    typeof inheritSources === 'boolean' ? inheritSources : inheritSources.includes(name)
  const sources = (main.tools ?? []).filter((tool) => 'type' in tool && wanted(tool.name) && !given.includes(tool))
  const { output: _output, ...rest } = main
  const both = { ...main.limits, ...own.limits }
  const limits = timeoutMs === undefined ? both : { ...both, activeMs: Math.min(timeoutMs, both.activeMs ?? timeoutMs) }
  const lists = [main.toolAccess ?? {}, own.toolAccess ?? {}]
  const groups = { results: { ...main.results, ...own.results }, context: { ...main.context, ...own.context } }
  return { ...rest, ...own, ...groups, above: main.model, lists, tools: [...given, ...sources], limits }
}

/**
 * Each of the lists must allow a tool, so a child never has more tools than its parent. `above` is its parent's model.
 */
type InheritedOptions = AgentOptions &
  Pick<SubagentOptions, 'tier' | 'maxResultChars'> & {
    readonly lists: readonly ToolAccess[]
    readonly above: AgentOptions['model']
  }

type AgentParts = SharedAgentOptions & { readonly own: readonly Tool[]; readonly children: readonly string[] }

function buildAgent(name: string, options: AgentOptions | InheritedOptions, shared: AgentParts): Agent {
  const model = chooseModel(options.model, shared.table ?? null, 'above' in options ? options.above : null)
  const output = options.output ? planAnswer(options.output, model) : null
  const lists = 'lists' in options ? options.lists : [options.toolAccess ?? {}]
  const asked = chosenShortening(options.results)
  if (asked) checkRetrieve(lists, name)
  const isReadable = mayRetrieve(options, shared, lists)
  const byDefault = isReadable && hasDefaultShortening(options.results)
  const shortening = asked ?? (byDefault ? DEFAULT_SHORTENING : null)
  const reader = readerTool(model, shared)
  const own = [...shared.own, ...retrieveTools(asked !== null, options, shared, reader)]
  const tools = new Toolbox({
    tools: options.tools ?? [],
    plan: options.plan ?? false,
    clock: shared.clock,
    reserved: [...(output ? [FINAL_RESULT] : []), ...own.map((tool) => tool.name)],
    own,
    lists,
    ...(shared.warn ? { warn: shared.warn } : {}),
  })
  const { results: { unknownTool = 'return', toolErrors = 'return' } = {}, context: { prefix = 'keep' } = {} } = options
  checkRewrite(unknownTool, tools, name)
  return {
    name,
    model,
    tools,
    unknownTool,
    toolErrors,
    prefix,
    instructions: options.instructions ?? '',
    limits: completeLimits(options.limits),
    ...agentApprovals(shared.approvals),
    budget: shared.budget ?? null,
    output,
    ...(options.output ? { outputFor: (other: Model) => planAnswer(options.output as HarnessOutput, other) } : {}),
    children: shared.children,
    ...startedAgents(name, options),
    planner: null,
    ...(shortening ? { shortening } : {}),
    ...(isReadable ? { retrieve: reader } : {}),
    ...('lists' in options ? inheritedBounds(options) : {}),
  }
}

function startedAgents(name: string, options: AgentOptions | InheritedOptions): Pick<Agent, 'starts'> {
  const starts = (options.tools ?? []).flatMap((tool) => ('type' in tool ? [] : (tool.starts ?? [])))
  const { tier = 'chat' } = 'lists' in options ? options : {}
  if (starts.length > 0 && tier !== 'chat')
    throw new Fault(
      'invalid_config',
      `"${name}" is a ${tier} agent, and only those of the tier chat may write scripts.`,
    )
  return starts.length > 0 ? { starts } : {}
}

function inheritedBounds({ tier, maxResultChars }: InheritedOptions): Pick<Agent, 'tier' | 'maxResultChars'> {
  return { ...(tier ? { tier } : {}), ...(maxResultChars === undefined ? {} : { maxResultChars }) }
}

/**
 * The default without any option for shortening: the content router for results that exceed the byte budget, and then
 * that budget.
 */
const DEFAULT_SHORTENING: ResultShortening = { compression: 'full', fromBytes: BUDGET_BYTES + 1, bytes: BUDGET_BYTES }

/** Null: results stay as their tools return them. */
function chosenShortening({ compression = 'off', summarize = false, bytes = false }: ResultHandling = {}) {
  if (compression === 'off' && !summarize && bytes === false) return null
  const { fromTokens = SUMMARIZED_FROM, toTokens = SUMMARIZED_TO } = summarize === true ? {} : summarize || {}
  if (fromTokens > toTokens)
    throw new Fault(
      'invalid_config',
      `"results.summarize" is from ${fromTokens} to ${toTokens} tokens: nothing. Give a larger toTokens.`,
    )
  return {
    ...(compression === 'off' ? {} : { compression }),
    ...(summarize ? { summarize: { fromTokens, toTokens } } : {}),
    ...(bytes === false ? {} : { bytes }),
  }
}

/** Whether no option says how results are shortened. */
function hasDefaultShortening({ compression, summarize, bytes }: ResultHandling = {}): boolean {
  return compression === undefined && summarize === undefined && bytes === undefined
}

/**
 * Whether a model may be offered the tool that reads left-out text: its agent has tools, and its lists do not deny this
 * one.
 */
function mayRetrieve({ tools = [] }: AgentOptions, { own }: AgentParts, lists: readonly ToolAccess[]): boolean {
  // A host's own tool of this name would not read left-out text.
  const isTaken = tools.some(({ name }) => name === RETRIEVE)
  return tools.length + own.length > 0 && !isTaken && !lists.some(({ deny }) => deny?.includes(RETRIEVE))
}

/**
 * The model of the route or of its neighbour, or else the parent's model. A route for pictures has no such fallback: a
 * model that was not chosen for pictures must not get them.
 */
function chooseModel(given: GivenModel, table: RouteTable | null, above: GivenModel | null): Model {
  const workload = workloadOfHint(given)
  if (workload === null) return resolveModel(given)
  const found = table?.modelFor(workload)
  if (found) return found
  if (above === null || above === given || workload === 'vision') throw noRouteFault(workload)
  return chooseModel(above, table, null)
}
type GivenModel = AgentOptions['model']

/**
 * The tool that reads results again. An agent has it always if an option shortens its results; if the host sets
 * compaction options, an agent with tools has it as far as its lists allow. Others do not pay for a tool that most of
 * their sessions never need.
 */
function retrieveTools(
  always: boolean,
  { tools = [] }: AgentOptions,
  { context, own }: AgentParts,
  reader: Tool,
): readonly Tool[] {
  if (always) return [{ ...reader, always: true }]
  const cleared = typeof context?.compaction === 'object' && tools.length + own.length > 0
  return cleared ? [reader] : []
}

/** The tool that reads left-out text. A replayed recording has its own, since the store may not have the originals. */
function readerTool(model: Model, { store }: AgentParts): Tool {
  const tool = retrieveTool(store)
  return isRecorded(model) ? model.standInFor(tool) : tool
}

/** Text that shortening leaves out must stay readable. */
function checkRetrieve(lists: readonly ToolAccess[], agent: string): void {
  if (!lists.some(({ deny }) => deny?.includes(RETRIEVE))) return
  const what = `Agent "${agent}" denies the tool "${RETRIEVE}", which reads what "compression", "summarize" and "bytes" of "results" leave out. Allow the tool, or switch those off.`
  throw new Fault('invalid_config', what)
}

/** If all tools are known already, the tool of `rewrite` must be among them. */
function checkRewrite(unknownTool: UnknownTool, { seen }: Toolbox, agent: string): void {
  if (typeof unknownTool !== 'object' || seen === null || seen.has(unknownTool.rewrite)) return
  const what = `"results.unknownTool" of agent "${agent}" names the tool "${unknownTool.rewrite}", which it does not have.`
  throw new Fault('invalid_config', what)
}
