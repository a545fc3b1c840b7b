// Reads lists of messages: of the Anthropic messages API, and of OpenAI's chat completions and responses. Pure.
import type { Json } from '../../kernel/content.ts'
import { asList, asString, isObject, type JsonObject, ownOf } from '../../view/untrusted-json.ts'
import { argumentsOf, type ForeignItem, type ForeignPart, partsOf, readEntries, textParts } from './foreign-item.ts'
import type { ForeignTranscript } from './foreign-item.ts'
import { readResponseItem } from './response-items.ts'

/** A message with the blocks of the messages API. Null: it is of no role of a conversation. */
export function readBlockMessage(message: JsonObject): readonly ForeignItem[] | null {
  const role = ownOf(message, 'role')
  if (role !== 'user' && role !== 'assistant') return null
  const content = ownOf(message, 'content')
  if (!Array.isArray(content)) return messageItems(role, partsOf(content))
  const items: ForeignItem[] = []
  let parts: ForeignPart[] = []
  const flush = (): void => {
    items.push(...messageItems(role, parts))
    parts = []
  }
  for (const block of content as readonly Json[]) {
    const called = isObject(block) ? callOrResult(block) : null
    if (called === null) {
      parts.push(...partsOf([block]))
      continue
    }
    flush()
    items.push(called)
  }
  flush()
  return items
}

function messageItems(type: 'user' | 'assistant', parts: readonly ForeignPart[]): readonly ForeignItem[] {
  return parts.length === 0 ? [] : [{ type, parts }]
}

/** A tool of the provider has names of its own: `server_tool_use`, `web_search_tool_result`. */
function callOrResult(block: JsonObject): ForeignItem | null {
  const type = asString(ownOf(block, 'type'))
  if (type.endsWith('tool_use')) {
    const [id, tool] = ['id', 'name'].map((key) => asString(ownOf(block, key))) as [string, string]
    return { type: 'call', id, tool, args: argumentsOf(ownOf(block, 'input')) }
  }
  if (!type.endsWith('tool_result')) return null
  const content = ownOf(block, 'content')
  const parts = partsOf(content)
  const whole = parts.length > 0 || content === undefined || content === '' ? parts : textParts(JSON.stringify(content))
  const ok = ownOf(block, 'is_error') !== true
  return { type: 'result', id: asString(ownOf(block, 'tool_use_id')), ok, parts: whole }
}

/** `value` is the list, or an object that holds it under one of these names. */
function listIn(value: readonly (Json | undefined)[], names: readonly string[]): readonly (Json | undefined)[] {
  const [only] = value
  if (value.length !== 1) return value
  if (Array.isArray(only)) return only as readonly Json[]
  if (!isObject(only)) return value
  const found = names.flatMap((name) => asList(ownOf(only, name)))
  return found.length > 0 ? found : value
}

export function readAnthropic(values: readonly (Json | undefined)[]): ForeignTranscript {
  return readEntries(listIn(values, ['messages']), readBlockMessage)
}

export function readOpenAi(values: readonly (Json | undefined)[]): ForeignTranscript {
  return readEntries(listIn(values, ['messages', 'input', 'output']), (entry) =>
    isObject(entry) && ownOf(entry, 'type') !== undefined ? readResponseItem(entry) : readChatMessage(entry),
  )
}

function readChatMessage(message: JsonObject): readonly ForeignItem[] | null {
  const role = ownOf(message, 'role')
  const content = ownOf(message, 'content')
  if (role === 'user') return messageItems('user', partsOf(content))
  if (role === 'tool' || role === 'function') {
    const id = asString(ownOf(message, 'tool_call_id')) || asString(ownOf(message, 'name'))
    return [{ type: 'result', id, ok: true, parts: partsOf(content) }]
  }
  if (role !== 'assistant') return null
  const thought = textParts(asString(ownOf(message, 'reasoning_content')), 'reasoning')
  const parts = [...thought, ...partsOf(content), ...textParts(asString(ownOf(message, 'refusal')))]
  const legacy = ownOf(message, 'function_call')
  const listed = asList(ownOf(message, 'tool_calls')).flatMap((call) => (isObject(call) ? [chatCall(call)] : []))
  return [...messageItems('assistant', parts), ...listed, ...(isObject(legacy) ? [namedCall(legacy, null)] : [])]
}

function chatCall(call: JsonObject): ForeignItem {
  const called = ['function', 'custom'].map((key) => ownOf(call, key)).find(isObject) ?? {}
  return namedCall(called, asString(ownOf(call, 'id')))
}

/** An earlier form of calls has no id: its result names the function. */
function namedCall(called: JsonObject, id: string | null): ForeignItem {
  const tool = asString(ownOf(called, 'name'))
  const args = argumentsOf(ownOf(called, 'arguments') ?? ownOf(called, 'input'))
  return { type: 'call', id: id ?? tool, tool, args }
}
