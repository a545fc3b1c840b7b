// What a run froze when it began: its instructions, and per tool what the model was told and which definition it had. A resumed run
// shows the model what it froze, not what the code says today. How a run freezes it is prepare.ts.
import type { Json } from '../kernel/content.ts'
import { assert, Fault } from '../kernel/failure.ts'
import type { Blob, Store } from '../ports/store.ts'
import type { ToolSchema } from '../ports/model.ts'
import type { Session } from '../kernel/session.ts'
import { findText, textBlob } from '../engine/wiring.ts'
import { type Begun, lastStart } from './last-start.ts'
import type { Redactor } from '../riders/redact/redact.ts'
import type { Tool } from '../tools/core/tool.ts'
import type { Tools } from './toolbox.ts'

export type FrozenRun = {
  readonly instructions: string
  readonly tools: readonly ToolSchema[]
  /** Of the tools that are shown and were there when the run began. */
  readonly definitions: ReadonlyMap<string, string>
  /** Shown, and not there any more when the run began. */
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

/** A session with what its open run froze, once that was read. */
type Framed = Begun & {
  readonly session: Pick<Session, 'run'>
  frame: { readonly run: number; readonly frame: FrozenRun } | null
}

/** The frozen runs of one worker, read once. */
export class FrozenRuns {
  readonly #store: Store
  readonly #byHash = new Map<string, Promise<FrozenRun>>()
  readonly #offers = new WeakMap<FrozenRun, { readonly of: Tools; readonly offered: Tools }>()
  readonly #extended = new WeakMap<FrozenRun, FrozenRun>()

  constructor(store: Store) {
    this.#store = store
  }

  /** That of the open run, if it was read already. */
  known(cache: Framed): FrozenRun | null {
    return cache.frame !== null && cache.frame.run === cache.session.run?.seq ? cache.frame.frame : null
  }

  async of(cache: Framed): Promise<FrozenRun> {
    const { run } = cache.session
    assert(run, 'an effect outside of a run')
    const start = await lastStart(this.#store, cache)
    const frame = await this.read(run.toolset, run.instructions, start?.now?.toolset)
    cache.frame = { run: run.seq, frame }
    return frame
  }

  /** `now` are the tools that were there when the run began, if these were not those that are shown. */
  read(toolset: string, instructions: string, now = toolset): Promise<FrozenRun> {
    const key = `${toolset}:${instructions}:${now}`
    const known = this.#byHash.get(key)
    if (known) return known
    const loading = this.#load(toolset, instructions, now)
    this.#byHash.set(key, loading)
    loading.catch(() => this.#byHash.delete(key))
    return loading
  }

  /** The same run with a tool that its results name, after those that it froze. */
  extended(frame: FrozenRun, tool: Tool): FrozenRun {
    if (frame.definitions.has(tool.name)) return frame
    const known = this.#extended.get(frame)
    if (known) return known
    const { name, description, parameters, definition } = tool
    const tools = [...frame.tools, { name, description, parameters }]
    const extended = { ...frame, tools, definitions: new Map([...frame.definitions, [name, definition]]) }
    this.#extended.set(frame, extended)
    return extended
  }

  /** A tool that came while the run was open is unknown to it. `named` is one that its results name. */
  offered(frame: FrozenRun, tools: Tools, named?: Tool): Tools {
    const known = this.#offers.get(frame)
    if (known?.of === tools) return known.offered
    const all = named === undefined ? [...tools] : [...tools, [named.name, named] as const]
    const offered = new Map(all.filter(([name]) => frame.definitions.has(name)))
    this.#offers.set(frame, { of: tools, offered })
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
    const text = await findText(this.#store, hashed)
    if (text === null)
      throw new Fault('store_damaged', `A stored part of this run is missing (${hashed}). Restore a backup to go on.`)
    return text
  }
}
