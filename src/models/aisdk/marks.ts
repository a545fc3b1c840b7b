// Provider metadata of the AI SDK, kept unread on reasoning parts and sent back only to the same provider. The metadata of a text or a
// call is kept on an empty reasoning part before it.
import type { JSONValue, SharedV3ProviderMetadata } from '@ai-sdk/provider'
import type { Json, Part } from '../../kernel/content.ts'
import type { Opaque } from '../protocols/protocol.ts'
import { isObject } from '../../view/json.ts'
import type { Origin } from './settings.ts'

/** `openai.responses` and `openai.chat` are both `openai`. */
export function familyOf({ provider }: Origin): string {
  return provider.split('.')[0] ?? provider
}

/** `of` says what the metadata belongs to: this reasoning, the text or the file that follows, or call number `at`. */
export type Mark = {
  readonly of: 'reasoning' | 'text' | 'call' | 'file'
  readonly at: number
  readonly metadata: SharedV3ProviderMetadata | null
}

export function marked(origin: Origin, mark: Mark, text = ''): Part {
  const data = { of: mark.of, metadata: mark.metadata as Json }
  const opaque: Opaque = { by: nameOf(origin), model: origin.modelId, at: mark.at, data }
  return { type: 'reasoning', text, opaque }
}

/** Null for data of another provider. */
export function markOf(part: Part, origin: Origin): Mark | null {
  if (part.type !== 'reasoning' || !isObject(part.opaque) || part.opaque['by'] !== nameOf(origin)) return null
  const { at, data } = part.opaque
  if (typeof at !== 'number' || !isObject(data)) return null
  const { of, metadata } = data
  if (of !== 'reasoning' && of !== 'text' && of !== 'call' && of !== 'file') return null
  return { of, at, metadata: isObject(metadata) ? (metadata as SharedV3ProviderMetadata) : null }
}

/** A call of a tool that the provider ran, or what it gave. */
export type Served = {
  readonly of: 'input' | 'result' | 'error'
  readonly call: string
  readonly tool: string
  readonly value: JSONValue
  readonly metadata: SharedV3ProviderMetadata | null
}

export function served(origin: Origin, at: number, { tool, ...kept }: Served): Part {
  const opaque: Opaque = { by: nameOf(origin), model: origin.modelId, at, data: kept as Json }
  return { type: 'provider', tool, opaque }
}

/** Null for that of another provider. */
export function servedOf(part: Part, origin: Origin): Served | null {
  if (part.type !== 'provider' || !isObject(part.opaque) || part.opaque['by'] !== nameOf(origin)) return null
  const { data } = part.opaque
  if (!isObject(data)) return null
  const { of, call, value, metadata } = data
  if ((of !== 'input' && of !== 'result' && of !== 'error') || typeof call !== 'string') return null
  const kept = isObject(metadata) ? (metadata as SharedV3ProviderMetadata) : null
  return { of, call, tool: part.tool, value: (value ?? null) as JSONValue, metadata: kept }
}

/** Whether a part that was kept by this name is of the same provider, perhaps in another of its protocols. */
export function isOfFamily(name: string, origin: Origin): boolean {
  return name.startsWith(PREFIX) && familyOf({ ...origin, provider: name.slice(PREFIX.length) }) === familyOf(origin)
}

/** Never the name of one of our endpoints, which keep other data. */
const PREFIX = 'ai-sdk:'

function nameOf({ provider }: Origin): string {
  return `${PREFIX}${provider}`
}
