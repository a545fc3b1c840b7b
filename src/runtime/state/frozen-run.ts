// The instructions and tools that a run froze when it began: for each tool the schema shown to the model and its
// definition. A resumed run shows the model the frozen ones, not those of today's code. Preparing a run freezes them.
import type { Json } from '../../kernel/content.ts'
import { assert, Fault } from '../../kernel/failure.ts'
import type { Blob, Store } from '../../ports/store.ts'
import type { ToolSchema } from '../../ports/model.ts'
import type { Session } from '../../kernel/session.ts'
import { readTextBlob, textBlob } from './content-blobs.ts'
import { type LastRun, lastStart } from './last-start.ts'
import type { Redactor } from '../redact/redactor.ts'
import type { Tool } from '../../tools/core/tool.ts'
import type { Tools } from './toolbox.ts'

export type FrozenRun = {
  readonly instructions: string
  readonly tools: readonly ToolSchema[]
  /** Definitions of the shown tools that existed when the run began. */
  readonly definitions: ReadonlyMap<string, string>
  /** Tools that are shown, but did not exist any more when the run began. */
  readonly gone: ReadonlySet<string>
}

type FrozenTool = ToolSchema & { readonly definition: string }

export function toolsetBlob(tools: Tools, redactor: Redactor): Blob {
  const frozen = [...tools.values()].map(
    (tool): FrozenTool => ({
      name: tool.name,
      description: tool.description,
      parameters: tool.parameters,
      definition: tool.definition,
    }),
  )
  return textBlob(JSON.stringify(redactor.values(frozen)), 'application/json')
}

/** A session with its frozen run, once it was read. */
type FrozenRunCache = LastRun & {
  readonly session: Pick<Session, 'run'>
  frozenRun: { readonly run: number; readonly frozen: FrozenRun } | null
}

/** Reads each frozen run once for all sessions of one worker. */
export class FrozenRuns {
  readonly #store: Store
  readonly #byHash = new Map<string, Promise<FrozenRun>>()
  readonly #offers = new WeakMap<FrozenRun, { readonly of: Tools; readonly offered: Tools }>()
  readonly #extended = new WeakMap<FrozenRun, FrozenRun>()

  constructor(store: Store) {
    this.#store = store
  }

  /** The frozen run of the open run, if it was read already. */
  known(cache: FrozenRunCache): FrozenRun | null {
    return cache.frozenRun !== null && cache.frozenRun.run === cache.session.run?.seq ? cache.frozenRun.frozen : null
  }

  async of(cache: FrozenRunCache): Promise<FrozenRun> {
    const { run } = cache.session
    assert(run, 'an effect outside of a run')
    const start = await lastStart(this.#store, cache)
    const frozen = await this.read(run.toolset, run.instructions, start?.now?.toolset)
    cache.frozenRun = { run: run.seq, frozen: frozen }
    return frozen
  }

  /** `now` is the toolset that existed when the run began, if it differs from the shown one. */
  read(toolset: string, instructions: string, now = toolset): Promise<FrozenRun> {
    const key = `${toolset}:${instructions}:${now}`
    const known = this.#byHash.get(key)
    if (known) return known
    const loading = this.#load(toolset, instructions, now)
    this.#byHash.set(key, loading)
    loading.catch(() => this.#byHash.delete(key))
    return loading
  }

  /** The same run with a tool that its results name, placed after the frozen tools. */
  withTool(frozen: FrozenRun, tool: Tool): FrozenRun {
    if (frozen.definitions.has(tool.name)) return frozen
    const known = this.#extended.get(frozen)
    if (known) return known
    const { name, description, parameters, definition } = tool
    const tools = [...frozen.tools, { name, description, parameters }]
    const extended = { ...frozen, tools, definitions: new Map([...frozen.definitions, [name, definition]]) }
    this.#extended.set(frozen, extended)
    return extended
  }

  /** A tool that was added while the run was open is unknown to the run. `named` is the tool that its results name. */
  offeredTools(frozen: FrozenRun, tools: Tools, named?: Tool): Tools {
    const known = this.#offers.get(frozen)
    if (known?.of === tools) return known.offered
    const all = named === undefined ? [...tools] : [...tools, [named.name, named] as const]
    const offered = new Map(all.filter(([name]) => frozen.definitions.has(name)))
    this.#offers.set(frozen, { of: tools, offered })
    return offered
  }

  async #load(toolset: string, instructions: string, now: string): Promise<FrozenRun> {
    const frozen = JSON.parse(await this.#text(toolset)) as readonly FrozenTool[]
    const there = now === toolset ? frozen : (JSON.parse(await this.#text(now)) as readonly FrozenTool[])
    const tools = frozen.map(
      ({ name, description, parameters }): { name: string; description: string; parameters: Json } => {
        return { name, description, parameters }
      },
    )
    const shown = new Set(tools.map(({ name }) => name))
    const definitions = new Map(
      there.flatMap(({ name, definition }) => (shown.has(name) ? [[name, definition] as const] : [])),
    )
    const gone = new Set([...shown].filter((name) => !definitions.has(name)))
    return { instructions: await this.#text(instructions), tools, definitions, gone }
  }

  async #text(hashed: string): Promise<string> {
    const text = await readTextBlob(this.#store, hashed)
    if (text === null)
      throw new Fault('store_damaged', `A stored part of this run is missing (${hashed}). Restore a backup to go on.`)
    return text
  }
}
