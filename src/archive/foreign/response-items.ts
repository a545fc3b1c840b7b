// Reads the items of OpenAI's responses, which the rollouts of Codex are made of too. Pure.
import type { Json } from '../../kernel/content.ts'
import { asList, asString, isObject, type JsonObject, ownOf, parseJson } from '../../view/untrusted-json.ts'
import { argumentsOf, type ForeignItem, type ForeignPart, partsOf, textParts } from './foreign-item.ts'

/** Null: the item is no part of the conversation. */
export function readResponseItem(item: JsonObject): readonly ForeignItem[] | null {
  const type = asString(ownOf(item, 'type'))
  const id = asString(ownOf(item, 'call_id')) || asString(ownOf(item, 'id'))
  switch (type) {
    case 'message':
      return readMessage(item)
    case 'reasoning':
      return readReasoning(item)
    case 'function_call':
    case 'custom_tool_call': {
      const args = argumentsOf(ownOf(item, 'arguments') ?? ownOf(item, 'input'))
      return [{ type: 'call', id, tool: asString(ownOf(item, 'name')), args }]
    }
    case 'local_shell_call':
      return [{ type: 'call', id, tool: 'local_shell', args: argumentsOf(ownOf(item, 'action')) }]
    case 'function_call_output':
    case 'custom_tool_call_output':
    case 'local_shell_call_output':
      return [{ type: 'result', id, ...outputOf(ownOf(item, 'output')) }]
    case 'web_search_call': {
      const call = { type: 'call', id, tool: 'web_search', args: argumentsOf(ownOf(item, 'action')) } as const
      return [call, { type: 'result', id, ok: true, parts: textParts(BY_PROVIDER) }]
    }
    default:
      return null
  }
}

const BY_PROVIDER = 'The provider ran this. Its result is not in the transcript.'

function readMessage(item: JsonObject): readonly ForeignItem[] | null {
  const role = ownOf(item, 'role')
  if (role !== 'user' && role !== 'assistant') return null
  const parts = partsOf(ownOf(item, 'content'))
  return parts.length === 0 ? [] : [{ type: role, parts }]
}

/** The summary, or the text where a host shows it. What is encrypted is of no use elsewhere. */
function readReasoning(item: JsonObject): readonly ForeignItem[] {
  const texts = ['summary', 'content'].map((key) => partsOf(ownOf(item, key)))
  const said = texts.find((parts) => parts.length > 0) ?? []
  const parts = said.flatMap((part) => (part.type === 'file' ? [] : textParts(part.text, 'reasoning')))
  return parts.length === 0 ? [] : [{ type: 'assistant', parts }]
}

type ItemOutput = { readonly ok: boolean; readonly parts: readonly ForeignPart[] }

/** A text, the JSON of a command's output with its exit code, or a list of parts. */
function outputOf(output: Json | undefined): ItemOutput {
  const given = typeof output === 'string' ? (parseObject(output) ?? output) : output
  if (!isObject(given)) return { ok: true, parts: Array.isArray(given) ? partsOf(given) : partsOf(asString(given)) }
  const said = ['output', 'content']
    .map((key) => ownOf(given, key))
    .find((value) => value !== undefined && value !== null)
  // JSON of another kind is the output itself.
  if (said === undefined) return { ok: true, parts: textParts(JSON.stringify(given)) }
  const metadata = ownOf(given, 'metadata')
  const code = isObject(metadata) ? ownOf(metadata, 'exit_code') : undefined
  const ok = ownOf(given, 'success') !== false && (code === undefined || code === 0)
  return {
    ok,
    parts: typeof said === 'string' || asList(said).length > 0 ? partsOf(said) : textParts(JSON.stringify(said)),
  }
}

function parseObject(text: string): JsonObject | undefined {
  const value = /^\s*\{/.test(text) ? parseJson(text) : undefined
  return isObject(value) ? value : undefined
}
