// Agents as the host describes them, made into what the runtime uses: a model, tools, limits, and which agents may be started as children.
import type { Json, Limits } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Model } from '../ports/model.ts'
import type { Store } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import { RETRIEVE, ROUTED_BYTES_MIN } from '../context/juice/marker.ts'
import { retrieveTool } from '../context/juice/retrieve.ts'
import { isRecorded } from './recorded-model.ts'
import { isPriced } from '../models/http/hosted.ts'
import { FINAL_RESULT, type OutputMode, type OutputPlan, planOutput } from '../models/output.ts'
import { modelTrouble, resolveModel } from '../models/resolve.ts'
import { hintIn, noRoute, type RouteTable } from '../models/router.ts'
import {
  type Check,
  type Checks,
  count,
  filled,
  flag,
  listOf,
  needed,
  oneOf,
  optionsOf,
  text,
  within,
} from '../options.ts'
import { anyJsonSchema } from '../tools/core/json-schema.ts'
import { toJsonSchema } from '../tools/core/to-json-schema.ts'
import type { UnknownTool } from '../tools/core/admit.ts'
import { parsePolicy, type Policy } from '../tools/policy/policy.ts'
import { CHARS_A_TOKEN } from '../view/history.ts'
import { FORK } from '../tools/agents/orders.ts'
import { LIKE_PARENT, type SubagentTool } from '../tools/agents/subagent.ts'
import { errorCheck, schemaCheck, type StandardSchema, type Tool, toolCheck } from '../tools/core/tool.ts'
import type { AnySchema, AsJson, MadeBy, ToolList } from '../tools/core/typed.ts'
import { LIMITS, limitsOf } from '../effects/limits.ts'
import type { Budget } from '../riders/money/spending-limits.ts'
import { Toolbox, type ToolLists } from '../effects/toolbox.ts'
import type { Agent, Compaction, Compression, Shortening } from '../engine/wiring.ts'
import { belowOf } from './below.ts'
import type { Tier } from './tiers.ts'

/** A schema for the final answer, and how it is asked for. Default mode: `auto`. */
export type HarnessOutput<Schema extends AnySchema = AnySchema, Mode extends OutputMode = OutputMode> = {
  readonly schema: Schema
  readonly mode?: Mode
}

/** What an agent is. */
export type AgentOptions<
  Tools extends ToolList = ToolList,
  Schema extends AnySchema = AnySchema,
  Mode extends OutputMode = OutputMode,
> = {
  /** A model, or the name of one: `provider:model`. Or `hint:NAME`, for the one of that route. */
  readonly model: Model | string
  /** Tools, and sources of tools such as MCP servers. The sources are closed with the harness. */
  readonly tools?: Tools
  readonly instructions?: string
  readonly limits?: Partial<Limits>
  /** Plan mode: the model sees only tools that change nothing, and those that a person answers. */
  readonly plan?: boolean
  /** What a final answer must be. Without it any text is one. */
  readonly output?: HarnessOutput<Schema, Mode>
  /** What becomes of a call of a tool that is not there. Default `return`: the model reads which there are. `fail` ends the run. */
  readonly unknownTool?: UnknownTool
  /** What becomes of a failure of a tool that has no `onError` of its own. Default `return`: the model reads it. `fail` ends the run. */
  readonly toolErrors?: 'return' | 'fail'
  /**
   * The content router: makes large results shorter before the model reads them, by what they are. `light` only reformats, `full`
   * also leaves out and keeps the original, `auto` is `light` for agents that write code. Default `off` where `summarize` or
   * `resultBudget` is set; where none of the three is, `full` for results of more than 16,384 bytes, and then that budget.
   */
  readonly compression?: Compression | 'off'
  /**
   * Results that are still long after `compression` are summarised by the agent's model, and the original is kept. Only for sessions
   * that are no children. Default false; `true`: from 4,000 tokens (characters / 4) up to 2,000,000.
   */
  readonly summarize?: boolean | { readonly fromTokens?: number; readonly toTokens?: number }
  /** Results with more bytes are cut after that, and the original is kept. Default false; `true`: 16,384 bytes. */
  readonly resultBudget?: boolean | { readonly bytes?: number }
  /**
   * Instructions and tools of a session are made for its first run, and shown byte for byte to later ones, so that providers read them
   * from their caches. Default `keep`: what changed since is told in a note, and counts in full with another model or after a
   * compaction. `follow`: the next run shows what there is.
   */
  readonly prefix?: 'keep' | 'follow'
} & ToolLists

/** An agent that others may start as a child. What is left out is its parent's. */
export type SubagentOptions = Partial<Omit<AgentOptions, 'output'>> & {
  /** When to use it: the parent's model reads this. */
  readonly description: string
  readonly output?: HarnessOutput
  /** Also the sources of tools of its parent, such as MCP servers; or those of these names. Off unless asked for. */
  readonly inheritSources?: boolean | readonly string[]
  /** `chat` may start `reasoning` and `worker`, `reasoning` may start `worker`, and `worker` nobody. Absent: no such rule. */
  readonly tier?: Tier
  /** The agents it may start. Absent: all that its tier allows, and without a tier also one like itself. */
  readonly subagents?: readonly string[]
  /** Agents that list it in `subagents` get a tool of this name that starts it. */
  readonly delegateName?: string
  /**
   * It goes on with the conversation and answers the user itself: its answer is the answer of the run. Agents that may start it get
   * the tool `handoff_to_NAME`, or one of the `delegateName`. Default false: it works on a task, and its parent reads the answer.
   */
  readonly handoff?: boolean
  /** Its parent reads at most so many characters of its answer. */
  readonly maxResultChars?: number
  /** How long one run of it may work. The time it waits does not count. */
  readonly timeoutMs?: number
}

/** `true`: the agent may start children like itself. Or the agents it may start, by name. */
export type Subagents = true | Readonly<Record<string, SubagentOptions>>

/** The answers of a harness's agents, by name; `default` is the harness itself. Of one whose schema is not known it is JSON. */
export type Answers<Schema, Mode, Agents, Graphs = never> = {
  readonly [Name in 'default' | NamesOf<Agents> | OtherNames<Agents, Graphs>]: Name extends 'default'
    ? Answer<Schema, Mode>
    : Name extends keyof Agents
      ? AnswerOf<Agents[Name]>
      : Json
}
/** Any other name. Not `string`, which would take in the names that are known. */
type Other = string & {}
/** Agents whose names are not known as types: workflows, and those of a table that was made elsewhere. */
type OtherNames<Agents, Graphs> = [Graphs] extends [never]
  ? [Agents] extends [never]
    ? never
    : true extends Agents
      ? 'subagent'
      : string extends keyof Agents
        ? Other
        : 'subagent'
  : Other
type NamesOf<Agents> = string extends keyof Agents ? never : Exclude<keyof Agents & string, keyof true>
/** The log has the answer as JSON. In the mode `text` the schema is not asked for. */
type Answer<Schema, Mode> = [Schema] extends [never]
  ? Json
  : AsJson<MadeBy<Schema>> | ('text' extends Mode ? string : never)
type AnswerOf<Options> = Options extends {
  readonly output: { readonly schema: infer Schema; readonly mode: infer Mode }
}
  ? Answer<Schema, Mode>
  : Options extends { readonly output: { readonly schema: infer Schema } }
    ? Answer<Schema, 'auto'>
    : Json

/** The tools of subagents, and the one that starts them. */
export type ToolsBelow<Agents> = [Agents] extends [never]
  ? never
  : SubagentTool | (Agents extends true ? never : ToolsIn<Agents[keyof Agents]>)
type ToolsIn<Options> = Options extends { readonly tools: infer Tools extends ToolList } ? Tools[number] : never

const unknownCheck: Check = (value, name, of) =>
  typeof value === 'object' ? rewriteCheck(value, name, of) : errorCheck(value, name, of)
const rewriteCheck = within<{ readonly rewrite: string }>({ rewrite: needed(filled) })

const MODES = oneOf<OutputMode>({ auto: true, native: true, tool: true, prompted: true, text: true })
const withSchema = within<HarnessOutput>({ schema: needed(schemaCheck), mode: MODES })
/** A schema itself is what is often given instead. */
export const outputCheck: Check = (value, name, of) => {
  const bare = typeof value === 'function' || (typeof value === 'object' && value !== null && !('schema' in value))
  return bare ? 'has no schema: write output: { schema }' : withSchema(value, name, of)
}
const MODEL_HINT = 'Name one, such as openai:gpt-5.1, or hand one over.'
export const modelCheck: Check = modelTrouble
/** Tokens that a result has at least, and at most, to be summarised. */
const SUMMARIZED_FROM = 4_000
const SUMMARIZED_FROM_MIN = ROUTED_BYTES_MIN / CHARS_A_TOKEN
const SUMMARIZED_TO = 2_000_000
const BUDGET_BYTES = 16 * 1024
/** With less there is hardly room beside the marker. */
const BUDGET_BYTES_MIN = 1_024

type Tokens = Exclude<AgentOptions['summarize'], boolean | undefined>
type Bytes = Exclude<AgentOptions['resultBudget'], boolean | undefined>
/** On, off, or on with numbers of one's own. */
function switched<T>(checks: Checks<T>): Check {
  const numbers = within<T>(checks)
  return (value, name, of) => (typeof value === 'boolean' ? null : numbers(value, name, of))
}
const OPTIONS = {
  model: modelCheck,
  tools: listOf(toolCheck),
  instructions: text,
  limits: within<Partial<Limits>>(LIMITS),
  plan: flag,
  output: outputCheck,
  unknownTool: unknownCheck,
  toolErrors: errorCheck,
  compression: oneOf<Compression | 'off'>({ auto: true, full: true, light: true, off: true }),
  summarize: switched<Tokens>({ fromTokens: count(SUMMARIZED_FROM_MIN), toTokens: count(1) }),
  resultBudget: switched<Bytes>({ bytes: count(BUDGET_BYTES_MIN) }),
  prefix: oneOf<NonNullable<AgentOptions['prefix']>>({ keep: true, follow: true }),
  profile: oneOf<NonNullable<ToolLists['profile']>>({ all: true, read: true, none: true }),
  allow: listOf(filled),
  alsoAllow: listOf(filled),
  deny: listOf(filled),
}
export const AGENT_OPTIONS: Checks<AgentOptions> = { ...OPTIONS, model: needed(modelCheck, MODEL_HINT) }
const ANSWER_CHARS_MIN = 200
const SUBAGENT_OPTIONS: Checks<SubagentOptions> = {
  ...OPTIONS,
  description: needed(text),
  inheritSources: (value, name, of) => (typeof value === 'boolean' ? null : listOf(filled)(value, name, of)),
  tier: oneOf<Tier>({ chat: true, reasoning: true, worker: true }),
  subagents: listOf(filled),
  delegateName: filled,
  handoff: flag,
  maxResultChars: count(ANSWER_CHARS_MIN),
  timeoutMs: count(1),
}
const checkSubagent = optionsOf<SubagentOptions>('a subagent', SUBAGENT_OPTIONS)

/** What holds for all agents of a harness. */
export type Shared = {
  readonly approvalMs?: number | null
  readonly policy?: Policy
  readonly environment?: string
  readonly budget?: Budget
  readonly compaction?: Compaction | false
  readonly clock: Clock
  readonly store: Store
  /** Told of tools that are missing. */
  readonly warn?: (text: string) => void
  readonly subagents?: Subagents
  readonly detached?: boolean
  /** The models of workloads. Absent: no routes are set. */
  readonly table?: RouteTable | null
  /** What else may be started as a child, where children may be started at all. With an empty description it may not. */
  readonly graphs?: readonly { readonly name: string; readonly description: string }[]
}

/** The name of the agent that a harness itself is. */
export const AGENT = 'default'

export function agentsOf(main: AgentOptions, shared: Shared): ReadonlyMap<string, Agent> {
  const { subagents, graphs = [] } = shared
  const named = Object.entries(subagents === true ? {} : (subagents ?? {}))
  for (const [name, options] of named) {
    checkName(name)
    checkSubagent(options, `the subagent "${name}"`)
  }
  if (subagents === undefined) return new Map([[AGENT, agentOf(AGENT, main, { ...shared, own: [], children: [] })]])
  const offered = graphs.filter(({ description }) => description !== '')
  const described = [...named.map(([name, { description }]) => ({ name, description })), ...offered]
  const known = {
    described,
    named: new Map(named),
    detached: shared.detached ?? false,
    delegates: new Map<string, Tool>(),
  }
  // A child that may do less than the harness itself must not get more by starting one like it.
  const placed = (like: string, options: Partial<SubagentOptions> = {}): Placed => {
    return { ...shared, ...belowOf(like, options, known) }
  }
  const first = placed(LIKE_PARENT)
  const like = inherited(main, { description: '' })
  return new Map([
    [AGENT, agentOf(AGENT, main, first)],
    [LIKE_PARENT, agentOf(LIKE_PARENT, like, first)],
    ...named.map(([name, options]) => [name, agentOf(name, inherited(main, options), placed(name, options))] as const),
  ])
}

function checkName(name: string): void {
  if (name === AGENT || name === LIKE_PARENT || name === FORK)
    throw new Fault('invalid_config', `"${name}" is an agent of the harness itself. Give the subagent another name.`)
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name))
    throw new Fault('invalid_config', `Agent name "${name}" is not valid: use 1 to 64 letters, digits, "_" or "-".`)
}

/** A child has what its parent has, less what only the parent asked for: sources of tools, and the shape of its answer. */
function inherited(main: AgentOptions, options: SubagentOptions): Inherited {
  const { inheritSources = false, description: _description, timeoutMs, ...own } = options
  const given = own.tools ?? (main.tools ?? []).filter((tool) => !('type' in tool))
  const wanted = (name: string): boolean =>
    typeof inheritSources === 'boolean' ? inheritSources : inheritSources.includes(name)
  const sources = (main.tools ?? []).filter((tool) => 'type' in tool && wanted(tool.name) && !given.includes(tool))
  const { output: _output, ...rest } = main
  const both = { ...main.limits, ...own.limits }
  const limits = timeoutMs === undefined ? both : { ...both, activeMs: Math.min(timeoutMs, both.activeMs ?? timeoutMs) }
  return { ...rest, ...own, above: main.model, lists: [main, own], tools: [...given, ...sources], limits }
}

/** Each of the lists must allow a tool: a child can do less than its parent, and never more. `above` is its parent's model. */
type Inherited = AgentOptions &
  Pick<SubagentOptions, 'tier' | 'maxResultChars'> & {
    readonly lists: readonly ToolLists[]
    readonly above: AgentOptions['model']
  }

type Placed = Shared & { readonly own: readonly Tool[]; readonly children: readonly string[] }

function agentOf(name: string, options: AgentOptions | Inherited, shared: Placed): Agent {
  const model = modelOf(options.model, shared.table ?? null, 'above' in options ? options.above : null)
  const output = options.output ? outputOf(options.output, model) : null
  const lists = 'lists' in options ? options.lists : [options]
  const asked = shorteningOf(options)
  if (asked) checkRetrieve(lists, name)
  const isReadable = mayRetrieve(options, shared, lists)
  const byDefault = isReadable && hasDefaultShortening(options)
  const shortening = asked ?? (byDefault ? DEFAULT_SHORTENING : null)
  const reader = readerFor(model, shared)
  const own = [...shared.own, ...retrieveFor(asked !== null, options, shared, reader)]
  const tools = new Toolbox({
    tools: options.tools ?? [],
    plan: options.plan ?? false,
    clock: shared.clock,
    reserved: [...(output ? [FINAL_RESULT] : []), ...own.map((tool) => tool.name)],
    own,
    lists,
    ...(shared.warn ? { warn: shared.warn } : {}),
  })
  const { unknownTool = 'return', toolErrors = 'return', prefix = 'keep' } = options
  checkRewrite(unknownTool, tools, name)
  return {
    name,
    model,
    tools,
    unknownTool,
    toolErrors,
    prefix,
    instructions: options.instructions ?? '',
    limits: limitsOf(options.limits),
    approvalMs: shared.approvalMs ?? null,
    policy: parsePolicy(shared.policy ?? { rules: [] }),
    environment: shared.environment ?? null,
    budget: shared.budget ?? null,
    output,
    ...(options.output ? { outputFor: (other: Model) => outputOf(options.output as HarnessOutput, other) } : {}),
    children: shared.children,
    planner: null,
    ...(shortening ? { shortening } : {}),
    ...(isReadable ? { retrieve: reader } : {}),
    ...('lists' in options ? boundsOf(options) : {}),
  }
}

function boundsOf({ tier, maxResultChars }: Inherited): Pick<Agent, 'tier' | 'maxResultChars'> {
  return { ...(tier ? { tier } : {}), ...(maxResultChars === undefined ? {} : { maxResultChars }) }
}

/** Without any option that says how: the content router for results that are over the budget of bytes, and then that budget. */
const DEFAULT_SHORTENING: Shortening = { compression: 'full', fromBytes: BUDGET_BYTES + 1, bytes: BUDGET_BYTES }

/** Null: results are as their tools return them. */
function shorteningOf({ compression = 'off', summarize = false, resultBudget = false }: AgentOptions) {
  if (compression === 'off' && !summarize && !resultBudget) return null
  const { fromTokens = SUMMARIZED_FROM, toTokens = SUMMARIZED_TO } = summarize === true ? {} : summarize || {}
  if (fromTokens > toTokens)
    throw new Fault(
      'invalid_config',
      `"summarize" is from ${fromTokens} to ${toTokens} tokens: nothing. Give a larger toTokens.`,
    )
  const { bytes = BUDGET_BYTES } = resultBudget === true ? {} : resultBudget || {}
  return {
    ...(compression === 'off' ? {} : { compression }),
    ...(summarize ? { summarize: { fromTokens, toTokens } } : {}),
    ...(resultBudget ? { bytes } : {}),
  }
}

/** No option says how results are made shorter. */
function hasDefaultShortening({ compression, summarize, resultBudget }: AgentOptions): boolean {
  return compression === undefined && summarize === undefined && resultBudget === undefined
}

/** Whether a model may be offered the tool that reads what is left out: its agent has tools, and does not deny this one. */
function mayRetrieve({ tools = [] }: AgentOptions, { own }: Placed, lists: readonly ToolLists[]): boolean {
  // A host's own tool of this name would not read what is left out.
  const isTaken = tools.some(({ name }) => name === RETRIEVE)
  return tools.length + own.length > 0 && !isTaken && !lists.some(({ deny }) => deny?.includes(RETRIEVE))
}

/** The model of a route, or of its neighbour, or else that of the parent. Pictures are not shown to a model that no one chose for them. */
function modelOf(given: Given, table: RouteTable | null, above: Given | null): Model {
  const workload = hintIn(given)
  if (workload === null) return resolveModel(given)
  const found = table?.of(workload)
  if (found) return found
  if (above === null || above === given || workload === 'vision') throw noRoute(workload)
  return modelOf(above, table, null)
}
type Given = AgentOptions['model']

/**
 * The tool that reads results again: always where an option makes results shorter, and for a host that speaks of compaction to an agent
 * with tools, as far as its lists let it. Others pay for no tool that most of their sessions never need.
 */
function retrieveFor(
  always: boolean,
  { tools = [] }: AgentOptions,
  { compaction, own }: Placed,
  reader: Tool,
): readonly Tool[] {
  if (always) return [{ ...reader, always: true }]
  const cleared = typeof compaction === 'object' && tools.length + own.length > 0
  return cleared ? [reader] : []
}

/** The tool that reads what is left out. A recording that is run again has its own, since the store may not have the originals. */
function readerFor(model: Model, { store }: Placed): Tool {
  const tool = retrieveTool(store)
  return isRecorded(model) ? model.standInFor(tool) : tool
}

/** What is left out must stay within reach. */
function checkRetrieve(lists: readonly ToolLists[], agent: string): void {
  if (!lists.some(({ deny }) => deny?.includes(RETRIEVE))) return
  const what = `Agent "${agent}" denies the tool "${RETRIEVE}", which reads what "compression", "summarize" and "resultBudget" leave out. Allow the tool, or switch those off.`
  throw new Fault('invalid_config', what)
}

/** Where all tools are known already, the one that takes the place of others must be among them. */
function checkRewrite(unknownTool: UnknownTool, { seen }: Toolbox, agent: string): void {
  if (typeof unknownTool !== 'object' || seen === null || seen.has(unknownTool.rewrite)) return
  const what = `"unknownTool" of agent "${agent}" names the tool "${unknownTool.rewrite}", which it does not have.`
  throw new Fault('invalid_config', what)
}

export function outputOf({ schema, mode }: HarnessOutput, model: Model): OutputPlan | null {
  const standard = '~standard' in schema ? (schema as StandardSchema) : anyJsonSchema(schema, FINAL_RESULT)
  const shape = shapeOf(schema)
  const able = isPriced(model) ? model.able : { name: model.name, native: 'no' as const }
  const validate = (value: unknown) => standard['~standard'].validate(value)
  return planOutput({ schema: shape, validate, ...(mode === undefined ? {} : { mode }) }, able)
}

/** A schema for an answer, as JSON Schema. */
export function shapeOf(schema: HarnessOutput['schema']): Json {
  if (!('~standard' in schema)) return schema as Json
  const shape = toJsonSchema(schema as StandardSchema, 'The output schema')
  if (shape) return shape as Json
  throw new Fault('invalid_config', 'The output schema cannot say its JSON Schema. Use a library that can.')
}
