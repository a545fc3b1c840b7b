// A stage for tests of MCP servers: a folder that tells the odd server what to be, and a way to call tools as the harness does.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Json } from '../../src/kernel/content.ts'
import type { Clock } from '../../src/ports/system.ts'
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { type McpServer, type McpStdioOptions, mcpServer } from '../../src/tools/mcp/mcp-server.ts'
import { type ToolRunEnd, executeTool } from '../../src/tools/core/run-tool.ts'
import type { Tool, ToolContext } from '../../src/tools/core/tool.ts'
import { toolContext } from './context.ts'

const odd = join(import.meta.dirname, 'mcp-servers', 'odd.mjs')
export const never = new AbortController().signal

export type Definition = { readonly name: string; readonly [key: string]: unknown }

export function definition(name: string, more: Readonly<Record<string, unknown>> = {}): Definition {
  return { name, description: `Does ${name}`, inputSchema: { type: 'object' }, ...more }
}

export class McpBench {
  readonly folder = mkdtempSync(join(tmpdir(), 'terret-mcp-'))
  readonly #servers: McpServer[] = []

  /** What the odd server lists from now on, and how else it behaves. */
  lists(tools: readonly (string | Definition)[], more: Readonly<Record<string, unknown>> = {}): void {
    const definitions = tools.map((tool) => (typeof tool === 'string' ? definition(tool) : tool))
    writeFileSync(join(this.folder, 'tools.json'), JSON.stringify({ tools: definitions, ...more }))
  }

  server(options: Partial<McpStdioOptions> = {}): McpServer {
    return this.keep(mcpServer({ name: 'odd', command: process.execPath, args: [odd, this.folder], ...options }))
  }

  /** Closed with the bench. */
  keep(server: McpServer): McpServer {
    this.#servers.push(server)
    return server
  }

  /** What the server has written down: its starts, lists and calls. */
  get log(): readonly string[] {
    try {
      return readFileSync(join(this.folder, 'log'), 'utf8').trim().split('\n')
    } catch {
      return []
    }
  }

  count(word: string): number {
    return this.log.filter((line) => line.startsWith(word)).length
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()))
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export function toolsOf(server: McpServer, clock: Clock = runtimeClock, signal = never): Promise<readonly Tool[]> {
  return server.tools(signal, clock)
}

export async function namesOf(server: McpServer, clock: Clock = runtimeClock): Promise<readonly string[]> {
  return (await toolsOf(server, clock)).map(({ name }) => name)
}

export type Called = Exclude<ToolRunEnd, { type: 'undecided' }>

/** A call of a tool by its offered name, from the list as it is or from one that a run froze. */
export async function call(
  from: McpServer | readonly Tool[],
  name: string,
  args: Json = {},
  context: ToolContext = toolContext(),
): Promise<Called> {
  const tools = 'tools' in from ? await toolsOf(from) : from
  const tool = tools.find((one) => one.name === name)
  if (!tool) throw new Error(`no tool ${name} among ${tools.map((one) => one.name).join(', ')}`)
  const done = await executeTool(tool, args, context)
  if (done.type === 'undecided') throw new Error('only a reconcile is undecided')
  return done
}

/** Moves only when told to. */
export class HandClock implements Clock {
  #now = 1_000_000
  now = (): number => this.#now
  timer = (ms: number, fire: () => void): (() => void) => runtimeClock.timer(ms, fire)
  advance(ms: number): void {
    this.#now += ms
  }
}
