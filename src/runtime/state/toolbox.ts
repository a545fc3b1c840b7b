// An agent's tools: its own and those of its sources. Sources are asked anew before each run, and nothing here changes
// what an open run froze.
import { Fault } from '../../kernel/failure.ts'
import type { Clock } from '../../ports/system.ts'
import type { ToolRoot } from '../../tools/core/tool-context.ts'
import type { Tool, ToolAbout, ToolSource } from '../../tools/core/tool.ts'

export type Tools = ReadonlyMap<string, Tool>

export type ToolboxOptions = {
  readonly tools: readonly (Tool | ToolSource)[]
  /** Plan mode: the model sees only tools that change nothing. */
  readonly plan: boolean
  readonly clock: Clock
  /** More names that are reserved for the harness here. */
  readonly reserved?: readonly string[]
  /** The harness's own tools. They may use the reserved names. */
  readonly own?: readonly Tool[]
  /** A tool is offered only if all of these lists offer it. */
  readonly lists?: readonly ToolAccess[]
  /** Called with a warning about missing tools of sources, each time the warnings change. */
  readonly warn?: (text: string) => void
}

/** Chooses which of its tools an agent has. */
export type ToolAccess = {
  /**
   * The base set: `all` (the default), `read` (tools that change nothing, and those answered from outside) or `none`.
   */
  readonly profile?: 'all' | 'read' | 'none'
  /** Only the tools named here. An empty list means no tool. */
  readonly allow?: readonly string[]
  /** These too, even if the profile and `allow` leave them out. */
  readonly alsoAllow?: readonly string[]
  /** None of these, even if allowed elsewhere. */
  readonly deny?: readonly string[]
}

const WARNINGS_MAX = 20
const WARNING_CHARS_MAX = 600

/** Names that are reserved for the harness itself. */
const RESERVED = ['subagent']

export class Toolbox {
  readonly #given: readonly Tool[]
  readonly #sources: readonly ToolSource[]
  readonly plan: boolean
  readonly #clock: Clock
  readonly #reserved: ReadonlySet<string>
  readonly #own: readonly Tool[]
  readonly #lists: readonly ToolAccess[]
  /** Null until the sources were asked for the first time. */
  #now: Tools | null = null
  #warnings: readonly string[] = []
  readonly #warn: (text: string) => void

  readonly #options: ToolboxOptions

  constructor(options: ToolboxOptions) {
    const { tools, plan, clock, reserved = [], own = [], lists = [], warn } = options
    this.#options = options
    this.#given = tools.filter((tool): tool is Tool => !isSource(tool))
    this.#sources = tools.filter(isSource)
    this.plan = plan
    this.#clock = clock
    this.#reserved = new Set([...RESERVED, ...reserved])
    this.#own = own
    this.#lists = lists
    this.#warn = warn ?? (() => {})
    if (this.#sources.length === 0) this.#now = this.#gather(this.#given)
    // A bad name among the tools that are known already is the caller's mistake, and must not fail a run.
    else this.#gather(this.#given)
  }

  /** The tools as they were last read, without asking the sources. */
  get seen(): Tools | null {
    return this.#now
  }

  /**
   * Whether a tool of this name exists, offered or not. A source that was not asked yet, or is unavailable, may have
   * any tool whose name begins with its own.
   */
  mayHave(name: string): boolean {
    if (this.#now?.has(name) || [...this.#given, ...this.#own].some((tool) => tool.name === name)) return true
    return this.#sources.some((source) => name.startsWith(`${source.name.replace(/[^A-Za-z0-9_-]/g, '_')}__`))
  }

  /** The tool of this name, as far as it is known without asking sources. */
  knownTool(name: string): Tool | undefined {
    return this.#now?.get(name) ?? [...this.#given, ...this.#own].find((tool) => tool.name === name)
  }

  /** Warnings about missing tools from the last time the sources were asked, in sentences for people. */
  get warnings(): readonly string[] {
    return this.#warnings
  }

  /**
   * Asks the sources for the current tools. Returns the same map as before if nothing changed. Creating the flight's
   * signal costs something, so it is read only if there are sources.
   */
  async open(flight: { readonly signal: AbortSignal }): Promise<Tools> {
    if (this.#sources.length === 0 && this.#now) return this.#now
    const { signal } = flight
    const offered = await Promise.all(this.#sources.map((source) => source.tools(signal, this.#clock)))
    const { usable, collisions } = this.#apart(offered)
    const now = this.#gather([...this.#given, ...usable])
    this.#note([...this.#sources.flatMap((source) => source.warnings?.() ?? []), ...collisions])
    if (this.#now === null || !isSameToolset(this.#now, now)) this.#now = now
    return this.#now
  }

  /** The same tools for sessions that work in another folder. Sources are shared. */
  rooted(root: ToolRoot): Toolbox {
    const moved = (tool: Tool | ToolSource) => (isSource(tool) || !tool.rooted ? tool : tool.rooted(root))
    const tools = this.#options.tools.map(moved).filter((tool) => tool !== null)
    return new Toolbox({ ...this.#options, tools })
  }

  /** Some of these tools, and `own` ones instead of those that the harness added. Sources are shared. */
  derived({ keeps, own }: { readonly keeps: (tool: Tool) => boolean; readonly own: readonly Tool[] }): Toolbox {
    const tools = this.#options.tools.filter((tool) => isSource(tool) || keeps(tool))
    return new Toolbox({ ...this.#options, tools, own, reserved: own.map(({ name }) => name) })
  }

  /** The same tools, and sources, as `change` makes each of them. Those of the harness itself stay as they are. */
  mapped(change: (tool: Tool | ToolSource) => Tool | ToolSource): Toolbox {
    return new Toolbox({ ...this.#options, tools: this.#options.tools.map(change) })
  }

  /**
   * The same without every tool that could change something, ask a person or start a child. Sources are shared. More
   * names may be reserved there.
   */
  readOnly(reserved: readonly string[]): Toolbox {
    const { tools, own = [], lists = [], reserved: before = [] } = this.#options
    return new Toolbox({
      ...this.#options,
      tools: tools.filter((tool) => isSource(tool) || !tool.outside),
      own: own.filter(({ readsKept }) => readsKept === true),
      lists: [...lists, { profile: 'read' }],
      reserved: [...before, ...reserved],
    })
  }

  /** The sources are closed with the agents: several agents may share one. */
  get sources(): readonly ToolSource[] {
    return this.#sources
  }

  /**
   * Sources are not trusted: a tool of theirs with the name of another tool is left out, both if two sources use one
   * name, and it never ends a run.
   */
  #apart(offered: readonly (readonly Tool[])[]): { usable: readonly Tool[]; collisions: readonly string[] } {
    const counts = new Map<string, number>()
    for (const { name } of offered.flat()) counts.set(name, (counts.get(name) ?? 0) + 1)
    const taken = new Set([...this.#given.map(({ name }) => name), ...this.#reserved])
    const clashes = ({ name }: Tool): boolean => taken.has(name) || counts.get(name) !== 1
    const collisions = this.#sources.flatMap((source, i) =>
      (offered[i] ?? [])
        .filter(clashes)
        .map(({ name }) => `Tool "${name}" of "${source.name}" is left out: another tool has that name.`),
    )
    return { usable: offered.flat().filter((tool) => !clashes(tool)), collisions }
  }

  #note(all: readonly string[]): void {
    const more = all.length - WARNINGS_MAX
    const said = all.slice(0, WARNINGS_MAX).map((text) => text.slice(0, WARNING_CHARS_MAX))
    const now = more > 0 ? [...said, `${more} more warnings are left out.`] : said
    const before = this.#warnings
    this.#warnings = now
    for (const text of now) if (!before.includes(text)) this.#warn(text)
  }

  #offers(tool: Tool): boolean {
    if (tool.always) return true
    return (!this.plan || changesNothing(tool)) && this.#lists.every((list) => isListed(list, tool))
  }

  #gather(all: readonly Tool[]): Tools {
    const tools = new Map<string, Tool>()
    for (const tool of all) {
      if (this.#reserved.has(tool.name))
        throw new Fault('invalid_config', `"${tool.name}" is a name of the harness itself. Rename the tool.`)
      if (tools.has(tool.name))
        throw new Fault('invalid_config', `Two tools are named "${tool.name}". Rename one of them.`)
      tools.set(tool.name, tool)
    }
    for (const tool of this.#own) tools.set(tool.name, tool)
    return new Map([...tools].filter(([, tool]) => this.#offers(tool)))
  }
}

/** The description of a call's tool that hooks get. */
export function aboutTool(tools: Tools | null, name: string): ToolAbout {
  const { kind = 'user', mcp, metadata } = tools?.get(name) ?? {}
  return { kind, ...(mcp ? { mcp } : {}), ...(metadata ? { metadata } : {}) }
}

/** The name of the tool that reads kept texts, if there is one. */
export function readerName(tools: Tools | null): string | undefined {
  for (const { name, readsKept } of tools?.values() ?? []) if (readsKept) return name
  return undefined
}

/** `deny` wins. `alsoAllow` alone leaves nothing out. */
function isListed({ profile = 'all', allow, alsoAllow, deny }: ToolAccess, tool: Tool): boolean {
  const { name } = tool
  if (deny?.includes(name)) return false
  if (alsoAllow?.includes(name)) return true
  const based = profile === 'all' || (profile === 'read' && changesNothing(tool))
  return based && (allow?.includes(name) ?? true)
}

function changesNothing({ effect, outside, starts }: Tool): boolean {
  return effect === 'read' || (outside && starts === undefined)
}

function isSource(tool: Tool | ToolSource): tool is ToolSource {
  return 'type' in tool
}

function isSameToolset(a: Tools, b: Tools): boolean {
  return a.size === b.size && [...a].every(([name, tool]) => b.get(name) === tool)
}
