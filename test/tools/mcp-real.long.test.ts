// MCP servers of other authors: the official ones from npm on each transport, and one of the newest revision.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { mcpServer } from '../../src/tools/mcp/mcp-server.ts'
import { processesWith } from './box.ts'
import { toolContext } from './context.ts'
import { call, McpBench, namesOf, toolsOf } from './mcp-bench.ts'

const require = createRequire(import.meta.url)
const everything = require.resolve('@modelcontextprotocol/server-everything/dist/index.js')
const filesystem = require.resolve('@modelcontextprotocol/server-filesystem/dist/index.js')
const memory = require.resolve('@modelcontextprotocol/server-memory/dist/index.js')
const newest = join(import.meta.dirname, 'mcp-servers', 'newest.mjs')
const node = process.execPath

let bench: McpBench
let started: ChildProcess[]
beforeEach(() => {
  bench = new McpBench()
  started = []
})
afterEach(async () => {
  await bench.close()
  for (const child of started) child.kill('SIGKILL')
})

describe('the official servers', () => {
  it('B-MCP-90: everything, on stdio: every shape of result, and nothing of ours in its environment', async () => {
    const server = bench.keep(mcpServer({ name: 'all', command: node, args: [everything, 'stdio'] }))
    const tools = await toolsOf(server)
    expect(tools.length).toBeGreaterThan(10)
    expect(server.status()).toMatchObject({ state: 'connected', troubles: [] })
    expect((await call(tools, 'all__echo', { message: 'hi' })).output.content).toBe('Echo: hi')
    expect(
      JSON.parse((await call(tools, 'all__get-structured-content', { location: 'Chicago' })).output.content),
    ).toHaveProperty('temperature')
    const kept = new Map<string, string>()
    const image = await call(tools, 'all__get-tiny-image', {}, toolContext({ kept }))
    expect(image.output.metadata).toMatchObject({ attachments: [{ type: 'image', media: 'image/png' }] })
    expect(kept.size).toBe(1)
    expect((await call(tools, 'all__get-sum', { a: 'x' })).output).toMatchObject({
      ok: false,
      metadata: { error_type: 'MCPToolError' },
    })
    expect((await call(tools, 'all__get-env')).output.content).not.toContain('VITEST')
  })

  it('B-MCP-91: filesystem, on stdio: it reads and writes in its folder, and its refusals come back as failures', async () => {
    const folder = join(realpathSync(bench.folder), 'files')
    mkdirSync(folder)
    writeFileSync(join(folder, 'a.txt'), 'from the disk')
    const server = bench.keep(
      mcpServer({ name: 'fs', command: node, args: [filesystem, folder], trustAnnotations: true }),
    )
    const tools = await toolsOf(server)
    expect(tools.find(({ name }) => name === 'fs__read_text_file')?.effect).toBe('read')
    expect(tools.find(({ name }) => name === 'fs__edit_file')?.effect).toBe('once')
    expect((await call(tools, 'fs__read_text_file', { path: join(folder, 'a.txt') })).output.content).toContain(
      'from the disk',
    )
    await call(tools, 'fs__write_file', { path: join(folder, 'b.txt'), content: 'written' })
    expect(readFileSync(join(folder, 'b.txt'), 'utf8')).toBe('written')
    const outside = await call(tools, 'fs__read_text_file', { path: '/etc/passwd' })
    expect(outside.output).toMatchObject({ ok: false, metadata: { retry: true, error_type: 'MCPToolError' } })
  })

  it('B-MCP-92: memory, on stdio: what one call stores the next one finds, also after a new start', async () => {
    const env = { MEMORY_FILE_PATH: join(bench.folder, 'memory.jsonl') }
    const server = bench.keep(mcpServer({ name: 'memory', command: node, args: [memory], env }))
    const entities = [{ name: 'Terret', entityType: 'ring', observations: ['guides the reins'] }]
    const made = await call(server, 'memory__create_entities', { entities })
    expect(made.type).toBe('ok')
    await server.close()
    expect((await call(server, 'memory__search_nodes', { query: 'reins' })).output.content).toContain('Terret')
    await server.close()
    expect(processesWith(memory)).toEqual([])
  })

  it.each([
    ['streamableHttp', 'mcp', 'http'],
    ['sse', 'sse', 'sse'],
  ] as const)('B-MCP-93: everything, over %s', async (mode, path, transport) => {
    const port = await freePort()
    await ready(spawn(node, [everything, mode], { env: { ...process.env, PORT: String(port) } }), /port/)
    const server = bench.keep(mcpServer({ name: 'all', url: `http://127.0.0.1:${port}/${path}`, transport }))
    expect(await namesOf(server)).toContain('all__echo')
    expect((await call(server, 'all__echo', { message: 'hi' })).output.content).toBe('Echo: hi')
    expect((await call(server, 'all__get-resource-links', { count: 2 })).output.content).toMatch(
      /\[resource .*demo:\/\//,
    )
    expect(server.status().state).toBe('connected')
  })
})

describe('a server of the newest revision', () => {
  it.each(['stdio', 'http'])('B-MCP-94: that knows no handshake is spoken to without one, on %s', async (mode) => {
    const server = bench.keep(mode === 'stdio' ? stdio() : mcpServer({ name: 'new', url: await overHttp() }))
    expect(await namesOf(server)).toEqual(['new__double', 'new__list', 'new__ask'])
    expect((await call(server, 'new__double', { n: 21 })).output.content).toBe('42')
    // B-MCPOUT-3: structured content need not be an object here.
    expect(JSON.parse((await call(server, 'new__list')).output.content)).toEqual([1, 2])
    const asked = await call(server, 'new__ask')
    expect(asked.output).toMatchObject({ ok: false, metadata: { error_type: 'MCPError' } })
    expect(asked.output.content).toMatch(/do not declare the required capability/)
  })
})

function stdio() {
  return mcpServer({ name: 'new', command: node, args: [newest, 'stdio'] })
}

async function overHttp(): Promise<string> {
  const port = await ready(spawn(node, [newest, 'http']), /\d+/)
  return `http://127.0.0.1:${port}/mcp`
}

/** What it printed once it is ready. Killed after the test. */
function ready(child: ChildProcess, sign: RegExp): Promise<string> {
  started.push(child)
  return new Promise((resolve, reject) => {
    let said = ''
    const hear = (chunk: Buffer): void => {
      said += chunk.toString()
      const found = sign.exec(said)
      if (found) resolve(found[0])
    }
    child.stdout?.on('data', hear)
    child.stderr?.on('data', hear)
    child.once('exit', () => reject(new Error(`it ended: ${said}`)))
  })
}

function freePort(): Promise<number> {
  const probe = createServer()
  return new Promise((resolve, reject) => {
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
