// What a harness was made of, as plain JSON: to write down and to compare, and its agents for people. It asks no server and holds no
// secret and no code.
import type { EffectClass, Frozen, Json, Limits } from '../../kernel/content.ts'
import type { Agent, Drawing } from '../../engine/wiring.ts'
import type { Budget } from '../../riders/money/spending-limits.ts'
import type { Redactor } from '../../riders/redact/redact.ts'
import type { RouteTable } from '../../models/router.ts'
import type { Approval, Tool, ToolKind } from '../../tools/core/tool.ts'

/** The model of each route by its name. Nothing where no routes are set. */
export function describeRoutes(table: RouteTable | null): { readonly routes?: Json } {
  if (table === null) return {}
  return { routes: Object.fromEntries([...table.models].map(([workload, { name }]) => [workload, name])) }
}

/** Each agent by its name. Of sources, such as MCP servers, the tools that were seen so far. */
export function describeAgents(agents: ReadonlyMap<string, Agent>): Json {
  return Object.fromEntries([...agents].map(([name, agent]) => [name, describeAgent(agent)]))
}

function describeAgent(agent: Agent): Json {
  const { model, instructions, limits, approvalMs, policy, environment, budget, output, children, planner } = agent
  const { unknownTool = 'return', toolErrors = 'return', prefix = 'keep', shortening = {} } = agent
  const { compression, summarize, bytes } = shortening
  const ways = { unknownTool, toolErrors, prefix }
  const setup = { limits, approvalMs, policy, environment, budget, ...ways, children: [...children] }
  return plain({
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
  })
}

/** `definition` changes whenever what a model is told about it changes. */
function describeTool(tool: Tool): Json {
  const { name, description, parameters, effect, timeoutMs, attempts, retries, outside, definition } = tool
  const { kind = 'user', mcp, metadata } = tool
  const said = { name, kind, description, parameters, effect, timeoutMs, attempts, retries, outside, definition }
  return plain({ ...said, ...(mcp ? { mcp } : {}), ...(metadata ? { metadata } : {}) })
}

function plain(value: object): Json {
  return JSON.parse(JSON.stringify(value)) as Json
}

/** `by_arguments`: what it says depends on the call. Rules of a policy come before it. */
export type AgentTool = Frozen<{
  name: string
  description: string
  kind: ToolKind
  effect: EffectClass
  approval: Approval | 'by_arguments'
  /** Answered from outside with `session.answer`. */
  outside: boolean
}>

/** An agent as people look at it. Its tools are those that were seen so far: `sources`, such as MCP servers, are not asked. */
export type AgentRow = Frozen<{
  name: string
  model: string
  /** What answers its turns: `model`, or a workflow by its name, such as `graph:report`. */
  planner: string
  tools: readonly AgentTool[]
  sources: readonly string[]
  limits: Limits
  budget: Budget | null
  /** The agents it may start. */
  children: readonly string[]
  /** Null: it is no graph. */
  graph: Drawing | null
}>

export async function agentRows(
  agents: ReadonlyMap<string, Agent>,
  redactor: Pick<Redactor, 'values'>,
): Promise<readonly AgentRow[]> {
  const rows = await Promise.all([...agents].map(([name, agent]) => agentRow(name, agent)))
  // Sound: it is JSON, and only texts in it are replaced.
  return redactor.values(plain(rows)) as unknown as readonly AgentRow[]
}

async function agentRow(name: string, agent: Agent): Promise<AgentRow> {
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
  return { name, description, kind, effect, outside, approval: await approvalOf(tool) }
}

async function approvalOf({
  approval,
  byArguments,
}: Pick<Tool, 'approval' | 'byArguments'>): Promise<AgentTool['approval']> {
  return byArguments ? 'by_arguments' : approval({})
}
