// OpenRouter's `reasoning_details`, streamed in fragments: text grows by index, a signature closes it, and what is encrypted
// is kept as it came. The list is sent back whole, so the order of what was received is the order of what is sent.
import type { Json } from '../../../kernel/content.ts'
import { type Fields, isFields, textOf } from './json.ts'

/** More than any reply has. */
export const DETAILS_MAX = 1_024

/** The fields that come in fragments, by the type of the entry. */
const GROWING: Readonly<Record<string, 'text' | 'summary'>> = {
  'reasoning.text': 'text',
  'reasoning.summary': 'summary',
}

export function detailText(detail: Fields): string {
  const field = GROWING[textOf(detail['type'])]
  return field === undefined ? '' : textOf(detail[field])
}

/** The list with this fragment in it. The list given is not changed. */
export function withDetail(details: readonly Fields[], fragment: Fields): readonly Fields[] {
  const field = GROWING[textOf(fragment['type'])]
  if (field === undefined) return [...details, fragment]
  const at = details.findLastIndex(
    (known) => known['type'] === fragment['type'] && known['index'] === fragment['index'],
  )
  const known = details[at]
  // What is signed is finished: more text is the next block.
  const finished = known === undefined || (textOf(known['signature']) !== '' && textOf(fragment[field]) !== '')
  return finished ? [...details, fragment] : details.with(at, grown(known, fragment, field))
}

/** Without anything signed or encrypted in it, the text says all there is. */
export function isSigned(details: readonly Fields[]): boolean {
  return details.some((detail) => GROWING[textOf(detail['type'])] === undefined || textOf(detail['signature']) !== '')
}

export function detailsIn(value: unknown): readonly Fields[] {
  if (!Array.isArray(value)) return []
  return value.filter((entry): entry is Fields => isFields(entry) && typeof entry['type'] === 'string')
}

function grown(known: Fields, fragment: Fields, field: 'text' | 'summary'): Fields {
  const next: Record<string, Json | undefined> = { ...known }
  for (const key of Object.keys(fragment)) if (fragment[key] !== null) next[key] = fragment[key]
  next[field] = textOf(known[field]) + textOf(fragment[field])
  return next
}
