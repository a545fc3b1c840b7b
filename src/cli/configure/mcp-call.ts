// `terret mcp call`: one call of one tool of an MCP server, by the person at the terminal. It is in no session and in no log.
import { hash } from 'node:crypto'
import { judgeCall, type Tool } from '../../index.ts'
import type { Json } from '../../kernel/index.ts'
import { execute } from '../../tools/core/run.ts'
import type { ToolContext } from '../../tools/core/tool.ts'
import type { Call } from '../args.ts'
import { approvalOf } from '../state/agent.ts'
import { EXIT, Refusal } from '../exit.ts'
import { makeHome } from '../state/home.ts'
import { printJson, printSaid } from '../present/print.ts'
import { clock, listedTools, serverNamed } from '../state/servers.ts'
import { setupHere } from '../state/setup.ts'

export async function callOnce(call: Call, name: string, [word, text = '{}']: readonly string[]): Promise<number> {
  if (word === undefined) throw new Refusal(EXIT.usage, 'Usage: terret mcp call NAME TOOL JSON')
  const args = argsIn(text)
  const setup = await setupHere()
  makeHome(setup.home)
  const server = await serverNamed(setup, name)
  try {
    const { tools, warnings } = await listedTools(server, false)
    const tool = tools.find((each) => each.name === word || each.mcp?.tool === word)
    if (!tool) throw new Refusal(EXIT.missing, missing(name, word, tools, warnings))
    // Arguments that do not fit are refused here, before the server sees them. So is what the policy denies.
    const approval = await approvalOf(tool, args)
    const asked = approval === 'never' ? approval : 'auto'
    const judged = await judgeCall(setup.policy, { tool: tool.name, args, effect: tool.effect, approval: asked })
    if (judged.type === 'deny') throw new Refusal(EXIT.failed, judged.reason)
    const done = await execute(tool, args, contextOf())
    const { ok, content, metadata } = done.type === 'undecided' ? UNDECIDED : done.output
    if (call.is('json')) printJson({ tool: tool.name, ok, content, metadata })
    else printSaid(content)
    return ok ? EXIT.ok : EXIT.failed
  } finally {
    await server.close()
  }
}

const UNDECIDED = { ok: false, content: '', metadata: {} }

function missing(server: string, tool: string, tools: readonly Tool[], warnings: readonly string[]): string {
  if (tools.length === 0) return `MCP server "${server}" offers no tool now. ${warnings.join(' ')}`.trim()
  const names = tools.map(({ name, mcp }) => mcp?.tool ?? name).join(', ')
  return `MCP server "${server}" has no tool "${tool}". Choose one of: ${names}.`
}

function argsIn(text: string): Json {
  try {
    const value = JSON.parse(text) as Json
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value
  } catch {}
  throw new Refusal(EXIT.usage, 'The arguments must be one JSON object, such as \'{"path": "a.txt"}\'.')
}

/** What a tool may use outside of any session: texts are kept until the command ends, and no model can be asked. */
function contextOf(): ToolContext {
  const kept = new Map<string, string>()
  const none = (): never => {
    throw new Refusal(EXIT.usage, 'This tool needs a session. Ask an agent to call it.')
  }
  return {
    session: 'mcp-call',
    call: '1.0',
    key: 'mcp-call:1.0',
    approved: true,
    signal: AbortSignal.timeout(CALL_MS),
    metadata: {},
    deps: undefined,
    clock,
    keep: (data, media = 'text/plain') => {
      const key = hash('sha256', data)
      if (typeof data === 'string') kept.set(key, data)
      return { type: 'blob', hash: key, bytes: Buffer.byteLength(data), media }
    },
    recall: (key) => Promise.resolve(kept.get(key) ?? null),
    tell: () => {},
    redact: (text) => text,
    askModel: none,
    secret: none,
    reveal: (text) => text,
  }
}

const CALL_MS = 300_000
