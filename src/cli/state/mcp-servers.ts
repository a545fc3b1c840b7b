// The user's MCP servers, made from the configuration. `mcp add` and `doctor` connect once and list the tools.
import type { Tool } from '../../index.ts'
import type { McpOptions, McpServer } from '../../tools/index.ts'
import { oneLine } from '../../view/clean.ts'
import type { McpEntry } from './config.ts'
import { exitForError, EXIT, CliError } from '../exit.ts'
import type { Environment } from './cli-home.ts'
import type { FolderSetup } from './folder-setup.ts'
import { terretCommand } from '../present/print.ts'

export type McpServers = {
  readonly servers: readonly McpServer[]
  /** Why optional servers are left out, one line each. */
  readonly troubles: readonly string[]
}

/** Only the user's configuration names servers. An invalid one is left out unless it is required. */
export async function makeServers(setup: FolderSetup): Promise<McpServers> {
  const servers: McpServer[] = []
  const troubles: string[] = []
  for (const [name, entry] of Object.entries(setup.settings.mcp ?? {})) {
    try {
      servers.push(await makeServer(setup, name, entry))
    } catch (error) {
      if (entry.required) throw error
      troubles.push(`${exitForError(error).text} Its tools are left out.`)
    }
  }
  return { servers, troubles }
}

/** The server with this name, as runs use it. */
export function findServer(setup: FolderSetup, name: string): Promise<McpServer> {
  const servers = setup.settings.mcp ?? {}
  const entry = Object.hasOwn(servers, name) ? servers[name] : undefined
  if (!entry)
    throw new CliError(EXIT.missing, `There is no MCP server "${name}". \`${terretCommand`mcp list`}\` shows them.`)
  return makeServer(setup, name, entry)
}

/** In mode `ask` every call is asked about, whatever the server says of its tools. */
export async function makeServer({ mode, env, home }: FolderSetup, name: string, entry: McpEntry): Promise<McpServer> {
  const { filePins, mcpServer } = await import('../../tools/index.ts')
  const pins = filePins(home.pins)
  return mcpServer(fillVariables(entry, { name, pins, ...(mode === 'ask' ? { approval: 'ask' } : {}) }, env))
}

type SharedOptions = Pick<McpOptions, 'name' | 'pins' | 'approval'>

/** Replaces `${NAME}` in variables and headers, so that no secret has to be in the file. */
function fillVariables(entry: McpEntry, shared: SharedOptions, env: Environment): McpOptions {
  const valueOf = (_: string, variable: string): string => {
    const value = env[variable]
    if (value !== undefined) return value
    throw new CliError(
      EXIT.config,
      `MCP server "${shared.name}" needs the variable ${variable}, which is not set. Set it.`,
    )
  }
  const fill = (record: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
    Object.fromEntries(Object.entries(record).map(([key, text]) => [key, text.replace(/\$\{(\w+)\}/g, valueOf)]))
  const { env: variables, headers, ...rest } = entry
  const given = {
    ...rest,
    ...(variables ? { env: fill(variables) } : {}),
    ...(headers ? { headers: fill(headers) } : {}),
  }
  // Safe: the check of the file requires a command or a url, and not both.
  return { ...shared, ...given } as McpOptions
}

/** Starting a package takes a while if it must be downloaded first. */
const TRY_MS = 60_000

export const timerClock = {
  now: () => Date.now(),
  timer: (ms: number, fire: () => void) => {
    const handle = setTimeout(fire, ms)
    return () => clearTimeout(handle)
  },
}

/** Connects and lists the tools. Never throws: errors are in the status of the server. */
export async function connectServer(server: McpServer): Promise<void> {
  try {
    await server.tools(AbortSignal.timeout(TRY_MS), timerClock)
  } catch {}
}

/**
 * The tools of a server as runs have them, and warnings about missing ones. Never throws; closes the server unless told
 * not to.
 */
export async function listServerTools(
  server: McpServer,
  closes = true,
): Promise<{ readonly tools: readonly Tool[]; readonly warnings: readonly string[] }> {
  try {
    const tools = await server.tools(AbortSignal.timeout(TRY_MS), timerClock)
    return { tools, warnings: server.warnings?.() ?? [] }
  } catch (error) {
    return { tools: [], warnings: [exitForError(error).text] }
  } finally {
    if (closes) await server.close()
  }
}

export type ServerTrial = {
  readonly state: 'usable' | 'changed' | 'broken'
  readonly tools: readonly string[]
  /** The problems of the server or of its tools. */
  readonly detail: string
}

/** Connects once, and closes the connection again. */
export async function tryConnection(server: McpServer): Promise<ServerTrial> {
  try {
    await connectServer(server)
    const { state, tools, troubles } = server.status()
    const silent = `It did not answer within ${TRY_MS / 1_000} s.`
    const detail = troubles.map((text) => oneLine(text, 600)).join(' ')
    if (state === 'connected' || state === 'changed')
      return { state: state === 'connected' ? 'usable' : 'changed', tools, detail }
    return { state: 'broken', tools: [], detail: detail === '' ? silent : detail }
  } finally {
    await server.close()
  }
}

const NAMED_MAX = 20

/** `2 tools: x__a, x__b`. */
export function toolNamesText(tools: readonly string[]): string {
  const more = tools.length > NAMED_MAX ? ` and ${tools.length - NAMED_MAX} more` : ''
  const names = tools.slice(0, NAMED_MAX).map((name) => oneLine(name, 80))
  return tools.length === 0
    ? 'no tools'
    : `${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}: ${names.join(', ')}${more}`
}
