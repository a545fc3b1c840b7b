// Keeps provider metadata of the AI SDK unread on reasoning parts, and sends it back only to the same provider. The
// metadata of a text or a call is kept on an empty reasoning part before it.
import type { JSONValue, SharedV3ProviderMetadata } from '@ai-sdk/provider'
import type { Json, Part } from '../../kernel/content.ts'
import type { Opaque } from '../protocols/protocol.ts'
import { isObject } from '../../view/untrusted-json.ts'
import type { SdkOrigin } from './sdk-settings.ts'

/** `openai.responses` and `openai.chat` are both `openai`. */
export function providerFamily({ provider }: SdkOrigin): string {
  return provider.split('.')[0] ?? provider
}

/** `of` names the owner of the metadata: this reasoning, the text or the file that follows, or call number `at`. */
export type SdkMark = {
  readonly of: 'reasoning' | 'text' | 'call' | 'file'
  readonly at: number
  readonly metadata: SharedV3ProviderMetadata | null
}

export function markedPart(origin: SdkOrigin, mark: SdkMark, text = ''): Part {
  const data = { of: mark.of, metadata: mark.metadata as Json }
  const opaque: Opaque = { by: opaqueName(origin), model: origin.modelId, at: mark.at, data }
  return { type: 'reasoning', text, opaque }
}

/** Null for data of another provider. */
export function sdkMarkOf(part: Part, origin: SdkOrigin): SdkMark | null {
  if (part.type !== 'reasoning' || !isObject(part.opaque) || part.opaque['by'] !== opaqueName(origin)) return null
  const { at, data } = part.opaque
  if (typeof at !== 'number' || !isObject(data)) return null
  const { of, metadata } = data
  if (of !== 'reasoning' && of !== 'text' && of !== 'call' && of !== 'file') return null
  return { of, at, metadata: isObject(metadata) ? (metadata as SharedV3ProviderMetadata) : null }
}

/** A call of a tool that the provider ran, or its result. */
export type ProviderToolData = {
  readonly of: 'input' | 'result' | 'error'
  readonly call: string
  readonly tool: string
  readonly value: JSONValue
  readonly metadata: SharedV3ProviderMetadata | null
}

export function providerToolPart(origin: SdkOrigin, at: number, { tool, ...kept }: ProviderToolData): Part {
  const opaque: Opaque = { by: opaqueName(origin), model: origin.modelId, at, data: kept as Json }
  return { type: 'provider', tool, opaque }
}

/** Null for data of another provider. */
export function providerToolDataOf(part: Part, origin: SdkOrigin): ProviderToolData | null {
  if (part.type !== 'provider' || !isObject(part.opaque) || part.opaque['by'] !== opaqueName(origin)) return null
  const { data } = part.opaque
  if (!isObject(data)) return null
  const { of, call, value, metadata } = data
  if ((of !== 'input' && of !== 'result' && of !== 'error') || typeof call !== 'string') return null
  const kept = isObject(metadata) ? (metadata as SharedV3ProviderMetadata) : null
  return { of, call, tool: part.tool, value: (value ?? null) as JSONValue, metadata: kept }
}

/** Whether a part that was kept under this name is of the same provider, perhaps in another of its protocols. */
export function isSameFamily(name: string, origin: SdkOrigin): boolean {
  return (
    name.startsWith(PREFIX) &&
    providerFamily({ ...origin, provider: name.slice(PREFIX.length) }) === providerFamily(origin)
  )
}

/** No endpoint of ours has a name with this prefix: endpoints keep other data. */
const PREFIX = 'ai-sdk:'

function opaqueName({ provider }: SdkOrigin): string {
  return `${PREFIX}${provider}`
}
