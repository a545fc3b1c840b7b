// Chooses the tools to offer from those that a server lists: allowed and approved ones, each with a unique name, a
// schema that compiles and readable texts. A tool that fails any of this is left out and named; it never hides the
// others.
import { isDeepStrictEqual } from 'node:util'
import type { EffectClass, Json } from '../../kernel/content.ts'
import { compileSchema, type JsonSchema } from '../core/json-schema.ts'
import type { RawTool } from './mcp-connection.ts'
import { offeredName, type McpSettings } from './mcp-options.ts'
import { pinnedDefinition, INSTRUCTIONS, type ServerPin } from './mcp-pins.ts'
import { hidesCharacters, spellInvisible, visibleText } from './readable-text.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'
import { isObject } from '../../view/untrusted-json.ts'

/** One call of one tool, with the definition that the run knows. */
export type McpToolRun = {
  readonly tool: string
  readonly definition: string
  readonly effect: EffectClass
  readonly inputSchema: JsonSchema
  readonly args: Readonly<Record<string, unknown>>
  readonly context: ToolContext
}
type OfferedTool = { readonly definition: string; readonly instructions: string; readonly tool: Tool }

const NAME_CHARS_MAX = 256
const DESCRIPTION_CHARS_MAX = 4_000
const INSTRUCTIONS_CHARS_MAX = 2_000
const TROUBLES_MAX = 50
/** Keys of texts for readers. Cleaning them does not change which values are valid. */
const PROSE = new Set(['description', 'title', '$comment'])

export class OfferedTools {
  readonly #settings: McpSettings
  readonly #pinned: ServerPin
  readonly #run: (run: McpToolRun) => Promise<unknown>
  #offers: ReadonlyMap<string, OfferedTool> = new Map()
  #troubles: string[] = []

  constructor(settings: McpSettings, pinned: ServerPin, run: (run: McpToolRun) => Promise<unknown>) {
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

  /** A tool stays the same object as long as nothing about it changes. */
  async take(listed: readonly RawTool[], instructions: string): Promise<readonly Tool[]> {
    this.#troubles = []
    const raw = this.#allowed(listed)
    const seen = this.#definitions(raw)
    const said = this.#settings.options.instructions ? instructions.trim() : ''
    if (said !== '') seen.set(INSTRUCTIONS, spellInvisible(said))
    const accepted = await this.#pinned.accept(seen)
    for (const { tool } of this.#pinned.changes) {
      if (tool !== null)
        this.#leaveOut(tool, 'it has changed since it was approved. Look at changes(), then approve() it')
    }
    let words = accepted.has(INSTRUCTIONS) ? this.#labelled(said) : ''
    const offers = new Map<string, OfferedTool>()
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

  /**
   * Returns the one tool for an offered name. If several share it, none is offered, whatever their order: it is unclear
   * which one is meant.
   */
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
        seen.set(name, pinnedDefinition(tool))
      } catch (error) {
        this.#leaveOut(name, error instanceof Error ? error.message : 'it cannot be read')
      }
    }
    return seen
  }

  async #offer(raw: RawTool, name: string, text: Omit<OfferedTool, 'tool'>): Promise<OfferedTool | null> {
    const known = this.#offers.get(name)
    if (known?.definition === text.definition && known.instructions === text.instructions) return known
    try {
      return { ...text, tool: await this.#tool(raw, name, text) }
    } catch (error) {
      this.#leaveOut(name, error instanceof Error ? error.message : 'it cannot be used')
      return null
    }
  }

  async #tool(raw: RawTool, name: string, { definition, instructions }: Omit<OfferedTool, 'tool'>): Promise<Tool> {
    const { options, connectMs, callMs, place } = this.#settings
    const offered = offeredName(options.name, name)
    const inputSchema = cleanSchema(raw['inputSchema'] ?? { type: 'object' }, '')
    if (!isObject(inputSchema)) throw new Error('its input schema is not an object')
    checkHeaders(inputSchema)
    await compileSchema(inputSchema, offered)
    const effect = this.#effect(name, raw['annotations'])
    const words = [raw['description'], raw['title']].find((text) => typeof text === 'string' && text !== '')
    const tool = defineTool({
      name: offered,
      description: visibleText(typeof words === 'string' ? words : 'No description.', DESCRIPTION_CHARS_MAX),
      input: inputSchema,
      effect,
      // A change must happen before the next call of the reply reads.
      sequential: effect !== 'read',
      approval: options.approval ?? (effect === 'read' ? 'auto' : 'ask'),
      place: () => place,
      instructions,
      // The call is bounded by callMs, and may have to connect first.
      timeoutMs: connectMs + callMs,
      execute: (args: Json, context) => {
        return this.#run({ tool: name, definition, effect, inputSchema, args: isObject(args) ? args : {}, context })
      },
    })
    return { ...tool, kind: 'mcp', mcp: { server: options.name, tool: visibleText(name, NAME_CHARS_MAX) } }
  }

  /** Annotations are the server's own claims, so they count only if the host trusts them. */
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
    return `MCP server "${name}" says about its tools:\n${visibleText(instructions, INSTRUCTIONS_CHARS_MAX)}`
  }

  #leaveOut(tool: string, why: string): void {
    this.#troubles.push(visibleText(`Tool "${visibleText(tool, 80)}" is left out: ${why}.`, 400))
  }
}

/**
 * Removes invisible characters from texts for readers. Anywhere else they are part of a value, so the schema is
 * refused.
 */
function cleanSchema(value: unknown, key: string): unknown {
  if (typeof value === 'string') {
    if (PROSE.has(key)) return visibleText(value, DESCRIPTION_CHARS_MAX)
    if (hidesCharacters(value)) throw new Error('its input schema hides characters')
    return value
  }
  if (Array.isArray(value)) return value.map((item) => cleanSchema(item, ''))
  if (!isObject(value)) return value
  const entries = Object.entries(value).map(([name, item]): [string, unknown] => {
    if (hidesCharacters(name)) throw new Error('its input schema hides characters')
    return [name, cleanSchema(item, name)]
  })
  return Object.fromEntries(entries)
}

// Arguments that a tool wants repeated as HTTP headers, as the newest revision allows. The SDK sends them. A tool whose
// header names break the rules must not be offered.

const KEY = 'x-mcp-header'
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const TYPES: readonly unknown[] = ['string', 'integer', 'boolean']

/**
 * Throws if a header name is invalid. Only properties of objects, at any depth, may have one, and each name must be
 * unique.
 */
function checkHeaders(schema: unknown): void {
  const names = new Set<string>()
  const visit = (value: unknown, isProperty: boolean): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, false)
    if (!isObject(value)) return
    if (Object.hasOwn(value, KEY)) {
      const name = value[KEY]
      if (!isProperty || typeof name !== 'string' || !TOKEN.test(name) || !TYPES.includes(value['type']))
        throw invalidHeader()
      if (names.has(name.toLowerCase())) throw invalidHeader()
      names.add(name.toLowerCase())
    }
    for (const [key, item] of Object.entries(value)) {
      if (key !== 'properties' || !isObject(item)) visit(item, false)
      else for (const property of Object.values(item)) visit(property, isProperty)
    }
  }
  visit(schema, true)
}

function invalidHeader(): Error {
  return new Error(`its "${KEY}" is not valid`)
}
