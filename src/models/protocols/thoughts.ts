// The author of a thought, its place among the calls, and how another provider is told of it. What a provider takes back in a form
// of its own is for its encoder.
import type { Part } from '../../kernel/content.ts'
import { isObject } from '../../view/json.ts'

/**
 * The words of a thought that may be told to a provider, since another one wrote it; null for its own. A model that reads its
 * thoughts as something it said begins to say them. A thought without an origin counts as its own, since its author is not known.
 */
export function foreignThought(part: Part, isOwn: (by: string) => boolean): string | null {
  if (part.type !== 'reasoning' || part.text.trim() === '' || !isObject(part.opaque)) return null
  const { by } = part.opaque
  return typeof by !== 'string' || isOwn(by) ? null : part.text
}

export function tagged(thought: string): string {
  return `<thinking>\n${thought}\n</thinking>`
}

/** How many calls came before this part, if it says so: for any provider, since the order of a reply is everyone's. */
export function placeOf(part: Part): number {
  const kept = part.type === 'reasoning' || part.type === 'provider'
  const at = kept && isObject(part.opaque) ? part.opaque['at'] : 0
  return typeof at === 'number' ? at : 0
}
