// Reads and checks the configuration file. Unknown settings are refused with the file and the field, because a setting
// that silently does nothing is dangerous. folder-setup.ts says which settings a workspace may have.
import { dirname, isAbsolute, resolve } from 'node:path'
import type { TextDialect, HostedOptions, Json, Workload } from '../../index.ts'
import type { AgentPins } from '../../agents/index.ts'
import { nearest } from '../../options.ts'
import { EXIT, CliError } from '../exit.ts'
import type { EndpointOptions, Endpoints, WebhookScheme } from '../../server/webhook-endpoints.ts'
import type { CommandSenderOptions, WebhookSenderOptions } from '../../consumers/index.ts'
import type { SourceOptions } from '../../triggers/index.ts'
import { readPlainFile } from './plain-file.ts'
import { isObject } from '../../view/untrusted-json.ts'

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

/** `models`: the triage, and a second one to ask. Default: the route `burst` if there is one, else the first model. */
export type TriggersEntry = {
  readonly models?: readonly string[]
  readonly sources?: Readonly<Record<string, SourceOptions>>
  readonly endpoints?: Endpoints
  readonly notify?: NotifyEntry
}
/** The place of notices: exactly one of the two. Not standard output, because other programs read that of a command. */
export type NotifyEntry = { readonly webhook?: WebhookSenderOptions; readonly command?: CommandSenderOptions }

/** Settings for every request to a model. All models of `model` get the same. */
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

/** All fields are optional. Paths are absolute here. */
export type CliSettings = ModelSettings & {
  readonly model?: readonly string[]
  /**
   * `routes`: a model for each workload, or `hint:NAME` for the model of another one. `dialects`: how models without
   * tool calls write their calls, by the name of the model.
   */
  readonly models?: {
    readonly routes?: Partial<Readonly<Record<Workload, string>>>
    readonly dialects?: Readonly<Record<string, TextDialect>>
  }
  /** Models that the user fixed for agents from files. */
  readonly agents?: AgentPins
  readonly instructions?: string
  readonly results?: { readonly compression?: 'auto' | 'full' | 'light' | 'off' }
  readonly context?: { readonly prefix?: 'keep' | 'follow'; readonly compaction?: false | CompactionEntry }
  readonly tools?: readonly string[]
  readonly bash?: false | { readonly risk: 'strict' | 'relaxed' }
  readonly approvals?: {
    readonly policy?: string
    /** The name of this environment for the rules of a policy. */
    readonly environment?: string
  }
  readonly mode?: Mode
  readonly limits?: Readonly<Record<string, number>>
  readonly budget?: Readonly<Record<string, number>>
  readonly mcp?: Readonly<Record<string, McpEntry>>
  readonly skills?: readonly string[]
  readonly tracing?: TracingEntry
  readonly memory?: boolean | MemoryEntry
  /** false: the route `burst` names no sessions. */
  readonly titles?: boolean
  /** Whether the agent may start other agents. On unless it is false. */
  readonly subagents?: boolean
  /** Whether a model may write scripts. Off unless it is set. */
  readonly scripts?: 'off' | 'ask' | 'on'
  /** false: no `todo` board. */
  readonly board?: boolean
  /** false: no tools to merge and discard the worktrees of children. */
  readonly worktrees?: boolean
  readonly endpoints?: Readonly<Record<string, EndpointEntry>>
  /** Events from outside, and the endpoints where a server takes them in. */
  readonly triggers?: TriggersEntry
  /** false: a question in a chat that nobody answers does not ring the terminal's bell. */
  readonly bell?: boolean
  /** true: the input line of the chat has the keys of vi. */
  readonly vim?: boolean
  /** Programs that are asked about messages, calls and ends of runs. */
  readonly hooks?: readonly HookEntry[]
  /** The location of the sessions. Only store-location.ts reads it, before anything else. */
  readonly store?: string
}

export type HookEntry = {
  readonly on: 'before_tool_call' | 'after_tool_call' | 'user_prompt_submit' | 'run_end'
  /** A line for the shell. */
  readonly command: string
  /** Only for calls of these tools. */
  readonly tools?: readonly string[]
  readonly timeoutMs?: number
}

/**
 * `extract`: after some runs a model extracts facts for later runs. It costs money, so it is off unless it is set.
 * `episodes`: later runs are told what was asked in earlier ones. Off unless it is set, too.
 */
export type MemoryEntry = { readonly extract?: boolean | ExtractEntry; readonly episodes?: boolean }
type ExtractEntry = {
  readonly model?: string
  readonly tokens?: number
  readonly calls?: number
  readonly runs?: number
}

/** Null if there is no such file. */
export function readSettings(file: string, within?: string): CliSettings | null {
  const text = readPlainFile(file, within)
  if (text === null) return null
  const fields = parseFields(file, text)
  return Object.fromEntries(
    Object.entries(fields).map(([field, value]) => {
      const check = Object.hasOwn(SETTING_CHECKS, field) ? SETTING_CHECKS[field as keyof CliSettings] : undefined
      if (!check) throw unknownField({ file, field }, SETTING_CHECKS)
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
    throw new CliError(EXIT.config, `${file} is not valid JSON: ${jsonTrouble(text, error)}. Correct it.`)
  }
  if (!isObject(value)) throw new CliError(EXIT.config, `${file} must hold one JSON object. Correct it.`)
  return value
}

/** A process that was stopped while it wrote the file may have left it empty. */
export function refuseEmpty(file: string, text: string): void {
  if (text.trim() === '') throw new CliError(EXIT.config, `${file} is empty: remove it, or write {} into it.`)
}

/**
 * Why and in which line a text is not JSON, without the text around the error, which some versions of Node add: it may
 * hold a password.
 */
export function jsonTrouble(text: string, error: unknown): string {
  const said = error instanceof Error ? error.message : String(error)
  const [why = ''] = said.split(/, (?:\.\.\.)?"| in JSON| is not valid JSON/)
  return `${why} in line ${text.slice(0, errorPosition(text, said)).split('\n').length}`
}

/**
 * The position of the error: from the message, else the end of the shortest prefix that fails in the same way. Binary
 * search, because a file may be long.
 */
function errorPosition(text: string, said: string): number {
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

type ConfigField = { readonly file: string; readonly field: string }
type Check<T> = {
  (value: unknown, where: ConfigField): T
  /** The form of the value, for the reference. Absent: it is told by its fields. */
  readonly form?: string
  /** The checks of the fields in it, if the value is an object with known fields. */
  readonly fields?: Readonly<Record<string, Check<unknown>>>
  /** The check of every value in it, if the value is an object whose names are the user's. */
  readonly each?: Check<unknown>
}

/** A check that does more than that of its fields. */
function withFields<T>({ fields = {} }: Check<T>, check: Check<T>): Check<T> {
  return Object.assign(check, { fields })
}

function withForm<T>(form: string, check: Check<T>): Check<T> {
  return Object.assign(check, { form })
}

const badField = ({ file, field }: ConfigField, what: string): CliError =>
  new CliError(EXIT.config, `${file}: "${field}" ${what}.`)

type Known = Readonly<Record<string, { readonly fields?: Readonly<Record<string, unknown>> }>>

function unknownField(where: ConfigField, known: Known): CliError {
  const name = where.field.split('.').at(-1) ?? ''
  const names = Object.keys(known)
  const near = nearest(name, names)
  const home = names.find((group) => Object.hasOwn(known[group]?.fields ?? {}, name))
  const said = near === null ? `Known are: ${names.join(', ')}` : `Did you mean "${near}"?`
  const hint = home === undefined ? said : `Write it as "${home}.${name}".`
  return new CliError(EXIT.config, `${where.file}: "${where.field}" is not known. ${hint}`)
}

const text: Check<string> = withForm('text', (value, where) => {
  if (typeof value === 'string' && value.trim() !== '') return value
  throw badField(where, 'must be a text')
})

const flag: Check<boolean> = withForm('true or false', (value, where) => {
  if (typeof value === 'boolean') return value
  throw badField(where, 'must be true or false')
})

const texts: Check<readonly string[]> = withForm('list of texts', (value, where) => {
  if (Array.isArray(value) && value.every((item) => typeof item === 'string' && item !== '')) return value as string[]
  throw badField(where, 'must be a list of texts')
})

function oneOf<T extends string>(...words: readonly T[]): Check<T> {
  return withForm(words.map((word) => `"${word}"`).join(' | '), (value, where) => {
    const found = words.find((word) => word === value)
    if (found === undefined) throw badField(where, `must be ${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`)
    return found
  })
}

const table = <T>(check: Check<T>): Check<Readonly<Record<string, T>>> => {
  const whole = (value: unknown, where: ConfigField): Readonly<Record<string, T>> => {
    if (!isObject(value)) throw badField(where, 'must be an object')
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, check(item, { ...where, field: `${where.field}.${name}` })]),
    )
  }
  return Object.assign(whole, { each: check })
}

function object<T extends object>(checks: { readonly [K in keyof T]-?: Check<NonNullable<T[K]>> }): Check<T> {
  const check = (value: unknown, where: ConfigField): T => {
    if (!isObject(value)) throw badField(where, 'must be an object')
    const entries = Object.entries(value).map(([name, item]) => {
      const inner = { ...where, field: `${where.field}.${name}` }
      const field = Object.hasOwn(checks, name) ? (checks[name as keyof T] as Check<unknown>) : undefined
      if (!field) throw unknownField(inner, checks)
      return [name, field(item, inner)] as const
    })
    // Safe: every field was checked by the check of its name.
    return Object.fromEntries(entries) as T
  }
  return Object.assign(check, { fields: checks })
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

const count: Check<number> = withForm('whole number', (value, where) => {
  if (Number.isSafeInteger(value) && Number(value) >= 0) return Number(value)
  throw badField(where, 'must be a whole number from 0 on')
})

const dollars: Check<number> = withForm('dollars', (value, where) => {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value
  throw badField(where, 'must be a number of dollars from 0 on')
})

function amounts<T>(known: readonly string[], check: Check<T>): Check<Readonly<Record<string, T>>> {
  const whole = (value: unknown, where: ConfigField): Readonly<Record<string, T>> => {
    const all = table(check)(value, where)
    const unknown = Object.keys(all).find((name) => !known.includes(name))
    if (unknown !== undefined)
      throw unknownField(
        { ...where, field: `${where.field}.${unknown}` },
        Object.fromEntries(known.map((name) => [name, {}])),
      )
    return all
  }
  return Object.assign(whole, { fields: Object.fromEntries(known.map((name) => [name, check])) })
}

const path: Check<string> = withForm('path', (value, where) => {
  const given = text(value, where)
  return isAbsolute(given) ? given : resolve(dirname(where.file), given)
})

const mcpFields = object<McpEntry>({
  command: text,
  args: texts,
  env: table(text),
  url: text,
  headers: table(text),
  transport: oneOf('http', 'sse'),
  tools: texts,
  required: flag,
})
const mcpServer = withFields<McpEntry>(mcpFields, (value, where) => {
  const server = mcpFields(value, where)
  if ((server.command === undefined) === (server.url === undefined)) throw badField(where, 'needs a command or a url')
  return server
})

const endpointFields = object<EndpointEntry>({
  baseUrl: text,
  protocol: oneOf('chat', 'messages', 'responses'),
  keys: texts,
})
const endpoint = withFields<EndpointEntry>(endpointFields, (value, where) => {
  const entry = endpointFields(value, where)
  if (!/^https?:\/\//.test(entry.baseUrl ?? '') || !URL.canParse(entry.baseUrl))
    throw badField(
      { ...where, field: `${where.field}.baseUrl` },
      'must be an address that begins with http:// or https://',
    )
  return entry
})

const secretFields = object<{ readonly env: string; readonly file: string }>({ env: text, file: path })
const secret = withFields<EndpointOptions['secret']>(secretFields, (given, at) => {
  // The value itself must not be quoted.
  if (typeof given === 'string') throw badField(at, 'must name a variable or a file: {"env": "NAME"}')
  return secretFields(given, at)
})

const notifyFields = object<NotifyEntry>({
  webhook: object<WebhookSenderOptions>({ url: text, secret: text }),
  command: object<CommandSenderOptions>({ argv: texts, cwd: path, env: texts }),
})
const notify = withFields<NotifyEntry>(notifyFields, (value, where) => {
  const entry = notifyFields(value, where)
  const { webhook: to, command } = entry
  if (to ? !command && to.url && to.secret : command?.argv?.length) return entry
  throw badField(where, 'must be {"webhook": {"url": URL, "secret": NAME}} or {"command": {"argv": [PROGRAM]}}')
})

const tokens: Check<number> = withForm('whole number above 0', (value, where) => {
  if (count(value, where) > 0) return Number(value)
  throw badField(where, 'must be more than 0')
})

const webhook = object<EndpointOptions>({
  source: text,
  verify: oneOf<WebhookScheme>('github', 'stripe', 'slack', 'hmac'),
  secret,
  label: text,
  header: text,
  timeHeader: text,
  keyHeader: text,
  bytesMax: tokens,
})

function upTo(most: number): Check<number> {
  return withForm(`number from 0 to ${most}`, (value, where) => {
    if (typeof value === 'number' && value >= 0 && value <= most) return value
    throw badField(where, `must be a number from 0 to ${most}`)
  })
}

function orObject<T, U>(plain: Check<T>, whole: Check<U>): Check<T | U> {
  const either = (value: unknown, where: ConfigField): T | U => {
    return isObject(value) ? whole(value, where) : plain(value, where)
  }
  return Object.assign(either, { form: `${plain.form ?? ''} | object`, fields: whole.fields ?? {} })
}

function listWith<T>(each: Check<T>): Check<readonly T[]> {
  return withForm('list of names or objects', (value, where) => {
    if (!Array.isArray(value)) throw badField(where, 'must be a list')
    return value.map((one, i) => each(one, { ...where, field: `${where.field}[${i}]` }))
  })
}

type ProviderTool = NonNullable<HostedOptions['providerTools']>[number]
const PROVIDER_TOOLS = ['web_search', 'web_fetch', 'code_execution', 'file_search'] as const

/** A name alone, or a name with options. The model's constructor checks whether the host has it. */
function providerTool(value: unknown, where: ConfigField): ProviderTool {
  const { type, ...options } = isObject(value) ? value : { type: value as Json }
  return { ...options, type: oneOf(...PROVIDER_TOOLS)(type, where) } as ProviderTool
}

const triggerFields = object<TriggersEntry>({
  models: texts,
  sources: table(
    object<SourceOptions>({
      instructions: text,
      targets: object<NonNullable<SourceOptions['targets']>>({ react: texts, escalate: texts }),
      cache: flag,
      caps: object<NonNullable<SourceOptions['caps']>>({ perMinute: tokens, atOnce: tokens, usdPerDay: dollars }),
    }),
  ),
  endpoints: table(webhook),
  notify,
})

const triggers = withFields<TriggersEntry>(triggerFields, (value, where) => {
  const entry = triggerFields(value, where)
  const { sources = {}, endpoints = {} } = entry
  const lost = Object.entries(endpoints).find(([, { source }]) => !Object.hasOwn(sources, source))
  if (lost === undefined) return entry
  const [name] = lost
  const known = Object.keys(sources)
  const what = known.length === 0 ? 'has no source yet' : `has only: ${known.join(', ')}`
  const at = { ...where, field: `${where.field}.endpoints.${name}.source` }
  throw badField(at, `must be a source of "${where.field}.sources", which ${what}`)
})

const compaction = object<CompactionEntry>({ windowTokens: tokens, detectPins: flag })
const bash = object<{ readonly risk?: 'strict' | 'relaxed' }>({ risk: oneOf('strict', 'relaxed') })

const hookFields = object<HookEntry>({
  on: oneOf('before_tool_call', 'after_tool_call', 'user_prompt_submit', 'run_end'),
  command: text,
  tools: texts,
  timeoutMs: tokens,
})
const hook = withFields<HookEntry>(hookFields, (value, where) => {
  const entry = hookFields(value, where)
  if (entry.on === undefined || entry.command === undefined) throw badField(where, 'needs "on" and "command"')
  if (entry.tools && !entry.on.endsWith('_tool_call')) throw badField(where, 'has "tools", but is not about calls')
  return entry
})

/** The reference is made from it too. */
export const SETTING_CHECKS: { readonly [K in keyof CliSettings]-?: Check<NonNullable<CliSettings[K]>> } = {
  model: withForm('text | list of texts', (value, where) =>
    typeof value === 'string' ? [text(value, where)] : texts(value, where),
  ),
  models: object<NonNullable<CliSettings['models']>>({
    routes: object<Partial<Readonly<Record<Workload, string>>>>({
      chat: text,
      reasoning: text,
      agentic: text,
      coding: text,
      burst: text,
      summarization: text,
      vision: text,
    }),
    dialects: table(oneOf<TextDialect>('xml', 'invoke', 'function', 'fenced')),
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
  // The file is JSON, so any value is allowed.
  body: table(withForm('any JSON', (value) => value as Json)),
  providerTools: listWith(providerTool),
  instructions: text,
  results: object<NonNullable<CliSettings['results']>>({ compression: oneOf('auto', 'full', 'light', 'off') }),
  context: object<NonNullable<CliSettings['context']>>({
    prefix: oneOf('keep', 'follow'),
    compaction: Object.assign(
      (value: unknown, where: ConfigField) => {
        if (value === false) return false
        // As in code: compaction is on unless it is false.
        if (value === true) throw badField(where, 'is on unless it is false: leave it out, or write an object')
        return compaction(value, where)
      },
      { form: 'false | object', fields: compaction.fields ?? {} },
    ),
  }),
  tools: texts,
  bash: Object.assign(
    (value: unknown, where: ConfigField) => {
      if (value === false) return false
      const { risk = 'strict' } = value === true ? {} : bash(value, where)
      return { risk }
    },
    { form: 'true or false | object', fields: bash.fields ?? {} },
  ),
  approvals: object<NonNullable<CliSettings['approvals']>>({ policy: path, environment: text }),
  mode: oneOf(...MODES),
  limits: amounts(LIMITS, count),
  budget: amounts(BUDGETS, dollars),
  mcp: table(mcpServer),
  skills: withForm('path | list of paths', (value, where) =>
    texts(typeof value === 'string' ? [value] : value, where).map((each) => path(each, where)),
  ),
  tracing: object<TracingEntry>({ local: flag, otlp: text, content: flag }),
  memory: orObject(
    flag,
    object<MemoryEntry>({
      extract: orObject(flag, object<ExtractEntry>({ model: text, tokens: count, calls: count, runs: count })),
      episodes: flag,
    }),
  ),
  titles: flag,
  subagents: flag,
  scripts: oneOf('off', 'ask', 'on'),
  board: flag,
  worktrees: flag,
  bell: flag,
  vim: flag,
  hooks: Object.assign(listWith(hook), { form: 'list of objects' }),
  endpoints: table(endpoint),
  triggers,
  store: text,
}
