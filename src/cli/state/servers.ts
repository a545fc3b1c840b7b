// The user's MCP servers, made from the configuration. `mcp add` and `doctor` connect once and list the tools.
import type { Tool } from '../../index.ts'
import type { McpOptions, McpServer } from '../../tools/index.ts'
import { oneLine } from '../../view/clean.ts'
import type { McpEntry } from './config.ts'
import { endOf, EXIT, Refusal } from '../exit.ts'
import type { Environment } from './home.ts'
import type { Setup } from './setup.ts'
import { typed } from '../present/print.ts'

export type Servers = {
  readonly servers: readonly McpServer[]
  /** Why optional servers are left out, one line each. */
  readonly troubles: readonly string[]
}

/** Only the user's configuration names servers. An invalid one is left out unless it is required. */
export async function serversFor(setup: Setup): Promise<Servers> {
  const servers: McpServer[] = []
  const troubles: string[] = []
  for (const [name, entry] of Object.entries(setup.settings.mcp ?? {})) {
    try {
      servers.push(await serverOf(setup, name, entry))
    } catch (error) {
      if (entry.required) throw error
      troubles.push(`${endOf(error).text} Its tools are left out.`)
    }
  }
  return { servers, troubles }
}

/** The server of this name, as runs would use it. */
export function serverNamed(setup: Setup, name: string): Promise<McpServer> {
  const servers = setup.settings.mcp ?? {}
  const entry = Object.hasOwn(servers, name) ? servers[name] : undefined
  if (!entry) throw new Refusal(EXIT.missing, `There is no MCP server "${name}". \`${typed`mcp list`}\` shows them.`)
  return serverOf(setup, name, entry)
}

/** In mode `ask` every call is asked, whatever the server claims about its tools. */
export async function serverOf({ mode, env, home }: Setup, name: string, entry: McpEntry): Promise<McpServer> {
  const { filePins, mcpServer } = await import('../../tools/index.ts')
  const pins = filePins(home.pins)
  return mcpServer(placed(entry, { name, pins, ...(mode === 'ask' ? { approval: 'ask' } : {}) }, env))
}

type Shared = Pick<McpOptions, 'name' | 'pins' | 'approval'>

/** Replaces `${NAME}` in variables and headers, so that no secret has to be in the file. */
function placed(entry: McpEntry, shared: Shared, env: Environment): McpOptions {
  const valueOf = (_: string, variable: string): string => {
    const value = env[variable]
    if (value !== undefined) return value
    throw new Refusal(
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

/** Starting a package that has to be fetched first takes a while. */
const TRY_MS = 60_000

export const clock = {
  now: () => Date.now(),
  timer: (ms: number, fire: () => void) => {
    const handle = setTimeout(fire, ms)
    return () => clearTimeout(handle)
  },
}

/** Connects and lists the tools. Never throws: errors are in the status of the server. */
export async function look(server: McpServer): Promise<void> {
  try {
    await server.tools(AbortSignal.timeout(TRY_MS), clock)
  } catch {}
}

/** The tools of a server as runs would have them, and what is missing of it. Never throws; closes the server unless told not to. */
export async function listedTools(
  server: McpServer,
  closes = true,
): Promise<{ readonly tools: readonly Tool[]; readonly warnings: readonly string[] }> {
  try {
    const tools = await server.tools(AbortSignal.timeout(TRY_MS), clock)
    return { tools, warnings: server.warnings?.() ?? [] }
  } catch (error) {
    return { tools: [], warnings: [endOf(error).text] }
  } finally {
    if (closes) await server.close()
  }
}

export type Tried = {
  readonly state: 'usable' | 'changed' | 'broken'
  readonly tools: readonly string[]
  /** The problems of the server or of its tools. */
  readonly detail: string
}

/** One connection, closed again. */
export async function tried(server: McpServer): Promise<Tried> {
  try {
    await look(server)
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
export function toolsText(tools: readonly string[]): string {
  const more = tools.length > NAMED_MAX ? ` and ${tools.length - NAMED_MAX} more` : ''
  const names = tools.slice(0, NAMED_MAX).map((name) => oneLine(name, 80))
  return tools.length === 0
    ? 'no tools'
    : `${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}: ${names.join(', ')}${more}`
}
