// What an agent definition is, and the check of each of its fields as a file has them. Reading files is load.ts; which definition may
// list which is tiers.ts. Every value arrives as text, a list or a table: nothing in a file is believed.
import type { Frozen } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { nearest, shown } from '../options.ts'
import { WORKLOADS } from '../models/router.ts'
import { TIERS, type Tier } from '../sessions/tiers.ts'
import { oneLine } from '../tools/skills/text.ts'

export type Sandbox = 'none' | 'sandboxed' | 'read_only'
/** From the loosest to the strictest. */
export const SANDBOXES: readonly Sandbox[] = ['none', 'sandboxed', 'read_only']
export type Layer = 'built-in' | 'user' | 'workspace'

/** Sections of the prompt that are left out. */
export type Omitted = Frozen<{
  identity: boolean
  profile: boolean
  memoryContext: boolean
  memoryMd: boolean
  skillsCatalog: boolean
  safetyPreamble: boolean
}>

export type AgentDefinition = Frozen<{
  id: string
  /** When to use it: the models of its parents read this. */
  whenToUse: string
  displayName: string
  /** `inherit`, `provider:model` or `hint:NAME`. */
  model: string
  temperature: number
  /** The most requests to the model in one run. */
  maxIterations: number
  tools: 'all' | readonly string[]
  disallowedTools: readonly string[]
  extraTools: readonly string[]
  /** The MCP servers and skills it has. Null: none of the servers, and all skills. */
  skillFilter: 'all' | readonly string[] | null
  omit: Omitted
  sandbox: Sandbox
  /** The definitions it may start. */
  subagents: readonly string[]
  /** `{skills: "*"}`: it may also start `integrations_agent`, whatever the tiers say. */
  integrations: boolean
  /** The tool with which others start it. */
  delegateName: string
  tier: Tier
  /** Null: as for every subagent. */
  maxResultChars: number | null
  timeoutMs: number | null
  compression: 'auto' | 'full' | 'light' | 'off' | null
  prompt: string
  layer: Layer
  file: string
  /** The line of each key that the file has. */
  lines: Readonly<Record<string, number>>
}>

/** A value of the front matter, as YAML without types has it. */
export type Raw = string | readonly Raw[] | { readonly [key: string]: Raw }
export type RawFile = {
  readonly file: string
  readonly layer: Layer
  readonly keys: Readonly<Record<string, { readonly value: Raw; readonly line: number }>>
  readonly prompt: string
}

/** The id of the definition behind `{skills: "*"}`, and the tool that starts it. */
export const INTEGRATIONS = 'integrations_agent'
const INTEGRATIONS_TOOL = 'delegate_to_integrations_agent'

/** The agent of a harness, one like its parent, and one that goes on from its parent's conversation. */
const RESERVED = ['default', 'subagent', 'fork']

const PROMPT_CHARS_MAX = 100_000
const TEXT_CHARS_MAX = 2_000
const LIST_MAX = 200

/** What is wrong, as the end of a sentence. */
class Wrong extends Error {}

type Read<T> = (value: Raw) => T

/** One line, without invisible characters: it goes to a model. */
const text: Read<string> = (value) => {
  if (typeof value !== 'string') throw new Wrong(`must be a text that is not empty`)
  const seen = oneLine(value).replace(/\s+/g, ' ')
  if (seen === '') throw new Wrong(`must be a text that is not empty`)
  if (value.length > TEXT_CHARS_MAX)
    throw new Wrong(`has ${value.length} characters; at most ${TEXT_CHARS_MAX} are used`)
  return seen
}

const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/
const name: Read<string> = (value) => {
  if (typeof value === 'string' && NAME.test(value)) return value
  throw new Wrong(`must be a letter and up to 63 letters, digits, "_" or "-", not ${shown(value)}`)
}

const TOOL = /^[A-Za-z0-9_-]{1,128}$/
const toolName: Read<string> = (value) => {
  if (typeof value === 'string' && TOOL.test(value)) return value
  throw new Wrong(`must name tools with letters, digits, "_" or "-", not ${shown(value)}`)
}

function list<T>(each: Read<T>): Read<readonly T[]> {
  return (value) => {
    if (!Array.isArray(value)) throw new Wrong(`must be a list such as [a, b], not ${shown(value)}`)
    if (value.length > LIST_MAX) throw new Wrong(`has ${value.length} items; at most ${LIST_MAX} are used`)
    return [...new Set((value as readonly Raw[]).map(each))]
  }
}

function allOr<T>(each: Read<T>): Read<'all' | readonly T[]> {
  const listed = list(each)
  return (value) => (value === 'all' || value === '*' ? 'all' : listed(value))
}

function oneOf<T extends string>(words: readonly T[]): Read<T> {
  return (value) => {
    const found = words.find((word) => word === value)
    if (found !== undefined) return found
    const near = typeof value === 'string' ? nearest(value, words) : null
    const hint = near === null ? '' : `: did you mean "${near}"?`
    throw new Wrong(`must be ${words.join(' or ')}, not ${shown(value)}${hint}`)
  }
}

function number(least: number, most: number, whole: boolean): Read<number> {
  return (value) => {
    const given = typeof value === 'string' && /^[0-9]+(?:\.[0-9]+)?$/.test(value) ? Number(value) : Number.NaN
    if (given >= least && given <= most && (!whole || Number.isSafeInteger(given))) return given
    throw new Wrong(`must be a ${whole ? 'whole ' : ''}number from ${least} to ${most}, not ${shown(value)}`)
  }
}

const flag: Read<boolean> = (value) => oneOf(['true', 'false'])(value) === 'true'

const model: Read<string> = (value) => {
  if (typeof value !== 'string') throw new Wrong('must be inherit, provider:model or hint:NAME')
  if (value === 'inherit') return value
  const [kind = '', ...rest] = value.split(':')
  const named = rest.join(':')
  if (kind === '' || named.trim() === '' || /\s/.test(value))
    throw new Wrong(`must be inherit, provider:model or hint:NAME, not ${shown(value)}`)
  if (kind === 'hint') oneOf(WORKLOADS)(named)
  return value
}

type Subagents = { readonly ids: readonly string[]; readonly integrations: boolean }

/** Ids, and `{skills: "*"}` instead of or among them. */
const subagents: Read<Subagents> = (value) => {
  const items = Array.isArray(value) ? (value as readonly Raw[]) : [value]
  if (items.length > LIST_MAX) throw new Wrong(`has ${items.length} items; at most ${LIST_MAX} are used`)
  const tables = items.filter((item) => typeof item === 'object')
  if (typeof value === 'string' || tables.some((item) => !isEverySkill(item)))
    throw new Wrong('must be a list of ids, or {skills: "*"}')
  return {
    ids: [...new Set(items.filter((item) => typeof item === 'string').map(name))],
    integrations: tables.length > 0,
  }
}

function isEverySkill(item: Raw): boolean {
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

/** The definition of a file. `base`: what the keys that the file leaves out are; without it, the defaults. */
export function definitionOf(raw: RawFile, base: AgentDefinition | null): AgentDefinition {
  const { file, layer, prompt } = raw
  const values = valuesOf(raw)
  const lines = Object.fromEntries(Object.entries(raw.keys).map(([key, { line }]) => [key, line]))
  const id = values.id ?? nameOf(file)
  if (!NAME.test(id)) throw fault(raw, null, `"id" is missing, and the name of the file is no id. Add "id: NAME"`)
  if (RESERVED.includes(id)) throw fault(raw, 'id', `"${id}" is an agent of the harness itself. Give it another id`)
  const whenToUse = values.when_to_use ?? base?.whenToUse
  if (whenToUse === undefined) throw fault(raw, null, '"when_to_use" is missing. Say when this agent is the right one')
  const said = prompt.trim() === '' ? (base?.prompt ?? '') : prompt.trim()
  if (said === '') throw fault(raw, null, 'there is no prompt after the front matter. Write one')
  if (said.length > PROMPT_CHARS_MAX)
    throw fault(
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

function omitOf(values: Values, base: Omitted | undefined): Omitted {
  return {
    identity: values.omit_identity ?? base?.identity ?? true,
    profile: values.omit_profile ?? base?.profile ?? true,
    memoryContext: values.omit_memory_context ?? base?.memoryContext ?? true,
    memoryMd: values.omit_memory_md ?? base?.memoryMd ?? true,
    skillsCatalog: values.omit_skills_catalog ?? base?.skillsCatalog ?? true,
    safetyPreamble: values.omit_safety_preamble ?? base?.safetyPreamble ?? true,
  }
}

function valuesOf(raw: RawFile): Values {
  const known = Object.keys(KEYS)
  const entries = Object.entries(raw.keys).map(([key, { value }]) => {
    if (!Object.hasOwn(KEYS, key)) {
      const near = nearest(key, known)
      const hint = near === null ? `Known are: ${known.join(', ')}` : `Did you mean "${near}"?`
      throw fault(raw, key, `"${key.slice(0, 64)}" is not known. ${hint}`)
    }
    try {
      return [key, KEYS[key as keyof typeof KEYS](value)] as const
    } catch (error) {
      if (error instanceof Wrong) throw fault(raw, key, `"${key}" ${error.message}`)
      throw error
    }
  })
  return Object.fromEntries(entries)
}

/** The id a file would have by its name alone. */
function nameOf(file: string): string {
  return (file.split(/[\\/]/).at(-1) ?? '').replace(/\.md$/i, '')
}

type Placed = { readonly file: string; readonly lines?: Readonly<Record<string, number>> } | RawFile

/** One sentence with the file and the line. */
export function fault(of: Placed, key: string | null, what: string): Fault {
  const line = key === null ? 1 : 'keys' in of ? of.keys[key]?.line : of.lines?.[key]
  return new Fault('invalid_config', `${of.file}:${line ?? 1}: ${what}${/[.?]$/.test(what) ? '' : '.'}`)
}
