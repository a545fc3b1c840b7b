// The tools that a model is offered in a folder, made as for a run. No model is called, no key is needed and no tool
// runs.
import type { AgentRow, Tool, ToolSource } from '../../index.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { warn } from '../present/print.ts'
import { makeFolderAgent } from './folder-agent.ts'
import { addAgentsAndBoard, isDefinedAgent, loadDefinitions } from './defined-agents.ts'
import { makeHome } from './cli-home.ts'
import { memoryTools } from './folder-memory.ts'
import { listServerTools, makeServers } from './mcp-servers.ts'
import type { FolderSetup } from './folder-setup.ts'
import { workflowOfAgent } from './workflow-agents.ts'

/** All tools except those of MCP servers, which are not asked. */
export async function offeredTools(setup: FolderSetup): Promise<readonly Tool[]> {
  const [{ Harness, memory }, { toolsOfHarness }] = await Promise.all([
    import('../../index.ts'),
    import('../../harness.ts'),
  ])
  const store = memory()
  const parts = await makeFolderAgent(setup, { models: ['offline:any'] })
  const { options, troubles } = await addAgentsAndBoard(parts, setup, undefined, store, { keyless: true })
  for (const text of troubles) warn(oneLine(text, 600))
  const tools = [...(options.tools ?? []), ...(await memoryTools(setup, store))].filter(isTool)
  const harness = new Harness({ ...options, tools, store, worker: { drives: false } })
  try {
    return toolsOfHarness(harness)
  } finally {
    await harness.close()
  }
}

/**
 * The agents of the harness that drives sessions of this agent here, made as for a run, with their setup. Null if the
 * folder has no such agent. MCP servers are not asked.
 */
export async function agentRowsHere(
  setup: FolderSetup,
  models: readonly string[],
  agent: string,
): Promise<{ readonly rows: readonly AgentRow[] | null; readonly troubles: readonly string[] }> {
  const { definitions } = await loadDefinitions(setup)
  if (isDefinedAgent(agent) && !definitions.some(({ id }) => id === agent)) return { rows: null, troubles: [] }
  const { Harness, memory } = await import('../../index.ts')
  const store = memory()
  const own = await makeFolderAgent(setup, { models, agent, keyless: true })
  const parts = await addAgentsAndBoard(own, setup, agent, store, { keyless: true })
  // The tools of a workflow are its nodes.
  const remembers = workflowOfAgent(agent) === null ? await memoryTools(setup, store) : []
  const tools = [...(parts.options.tools ?? []), ...remembers]
  const harness = new Harness({ ...parts.options, tools, store, worker: { drives: false } })
  try {
    return { rows: await harness.agents(), troubles: parts.troubles }
  } finally {
    await harness.close()
  }
}

function isTool(tool: Tool | ToolSource): tool is Tool {
  return !('type' in tool)
}

/** The tools of the MCP servers. Each server is started or connected to, asked once, and closed. */
export async function serverTools(setup: FolderSetup): Promise<readonly Tool[]> {
  makeHome(setup.home)
  const { servers, troubles } = await makeServers(setup)
  for (const text of troubles) warn(oneLine(text, 600))
  const found = await Promise.all(servers.map((server) => listServerTools(server)))
  for (const { warnings } of found) for (const text of warnings) warn(oneLine(text, 600))
  const all = found.flatMap(({ tools }) => tools)
  return setup.mode === 'plan' ? all.filter(({ effect, outside }) => effect === 'read' || outside) : all
}

/** A tool by the name that the model uses. MCP servers are asked only if no other tool has the name. */
export async function findOfferedTool(setup: FolderSetup, name: string): Promise<Tool> {
  const own = await offeredTools(setup)
  const found = own.find((tool) => tool.name === name)
  if (found) return found
  const others = await serverTools(setup)
  const other = others.find((tool) => tool.name === name)
  if (other) return other
  const names = [...own, ...others].map((tool) => tool.name).join(', ')
  throw new CliError(EXIT.missing, `There is no tool "${oneLine(name, 80)}" here. Choose one of: ${names}.`)
}
