// The author of a thought, its place among the calls, and its form for another provider. The encoder of each provider
// writes thoughts that the provider takes back in its own form.
import type { Part } from '../../kernel/content.ts'
import { isObject } from '../../view/untrusted-json.ts'

/**
 * The text of a thought that another provider wrote, for this provider; null for the provider's own thought. A model
 * that reads its own thoughts as its answer begins to repeat them. A thought without an origin counts as its own, since
 * its author is not known.
 */
export function foreignThought(part: Part, isOwn: (by: string) => boolean): string | null {
  if (part.type !== 'reasoning' || part.text.trim() === '' || !isObject(part.opaque)) return null
  const { by } = part.opaque
  return typeof by !== 'string' || isOwn(by) ? null : part.text
}

export function tagThought(thought: string): string {
  return `<thinking>\n${thought}\n</thinking>`
}

/**
 * The number of calls before this part, if it is recorded. It applies to any provider, since the order of a reply does.
 */
export function callsBefore(part: Part): number {
  const kept = part.type === 'reasoning' || part.type === 'provider'
  const at = kept && isObject(part.opaque) ? part.opaque['at'] : 0
  return typeof at === 'number' ? at : 0
}
