// What a user may say about one MCP server, checked once, and the names its tools get. Nothing is started or asked here.
import { hash } from 'node:crypto'
import type { EffectClass, Frozen } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import {
  type Checks,
  filled,
  flag,
  having,
  listOf,
  needed,
  oneOf,
  optionsOf,
  tableOf,
  text,
  wait,
} from '../../options.ts'
import type { Pins } from './pins.ts'
import { type Approval, approvalCheck, effectCheck } from '../core/tool.ts'

type Common = Frozen<{
  /** What its tools are called by: `name__tool`. */
  name: string
  /** Which of its tools to offer, by the server's own names. Missing: all. Empty: none. */
  tools?: readonly string[]
  /** A run cannot do without it: an unreachable server is then a Fault. Otherwise it is skipped and `status` says so. */
  required?: boolean
  connectMs?: number
  callMs?: number
  /** Where approved definitions are kept. Default: in memory, so the first sight of each process is the approved one. */
  pins?: Pins
  /** Effect classes by the server's own names. What is not named is `once`. */
  effects?: Readonly<Record<string, EffectClass>>
  /** Believe `readOnlyHint` and `idempotentHint`. They are the server's own words, so this trusts the server. */
  trustAnnotations?: boolean
  /** Default: `ask`, and `auto` for tools that are `read`. */
  approval?: Approval
  /** Add what the server says about itself to the instructions of every run. Pinned like a tool. Default: no. */
  instructions?: boolean
}>

export type McpStdioOptions = Common &
  Frozen<{
    command: string
    args?: readonly string[]
    /** On top of a short list that is let through (PATH, HOME, LANG…). Nothing else is inherited. */
    env?: Readonly<Record<string, string>>
    cwd?: string
  }>

export type McpHttpOptions = Common &
  Frozen<{
    url: string
    headers?: Readonly<Record<string, string>>
    /** `sse` is the old transport, for servers that have no other. Default: `http`. */
    transport?: 'http' | 'sse'
  }>

export type McpOptions = McpStdioOptions | McpHttpOptions

const COMMON: Checks<Common> = {
  name: needed(text),
  tools: listOf(filled),
  required: flag,
  connectMs: wait,
  callMs: wait,
  pins: having('give one such as filePins("pins.json")', 'read', 'write'),
  effects: tableOf(effectCheck),
  trustAnnotations: flag,
  approval: approvalCheck,
  instructions: flag,
}
const checkStdio = optionsOf<McpStdioOptions>('mcpServer', {
  ...COMMON,
  command: needed(text, 'Give a command or a url.'),
  args: listOf(text),
  env: tableOf(text),
  cwd: filled,
})
const checkHttp = optionsOf<McpHttpOptions>('mcpServer', {
  ...COMMON,
  url: needed(text),
  headers: tableOf(text),
  transport: oneOf<'http' | 'sse'>({ http: true, sse: true }),
})

const NAME_CHARS_MAX = 64
const CONNECT_MS = 10_000
const CALL_MS = 30_000

export type Settings = {
  readonly options: McpOptions
  readonly connectMs: number
  readonly callMs: number
  /** A hash of what would be run or asked: another one is another server, whatever its name. */
  readonly place: string
  /** Values that must not be in a message: headers, and variables given. */
  readonly secrets: readonly string[]
}

export function settingsOf(options: McpOptions): Settings {
  checkNamed(options)
  const { name, connectMs = CONNECT_MS, callMs = CALL_MS } = options
  const bad = (why: string) => new Fault('invalid_config', `MCP server "${name}": ${why}`)
  if (!/\S/.test(name) || name.length > 32) throw bad('its name must have 1 to 32 characters.')
  if ('url' in options) checkUrl(options.url, bad)
  else if (!/\S/.test(options.command)) throw bad('its command is empty.')
  const given = Object.values(('url' in options ? options.headers : options.env) ?? {})
  const secrets = given.flatMap((value) => [value, ...value.split(/\s+/)]).filter((value) => value.length >= 6)
  return { options, connectMs, callMs, place: placeOf(options), secrets }
}

function checkNamed(options: McpOptions): void {
  const both = options !== null && typeof options === 'object' && 'url' in options && 'command' in options
  if (both) throw new Fault('invalid_config', `MCP server "${options.name}": give it a command or a url, not both.`)
  const remote = options !== null && typeof options === 'object' && 'url' in options
  const of = `MCP server "${String(options?.name)}"`
  if (remote) checkHttp(options, of)
  else checkStdio(options, of)
}

/** Only the names of variables and headers: a new token is the same place, and no secret is ever part of a pin. */
function placeOf(options: McpOptions): string {
  const place =
    'url' in options
      ? ['url', options.transport ?? 'http', options.url, namesOf(options.headers)]
      : ['command', options.command, options.args ?? [], options.cwd ?? null, namesOf(options.env)]
  return hash('sha256', JSON.stringify(place))
}

function namesOf(record: Readonly<Record<string, string>> = {}): readonly string[] {
  return Object.keys(record).toSorted()
}

function checkUrl(text: string, bad: (why: string) => Fault): void {
  if (!URL.canParse(text)) throw bad('its url cannot be read.')
  const { protocol, username, password } = new URL(text)
  if (protocol !== 'http:' && protocol !== 'https:') throw bad('its url must begin with http:// or https://.')
  if (username !== '' || password !== '') throw bad('put credentials into headers, not into the url.')
}

/** `server__tool` in the characters models accept. A name that is too long keeps its beginning and ends in a hash of the rest. */
export function offeredName(server: string, tool: string): string {
  const whole = `${cleaned(server)}__${cleaned(tool)}`
  if (whole.length <= NAME_CHARS_MAX) return whole
  return `${whole.slice(0, NAME_CHARS_MAX - 9)}_${hash('sha256', `${server}\0${tool}`).slice(0, 8)}`
}

function cleaned(text: string): string {
  return text.replace(/[^A-Za-z0-9_-]/g, '_')
}
