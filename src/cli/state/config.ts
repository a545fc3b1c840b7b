// Reads and checks the configuration file. Unknown settings are refused with the file and the field, because a setting that silently
// does nothing is dangerous. What a workspace may set is in setup.ts.
import { dirname, isAbsolute, resolve } from 'node:path'
import type { HostedOptions, Json, Workload } from '../../index.ts'
import type { AgentPins } from '../../agents/index.ts'
import { nearest } from '../../options.ts'
import { EXIT, Refusal } from '../exit.ts'
import { readPlain } from './plain-file.ts'
import { isObject } from '../../view/json.ts'

export const MODES = ['plan', 'ask', 'auto'] as const
export type Mode = (typeof MODES)[number]
const EFFORTS = ['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

export type EndpointEntry = {
  readonly baseUrl: string
  readonly protocol?: 'chat' | 'messages' | 'responses'
  /** Names of variables that may hold the key. */
  readonly keys?: readonly string[]
}
export type McpEntry = {
  readonly command?: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly url?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly transport?: 'http' | 'sse'
  readonly tools?: readonly string[]
  readonly required?: boolean
}
export type TracingEntry = {
  readonly local?: boolean
  readonly otlp?: string
  readonly content?: boolean
}

/** What every request to a model carries. All models of `model` get the same. */
export type ModelSettings = Pick<HostedOptions, (typeof MODEL_SETTINGS)[number]>
export const MODEL_SETTINGS = [
  'outputTokensMax',
  'temperature',
  'topP',
  'seed',
  'stop',
  'toolChoice',
  'parallelToolCalls',
  'reasoning',
  'cache',
  'serviceTier',
  'headers',
  'body',
  'providerTools',
] as const

/** `detectPins`: rules that users write are kept when the context is compacted. On unless it is false. */
type CompactionEntry = { readonly windowTokens?: number; readonly detectPins?: boolean }

/** All of it is optional. Paths are absolute here. */
export type Settings = ModelSettings & {
  readonly model?: readonly string[]
  /** A model for each workload, or `hint:NAME` for that of another one. */
  readonly routes?: Partial<Readonly<Record<Workload, string>>>
  /** Models that the user fixed for agents that are defined in files. */
  readonly agents?: AgentPins
  readonly instructions?: string
  readonly prefix?: 'keep' | 'follow'
  readonly compression?: 'auto' | 'full' | 'light' | 'off'
  readonly compaction?: false | CompactionEntry
  readonly tools?: readonly string[]
  readonly bash?: false | { readonly risk: 'strict' | 'relaxed' }
  readonly policy?: string
  /** The environment name that rules of a policy use. */
  readonly environment?: string
  readonly mode?: Mode
  readonly limits?: Readonly<Record<string, number>>
  readonly budget?: Readonly<Record<string, number>>
  readonly mcp?: Readonly<Record<string, McpEntry>>
  readonly skills?: readonly string[]
  readonly tracing?: TracingEntry
  readonly memory?: boolean | MemoryEntry
  /** Whether the agent may start others. On unless it is false. */
  readonly subagents?: boolean
  /** false: no `todo` board. */
  readonly board?: boolean
  /** false: no tools to merge and discard the worktrees of children. */
  readonly worktrees?: boolean
  readonly endpoints?: Readonly<Record<string, EndpointEntry>>
  /** Where the sessions are. Read by store-place.ts alone, before anything else is. */
  readonly store?: string
}

/** `extract`: a model is asked after some runs what later ones should know. It costs money, so it is off unless it is set. */
export type MemoryEntry = { readonly extract?: boolean | ExtractEntry }
type ExtractEntry = {
  readonly model?: string
  readonly tokens?: number
  readonly calls?: number
  readonly runs?: number
}

/** Null if there is no such file. */
export function readSettings(file: string, within?: string): Settings | null {
  const text = readPlain(file, within)
  if (text === null) return null
  const fields = parseFields(file, text)
  return Object.fromEntries(
    Object.entries(fields).map(([field, value]) => {
      const check = Object.hasOwn(CHECKS, field) ? CHECKS[field as keyof Settings] : undefined
      if (!check) throw stranger({ file, field }, Object.keys(CHECKS))
      return [field, check(value, { file, field })]
    }),
  )
}

/** The fields of a JSON file as written, for changing one of them. */
export function parseFields(file: string, text: string): Readonly<Record<string, unknown>> {
  refuseEmpty(file, text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Refusal(EXIT.config, `${file} is not valid JSON: ${jsonTrouble(text, error)}. Correct it.`)
  }
  if (!isObject(value)) throw new Refusal(EXIT.config, `${file} must hold one JSON object. Correct it.`)
  return value
}

/** Something that was stopped while it wrote the file may have left it empty. */
export function refuseEmpty(file: string, text: string): void {
  if (text.trim() === '') throw new Refusal(EXIT.config, `${file} is empty: remove it, or write {} into it.`)
}

/** Why a text is no JSON and in which line, without the text around it, which some versions of Node add: it may hold a password. */
export function jsonTrouble(text: string, error: unknown): string {
  const said = error instanceof Error ? error.message : String(error)
  const [why = ''] = said.split(/, (?:\.\.\.)?"| in JSON| is not valid JSON/)
  return `${why} in line ${text.slice(0, placeIn(text, said)).split('\n').length}`
}

/** Where it cannot be read any more: as the error says, else the end of the shortest beginning that fails alike. Halving, as a file may be long. */
function placeIn(text: string, said: string): number {
  const known = /at position (\d+)/.exec(said)?.[1]
  if (known !== undefined) return Number(known)
  let [good, bad] = [0, text.length + 1]
  while (bad - good > 1) {
    const end = Math.floor((good + bad) / 2)
    if (failsAtToken(text.slice(0, end))) bad = end
    else good = end
  }
  return bad - 1
}

function failsAtToken(text: string): boolean {
  try {
    JSON.parse(text)
    return false
  } catch (error) {
    return error instanceof Error && error.message.startsWith('Unexpected token')
  }
}

type Where = { readonly file: string; readonly field: string }
type Check<T> = (value: unknown, where: Where) => T

const bad = ({ file, field }: Where, what: string): Refusal => new Refusal(EXIT.config, `${file}: "${field}" ${what}.`)

function stranger(where: Where, known: readonly string[]): Refusal {
  const near = nearest(where.field.split('.').at(-1) ?? '', known)
  const hint = near === null ? `Known are: ${known.join(', ')}` : `Did you mean "${near}"?`
  return new Refusal(EXIT.config, `${where.file}: "${where.field}" is not known. ${hint}`)
}

const text: Check<string> = (value, where) => {
  if (typeof value === 'string' && value.trim() !== '') return value
  throw bad(where, 'must be a text')
}

const flag: Check<boolean> = (value, where) => {
  if (typeof value === 'boolean') return value
  throw bad(where, 'must be true or false')
}

const texts: Check<readonly string[]> = (value, where) => {
  if (Array.isArray(value) && value.every((item) => typeof item === 'string' && item !== '')) return value as string[]
  throw bad(where, 'must be a list of texts')
}

function oneOf<T extends string>(...words: readonly T[]): Check<T> {
  return (value, where) => {
    const found = words.find((word) => word === value)
    if (found === undefined) throw bad(where, `must be ${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`)
    return found
  }
}

const table = <T>(check: Check<T>): Check<Readonly<Record<string, T>>> => {
  return (value, where) => {
    if (!isObject(value)) throw bad(where, 'must be an object')
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, check(item, { ...where, field: `${where.field}.${name}` })]),
    )
  }
}

function object<T extends object>(checks: { readonly [K in keyof T]-?: Check<NonNullable<T[K]>> }): Check<T> {
  return (value, where) => {
    if (!isObject(value)) throw bad(where, 'must be an object')
    const entries = Object.entries(value).map(([name, item]) => {
      const inner = { ...where, field: `${where.field}.${name}` }
      const check = Object.hasOwn(checks, name) ? (checks[name as keyof T] as Check<unknown>) : undefined
      if (!check) throw stranger(inner, Object.keys(checks))
      return [name, check(item, inner)] as const
    })
    // Safe: every field was checked by the check of its name.
    return Object.fromEntries(entries) as T
  }
}

const LIMITS = [
  'modelRequests',
  'modelAttempts',
  'modelMs',
  'activeMs',
  'lossesMax',
  'toolCalls',
  'toolRetries',
  'outputRetries',
  'parallel',
  'tokens',
  'depth',
  'patienceMs',
  'outageMs',
]
const BUDGETS = ['runUsd', 'sessionUsd', 'treeUsd', 'dayUsd']

const count: Check<number> = (value, where) => {
  if (Number.isSafeInteger(value) && Number(value) >= 0) return Number(value)
  throw bad(where, 'must be a whole number from 0 on')
}

const dollars: Check<number> = (value, where) => {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value
  throw bad(where, 'must be a number of dollars from 0 on')
}

function amounts<T>(known: readonly string[], check: Check<T>): Check<Readonly<Record<string, T>>> {
  return (value, where) => {
    const all = table(check)(value, where)
    const unknown = Object.keys(all).find((name) => !known.includes(name))
    if (unknown !== undefined) throw stranger({ ...where, field: `${where.field}.${unknown}` }, known)
    return all
  }
}

const path: Check<string> = (value, where) => {
  const given = text(value, where)
  return isAbsolute(given) ? given : resolve(dirname(where.file), given)
}

const mcpServer: Check<McpEntry> = (value, where) => {
  const server = object<McpEntry>({
    command: text,
    args: texts,
    env: table(text),
    url: text,
    headers: table(text),
    transport: oneOf('http', 'sse'),
    tools: texts,
    required: flag,
  })(value, where)
  if ((server.command === undefined) === (server.url === undefined)) throw bad(where, 'needs a command or a url')
  return server
}

const endpoint: Check<EndpointEntry> = (value, where) => {
  const checks = { baseUrl: text, protocol: oneOf('chat', 'messages', 'responses'), keys: texts } as const
  const entry = object<EndpointEntry>(checks)(value, where)
  if (!/^https?:\/\//.test(entry.baseUrl ?? '') || !URL.canParse(entry.baseUrl))
    throw bad({ ...where, field: `${where.field}.baseUrl` }, 'must be an address that begins with http:// or https://')
  return entry
}

const tokens: Check<number> = (value, where) => {
  if (count(value, where) > 0) return Number(value)
  throw bad(where, 'must be more than 0')
}

function upTo(most: number): Check<number> {
  return (value, where) => {
    if (typeof value === 'number' && value >= 0 && value <= most) return value
    throw bad(where, `must be a number from 0 to ${most}`)
  }
}

function orObject<T, U>(plain: Check<T>, whole: Check<U>): Check<T | U> {
  return (value, where) => (isObject(value) ? whole(value, where) : plain(value, where))
}

function listed<T>(each: Check<T>): Check<readonly T[]> {
  return (value, where) => {
    if (!Array.isArray(value)) throw bad(where, 'must be a list')
    return value.map((one, i) => each(one, { ...where, field: `${where.field}[${i}]` }))
  }
}

type ProviderTool = NonNullable<HostedOptions['providerTools']>[number]
const PROVIDER_TOOLS = ['web_search', 'web_fetch', 'code_execution', 'file_search'] as const

/** A name alone, or with its options. Which of them a host has, and what it takes, is said when the model is made. */
function providerTool(value: unknown, where: Where): ProviderTool {
  const { type, ...options } = isObject(value) ? value : { type: value as Json }
  return { ...options, type: oneOf(...PROVIDER_TOOLS)(type, where) } as ProviderTool
}

const CHECKS: { readonly [K in keyof Settings]-?: Check<NonNullable<Settings[K]>> } = {
  model: (value, where) => (typeof value === 'string' ? [text(value, where)] : texts(value, where)),
  routes: object<NonNullable<Settings['routes']>>({
    chat: text,
    reasoning: text,
    agentic: text,
    coding: text,
    burst: text,
    summarization: text,
    vision: text,
  }),
  agents: object<AgentPins>({
    orchestrator: object<NonNullable<AgentPins['orchestrator']>>({ model: text }),
    teams: table(
      object<{ readonly lead_model?: string; readonly agent_model?: string }>({ lead_model: text, agent_model: text }),
    ),
  }),
  outputTokensMax: tokens,
  temperature: upTo(2),
  topP: upTo(1),
  seed: count,
  stop: texts,
  toolChoice: orObject(oneOf('auto', 'required', 'none'), object<{ readonly tool: string }>({ tool: text })),
  parallelToolCalls: flag,
  reasoning: orObject(oneOf(...EFFORTS), object<{ readonly budgetTokens: number }>({ budgetTokens: tokens })),
  cache: orObject(flag, object<{ readonly ttl: '5m' | '1h' }>({ ttl: oneOf('5m', '1h') })),
  serviceTier: text,
  headers: table(text),
  // The file is JSON, so whatever stands there is.
  body: table((value) => value as Json),
  providerTools: listed(providerTool),
  instructions: text,
  prefix: oneOf('keep', 'follow'),
  compression: oneOf('auto', 'full', 'light', 'off'),
  compaction: (value, where) => {
    if (value === false) return false
    // As in code: it is on unless it is off.
    if (value === true) throw bad(where, 'is on unless it is false: leave it out, or write an object')
    return object<CompactionEntry>({ windowTokens: tokens, detectPins: flag })(value, where)
  },
  tools: texts,
  bash: (value, where) => {
    if (value === false) return false
    if (value === true) return { risk: 'strict' }
    const { risk = 'strict' } = object<{ risk?: 'strict' | 'relaxed' }>({ risk: oneOf('strict', 'relaxed') })(
      value,
      where,
    )
    return { risk }
  },
  policy: path,
  environment: text,
  mode: oneOf(...MODES),
  limits: amounts(LIMITS, count),
  budget: amounts(BUDGETS, dollars),
  mcp: table(mcpServer),
  skills: (value, where) => texts(typeof value === 'string' ? [value] : value, where).map((each) => path(each, where)),
  tracing: object<TracingEntry>({ local: flag, otlp: text, content: flag }),
  memory: orObject(
    flag,
    object<MemoryEntry>({
      extract: orObject(flag, object<ExtractEntry>({ model: text, tokens: count, calls: count, runs: count })),
    }),
  ),
  subagents: flag,
  board: flag,
  worktrees: flag,
  endpoints: table(endpoint),
  store: text,
}
