// The agents that are defined in files, as a folder has them: those that ship, the user's, and those of the folder if it is trusted.
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { AgentDefinition } from '../../agents/index.ts'
import type { HarnessOptions, Model, Store, SubagentOptions, Tool, ToolSource } from '../../index.ts'
import { DEFAULT_LIMITS } from '../../kernel/index.ts'
import { EXIT, Refusal } from '../exit.ts'
import { nearest } from '../../options.ts'
import { modelsFor } from './agent.ts'
import { AGENT as OWN } from './memory.ts'
import type { Setup } from './setup.ts'
import { workflowOf } from './workflows.ts'
import { typed } from '../present/print.ts'

type CliAgents = {
  readonly definitions: readonly AgentDefinition[]
  /** For `subagents` of a harness. */
  readonly subagents: Readonly<Record<string, SubagentOptions>>
  /** Files that were skipped and names that are not there, one line each. */
  readonly troubles: readonly string[]
}

type Wanted = {
  /** The tools of the folder's own agent. */
  readonly tools?: readonly (Tool | ToolSource)[]
  /** Where agents look when they last ran. */
  readonly store?: Store
  readonly onRequest?: ((text: string) => void) | undefined
  /** The models are only named, so no key is needed. */
  readonly keyless?: boolean
}

/** The definitions of a folder and the `subagents` of a harness there. Models that are named get their keys and settings. */
async function cliAgents(setup: Setup, wanted: Wanted = {}): Promise<CliAgents> {
  const { subagentsOf } = await import('../../agents/index.ts')
  const { definitions, troubles } = await definitionsOf(setup)
  const { settings, folder } = setup
  const pins = settings.agents ?? {}
  const made = await namedModels(setup, definitions, wanted)
  const profile = [settings.instructions ?? '', setup.guidance].filter((text) => text !== '').join('\n\n')
  const { subagents, troubles: missing } = subagentsOf(definitions, {
    pins,
    makeModel: (name, { temperature }) => made.get(keyOf(name, temperature)) ?? name,
    sections: { profile, integrations: Object.keys(settings.mcp ?? {}) },
    workspace: folder,
    ...(wanted.tools ? { tools: wanted.tools } : {}),
    ...(wanted.store ? { store: wanted.store } : {}),
  })
  return { definitions, subagents, troubles: [...troubles, ...missing] }
}

/** The definitions alone: no model is made. */
export async function definitionsOf(setup: Setup): Promise<Omit<CliAgents, 'subagents'>> {
  const { loadAgents } = await import('../../agents/index.ts')
  const { home, folder, trusted, settings } = setup
  const named = [...(settings.model ?? []), ...Object.values(settings.routes ?? {})]
  return loadAgents({
    config: home.config,
    workspace: folder,
    trusted,
    providers: [...new Set(named.filter((name) => !name.startsWith('hint:')).map((name) => name.split(':')[0] ?? ''))],
    maxIterations: settings.limits?.['modelRequests'] ?? DEFAULT_LIMITS.modelRequests,
  })
}

/** An id that is not there is refused with the nearest. */
export function definitionNamed(definitions: readonly AgentDefinition[], id: string): AgentDefinition {
  const found = definitions.find((each) => each.id === id)
  if (found) return found
  const near = nearest(
    id,
    definitions.map((each) => each.id),
  )
  const hint = near === null ? `Run \`${typed`agents`}\` to see which there are.` : `Did you mean "${near}"?`
  throw new Refusal(EXIT.missing, `There is no agent "${id}" here. ${hint}`)
}

/** Two agents may use one model with different temperatures. */
function keyOf(name: string, temperature: number | undefined): string {
  return JSON.stringify([name, temperature])
}

/** By name and temperature. A hint stays a name: the harness has the routes. A temperature that a definition says is sent with its model. */
async function namedModels(
  setup: Setup,
  definitions: readonly AgentDefinition[],
  wanted: Wanted,
): Promise<ReadonlyMap<string, Model>> {
  const { chosenModel } = await import('../../agents/index.ts')
  const made = new Map<string, Model>()
  for (const each of definitions) {
    const name = chosenModel(each, definitions, setup.settings.agents ?? {})
    const temperature = 'temperature' in each.lines ? each.temperature : undefined
    const key = keyOf(name ?? '', temperature)
    if (name === null || name.startsWith('hint:') || made.has(key)) continue
    const settings = temperature === undefined ? setup.settings : { ...setup.settings, temperature }
    const { onRequest, keyless = false } = wanted
    const [model] = await modelsFor({ ...setup, settings }, { models: [name], onRequest, keyless })
    if (model) made.set(key, model)
  }
  return made
}

/** Where the user's own definitions are. */
export function agentsFolder({ home }: Setup): string {
  return join(home.config, 'agents')
}

/** Is this the agent of a session that a definition describes? Workflows and the folder's own agent are none. */
export function isDefined(agent: string | undefined): agent is string {
  return agent !== undefined && agent !== '' && agent !== OWN && workflowOf(agent) === null
}

/**
 * The options of a harness that drives sessions of this agent: the agents it may start, the board, and in a git repository
 * the tools for worktrees, unless they are turned off. A workflow brings its own agents, and has neither.
 */
export async function equipped<T extends AgentParts>(
  parts: T,
  setup: Setup,
  agent: string | undefined,
  store: Store,
  { keyless = false }: Pick<Wanted, 'keyless'> = {},
): Promise<T> {
  if (workflowOf(agent) !== null) return parts
  const { settings } = setup
  const { options } = parts
  const tools = [...(options.tools ?? []), ...(await boardOf(setup, store)), ...(await worktreesOf(setup, store))]
  // A session of such an agent is driven also where no others are started.
  if (settings.subagents === false && !isDefined(agent)) return { ...parts, options: { ...options, tools } }
  const { subagents, troubles } = await cliAgents(setup, { tools, store, keyless })
  const detached = settings.subagents !== false
  return { ...parts, options: { ...options, tools, subagents, detached }, troubles: [...parts.troubles, ...troubles] }
}

/** The files of the tools themselves: teams, tasks and shared boards would be loaded with the rest. */
async function boardOf({ settings, mode }: Setup, store: Store): Promise<readonly Tool[]> {
  if (settings.board === false) return []
  const { todoTool } = await import('../../boards/todo.ts')
  if (mode !== 'plan') return [todoTool({ store })]
  const { planExitTool } = await import('../../boards/plan.ts')
  return [todoTool({ store }), planExitTool({ store })]
}

/** Only agents that start others have worktrees to merge, and only in a repository. */
async function worktreesOf({ settings, folder }: Setup, store: Store): Promise<readonly Tool[]> {
  if (settings.worktrees === false || settings.subagents === false || !isInRepository(folder)) return []
  const { worktreeTools } = await import('../../tools/worktrees/tools.ts')
  return worktreeTools({ root: folder, store })
}

function isInRepository(folder: string): boolean {
  return existsSync(join(folder, '.git')) || (dirname(folder) !== folder && isInRepository(dirname(folder)))
}

type AgentParts = {
  readonly options: Omit<HarnessOptions, 'store'>
  readonly troubles: readonly string[]
}
