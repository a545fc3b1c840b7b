// MCP servers that an editor names. Each is a program or an address that would see the agent's work, so a person is
// asked about the exact server before it starts. Values of variables and headers may be secrets: only their names are
// shown.
import type { McpServer, PermissionOption } from '@agentclientprotocol/sdk'
import { createHash } from 'node:crypto'
import { Fault } from '../kernel/failure.ts'
import type { NamedServer } from './session-host.ts'
import type { Editor } from './editor.ts'
import { clean, oneLine } from '../view/clean.ts'
import { TITLE_CHARS_MAX } from './tool-call.ts'

const SERVERS_MAX = 50

export function parseServers(named: readonly McpServer[]): readonly NamedServer[] {
  if (named.length > SERVERS_MAX)
    throw new Fault('invalid_input', `At most ${SERVERS_MAX} MCP servers are taken. Name fewer.`)
  return named.map(parseServer)
}

function parseServer(server: McpServer): NamedServer {
  if ('url' in server) {
    const { type, name, url } = server
    return { type, name, url, headers: toRecord(server.headers) }
  }
  if (!('command' in server))
    throw new Fault('invalid_input', 'An MCP server has a command, or a url. Give one of them.')
  const { name, command, args } = server
  return { type: 'stdio', name, command, args, env: toRecord(server.env) }
}

function toRecord(pairs: readonly { readonly name: string; readonly value: string }[]): Record<string, string> {
  return Object.fromEntries(pairs.map(({ name, value }) => [name, value]))
}

/** The same server always has the same digest, whatever the order of its variables. */
function serverDigest(server: NamedServer, folder: string): string {
  const sorted = (table: Readonly<Record<string, string>>) =>
    Object.entries(table).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const place =
    server.type === 'stdio' ? [server.command, server.args, sorted(server.env)] : [server.url, sorted(server.headers)]
  return createHash('sha256')
    .update(JSON.stringify([folder, server.type, server.name, place]))
    .digest('hex')
}

/** Keeps, by digest, the servers allowed until this process ends. The caller keeps the answers of its session. */
export class ServerPermissions {
  readonly #always = new Set<string>()

  /**
   * Returns the servers that the person allows. Null: the question was withdrawn. An editor that cannot ask starts
   * none.
   */
  async ask(
    asking: ServerQuestion,
    servers: readonly NamedServer[],
    said: Map<string, boolean>,
  ): Promise<readonly NamedServer[] | null> {
    const allowed: NamedServer[] = []
    for (const server of servers) {
      const digest = serverDigest(server, asking.folder)
      const known = said.get(digest) ?? (this.#always.has(digest) ? true : undefined)
      const word = known ?? (await this.#word(asking, server, digest))
      if (word === null) return null
      said.set(digest, word)
      if (word) allowed.push(server)
    }
    return allowed
  }

  async #word(
    { editor, session, signal }: ServerQuestion,
    server: NamedServer,
    digest: string,
  ): Promise<boolean | null> {
    const options: readonly PermissionOption[] = [
      { optionId: `allow:${digest}`, name: 'Start it for this session', kind: 'allow_once' },
      { optionId: `always:${digest}`, name: 'Start it while this editor runs', kind: 'allow_always' },
      { optionId: `deny:${digest}`, name: 'Do not start it', kind: 'reject_once' },
    ]
    const toolCall = {
      toolCallId: `mcp:${digest.slice(0, 16)}`,
      title: oneLine(`Start MCP server ${server.name}`, TITLE_CHARS_MAX),
      kind: 'execute',
      status: 'pending',
      content: [{ type: 'content', content: { type: 'text', text: serverText(server) } }],
      rawInput: redactServer(server),
    } as const
    const chosen = await editor.choose(session, { ...toolCall, content: [...toolCall.content] }, options, signal)
    if (chosen.type !== 'chosen') return chosen.type === 'gone' ? null : false
    if (chosen.id.startsWith('always:')) this.#always.add(digest)
    return !chosen.id.startsWith('deny:')
  }
}

export type ServerQuestion = {
  readonly editor: Editor
  readonly session: string
  readonly folder: string
  readonly signal: AbortSignal
}

function redactServer(server: NamedServer): object {
  if (server.type === 'stdio') {
    const { name, command, args, env } = server
    return { name, command, args, env: Object.keys(env) }
  }
  const { type, name, url, headers } = server
  return { type, name, url, headers: Object.keys(headers) }
}

function serverText(server: NamedServer): string {
  const what =
    server.type === 'stdio' ? 'Your editor wants this program to run' : 'Your editor wants this server to be used'
  const line = server.type === 'stdio' ? JSON.stringify([server.command, ...server.args]) : server.url
  const names = Object.keys(server.type === 'stdio' ? server.env : server.headers)
  const kind = server.type === 'stdio' ? 'variables' : 'headers'
  const given = names.length === 0 ? '' : `\nIt gets the ${kind} ${names.join(', ')}.`
  return `${what}, with access to what the agent sends it:\n\n${clean(line)}\n${clean(given)}`
}
