// `terret mcp call`: one call of one tool of an MCP server, by the person at the terminal. No session and no log has
// it.
import { judgeCall, type Tool } from '../../index.ts'
import type { Json } from '../../kernel/index.ts'
import { executeTool } from '../../tools/core/run-tool.ts'
import type { CommandArgs } from '../args.ts'
import { approvalForCall } from '../state/folder-agent.ts'
import { EXIT, CliError } from '../exit.ts'
import { makeHome } from '../state/cli-home.ts'
import { printJson, printQuoted } from '../present/print.ts'
import { listServerTools, findServer } from '../state/mcp-servers.ts'
import { standaloneContext } from '../state/standalone-context.ts'
import { readSetupHere } from '../state/folder-setup.ts'

export async function callToolOnce(
  call: CommandArgs,
  name: string,
  [word, text = '{}']: readonly string[],
): Promise<number> {
  if (word === undefined) throw new CliError(EXIT.usage, 'Usage: terret mcp call NAME TOOL JSON')
  const args = parseToolArgs(text)
  const setup = await readSetupHere()
  makeHome(setup.home)
  const server = await findServer(setup, name)
  try {
    const { tools, warnings } = await listServerTools(server, false)
    const tool = tools.find((each) => each.name === word || each.mcp?.tool === word)
    if (!tool) throw new CliError(EXIT.missing, missingToolText(name, word, tools, warnings))
    // Invalid arguments and calls that the policy denies are refused here, before the server sees them.
    const approval = await approvalForCall(tool, args)
    const asked = approval === 'never' ? approval : 'auto'
    const judged = await judgeCall(setup.policy, { tool: tool.name, args, effect: tool.effect, approval: asked })
    if (judged.type === 'deny') throw new CliError(EXIT.failed, judged.reason)
    const done = await executeTool(tool, args, standaloneContext('mcp-call', AbortSignal.timeout(CALL_MS)))
    const { ok, content, metadata } = done.type === 'undecided' ? UNDECIDED : done.output
    if (call.is('json')) printJson({ tool: tool.name, ok, content, metadata })
    else printQuoted(content)
    return ok ? EXIT.ok : EXIT.failed
  } finally {
    await server.close()
  }
}

const CALL_MS = 300_000
const UNDECIDED = { ok: false, content: '', metadata: {} }

function missingToolText(server: string, tool: string, tools: readonly Tool[], warnings: readonly string[]): string {
  if (tools.length === 0) return `MCP server "${server}" offers no tool now. ${warnings.join(' ')}`.trim()
  const names = tools.map(({ name, mcp }) => mcp?.tool ?? name).join(', ')
  return `MCP server "${server}" has no tool "${tool}". Choose one of: ${names}.`
}

function parseToolArgs(text: string): Json {
  try {
    const value = JSON.parse(text) as Json
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value
  } catch {}
  throw new CliError(EXIT.usage, 'The arguments must be one JSON object, such as \'{"path": "a.txt"}\'.')
}
