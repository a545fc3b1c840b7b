// The options of one MCP server, checked once, and the names of its tools. It starts nothing and asks nothing.
import { hash } from 'node:crypto'
import type { EffectClass, Frozen } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import {
  type Checks,
  nonEmptyCheck,
  flagCheck,
  methodsCheck,
  listCheck,
  requiredCheck,
  oneOf,
  optionsChecker,
  tableCheck,
  textCheck,
  waitCheck,
} from '../../options.ts'
import type { McpPins } from './mcp-pins.ts'
import { type Approval, approvalCheck, effectCheck } from '../core/tool.ts'

type McpCommonOptions = Frozen<{
  /** The prefix of its tools' names: `name__tool`. */
  name: string
  /** The tools to offer, by the server's own names. Missing: all. Empty: none. */
  tools?: readonly string[]
  /**
   * A run cannot do without this server: if it is unreachable, that is a Fault. Otherwise it is skipped and `status`
   * says so.
   */
  required?: boolean
  /** How long to wait for a connection or a list, in ms. Default 10,000. */
  connectMs?: number
  /** How long to wait for the answer of a call, in ms. Default 30,000. */
  callMs?: number
  /**
   * Where approved definitions are kept. Default: in memory, so the first definition that each process sees is the
   * approved one.
   */
  pins?: McpPins
  /** Effect classes by the server's own names. A tool that is not named is `once`. */
  effects?: Readonly<Record<string, EffectClass>>
  /** Believe `readOnlyHint` and `idempotentHint`. The server sets them itself, so this trusts the server. */
  trustAnnotations?: boolean
  /** Default: `ask`, and `auto` for tools that are `read`. */
  approval?: Approval
  /** Add the server's own instructions to those of every run. They are pinned like a tool. Default: no. */
  instructions?: boolean
}>

/** Options of `mcpServer` for a program that is started here. */
export type McpStdioOptions = McpCommonOptions &
  Frozen<{
    /** The program of the server. */
    command: string
    /** Its arguments. */
    args?: readonly string[]
    /** Added to a short list of allowed variables (PATH, HOME, LANG…). No other variables are inherited. */
    env?: Readonly<Record<string, string>>
    /** The folder that it runs in. Default: that of the process. */
    cwd?: string
  }>

/** Options of `mcpServer` for a server that is reached over HTTP. */
export type McpHttpOptions = McpCommonOptions &
  Frozen<{
    /** The address of the server, with `http` or `https`. */
    url: string
    /** Headers of every request. Their values are in no message. */
    headers?: Readonly<Record<string, string>>
    /** `sse` is the old transport, for servers that have no other. Default: `http`. */
    transport?: 'http' | 'sse'
  }>

/** Options of `mcpServer`: a program to start, or an address. */
export type McpOptions = McpStdioOptions | McpHttpOptions

const COMMON: Checks<McpCommonOptions> = {
  name: requiredCheck(textCheck),
  tools: listCheck(nonEmptyCheck),
  required: flagCheck,
  connectMs: waitCheck,
  callMs: waitCheck,
  pins: methodsCheck('give one such as filePins("pins.json")', 'read', 'write'),
  effects: tableCheck(effectCheck),
  trustAnnotations: flagCheck,
  approval: approvalCheck,
  instructions: flagCheck,
}
const checkStdio = optionsChecker<McpStdioOptions>('mcpServer', {
  ...COMMON,
  command: requiredCheck(textCheck, 'Give a command or a url.'),
  args: listCheck(textCheck),
  env: tableCheck(textCheck),
  cwd: nonEmptyCheck,
})
const checkHttp = optionsChecker<McpHttpOptions>('mcpServer', {
  ...COMMON,
  url: requiredCheck(textCheck),
  headers: tableCheck(textCheck),
  transport: oneOf<'http' | 'sse'>({ http: true, sse: true }),
})

const NAME_CHARS_MAX = 64
const CONNECT_MS = 10_000
const CALL_MS = 30_000

export type McpSettings = {
  readonly options: McpOptions
  readonly connectMs: number
  readonly callMs: number
  /** A hash of the command or URL: a different one means a different server, whatever its name. */
  readonly place: string
  /** Values that must not appear in messages: headers, and the given variables. */
  readonly secrets: readonly string[]
}

export function readMcpSettings(options: McpOptions): McpSettings {
  checkMcpOptions(options)
  const { name, connectMs = CONNECT_MS, callMs = CALL_MS } = options
  const bad = (why: string) => new Fault('invalid_config', `MCP server "${name}": ${why}`)
  if (!/\S/.test(name) || name.length > 32) throw bad('its name must have 1 to 32 characters.')
  if ('url' in options) checkUrl(options.url, bad)
  else if (!/\S/.test(options.command)) throw bad('its command is empty.')
  const given = Object.values(('url' in options ? options.headers : options.env) ?? {})
  const secrets = given.flatMap((value) => [value, ...value.split(/\s+/)]).filter((value) => value.length >= 6)
  return { options, connectMs, callMs, place: placeOfServer(options), secrets }
}

function checkMcpOptions(options: McpOptions): void {
  const both = options !== null && typeof options === 'object' && 'url' in options && 'command' in options
  if (both) throw new Fault('invalid_config', `MCP server "${options.name}": give it a command or a url, not both.`)
  const remote = options !== null && typeof options === 'object' && 'url' in options
  const of = `MCP server "${String(options?.name)}"`
  if (remote) checkHttp(options, of)
  else checkStdio(options, of)
}

/**
 * Hashes only the names of variables and headers: a new token does not change the place, and no secret is part of a
 * pin.
 */
function placeOfServer(options: McpOptions): string {
  const place =
    'url' in options
      ? ['url', options.transport ?? 'http', options.url, sortedNames(options.headers)]
      : ['command', options.command, options.args ?? [], options.cwd ?? null, sortedNames(options.env)]
  return hash('sha256', JSON.stringify(place))
}

function sortedNames(record: Readonly<Record<string, string>> = {}): readonly string[] {
  return Object.keys(record).toSorted()
}

function checkUrl(text: string, bad: (why: string) => Fault): void {
  if (!URL.canParse(text)) throw bad('its url cannot be read.')
  const { protocol, username, password } = new URL(text)
  if (protocol !== 'http:' && protocol !== 'https:') throw bad('its url must begin with http:// or https://.')
  if (username !== '' || password !== '') throw bad('put credentials into headers, not into the url.')
}

/** Builds `server__tool` from the characters that models accept. A name that is too long is cut and ends in a hash. */
export function offeredName(server: string, tool: string): string {
  const whole = `${cleanName(server)}__${cleanName(tool)}`
  if (whole.length <= NAME_CHARS_MAX) return whole
  return `${whole.slice(0, NAME_CHARS_MAX - 9)}_${hash('sha256', `${server}\0${tool}`).slice(0, 8)}`
}

function cleanName(text: string): string {
  return text.replace(/[^A-Za-z0-9_-]/g, '_')
}
