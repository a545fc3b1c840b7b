// An agent's tools: those it was given and those its sources offer. Sources are asked anew before each run, and nothing here
// changes what an open run froze.
import { Fault } from '../kernel/failure.ts'
import type { Clock } from '../ports/system.ts'
import type { ToolRoot } from '../tools/core/context.ts'
import type { Tool, ToolAbout, ToolSource } from '../tools/core/tool.ts'

export type Tools = ReadonlyMap<string, Tool>

export type ToolboxOptions = {
  readonly tools: readonly (Tool | ToolSource)[]
  /** Plan mode: only what changes nothing is shown to the model. */
  readonly plan: boolean
  readonly clock: Clock
  /** More names that mean something to the harness here. */
  readonly reserved?: readonly string[]
  /** The harness's own: they may have its names. */
  readonly own?: readonly Tool[]
  /** A tool is offered if each of these offers it. */
  readonly lists?: readonly ToolLists[]
  /** Told of what is missing of sources, each time that changes. */
  readonly warn?: (text: string) => void
}

/** Which of its tools an agent has. */
export type ToolLists = {
  /** What it starts from: `all` (the default), `read` (tools that change nothing, and those answered from outside) or `none`. */
  readonly profile?: 'all' | 'read' | 'none'
  /** Only the tools named here. An empty list means no tool. */
  readonly allow?: readonly string[]
  /** And these too, whatever the profile and `allow` leave out. */
  readonly alsoAllow?: readonly string[]
  /** None of these, whatever is allowed. */
  readonly deny?: readonly string[]
}

const WARNINGS_MAX = 20
const WARNING_CHARS_MAX = 600

/** Names that mean something to the harness itself. */
const RESERVED = ['subagent']

export class Toolbox {
  readonly #given: readonly Tool[]
  readonly #sources: readonly ToolSource[]
  readonly plan: boolean
  readonly #clock: Clock
  readonly #reserved: ReadonlySet<string>
  readonly #own: readonly Tool[]
  readonly #lists: readonly ToolLists[]
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
    // A bad name among those that are known already is a mistake of the caller, not of a run.
    else this.#gather(this.#given)
  }

  /** The tools as they were last seen, without asking anyone. */
  get seen(): Tools | null {
    return this.#now
  }

  /**
   * Whether a tool of this name is here, offered or not. A source that was not asked yet, or is away, may have any that begins with its
   * name.
   */
  mayHave(name: string): boolean {
    if (this.#now?.has(name) || [...this.#given, ...this.#own].some((tool) => tool.name === name)) return true
    return this.#sources.some((source) => name.startsWith(`${source.name.replace(/[^A-Za-z0-9_-]/g, '_')}__`))
  }

  /** What was missing of the sources when they were asked last, in sentences for people. */
  get warnings(): readonly string[] {
    return this.#warnings
  }

  /** The tools as they are. The same map as before if nothing changed. The signal is made when looked at, so sources alone look. */
  async open(flight: { readonly signal: AbortSignal }): Promise<Tools> {
    if (this.#sources.length === 0 && this.#now) return this.#now
    const { signal } = flight
    const offered = await Promise.all(this.#sources.map((source) => source.tools(signal, this.#clock)))
    const { usable, collisions } = this.#apart(offered)
    const now = this.#gather([...this.#given, ...usable])
    this.#note([...this.#sources.flatMap((source) => source.warnings?.() ?? []), ...collisions])
    if (this.#now === null || !same(this.#now, now)) this.#now = now
    return this.#now
  }

  /** The same tools for sessions that work elsewhere. Sources are shared. */
  rooted(root: ToolRoot): Toolbox {
    const moved = (tool: Tool | ToolSource) => (isSource(tool) || !tool.rooted ? tool : tool.rooted(root))
    const tools = this.#options.tools.map(moved).filter((tool) => tool !== null)
    return new Toolbox({ ...this.#options, tools })
  }

  /** Closed with the agents: several of them may share one. */
  get sources(): readonly ToolSource[] {
    return this.#sources
  }

  /** A source is a stranger: what it names like another tool is left out, of two sources both, and never ends a run. */
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

/** What hooks are told of the tool of a call. */
export function aboutTool(tools: Tools | null, name: string): ToolAbout {
  const { kind = 'user', mcp, metadata } = tools?.get(name) ?? {}
  return { kind, ...(mcp ? { mcp } : {}), ...(metadata ? { metadata } : {}) }
}

/** The tool that reads kept texts, by name, if there is one. */
export function readerIn(tools: Tools | null): string | undefined {
  for (const { name, readsKept } of tools?.values() ?? []) if (readsKept) return name
  return undefined
}

/** A denial wins. With `alsoAllow` alone nothing is left out. */
function isListed({ profile = 'all', allow, alsoAllow, deny }: ToolLists, tool: Tool): boolean {
  const { name } = tool
  if (deny?.includes(name)) return false
  if (alsoAllow?.includes(name)) return true
  const based = profile === 'all' || (profile === 'read' && changesNothing(tool))
  return based && (allow?.includes(name) ?? true)
}

function changesNothing({ effect, outside }: Tool): boolean {
  return effect === 'read' || outside
}

function isSource(tool: Tool | ToolSource): tool is ToolSource {
  return 'type' in tool
}

function same(a: Tools, b: Tools): boolean {
  return a.size === b.size && [...a].every(([name, tool]) => b.get(name) === tool)
}
