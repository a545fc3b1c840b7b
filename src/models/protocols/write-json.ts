// Writes JSON for providers. Half a surrogate pair makes the body invalid for some parsers, so it becomes U+FFFD.
// Signed blocks must go back unchanged and do not use `jsonText`.
import type { Json } from '../../kernel/content.ts'
import { isObject } from '../../view/untrusted-json.ts'

const HALF_PAIR = /\p{Surrogate}/gu

export function jsonText(value: Json): string {
  const text = JSON.stringify(value)
  // JSON.stringify escapes only half pairs as \ud…, so most values need no second pass.
  return text.includes('\\ud') ? JSON.stringify(value, replaceHalfPairs) : text
}

function replaceHalfPairs(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replace(HALF_PAIR, '\ufffd') : value
}

/**
 * A JSON object of fields that are JSON already. The caller's own fields come last: an object is merged into the
 * existing one, `tools` and `include` are added to the existing lists, and any other value replaces the existing one.
 */
export function buildRequestBody(fields: Map<string, string>, own: Readonly<Record<string, Json>> = {}): string {
  for (const [name, value] of Object.entries(own)) {
    const before = fields.get(name)
    fields.delete(name)
    fields.set(name, before === undefined ? jsonText(value) : mergeField(name, before, value))
  }
  // Not join: it would copy the whole history once more.
  let body = ''
  for (const [name, text] of fields) body += `${body === '' ? '{' : ','}${jsonText(name)}:${text}`
  return `${body}}`
}

const ADDED: ReadonlySet<string> = new Set(['tools', 'include'])

function mergeField(name: string, before: string, value: Json): string {
  if (ADDED.has(name) && Array.isArray(value)) {
    const more = value.map((item: Json) => jsonText(item)).join(',')
    return more === '' ? before : `${before.slice(0, -1)},${more}]`
  }
  return isObject(value) && before.startsWith('{')
    ? jsonText(mergeObjects(JSON.parse(before) as Json, value))
    : jsonText(value)
}

function mergeObjects(before: Json, value: Json): Json {
  if (!isObject(before) || !isObject(value)) return value
  const all: Record<string, Json> = { ...before }
  for (const [name, item] of Object.entries(value))
    all[name] = name in before ? mergeObjects(before[name] ?? null, item) : item
  return all
}
