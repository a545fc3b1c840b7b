// `terret mcp`: adds, lists and removes the MCP servers of the user configuration, and approves their changes; `serve`
// makes this program a server. `add` and `approveChanges` connect to a server. Only names of variables are written, never
// their values.
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { CommandArgs } from '../args.ts'
import { oneLine, safeJson } from '../../view/clean.ts'
import { type McpEntry, parseFields, readSettings } from '../state/config.ts'
import { EXIT, CliError } from '../exit.ts'
import { makeFolder } from '../../stores/plan/make-folder.ts'
import { findHome, makeHome, replaceFile } from '../state/cli-home.ts'
import { fileErrorCode, readPlainFile } from '../state/plain-file.ts'
import { print, printJson, printQuoted, terretCommand, warn } from '../present/print.ts'
import {
  connectServer,
  findServer,
  makeServer,
  toolNamesText,
  type ServerTrial,
  tryConnection,
} from '../state/mcp-servers.ts'
import { readSetupHere } from '../state/folder-setup.ts'
import { SERVE_FLAGS } from '../table.ts'
import { isObject } from '../../view/untrusted-json.ts'

export async function mcpCommand(call: CommandArgs): Promise<number> {
  const [verb, name, ...command] = call.words
  checkFlags(call, verb)
  if (verb === 'serve' && name === undefined) return (await import('../serve/serve-mcp.ts')).serveMcp(call)
  const file = join(findHome().config, 'config.json')
  const servers = readSettings(file)?.mcp ?? {}
  if (verb === 'list') return listServers(call, servers)
  if (verb === 'approve' && name !== undefined) return approveChanges(call, name)
  if (verb === 'call' && name !== undefined) return (await import('./mcp-call.ts')).callToolOnce(call, name, command)
  if (name === undefined || (verb !== 'add' && verb !== 'remove'))
    throw new CliError(
      EXIT.usage,
      'Usage: terret mcp add NAME -- COMMAND…, list, call NAME TOOL JSON, approve NAME, remove NAME, or serve',
    )
  const known = Object.hasOwn(servers, name)
  if (verb === 'remove' && !known)
    throw new CliError(EXIT.missing, `There is no MCP server "${name}". \`${terretCommand`mcp list`}\` shows them.`)
  if (verb === 'add' && known)
    throw new CliError(EXIT.conflict, `There is an MCP server "${name}" already. Remove it first.`)
  const entry = verb === 'add' ? entryFromFlags(call, name, command) : null
  if (entry) await checkEntry(name, entry)
  const found = entry && !call.is('unchecked') ? await tryBeforeAdding(name, entry) : null
  writeEntry(file, name, entry)
  if (call.is('json')) printJson({ name, server: entry, config: file, ...(found ? { tools: found.tools } : {}) })
  else for (const line of entry ? addedLines(name, found) : [`Removed ${oneLine(name)}.`]) print(line)
  return EXIT.ok
}

const ADD_FLAGS = ['url', 'env', 'header', 'required', 'unchecked']

/** The command table has the flags of all subcommands together, so flags of another subcommand are refused here. */
function checkFlags(call: CommandArgs, verb: string | undefined): void {
  const others = verb === 'serve' ? [...ADD_FLAGS, 'json'] : SERVE_FLAGS
  const wrong = others.find((flag) => call.is(flag) || call.text(flag) !== undefined || call.texts(flag).length > 0)
  if (wrong !== undefined) throw new CliError(EXIT.usage, `\`terret mcp ${verb ?? ''}\` has no flag --${wrong}.`)
}

/** A server that cannot be reached now would be missing in every run, so it is refused before anything is written. */
async function tryBeforeAdding(name: string, entry: McpEntry): Promise<ServerTrial> {
  const setup = await readSetupHere()
  const refused = (why: string): CliError => {
    const text = `MCP server "${name}" was not added. ${why.replace(/[^.!?]$/, '$&.')} Mend that, or add it as it is with --unchecked.`
    return new CliError(EXIT.failed, text)
  }
  const { command } = entry
  if (command !== undefined && !isProgram(command, setup.env['PATH'] ?? ''))
    throw refused(`There is no program "${command}" ${command.includes('/') ? 'there' : 'on your PATH'}.`)
  // Its tools are pinned in the data folder.
  makeHome(setup.home)
  const found = await tryConnection(await makeServer(setup, name, entry))
  if (found.state === 'broken') throw refused(found.detail)
  return found
}

function isProgram(command: string, path: string): boolean {
  const places = command.includes('/') ? [command] : path.split(delimiter).map((folder) => join(folder, command))
  return places.some((file) => {
    try {
      accessSync(file, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

function addedLines(name: string, found: ServerTrial | null): readonly string[] {
  const asked = 'Each of its calls is asked, unless your policy allows it.'
  if (!found) return [`Added ${oneLine(name)} without trying it. ${asked}`]
  if (found.state === 'changed') {
    const way = terretCommand`mcp approve ${oneLine(name)}`
    return [`Added ${oneLine(name)}. It is not what was approved under this name before. Look at it with: ${way}`]
  }
  const trouble = found.detail === '' ? [] : [`  ! ${found.detail}`]
  return [`Added ${oneLine(name)}. It offers ${toolNamesText(found.tools)}.`, ...trouble, asked]
}

/** Shows the server's changes since its first use, and approves them. */
async function approveChanges(call: CommandArgs, name: string): Promise<number> {
  const setup = await readSetupHere()
  const server = await findServer(setup, name)
  makeHome(setup.home)
  try {
    await connectServer(server)
    let changes = server.changes()
    for (let round = 0; changes.length > 0 && round < ROUNDS_MAX; round++) {
      for (const { tool, diff } of changes) {
        if (call.is('json')) printJson({ server: name, tool, diff })
        else {
          print(`${tool === null ? 'The server itself' : oneLine(tool)}:`)
          printQuoted(diff)
        }
        await server.approve(tool ?? undefined)
      }
      // A server at another address lists its tools only after the first approval.
      await connectServer(server)
      changes = server.changes()
    }
    const { state, troubles } = server.status()
    if (state !== 'connected')
      throw new CliError(EXIT.failed, `MCP server "${name}" cannot be used: ${troubles.join(' ')}`)
    if (!call.is('json')) print(`What ${oneLine(name)} says now is approved.`)
    return EXIT.ok
  } finally {
    await server.close()
  }
}

const ROUNDS_MAX = 3

function listServers(call: CommandArgs, servers: Readonly<Record<string, McpEntry>>): number {
  if (Object.keys(servers).length === 0 && !call.is('json'))
    warn(`No MCP server is configured yet. Add one with: ${terretCommand`mcp add`} NAME -- COMMAND…`)
  for (const [name, entry] of Object.entries(servers)) {
    if (call.is('json')) printJson({ name, ...entry })
    else print(`${oneLine(name)}  ${entry.url ?? oneLine(safeJson([entry.command, ...(entry.args ?? [])]))}`)
  }
  return EXIT.ok
}

function entryFromFlags(call: CommandArgs, name: string, [command, ...args]: readonly string[]): McpEntry {
  const url = call.text('url')
  const env = Object.fromEntries(call.texts('env').map((variable) => [variable, `\${${variable}}`]))
  const headers = Object.fromEntries(call.texts('header').map(parseHeader))
  const some = <T extends object>(field: string, value: T): object =>
    Object.keys(value).length > 0 ? { [field]: value } : {}
  if ((url === undefined) === (command === undefined))
    throw new CliError(
      EXIT.usage,
      `The command or address of the server is missing. Usage: terret mcp add ${name} -- COMMAND…, or --url URL`,
    )
  const required = call.is('required') ? { required: true } : {}
  if (url !== undefined) return { url, ...some('headers', headers), ...required }
  return { command: command ?? '', ...(args.length > 0 ? { args } : {}), ...some('env', env), ...required }
}

function parseHeader(text: string): readonly [string, string] {
  const [, name, variable] = /^([A-Za-z0-9-]+)=(\w+)$/.exec(text) ?? []
  if (name === undefined || variable === undefined)
    throw new CliError(EXIT.usage, `--header is NAME=VARIABLE, such as authorization=MY_TOKEN, not "${text}".`)
  return [name, `\${${variable}}`]
}

/** Refuses now an entry that the library would refuse later. Starts nothing. */
async function checkEntry(name: string, { url, command, args }: McpEntry): Promise<void> {
  const { mcpServer } = await import('../../tools/index.ts')
  mcpServer(url === undefined ? { name, command: command ?? '', args: args ?? [] } : { name, url })
}

/** Writes one entry. Every other field stays unchanged. */
function writeEntry(file: string, name: string, entry: McpEntry | null): void {
  const fields = existsSync(file) ? parseFields(file, readPlainFile(file) ?? '{}') : {}
  const servers = isObject(fields['mcp']) ? fields['mcp'] : {}
  const { [name]: _gone, ...others } = servers
  const next = { ...fields, mcp: entry ? { ...others, [name]: entry } : others }
  try {
    makeFolder(join(file, '..'))
    replaceFile(file, `${JSON.stringify(next, null, 2)}\n`)
  } catch (error) {
    throw new CliError(EXIT.config, `${file} cannot be written (${fileErrorCode(error)}). Make it writable.`)
  }
}
