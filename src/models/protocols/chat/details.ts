// OpenRouter's `reasoning_details`, streamed in fragments: text grows by index, a signature closes it, and what is encrypted
// is kept as it came. The list is sent back whole, so the order of what was received is the order of what is sent.
import type { Json } from '../../../kernel/content.ts'
import { type JsonObject, isObject, stringOf } from '../../../view/json.ts'

/** More than any reply has. */
export const DETAILS_MAX = 1_024

/** The fields that come in fragments, by the type of the entry. */
const GROWING: Readonly<Record<string, 'text' | 'summary'>> = {
  'reasoning.text': 'text',
  'reasoning.summary': 'summary',
}

export function detailText(detail: JsonObject): string {
  const field = GROWING[stringOf(detail['type'])]
  return field === undefined ? '' : stringOf(detail[field])
}

/** The list with this fragment in it. The list given is not changed. */
export function withDetail(details: readonly JsonObject[], fragment: JsonObject): readonly JsonObject[] {
  const field = GROWING[stringOf(fragment['type'])]
  if (field === undefined) return [...details, fragment]
  const at = details.findLastIndex(
    (known) => known['type'] === fragment['type'] && known['index'] === fragment['index'],
  )
  const known = details[at]
  // What is signed is finished: more text is the next block.
  const finished = known === undefined || (stringOf(known['signature']) !== '' && stringOf(fragment[field]) !== '')
  return finished ? [...details, fragment] : details.with(at, grown(known, fragment, field))
}

/** Without anything signed or encrypted in it, the text says all there is. */
export function isSigned(details: readonly JsonObject[]): boolean {
  return details.some(
    (detail) => GROWING[stringOf(detail['type'])] === undefined || stringOf(detail['signature']) !== '',
  )
}

export function detailsIn(value: unknown): readonly JsonObject[] {
  if (!Array.isArray(value)) return []
  return value.filter((entry): entry is JsonObject => isObject(entry) && typeof entry['type'] === 'string')
}

function grown(known: JsonObject, fragment: JsonObject, field: 'text' | 'summary'): JsonObject {
  const next: Record<string, Json> = { ...known }
  for (const [key, value] of Object.entries(fragment)) if (value !== null) next[key] = value
  next[field] = stringOf(known[field]) + stringOf(fragment[field])
  return next
}
