// What this protocol keeps on reasoning parts, and how it is read back: the provider's own reasoning item, which message a text
// was, and which response the provider stored. Sent back only to the endpoint it came from.
import type { Json, Part } from '../../../kernel/content.ts'
import type { Opaque } from '../protocol.ts'
import { isObject } from '../../../view/json.ts'

/** Where a reply came from, and whether the provider was asked to store it. */
export type Origin = { readonly by: string; readonly model: string; readonly chain: boolean }

export type Mark =
  | { readonly type: 'item'; readonly at: number; readonly model: string; readonly item: Json }
  /** The text that follows began a message here, perhaps with the provider's word on what it is for. */
  | { readonly type: 'message'; readonly at: number; readonly model: string; readonly phase: string | null }
  | { readonly type: 'response'; readonly at: number; readonly model: string; readonly response: string }

export function itemPart(origin: Origin, at: number, text: string, item: Json): Part {
  return { type: 'reasoning', text, opaque: opaque(origin, at, item) }
}

export function messagePart(origin: Origin, at: number, phase: string | null): Part {
  return { type: 'reasoning', text: '', opaque: opaque(origin, at, { phase }) }
}

export function responsePart(origin: Origin, at: number, response: string): Part {
  return { type: 'reasoning', text: '', opaque: opaque(origin, at, { response }) }
}

function opaque({ by, model }: Origin, at: number, data: Json): Opaque {
  return { by, model, at, data }
}

/** Null for what another endpoint wrote, or what is not ours at all. */
export function markOf(part: Part, endpoint: string): Mark | null {
  if (part.type !== 'reasoning' || !isObject(part.opaque)) return null
  const { by, model, at, data } = part.opaque
  if (by !== endpoint || typeof model !== 'string' || typeof at !== 'number' || !isObject(data)) return null
  if (data['type'] === 'reasoning') return { type: 'item', at, model, item: data }
  const { response, phase } = data
  if (typeof response === 'string') return { type: 'response', at, model, response }
  if (phase === undefined) return null
  return { type: 'message', at, model, phase: typeof phase === 'string' ? phase : null }
}
