// What an attempt may touch: the doors, and the agents by name. Types and small lookups; nothing happens here.
import { hash } from 'node:crypto'
import type { BlobRef, Json, Limits } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Blob, Clock, Model, Random, Store, ToolSchema } from '../kernel/ports.ts'
import type { Live } from './live.ts'
import type { Policy } from '../tools/policy.ts'
import type { Tool } from '../tools/tool.ts'

export type Agent = {
  readonly name: string
  readonly model: Model
  readonly tools: ReadonlyMap<string, Tool>
  readonly instructions: string
  readonly limits: Limits
  readonly approvalMs: number | null
  readonly policy: Policy
  readonly environment: string | null
}

export type World = {
  readonly store: Store
  readonly live: Live
  readonly clock: Clock
  readonly random: Random
  readonly agent: (name: string) => Agent
  readonly code: string
}

/** What a run froze: the instructions, and per tool what the model was told and which definition it had. */
export type Frame = {
  readonly instructions: string
  readonly tools: readonly ToolSchema[]
  readonly definitions: ReadonlyMap<string, string>
}

type FrozenTool = ToolSchema & { readonly definition: string }

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export function textBlob(text: string, media: string): Blob {
  const data = encoder.encode(text)
  return { hash: hash('sha256', data), media, data }
}

export function toolsetBlob(tools: ReadonlyMap<string, Tool>): Blob {
  const frozen = [...tools.values()].map(
    (tool): FrozenTool => ({
      name: tool.name,
      description: tool.description,
      parameters: tool.parameters,
      definition: tool.definition,
    }),
  )
  return textBlob(JSON.stringify(frozen), 'application/json')
}

/** Frames by hash, read once: a resumed run shows the model what it froze, not what the code says today. */
export class Frames {
  readonly #store: Store
  readonly #frames = new Map<string, Promise<Frame>>()

  constructor(store: Store) {
    this.#store = store
  }

  of(toolset: string, instructions: string): Promise<Frame> {
    const key = `${toolset}:${instructions}`
    const known = this.#frames.get(key)
    if (known) return known
    const loading = this.#load(toolset, instructions)
    this.#frames.set(key, loading)
    loading.catch(() => this.#frames.delete(key))
    return loading
  }

  async #load(toolset: string, instructions: string): Promise<Frame> {
    const frozen = JSON.parse(await this.#text(toolset)) as readonly FrozenTool[]
    const tools = frozen.map(
      ({ name, description, parameters }): { name: string; description: string; parameters: Json } => {
        return { name, description, parameters }
      },
    )
    const definitions = new Map(frozen.map((tool) => [tool.name, tool.definition]))
    return { instructions: await this.#text(instructions), tools, definitions }
  }

  async #text(hashed: string): Promise<string> {
    const blob = await this.#store.blob(hashed)
    if (!blob)
      throw new Fault('store_damaged', `A stored part of this run is missing (${hashed}). Restore a backup to go on.`)
    return decoder.decode(blob.data)
  }
}

export function refOf({ hash: hashed, media, data }: Blob): BlobRef {
  return { type: 'blob', hash: hashed, bytes: data.length, media }
}

/** A blob of text, read back; null when the store has none. */
export async function findText(store: Store, hashed: string): Promise<string | null> {
  const blob = await store.blob(hashed)
  return blob ? decoder.decode(blob.data) : null
}

export async function readText(store: Store, hashed: string): Promise<string> {
  return (await findText(store, hashed)) ?? '[this content is missing from the store]'
}
