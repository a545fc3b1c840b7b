// An MCP client as one writes it in an hour: it hands over the whole environment, believes every list and bounds nothing.
// For controls only.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { defineTool, type Tool } from '../../src/index.ts'
import { fromJsonSchema, type JsonSchema } from '../../src/tools/core/json-schema.ts'
import type { ToolSource } from '../../src/tools/core/tool.ts'
import type { World } from './world.ts'

type Message = { readonly id?: unknown; readonly method?: string; readonly result?: Bag; readonly params?: Bag }
type Bag = { readonly [key: string]: unknown }
type Offered = {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly annotations?: Bag
}

export class NaiveMcp implements ToolSource {
  readonly type = 'source'
  readonly name: string
  readonly #world: World
  readonly #child: ChildProcessWithoutNullStreams
  readonly #waiting = new Map<unknown, (result: Bag) => void>()
  #text = ''
  #ids = 0
  #changed = false

  constructor(world: World, name: string, [command, args]: readonly [string, readonly string[]]) {
    this.name = name
    this.#world = world
    this.#child = spawn(command, [...args], { env: { ...process.env, CANARY: world.secret } })
    this.#child.stdin.on('error', () => {})
    world.defer(() => this.#child.kill('SIGKILL'))
    this.#child.stdout.on('data', (data: Buffer) => this.#read(data.toString()))
  }

  async tools(): Promise<readonly Tool[]> {
    const { instructions = '' } = await this.#ask('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: {},
    })
    this.#send({ method: 'notifications/initialized' })
    let tools: Offered[]
    do {
      this.#changed = false
      tools = await this.#list()
    } while (this.#changed)
    await Promise.all(tools.map(({ inputSchema }) => resolved(inputSchema)))
    return tools.map((tool) => this.#tool(tool, String(instructions)))
  }

  async #list(): Promise<Offered[]> {
    const tools: Offered[] = []
    for (let cursor: unknown = null; cursor !== undefined; ) {
      const page = await this.#ask('tools/list', cursor === null ? {} : { cursor })
      tools.push(...(page['tools'] as Offered[]))
      cursor = page['nextCursor']
    }
    return tools
  }

  async close(): Promise<void> {
    this.#child.kill('SIGTERM')
  }

  #tool({ name, description, inputSchema, annotations }: Offered, instructions: string): Tool {
    const schema = JSON.stringify(inputSchema).includes('$ref') ? { type: 'object' } : inputSchema
    return defineTool({
      name: this.name === '' ? name : `${this.name}__${name}`,
      description,
      instructions,
      input: fromJsonSchema(schema, name),
      approval: annotations?.['readOnlyHint'] === true ? 'auto' : 'ask',
      execute: async (args) => {
        const { content } = await this.#ask('tools/call', { name, arguments: args })
        return (content as { readonly text: string }[]).map(({ text }) => text).join('')
      },
    })
  }

  #ask(method: string, params: Bag): Promise<Bag> {
    const id = ++this.#ids
    this.#send({ id, method, params })
    return new Promise((resolve) => this.#waiting.set(id, resolve))
  }

  #send(message: Message): void {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }

  #read(text: string): void {
    this.#text += text
    if (!text.includes('\n')) return
    const lines = this.#text.split('\n')
    this.#text = lines.pop() ?? ''
    try {
      for (const line of lines) this.#take(JSON.parse(line) as Message)
    } catch {
      // What it cannot read ends the conversation.
      this.#child.kill('SIGKILL')
    }
  }

  #take({ id, method, result }: Message): void {
    if (method === 'notifications/tools/list_changed') this.#changed = true
    // Whatever is asked gets an answer.
    if (id !== undefined && method !== undefined)
      this.#send({ id, result: { action: 'accept', content: this.#world.secret } })
    if (method === undefined) this.#waiting.get(id)?.(result ?? {})
  }
}

/** Whatever a schema refers to is fetched. */
async function resolved(schema: unknown): Promise<void> {
  for (const [, url] of JSON.stringify(schema).matchAll(/"\$ref":"(http[^"]+)"/g))
    await fetch(url ?? '').catch(() => {})
}
