// The agents that are defined in files: those that ship, the user's, and those of the folder if it is trusted.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { AgentDefinition } from '../../agents/index.ts'
import type { HarnessOptions, Model, CompleteStore, SubagentOptions, Tool, ToolSource } from '../../index.ts'
import { DEFAULT_LIMITS } from '../../kernel/index.ts'
import { EXIT, CliError } from '../exit.ts'
import { nearest } from '../../options.ts'
import { modelsFor } from './folder-agent.ts'
import { CLI_AGENT as OWN } from './folder-memory.ts'
import { SCRIPT } from '../../view/script-cell.ts'
import { scriptParts } from './folder-scripts.ts'
import type { FolderSetup } from './folder-setup.ts'
import { workflowOfAgent } from './workflow-agents.ts'
import { terretCommand } from '../present/print.ts'

type FolderAgents = {
  readonly definitions: readonly AgentDefinition[]
  /** The `subagents` option of a harness. */
  readonly subagents: Readonly<Record<string, SubagentOptions>>
  /** Skipped files and unknown names, one line each. */
  readonly troubles: readonly string[]
}

type AgentsSettings = {
  /** The tools of the folder's own agent. */
  readonly tools?: readonly (Tool | ToolSource)[]
  /** Agents read from this store when they last ran. */
  readonly store?: CompleteStore
  readonly onRequest?: ((text: string) => void) | undefined
  /** The models are only named, so no key is needed. */
  readonly keyless?: boolean
}

/** The definitions of a folder and the `subagents` of a harness there. Models that are named get their keys and settings. */
async function loadFolderAgents(setup: FolderSetup, wanted: AgentsSettings = {}): Promise<FolderAgents> {
  const { subagentsOf } = await import('../../agents/index.ts')
  const { definitions, troubles } = await loadDefinitions(setup)
  const { settings, folder } = setup
  const pins = settings.agents ?? {}
  const made = await makeNamedModels(setup, definitions, wanted)
  const profile = [settings.instructions ?? '', setup.guidance].filter((text) => text !== '').join('\n\n')
  const { subagents, troubles: missing } = subagentsOf(definitions, {
    pins,
    makeModel: (name, { temperature }) => made.get(modelKey(name, temperature)) ?? name,
    sections: { profile, integrations: Object.keys(settings.mcp ?? {}) },
    workspace: folder,
    ...(wanted.tools ? { tools: wanted.tools } : {}),
    ...(wanted.store ? { store: wanted.store } : {}),
  })
  return { definitions, subagents, troubles: [...troubles, ...missing] }
}

/** The definitions alone: no model is made. */
export async function loadDefinitions(setup: FolderSetup): Promise<Omit<FolderAgents, 'subagents'>> {
  const { loadAgents } = await import('../../agents/index.ts')
  const { home, folder, trusted, settings } = setup
  const named = [...(settings.model ?? []), ...Object.values(settings.models?.routes ?? {})]
  return loadAgents({
    config: home.config,
    workspace: folder,
    trusted,
    providers: [...new Set(named.filter((name) => !name.startsWith('hint:')).map((name) => name.split(':')[0] ?? ''))],
    maxIterations: settings.limits?.['modelRequests'] ?? DEFAULT_LIMITS.modelRequests,
  })
}

/** An unknown id is refused with the nearest one. */
export function findDefinition(definitions: readonly AgentDefinition[], id: string): AgentDefinition {
  const found = definitions.find((each) => each.id === id)
  if (found) return found
  const near = nearest(
    id,
    definitions.map((each) => each.id),
  )
  const hint = near === null ? `Run \`${terretCommand`agents`}\` to see which there are.` : `Did you mean "${near}"?`
  throw new CliError(EXIT.missing, `There is no agent "${id}" here. ${hint}`)
}

/** The key of a model: two agents may use one model with different temperatures. */
function modelKey(name: string, temperature: number | undefined): string {
  return JSON.stringify([name, temperature])
}

/**
 * Models by name and temperature. A hint stays a name, because the harness has the routes. A temperature of a
 * definition is sent with its model.
 */
async function makeNamedModels(
  setup: FolderSetup,
  definitions: readonly AgentDefinition[],
  wanted: AgentsSettings,
): Promise<ReadonlyMap<string, Model>> {
  const { chosenModel } = await import('../../agents/index.ts')
  const made = new Map<string, Model>()
  for (const each of definitions) {
    const name = chosenModel(each, definitions, setup.settings.agents ?? {})
    const temperature = 'temperature' in each.lines ? each.temperature : undefined
    const key = modelKey(name ?? '', temperature)
    if (name === null || name.startsWith('hint:') || made.has(key)) continue
    const settings = temperature === undefined ? setup.settings : { ...setup.settings, temperature }
    const { onRequest, keyless = false } = wanted
    const [model] = await modelsFor({ ...setup, settings }, { models: [name], onRequest, keyless })
    if (model) made.set(key, model)
  }
  return made
}

/** Where the user's own definitions are. */
export function agentsFolder({ home }: FolderSetup): string {
  return join(home.config, 'agents')
}

/** True if a definition describes this agent. Workflows, cron jobs and the default agent of the folder do not count. */
export function isDefinedAgent(agent: string | undefined): agent is string {
  const own: readonly string[] = ['', OWN, CRON_AGENT, SCRIPT]
  return agent !== undefined && !own.includes(agent) && workflowOfAgent(agent) === null
}

/** The agent of a cron job's session. Its harness has all agents of the folder, which its runs may name. */
export const CRON_AGENT = 'cron'

/**
 * Adds to the options of a harness: the agents that may be started, the board, and in a git repository the tools for
 * worktrees, unless they are turned off. A workflow brings its own agents and gets neither.
 */
export async function addAgentsAndBoard<T extends HarnessParts>(
  parts: T,
  setup: FolderSetup,
  agent: string | undefined,
  store: CompleteStore,
  { keyless = false }: Pick<AgentsSettings, 'keyless'> = {},
): Promise<T> {
  if (workflowOfAgent(agent) !== null) return parts
  const { settings } = setup
  const isCron = agent === CRON_AGENT
  const scripts = await scriptParts(setup, agent)
  const jobs = isCron ? [(await import('../../cron/index.ts')).cronPlanner()] : []
  const graphs = [...jobs, ...(scripts.graphs ?? [])]
  const options = { ...parts.options, ...(graphs.length > 0 ? { graphs } : {}) }
  const tools = [
    ...(options.tools ?? []),
    ...(await boardToolsOf(setup, store)),
    ...(await worktreeToolsOf(setup, store)),
  ]
  // A session of a defined agent is driven even if starting subagents is turned off.
  if (settings.subagents === false && !isDefinedAgent(agent) && !isCron)
    return { ...parts, options: { ...options, tools: [...tools, ...(scripts.tools ?? [])] } }
  const { subagents, troubles } = await loadFolderAgents(setup, { tools, store, keyless })
  const detached = settings.subagents !== false
  // Only the agent of the folder writes scripts.
  const all = [...tools, ...(scripts.tools ?? [])]
  return {
    ...parts,
    options: { ...options, tools: all, subagents, detached },
    troubles: [...parts.troubles, ...troubles],
  }
}

/** Imports the files of these tools directly: the index would also load teams, tasks and shared boards. */
async function boardToolsOf({ settings, mode }: FolderSetup, store: CompleteStore): Promise<readonly Tool[]> {
  if (settings.board === false) return []
  const { todoTool } = await import('../../boards/todo-tool.ts')
  if (mode !== 'plan') return [todoTool({ store })]
  const { planExitTool } = await import('../../boards/plan-exit-tool.ts')
  return [todoTool({ store }), planExitTool({ store })]
}

/** Only agents that start others have worktrees to merge, and only in a repository. */
async function worktreeToolsOf({ settings, folder }: FolderSetup, store: CompleteStore): Promise<readonly Tool[]> {
  if (settings.worktrees === false || settings.subagents === false || !isInRepository(folder)) return []
  const { worktreeTools } = await import('../../tools/worktrees/worktree-tools.ts')
  return worktreeTools({ root: folder, store })
}

function isInRepository(folder: string): boolean {
  return existsSync(join(folder, '.git')) || (dirname(folder) !== folder && isInRepository(dirname(folder)))
}

type HarnessParts = {
  readonly options: Omit<HarnessOptions, 'store'>
  readonly troubles: readonly string[]
}
