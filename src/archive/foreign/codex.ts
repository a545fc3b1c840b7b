// Reads a rollout of the Codex command line: one entry on each line with a `payload`, or the plain items of older
// versions. What the program wrote for the model itself (instructions, its environment) is left out. Pure.
import type { Json } from '../../kernel/content.ts'
import { type JsonObject, isObject, ownOf } from '../../view/untrusted-json.ts'
import { type ForeignItem, type ForeignTranscript, readEntries } from './foreign-item.ts'
import { readResponseItem } from './response-items.ts'

/** How messages begin that the program adds in the role of the user. */
const OWN_TEXTS =
  /^\s*(?:<(?:environment_context|user_instructions|permissions instructions|turn_aborted|INSTRUCTIONS)>|# AGENTS\.md instructions)/

export function readCodex(values: readonly (Json | undefined)[]): ForeignTranscript {
  return readEntries(values, readEntry)
}

function readEntry(entry: JsonObject): readonly ForeignItem[] | null {
  const payload = ownOf(entry, 'payload')
  const type = ownOf(entry, 'type')
  if (type === 'response_item') return isObject(payload) ? readItem(payload) : null
  return payload === undefined ? readItem(entry) : null
}

function readItem(item: JsonObject): readonly ForeignItem[] | null {
  const items = readResponseItem(item)
  return items?.some(isOwnText) ? null : items
}

function isOwnText(item: ForeignItem): boolean {
  if (item.type !== 'user') return false
  const [first] = item.parts
  return first?.type === 'text' && OWN_TEXTS.test(first.text)
}
