// Describes the agents of a harness, for people and as plain JSON to store and to compare. It asks no server, and holds
// no secrets and no code.
import type { EffectClass, Frozen, Json, Limits } from '../../kernel/content.ts'
import type { Agent, PlannerDrawing } from '../../runtime/state/agent.ts'
import type { Budget } from '../../runtime/state/agent.ts'
import type { Services } from '../../runtime/state/runtime-ports.ts'
import type { RouteTable } from '../../models/router.ts'
import type { Approval, Tool, ToolKind } from '../../tools/core/tool.ts'

/** The setup of an agent as plain JSON. Equal setups give equal JSON, so it can be stored and compared. */
function describeAgent(agent: Agent, table: RouteTable | null): Json {
  const { model, instructions, limits, approvalMs, policy, environment, budget, output, children, planner } = agent
  const { unknownTool = 'return', toolErrors = 'return', prefix = 'keep', shortening = {} } = agent
  const { compression, summarize, bytes } = shortening
  const ways = { unknownTool, toolErrors, prefix }
  const setup = { limits, approvalMs, policy, environment, budget, ...ways, children: [...children] }
  return asPlainJson({
    model: model.name,
    planner: planner?.name ?? 'model',
    instructions,
    tools: [...(agent.tools.seen?.values() ?? [])].map(describeTool),
    sources: agent.tools.sources.map(({ name }) => name),
    output: output?.asked ?? (output ? 'prompted' : null),
    ...setup,
    ...(compression ? { compression } : {}),
    ...(summarize ? { summarize } : {}),
    ...(bytes ? { resultBudget: { bytes } } : {}),
    ...(table ? { routes: Object.fromEntries([...table.models].map(([name, { name: of }]) => [name, of])) } : {}),
  })
}

/** `definition` changes whenever the description for the model changes. */
function describeTool(tool: Tool): Json {
  const { name, description, parameters, effect, timeoutMs, attempts, retries, outside, definition } = tool
  const { kind = 'user', mcp, metadata } = tool
  const said = { name, kind, description, parameters, effect, timeoutMs, attempts, retries, outside, definition }
  return asPlainJson({ ...said, ...(mcp ? { mcp } : {}), ...(metadata ? { metadata } : {}) })
}

function asPlainJson(value: object): Json {
  return JSON.parse(JSON.stringify(value)) as Json
}

/** `by_arguments`: the approval depends on the call. Rules of a policy come before it. */
export type AgentTool = Frozen<{
  /** The name that the model calls. */
  name: string
  /** What the model reads about the tool. */
  description: string
  /** Where the tool comes from. */
  kind: ToolKind
  /** How often a call may run. */
  effect: EffectClass
  /** Whether a person is asked. `by_arguments`: it depends on the call. Rules of a policy come before it. */
  approval: Approval | 'by_arguments'
  /** Answered from outside with `session.answer`. */
  outside: boolean
}>

/**
 * A description of an agent for people. Its tools are those that were read so far: `sources`, such as MCP servers, are
 * not asked.
 */
export type AgentRow = Frozen<{
  /** The name by which sessions are opened with it. The harness's own agent is `default`. */
  name: string
  /** The name of its model. */
  model: string
  /** The planner: `model`, or a workflow by its name, such as `graph:report`. */
  planner: string
  /** The tools that are known so far. */
  tools: readonly AgentTool[]
  /** The names of its sources of tools, such as MCP servers. Their tools are known after their first run. */
  sources: readonly string[]
  /** The limits of its runs. */
  limits: Limits
  /** What its runs and sessions may spend, in dollars. Null for no budget. */
  budget: Budget | null
  /** The agents it may start. */
  children: readonly string[]
  /** Null if the agent is not a graph. */
  graph: PlannerDrawing | null
  /** The configured models and routes by name: the choices of a run, and of the clients of a server. */
  models: readonly string[]
  /**
   * All of its setup: instructions, tools, limits, policy, budget and routes. It has no secret and no code. Equal setups
   * give equal JSON, so it can be stored and compared.
   */
  setup: Json
}>

export async function agentRows(
  agents: ReadonlyMap<string, Agent>,
  { redactor, choosable, routes }: AgentSurroundings,
): Promise<readonly AgentRow[]> {
  const rows = await Promise.all(
    [...agents].map(async ([name, agent]) => {
      return { ...(await agentRow(name, agent)), models: choosable, setup: describeAgent(agent, routes) }
    }),
  )
  // The cast is sound: the rows are JSON, and only texts in them are replaced.
  return redactor.values(asPlainJson(rows)) as unknown as readonly AgentRow[]
}

/** The parts that the rows of all agents have in common. */
type AgentSurroundings = Pick<Services, 'redactor' | 'choosable'> & { readonly routes: RouteTable | null }

async function agentRow(name: string, agent: Agent): Promise<Omit<AgentRow, 'models' | 'setup'>> {
  const { model, planner, tools, limits, budget, children } = agent
  return {
    name,
    model: model.name,
    planner: planner?.name ?? 'model',
    tools: await Promise.all([...(tools.seen?.values() ?? [])].map(toolRow)),
    sources: tools.sources.map((source) => source.name),
    limits,
    budget,
    children,
    graph: planner?.draw?.() ?? null,
  }
}

async function toolRow({ name, description, kind = 'user', effect, outside, ...tool }: Tool): Promise<AgentTool> {
  return { name, description, kind, effect, outside, approval: await describeApproval(tool) }
}

async function describeApproval({
  approval,
  byArguments,
}: Pick<Tool, 'approval' | 'byArguments'>): Promise<AgentTool['approval']> {
  return byArguments ? 'by_arguments' : approval({})
}
