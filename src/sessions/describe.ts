// What a harness was made of, as plain JSON: to write down, to compare, to show. It asks no server and holds no secret and no code.
import type { Json } from '../kernel/content.ts'
import type { Agent } from '../engine/wiring.ts'
import type { RouteTable } from '../models/router.ts'
import type { Tool } from '../tools/core/tool.ts'

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
