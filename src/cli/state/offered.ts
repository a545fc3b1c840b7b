// The tools that a model is offered in a folder, made as a run makes them. No model is called, no key is needed and no tool runs.
import type { Tool, ToolSource } from '../../index.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, Refusal } from '../exit.ts'
import { warn } from '../present/print.ts'
import { agentFor } from './agent.ts'
import { equipped } from './agents.ts'
import { makeHome } from './home.ts'
import { memoryTools } from './memory.ts'
import { listedTools, serversFor } from './servers.ts'
import type { Setup } from './setup.ts'

/** All but those of the MCP servers, which are not asked. */
export async function offeredTools(setup: Setup): Promise<readonly Tool[]> {
  const [{ Harness, memory }, { toolsOfferedBy }] = await Promise.all([
    import('../../index.ts'),
    import('../../harness.ts'),
  ])
  const store = memory()
  const parts = await agentFor(setup, { models: ['offline:any'] })
  const { options, troubles } = await equipped(parts, setup, undefined, store, { keyless: true })
  for (const text of troubles) warn(oneLine(text, 600))
  const tools = [...(options.tools ?? []), ...(await memoryTools(setup, store))].filter(isTool)
  const harness = new Harness({ ...options, tools, store, drives: false })
  try {
    return toolsOfferedBy(harness)
  } finally {
    await harness.close()
  }
}

function isTool(tool: Tool | ToolSource): tool is Tool {
  return !('type' in tool)
}

/** Those of the MCP servers. Each server is started or connected to, asked once, and closed. */
export async function serverTools(setup: Setup): Promise<readonly Tool[]> {
  makeHome(setup.home)
  const { servers, troubles } = await serversFor(setup)
  for (const text of troubles) warn(oneLine(text, 600))
  const found = await Promise.all(servers.map((server) => listedTools(server)))
  for (const { warnings } of found) for (const text of warnings) warn(oneLine(text, 600))
  const all = found.flatMap(({ tools }) => tools)
  return setup.mode === 'plan' ? all.filter(({ effect, outside }) => effect === 'read' || outside) : all
}

/** A tool by its name, as the model has it. MCP servers are asked only where no other tool has the name. */
export async function toolNamed(setup: Setup, name: string): Promise<Tool> {
  const own = await offeredTools(setup)
  const found = own.find((tool) => tool.name === name)
  if (found) return found
  const others = await serverTools(setup)
  const other = others.find((tool) => tool.name === name)
  if (other) return other
  const names = [...own, ...others].map((tool) => tool.name).join(', ')
  throw new Refusal(EXIT.missing, `There is no tool "${oneLine(name, 80)}" here. Choose one of: ${names}.`)
}
