// Makes definitions into the `subagents` of a harness: tools, prompt, limits and the model of each. A model is chosen
// in this order: the call's, a pin, the definition's own, the parent's.
import { Fault } from '../kernel/failure.ts'
import type { Model } from '../ports/model.ts'
import {
  functionCheck,
  type Checks,
  nonEmptyCheck,
  methodsCheck,
  listCheck,
  optionsChecker,
  objectCheck,
  tableCheck,
  textCheck,
  optionsCheck,
} from '../options.ts'
import { model } from '../models/resolve-model.ts'
import type { SubagentOptions } from '../sessions/agent.ts'
import { LEADING } from '../tools/agents/order-tools.ts'
import { toolCheck, type Tool, type ToolSource } from '../tools/core/tool.ts'
import { findSandbox } from '../tools/shell/sandbox.ts'
import { type AgentDefinition, INTEGRATIONS } from './agent-definition.ts'
import { DOCS_TOOL, docsTool } from './docs-tool.ts'
import { LAST_RUN_TOOL, type LastRunStore, lastRunTool } from './last-run-tool.ts'
import { promptOf, type PromptSections } from './agent-prompt.ts'

/** Models that the user fixed. */
export type AgentPins = {
  /** The model of the definition `orchestrator`. */
  readonly orchestrator?: { readonly model?: string }
  /** By definition: the model of that agent (`lead_model`), and of the agents that it lists (`agent_model`). */
  readonly teams?: Readonly<Record<string, { readonly lead_model?: string; readonly agent_model?: string }>>
}

/** What agents from files are made with: tools, models, and what their prompts are told. */
export type SubagentsOptions = {
  /** Models that the user fixed for agents by name. They win over what a definition says. */
  readonly pins?: AgentPins
  /** Sections for the prompts, beside the definitions' own. */
  readonly sections?: PromptSections
  /**
   * The tools of the harness. Without them agents have the tools of the harness, and unknown names are not reported.
   */
  readonly tools?: readonly (Tool | ToolSource)[]
  /** Makes a model from its name. Default: `model(name, settings)`; a `hint:NAME` stays a name. */
  readonly makeModel?: (name: string, settings: { readonly temperature?: number }) => Model | string
  /** The store of the harness: with it and `tools`, an agent that lists `last_run` knows when it last ran. */
  readonly store?: LastRunStore
  /** The folder where commands run, for `sandbox: sandboxed`. Default: the current folder. */
  readonly workspace?: string
}

const PIN: Checks<NonNullable<AgentPins['teams']>[string]> = { lead_model: nonEmptyCheck, agent_model: nonEmptyCheck }
const PINS: Checks<AgentPins> = {
  orchestrator: optionsCheck<NonNullable<AgentPins['orchestrator']>>({ model: nonEmptyCheck }),
  teams: tableCheck(optionsCheck(PIN)),
}
const checkOptions = optionsChecker<SubagentsOptions>('subagentsOf', {
  pins: optionsCheck<AgentPins>(PINS),
  sections: optionsCheck<PromptSections>({
    profile: textCheck,
    memoryContext: textCheck,
    memoryMd: textCheck,
    integrations: listCheck(nonEmptyCheck),
  }),
  tools: listCheck((value, name, of) =>
    objectCheck(value, name, of) === null && 'type' in (value as object) ? null : toolCheck(value, name, of),
  ),
  makeModel: functionCheck,
  store: methodsCheck('give the store of the harness', 'card', 'read', 'page'),
  workspace: nonEmptyCheck,
})

/** Agents from files as a harness takes them, and what could not be made. */
export type MadeSubagents = {
  /** For `subagents` of a harness. */
  readonly subagents: Readonly<Record<string, SubagentOptions>>
  /** Names in definitions that do not exist here, one sentence each. */
  readonly troubles: readonly string[]
}

/** Command tools. An agent that must be sandboxed does not get them on a machine without a sandbox. */
const COMMANDS = ['bash', 'skill_run']

/** Makes agents from files into the option `subagents` of a harness. */
export function subagentsOf(definitions: readonly AgentDefinition[], options: SubagentsOptions = {}): MadeSubagents {
  checkOptions(options)
  const pinned = pinsOf(definitions, options.pins ?? {})
  const known = new Map(definitions.map((each) => [each.id, each]))
  const troubles: string[] = []
  const walled = definitions.some(({ sandbox }) => sandbox === 'sandboxed') && hasSandbox(options)
  const made = definitions.map((each) => {
    troubles.push(...missingTools(each, options.tools))
    return [each.id, optionsFor(each, { ...options, known, pinned, walled })] as const
  })
  return { subagents: Object.fromEntries(made), troubles }
}

function hasSandbox({ workspace = process.cwd() }: SubagentsOptions): boolean {
  return findSandbox(workspace).type !== 'none'
}

/** The model of a definition if the call names none: a pin, its own, or null for the parent's. */
export function chosenModel(
  definition: AgentDefinition,
  definitions: readonly AgentDefinition[],
  pins: AgentPins,
): string | null {
  const { id, model: own } = definition
  return pinsOf(definitions, pins).get(id) ?? (own === 'inherit' ? null : own)
}

type SubagentContext = SubagentsOptions & {
  readonly known: ReadonlyMap<string, AgentDefinition>
  readonly pinned: ReadonlyMap<string, string>
  /** There is a sandbox for commands, and a definition asks for it. */
  readonly walled: boolean
}

function optionsFor(definition: AgentDefinition, making: SubagentContext): SubagentOptions {
  const { id, skillFilter, maxResultChars, timeoutMs, compression } = definition
  const { known, pinned, sections = {} } = making
  const children = [
    ...definition.subagents,
    ...(definition.integrations && known.has(INTEGRATIONS) ? [INTEGRATIONS] : []),
  ]
  const chosen = pinned.get(id) ?? (definition.model === 'inherit' ? null : definition.model)
  const own = chosen === null ? {} : { model: modelOf(definition, chosen, making) }
  const mine = sections.integrations?.filter((name) => skillFilter === 'all' || skillFilter?.includes(name))
  return {
    description: definition.whenToUse,
    instructions: promptOf(definition, { ...sections, ...(mine ? { integrations: mine } : {}) }),
    limits: { modelRequests: definition.maxIterations },
    ...own,
    ...toolsFor(definition, making),
    toolAccess: toolAccessOf(definition, children, making),
    ...(skillFilter === null ? {} : { inheritSources: skillFilter === 'all' ? true : skillFilter }),
    // {skills: "*"} is exempt from the tiers, so the agent behind it has none at run time.
    ...(id === INTEGRATIONS ? {} : { tier: definition.tier }),
    subagents: [...new Set(children)],
    delegateName: definition.delegateName,
    ...(maxResultChars === null ? {} : { maxResultChars }),
    ...(timeoutMs === null ? {} : { timeoutMs }),
    ...(compression === null ? {} : { results: { compression } }),
  }
}

/** A temperature is set only if the file has one and names a model: an inherited model keeps its parent's settings. */
function modelOf(
  { lines, temperature }: AgentDefinition,
  name: string,
  { makeModel }: SubagentContext,
): Model | string {
  const settings = 'temperature' in lines ? { temperature } : {}
  if (makeModel) return makeModel(name, settings)
  return name.startsWith('hint:') ? name : model(name, settings)
}

/**
 * An agent gets its own tool list only where lists of names are not enough: `skill_read` adds the catalogue of skills
 * to the instructions, and a list of names would leave out the tools of MCP servers, which are not known yet.
 */
function toolsFor(definition: AgentDefinition, { tools, store }: SubagentContext): Pick<SubagentOptions, 'tools'> {
  const { omit, skillFilter, tools: listed, extraTools } = definition
  const harness = tools?.filter((tool): tool is Tool => !('type' in tool))
  if (harness === undefined) return {}
  const given = withPackageTools(harness, definition, store)
  const fitting = typeof skillFilter === 'object' && skillFilter !== null ? withSkills(given, skillFilter) : given
  const named =
    skillFilter === null || listed === 'all'
      ? fitting
      : fitting.filter(({ name }) => [...listed, ...extraTools].includes(name))
  const hushes =
    omit.skillsCatalog && named.some(({ name, instructions }) => name === 'skill_read' && instructions !== '')
  if (named === harness && !hushes) return {}
  return { tools: named.map((tool) => (hushes && tool.name === 'skill_read' ? { ...tool, instructions: '' } : tool)) }
}

/** Adds the package's tools that the agent lists, unless the harness has its own tools of these names. */
function withPackageTools(
  given: readonly Tool[],
  { tools, extraTools }: AgentDefinition,
  store: LastRunStore | undefined,
): readonly Tool[] {
  const listed = [...(tools === 'all' ? [] : tools), ...extraTools]
  const lacks = (name: string): boolean => listed.includes(name) && !given.some((tool) => tool.name === name)
  const more = [
    ...(lacks(DOCS_TOOL) ? [docsTool()] : []),
    ...(store !== undefined && lacks(LAST_RUN_TOOL) ? [lastRunTool(store)] : []),
  ]
  return more.length === 0 ? given : [...given, ...more]
}

/** Limits the tools of skills to the named skills; without any, these tools are left out. */
function withSkills(tools: readonly Tool[], names: readonly string[]): readonly Tool[] {
  if (tools.every(({ filtered }) => filtered === undefined)) return tools
  return tools.flatMap((tool) => (tool.filtered ? (tool.filtered(names) ?? []) : tool))
}

function toolAccessOf(
  definition: AgentDefinition,
  children: readonly string[],
  { known, walled, tools: given }: SubagentContext,
): NonNullable<SubagentOptions['toolAccess']> {
  const { tools, extraTools, disallowedTools, sandbox, skillFilter } = definition
  const delegates = children.flatMap((id) => known.get(id)?.delegateName ?? [])
  // An allow list does not remove the tools that lead subagents.
  const also = [...extraTools, ...(children.length > 0 ? [...LEADING, ...delegates] : [])]
  const walls = sandbox === 'sandboxed' && !walled ? COMMANDS : []
  const deny = [...disallowedTools, ...walls]
  // An extra tool must not loosen a sandbox that only reads.
  const readOnly = sandbox === 'read_only'
  const byTools = skillFilter !== null && given !== undefined
  const allowed = tools === 'all' || byTools ? {} : { allow: tools }
  return {
    ...(readOnly ? { profile: 'read' as const } : {}),
    ...allowed,
    ...(also.length > 0 ? { alsoAllow: readOnly ? also.filter((name) => !extraTools.includes(name)) : also } : {}),
    ...(deny.length > 0 ? { deny } : {}),
  }
}

/** Built-in definitions are skipped: they may name tools that a harness does not have. */
function missingTools(
  { layer, file, lines, tools, extraTools, skillFilter }: AgentDefinition,
  given: SubagentsOptions['tools'],
): readonly string[] {
  if (layer === 'built-in' || given === undefined || skillFilter !== null) return []
  const names = new Set(given.flatMap((tool) => ('type' in tool ? [] : [tool.name])))
  const named = [
    ...(tools === 'all' ? [] : tools.map((tool) => ['tools', tool] as const)),
    ...extraTools.map((tool) => ['extra_tools', tool] as const),
  ]
  return named
    .filter(([, tool]) => !names.has(tool))
    .map(([key, tool]) => `${file}:${lines[key] ?? 1}: there is no tool "${tool}" here, so the agent does without it.`)
}

/** The pinned models by agent id. A direct pin comes before the pin of a team. */
function pinsOf(
  definitions: readonly AgentDefinition[],
  { orchestrator, teams = {} }: AgentPins,
): ReadonlyMap<string, string> {
  const pinned = new Map<string, string>()
  for (const [team, { agent_model: name }] of Object.entries(teams)) {
    const lead = definitions.find(({ id }) => id === team)
    if (lead === undefined)
      throw new Fault(
        'invalid_config',
        `"teams.${team}" pins models, and there is no agent "${team}". Name one that is there.`,
      )
    for (const id of name === undefined ? [] : lead.subagents) {
      const other = pinned.get(id)
      if (other !== undefined && other !== name)
        throw new Fault('invalid_config', `Two teams pin other models for "${id}": ${other} and ${name}. Pin one.`)
      pinned.set(id, name ?? '')
    }
  }
  for (const [team, { lead_model: name }] of Object.entries(teams)) if (name !== undefined) pinned.set(team, name)
  if (orchestrator?.model !== undefined) pinned.set('orchestrator', orchestrator.model)
  return pinned
}
