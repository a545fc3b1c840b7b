// The type of an agent definition, and the checks of its fields as they stand in a file. load-agents.ts reads files,
// and link-definitions.ts checks which definition may list which. Every value arrives as text, a list or a table, and
// none is trusted.
import type { Frozen } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { nearest, describeValue } from '../options.ts'
import { WORKLOADS } from '../models/router.ts'
import { TIERS, type Tier } from '../runtime/state/model-tiers.ts'
import { oneLineText } from '../tools/skills/skill-text.ts'

export type SandboxMode = 'none' | 'sandboxed' | 'read_only'
/** From the loosest to the strictest. */
export const SANDBOXES: readonly SandboxMode[] = ['none', 'sandboxed', 'read_only']
/** Where the file of an agent comes from. A nearer layer replaces a farther one. */
export type Layer = 'built-in' | 'user' | 'workspace'

/** Sections of the prompt that are left out. */
export type OmittedSections = Frozen<{
  identity: boolean
  profile: boolean
  memoryContext: boolean
  memoryMd: boolean
  skillsCatalog: boolean
  safetyPreamble: boolean
}>

/** An agent as its file describes it. */
export type AgentDefinition = Frozen<{
  /** The name by which it is started. */
  id: string
  /** When to use it: the models of its parents read this. */
  whenToUse: string
  /** Its name for people. */
  displayName: string
  /** `inherit`, `provider:model` or `hint:NAME`. */
  model: string
  /** How freely its model chooses its words. */
  temperature: number
  /** The most requests to the model in one run. */
  maxIterations: number
  /** The tools that it may use, or all of the harness. */
  tools: 'all' | readonly string[]
  /** Of these tools it has none, whatever else is said. */
  disallowedTools: readonly string[]
  /** Tools that it has beside the others. */
  extraTools: readonly string[]
  /** The MCP servers and skills it has. Null: no servers, and all skills. */
  skillFilter: 'all' | readonly string[] | null
  /** Sections of the prompt that are left out. */
  omit: OmittedSections
  /** How its commands are confined. */
  sandbox: SandboxMode
  /** The definitions it may start. */
  subagents: readonly string[]
  /** `{skills: "*"}`: it may also start `integrations_agent`, whatever the tiers say. */
  integrations: boolean
  /** The tool with which others start it. */
  delegateName: string
  /** Its place among agents, which decides whom it may start. */
  tier: Tier
  /** Null: the default of every subagent. */
  maxResultChars: number | null
  /** How long one run may work, in ms. Null: the default of every subagent. */
  timeoutMs: number | null
  /** How much its results are shortened. Null: the default of every subagent. */
  compression: 'auto' | 'full' | 'light' | 'off' | null
  /** The text of the file below its keys, which are the instructions. */
  prompt: string
  /** Where the file comes from. */
  layer: Layer
  /** The path of the file. */
  file: string
  /** The line of each key in the file. */
  lines: Readonly<Record<string, number>>
}>

/** A value of the front matter, parsed as YAML without types. */
export type RawValue = string | readonly RawValue[] | { readonly [key: string]: RawValue }
export type RawDefinition = {
  readonly file: string
  readonly layer: Layer
  readonly keys: Readonly<Record<string, { readonly value: RawValue; readonly line: number }>>
  readonly prompt: string
}

/** The id of the definition behind `{skills: "*"}`, and the tool that starts it. */
export const INTEGRATIONS = 'integrations_agent'
const INTEGRATIONS_TOOL = 'delegate_to_integrations_agent'

/**
 * Names of the harness: its own agent, a child like its parent, and a child that continues its parent's conversation.
 */
const RESERVED = ['default', 'subagent', 'fork']

const PROMPT_CHARS_MAX = 100_000
const TEXT_CHARS_MAX = 2_000
const LIST_MAX = 200

/** The message is the end of a sentence that begins with the key. */
class ValueError extends Error {}

type ReadValue<T> = (value: RawValue) => T

/** One line, without invisible characters: it goes to a model. */
const text: ReadValue<string> = (value) => {
  if (typeof value !== 'string') throw new ValueError(`must be a text that is not empty`)
  const seen = oneLineText(value).replace(/\s+/g, ' ')
  if (seen === '') throw new ValueError(`must be a text that is not empty`)
  if (value.length > TEXT_CHARS_MAX)
    throw new ValueError(`has ${value.length} characters; at most ${TEXT_CHARS_MAX} are used`)
  return seen
}

const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
const name: ReadValue<string> = (value) => {
  if (typeof value === 'string' && NAME.test(value)) return value
  throw new ValueError(`must be a letter and up to 63 letters, digits, "_" or "-", not ${describeValue(value)}`)
}

const TOOL = /^[A-Za-z0-9_-]{1,128}$/
const toolName: ReadValue<string> = (value) => {
  if (typeof value === 'string' && TOOL.test(value)) return value
  throw new ValueError(`must name tools with letters, digits, "_" or "-", not ${describeValue(value)}`)
}

function list<T>(each: ReadValue<T>): ReadValue<readonly T[]> {
  return (value) => {
    if (!Array.isArray(value)) throw new ValueError(`must be a list such as [a, b], not ${describeValue(value)}`)
    if (value.length > LIST_MAX) throw new ValueError(`has ${value.length} items; at most ${LIST_MAX} are used`)
    return [...new Set((value as readonly RawValue[]).map(each))]
  }
}

function allOr<T>(each: ReadValue<T>): ReadValue<'all' | readonly T[]> {
  const listed = list(each)
  return (value) => (value === 'all' || value === '*' ? 'all' : listed(value))
}

function oneOf<T extends string>(words: readonly T[]): ReadValue<T> {
  return (value) => {
    const found = words.find((word) => word === value)
    if (found !== undefined) return found
    const near = typeof value === 'string' ? nearest(value, words) : null
    const hint = near === null ? '' : `: did you mean "${near}"?`
    throw new ValueError(`must be ${words.join(' or ')}, not ${describeValue(value)}${hint}`)
  }
}

function number(least: number, most: number, whole: boolean): ReadValue<number> {
  return (value) => {
    const given = typeof value === 'string' && /^[0-9]+(?:\.[0-9]+)?$/.test(value) ? Number(value) : Number.NaN
    if (given >= least && given <= most && (!whole || Number.isSafeInteger(given))) return given
    throw new ValueError(
      `must be a ${whole ? 'whole ' : ''}number from ${least} to ${most}, not ${describeValue(value)}`,
    )
  }
}

const flag: ReadValue<boolean> = (value) => oneOf(['true', 'false'])(value) === 'true'

const model: ReadValue<string> = (value) => {
  if (typeof value !== 'string') throw new ValueError('must be inherit, provider:model or hint:NAME')
  if (value === 'inherit') return value
  const [kind = '', ...rest] = value.split(':')
  const named = rest.join(':')
  if (kind === '' || named.trim() === '' || /\s/.test(value))
    throw new ValueError(`must be inherit, provider:model or hint:NAME, not ${describeValue(value)}`)
  if (kind === 'hint') oneOf(WORKLOADS)(named)
  return value
}

type Subagents = { readonly ids: readonly string[]; readonly integrations: boolean }

/** Ids, and `{skills: "*"}` instead of or among them. */
const subagents: ReadValue<Subagents> = (value) => {
  const items = Array.isArray(value) ? (value as readonly RawValue[]) : [value]
  if (items.length > LIST_MAX) throw new ValueError(`has ${items.length} items; at most ${LIST_MAX} are used`)
  const tables = items.filter((item) => typeof item === 'object')
  if (typeof value === 'string' || tables.some((item) => !isEverySkill(item)))
    throw new ValueError('must be a list of ids, or {skills: "*"}')
  return {
    ids: [...new Set(items.filter((item) => typeof item === 'string').map(name))],
    integrations: tables.length > 0,
  }
}

function isEverySkill(item: RawValue): boolean {
  if (typeof item !== 'object' || Array.isArray(item)) return false
  const entries = Object.entries(item)
  return entries.length === 1 && entries[0]?.[0] === 'skills' && entries[0][1] === '*'
}

const ITERATIONS_MAX = 1_000
const RESULT_CHARS_MAX = 200_000
const TIMEOUT_SECS_MAX = 24 * 3_600

/** Every key a file may have, with its check. */
const KEYS = {
  id: name,
  when_to_use: text,
  display_name: text,
  model,
  temperature: number(0, 2, false),
  max_iterations: number(1, ITERATIONS_MAX, true),
  tools: allOr(toolName),
  disallowed_tools: list(toolName),
  extra_tools: list(toolName),
  skill_filter: allOr(text),
  omit_identity: flag,
  omit_memory_context: flag,
  omit_safety_preamble: flag,
  omit_skills_catalog: flag,
  omit_profile: flag,
  omit_memory_md: flag,
  sandbox: oneOf(SANDBOXES),
  subagents,
  delegate_name: name,
  agent_tier: oneOf(TIERS),
  max_result_chars: number(200, RESULT_CHARS_MAX, true),
  timeout_secs: number(1, TIMEOUT_SECS_MAX, true),
  compression: oneOf(['auto', 'full', 'light', 'off'] as const),
}
type Values = { readonly [K in keyof typeof KEYS]?: ReturnType<(typeof KEYS)[K]> }

/** The definition in a file. `base` supplies the keys that the file leaves out; without it, the defaults do. */
export function readDefinition(raw: RawDefinition, base: AgentDefinition | null): AgentDefinition {
  const { file, layer, prompt } = raw
  const values = valuesOf(raw)
  const lines = Object.fromEntries(Object.entries(raw.keys).map(([key, { line }]) => [key, line]))
  const id = values.id ?? fileId(file)
  if (!NAME.test(id))
    throw definitionFault(raw, null, `"id" is missing, and the name of the file is no id. Add "id: NAME"`)
  if (RESERVED.includes(id))
    throw definitionFault(raw, 'id', `"${id}" is an agent of the harness itself. Give it another id`)
  const whenToUse = values.when_to_use ?? base?.whenToUse
  if (whenToUse === undefined)
    throw definitionFault(raw, null, '"when_to_use" is missing. Say when this agent is the right one')
  const said = prompt.trim() === '' ? (base?.prompt ?? '') : prompt.trim()
  if (said === '') throw definitionFault(raw, null, 'there is no prompt after the front matter. Write one')
  if (said.length > PROMPT_CHARS_MAX)
    throw definitionFault(
      raw,
      null,
      `the prompt has ${said.length} characters; at most ${PROMPT_CHARS_MAX} are used. Make it shorter`,
    )
  const listed = values.subagents ?? { ids: base?.subagents ?? [], integrations: base?.integrations ?? false }
  return {
    id,
    whenToUse,
    displayName: values.display_name ?? base?.displayName ?? id,
    model: values.model ?? base?.model ?? 'inherit',
    temperature: values.temperature ?? base?.temperature ?? 0.4,
    maxIterations: values.max_iterations ?? base?.maxIterations ?? 8,
    tools: values.tools ?? base?.tools ?? 'all',
    disallowedTools: values.disallowed_tools ?? base?.disallowedTools ?? [],
    extraTools: values.extra_tools ?? base?.extraTools ?? [],
    skillFilter: values.skill_filter ?? base?.skillFilter ?? null,
    omit: omitOf(values, base?.omit),
    sandbox: values.sandbox ?? base?.sandbox ?? 'none',
    subagents: listed.ids,
    integrations: listed.integrations,
    delegateName: values.delegate_name ?? base?.delegateName ?? delegateName(id),
    tier: values.agent_tier ?? base?.tier ?? 'worker',
    maxResultChars: values.max_result_chars ?? base?.maxResultChars ?? null,
    timeoutMs: values.timeout_secs === undefined ? (base?.timeoutMs ?? null) : values.timeout_secs * 1_000,
    compression: values.compression ?? base?.compression ?? null,
    prompt: said,
    layer,
    file,
    lines,
  }
}

function delegateName(id: string): string {
  return id === INTEGRATIONS ? INTEGRATIONS_TOOL : `delegate_${id}`
}

function omitOf(values: Values, base: OmittedSections | undefined): OmittedSections {
  return {
    identity: values.omit_identity ?? base?.identity ?? true,
    profile: values.omit_profile ?? base?.profile ?? true,
    memoryContext: values.omit_memory_context ?? base?.memoryContext ?? true,
    memoryMd: values.omit_memory_md ?? base?.memoryMd ?? true,
    skillsCatalog: values.omit_skills_catalog ?? base?.skillsCatalog ?? true,
    safetyPreamble: values.omit_safety_preamble ?? base?.safetyPreamble ?? true,
  }
}

function valuesOf(raw: RawDefinition): Values {
  const known = Object.keys(KEYS)
  const entries = Object.entries(raw.keys).map(([key, { value }]) => {
    if (!Object.hasOwn(KEYS, key)) {
      const near = nearest(key, known)
      const hint = near === null ? `Known are: ${known.join(', ')}` : `Did you mean "${near}"?`
      throw definitionFault(raw, key, `"${key.slice(0, 64)}" is not known. ${hint}`)
    }
    try {
      return [key, KEYS[key as keyof typeof KEYS](value)] as const
    } catch (error) {
      if (error instanceof ValueError) throw definitionFault(raw, key, `"${key}" ${error.message}`)
      throw error
    }
  })
  return Object.fromEntries(entries)
}

/** The id from the name of the file. */
function fileId(file: string): string {
  return (file.split(/[\\/]/).at(-1) ?? '').replace(/\.md$/i, '')
}

type FileLines = { readonly file: string; readonly lines?: Readonly<Record<string, number>> } | RawDefinition

/** One sentence with the file and the line. */
export function definitionFault(of: FileLines, key: string | null, what: string): Fault {
  const line = key === null ? 1 : 'keys' in of ? of.keys[key]?.line : of.lines?.[key]
  return new Fault('invalid_config', `${of.file}:${line ?? 1}: ${what}${/[.?]$/.test(what) ? '' : '.'}`)
}
