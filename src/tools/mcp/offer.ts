// From what a server lists to what is offered: allowed, as approved, under a name of its own, with a schema that can be checked and
// words that can be read. A tool that fails any of this is left out and named; it never hides the others.
import { isDeepStrictEqual } from 'node:util'
import type { EffectClass, Json } from '../../kernel/content.ts'
import { compile, type JsonSchema } from '../core/json-schema.ts'
import type { RawTool } from './link.ts'
import { offeredName, type Settings } from './options.ts'
import { definitionOf, INSTRUCTIONS, type Pinned } from './pins.ts'
import { isHiding, shown, visible } from './text.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'
import { isObject } from '../../view/json.ts'

/** One call of one tool, as the run that makes it knows the tool. */
export type Run = {
  readonly tool: string
  readonly definition: string
  readonly effect: EffectClass
  readonly inputSchema: JsonSchema
  readonly args: Readonly<Record<string, unknown>>
  readonly context: ToolContext
}
type Offer = { readonly definition: string; readonly instructions: string; readonly tool: Tool }

const NAME_CHARS_MAX = 256
const DESCRIPTION_CHARS_MAX = 4_000
const INSTRUCTIONS_CHARS_MAX = 2_000
const TROUBLES_MAX = 50
/** What is written for readers, and may be cleaned without changing what is valid. */
const PROSE = new Set(['description', 'title', '$comment'])

export class Offers {
  readonly #settings: Settings
  readonly #pinned: Pinned
  readonly #run: (run: Run) => Promise<unknown>
  #offers: ReadonlyMap<string, Offer> = new Map()
  #troubles: string[] = []

  constructor(settings: Settings, pinned: Pinned, run: (run: Run) => Promise<unknown>) {
    this.#settings = settings
    this.#pinned = pinned
    this.#run = run
  }

  get names(): readonly string[] {
    return [...this.#offers.values()].map(({ tool }) => tool.name)
  }

  get troubles(): readonly string[] {
    return this.#troubles.slice(0, TROUBLES_MAX)
  }

  has(tool: string, definition: string): boolean {
    return this.#offers.get(tool)?.definition === definition
  }

  /** The same tool is the same object as long as nothing about it changes. */
  async take(listed: readonly RawTool[], instructions: string): Promise<readonly Tool[]> {
    this.#troubles = []
    const raw = this.#allowed(listed)
    const seen = this.#definitions(raw)
    const said = this.#settings.options.instructions ? instructions.trim() : ''
    if (said !== '') seen.set(INSTRUCTIONS, shown(said))
    const accepted = await this.#pinned.accept(seen)
    for (const { tool } of this.#pinned.changes) {
      if (tool !== null)
        this.#leaveOut(tool, 'it has changed since it was approved. Look at changes(), then approve() it')
    }
    let words = accepted.has(INSTRUCTIONS) ? this.#labelled(said) : ''
    const offers = new Map<string, Offer>()
    for (const [name, tool] of raw) {
      const definition = seen.get(name)
      if (definition === undefined || !accepted.has(name)) continue
      const offer = await this.#offer(tool, name, { definition, instructions: words })
      if (offer === null) continue
      offers.set(name, offer)
      words = ''
    }
    this.#offers = offers
    return [...offers.values()].map(({ tool }) => tool)
  }

  #allowed(listed: readonly RawTool[]): ReadonlyMap<string, RawTool> {
    const allow = this.#settings.options.tools
    const tools = new Map<string, RawTool[]>()
    for (const tool of listed) {
      const name = tool['name']
      if (typeof name !== 'string' || name === '' || name.length > NAME_CHARS_MAX || name === INSTRUCTIONS) {
        this.#leaveOut(String(name).slice(0, 40), 'it has no name that can be used')
        continue
      }
      if (allow && !allow.includes(name)) continue
      const offered = offeredName(this.#settings.options.name, name)
      tools.set(offered, [...(tools.get(offered) ?? []), tool])
    }
    const names = new Set([...tools.values()].flat().map(({ name }) => name))
    for (const name of allow ?? []) if (!names.has(name)) this.#leaveOut(name, 'the server does not have it')
    return new Map([...tools].flatMap(([offered, twins]) => this.#single(offered, twins)))
  }

  /** The one tool of an offered name. Of several none is offered, whatever their order: it is not clear which one is meant. */
  #single(offered: string, twins: readonly RawTool[]): readonly (readonly [string, RawTool])[] {
    const [first, ...more] = twins as readonly [RawTool, ...RawTool[]]
    if (more.every((tool) => isDeepStrictEqual(tool, first))) return [[String(first['name']), first]]
    for (const name of new Set(twins.map((tool) => String(tool['name'])))) {
      this.#leaveOut(name, `${twins.length} tools of the server would be named "${offered}"`)
    }
    return []
  }

  #definitions(raw: ReadonlyMap<string, RawTool>): Map<string, string> {
    const seen = new Map<string, string>()
    for (const [name, tool] of raw) {
      try {
        seen.set(name, definitionOf(tool))
      } catch (error) {
        this.#leaveOut(name, error instanceof Error ? error.message : 'it cannot be read')
      }
    }
    return seen
  }

  async #offer(raw: RawTool, name: string, text: Omit<Offer, 'tool'>): Promise<Offer | null> {
    const known = this.#offers.get(name)
    if (known?.definition === text.definition && known.instructions === text.instructions) return known
    try {
      return { ...text, tool: await this.#tool(raw, name, text) }
    } catch (error) {
      this.#leaveOut(name, error instanceof Error ? error.message : 'it cannot be used')
      return null
    }
  }

  async #tool(raw: RawTool, name: string, { definition, instructions }: Omit<Offer, 'tool'>): Promise<Tool> {
    const { options, connectMs, callMs, place } = this.#settings
    const offered = offeredName(options.name, name)
    const inputSchema = cleaned(raw['inputSchema'] ?? { type: 'object' }, '')
    if (!isObject(inputSchema)) throw new Error('its input schema is not an object')
    checkHeaders(inputSchema)
    await compile(inputSchema, offered)
    const effect = this.#effect(name, raw['annotations'])
    const words = [raw['description'], raw['title']].find((text) => typeof text === 'string' && text !== '')
    const tool = defineTool({
      name: offered,
      description: visible(typeof words === 'string' ? words : 'No description.', DESCRIPTION_CHARS_MAX),
      input: inputSchema,
      effect,
      // What may change something changes it before the next call of the reply looks.
      sequential: effect !== 'read',
      approval: options.approval ?? (effect === 'read' ? 'auto' : 'ask'),
      place: () => place,
      instructions,
      // The call itself is bounded by callMs; it may have to connect first.
      timeoutMs: connectMs + callMs,
      execute: (args: Json, context) => {
        return this.#run({ tool: name, definition, effect, inputSchema, args: isObject(args) ? args : {}, context })
      },
    })
    return { ...tool, kind: 'mcp', mcp: { server: options.name, tool: visible(name, NAME_CHARS_MAX) } }
  }

  /** Annotations are a stranger's word about itself. */
  #effect(name: string, annotations: unknown): EffectClass {
    const { effects = {}, trustAnnotations = false } = this.#settings.options
    const named = Object.hasOwn(effects, name) ? effects[name] : undefined
    if (named !== undefined) return named
    if (!trustAnnotations || !isObject(annotations)) return 'once'
    if (annotations['readOnlyHint'] === true) return 'read'
    return annotations['idempotentHint'] === true ? 'idempotent' : 'once'
  }

  #labelled(instructions: string): string {
    const { name } = this.#settings.options
    return `MCP server "${name}" says about its tools:\n${visible(instructions, INSTRUCTIONS_CHARS_MAX)}`
  }

  #leaveOut(tool: string, why: string): void {
    this.#troubles.push(visible(`Tool "${visible(tool, 80)}" is left out: ${why}.`, 400))
  }
}

/** What is prose loses its invisible characters. Anywhere else they are part of a value, so such a schema is refused. */
function cleaned(value: unknown, key: string): unknown {
  if (typeof value === 'string') {
    if (PROSE.has(key)) return visible(value, DESCRIPTION_CHARS_MAX)
    if (isHiding(value)) throw new Error('its input schema hides characters')
    return value
  }
  if (Array.isArray(value)) return value.map((item) => cleaned(item, ''))
  if (!isObject(value)) return value
  const entries = Object.entries(value).map(([name, item]): [string, unknown] => {
    if (isHiding(name)) throw new Error('its input schema hides characters')
    return [name, cleaned(item, name)]
  })
  return Object.fromEntries(entries)
}

// Arguments that a tool wants repeated as HTTP headers, which the newest revision allows: is its wish one that may be granted?
// The SDK sends them. A tool whose wish breaks the rules must not be offered.

const KEY = 'x-mcp-header'
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const TYPES: readonly unknown[] = ['string', 'integer', 'boolean']

/** Throws what is wrong with it. Only a property of an object, of a property…, may have a header, and each a name of its own. */
function checkHeaders(schema: unknown): void {
  const names = new Set<string>()
  const visit = (value: unknown, isProperty: boolean): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, false)
    if (!isObject(value)) return
    if (Object.hasOwn(value, KEY)) {
      const name = value[KEY]
      if (!isProperty || typeof name !== 'string' || !TOKEN.test(name) || !TYPES.includes(value['type']))
        throw refused()
      if (names.has(name.toLowerCase())) throw refused()
      names.add(name.toLowerCase())
    }
    for (const [key, item] of Object.entries(value)) {
      if (key !== 'properties' || !isObject(item)) visit(item, false)
      else for (const property of Object.values(item)) visit(property, isProperty)
    }
  }
  visit(schema, true)
}

function refused(): Error {
  return new Error(`its "${KEY}" is not valid`)
}
