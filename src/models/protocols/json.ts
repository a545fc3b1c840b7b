// Reads and writes JSON for providers. Half a surrogate pair makes the body invalid for some parsers, so it becomes U+FFFD. Signed
// blocks must go back unchanged and do not use `json`.
import type { Json } from '../../kernel/content.ts'
import { isObject } from '../../view/json.ts'

const HALF_PAIR = /\p{Surrogate}/gu

export function json(value: Json): string {
  const text = JSON.stringify(value)
  // JSON.stringify escapes only half pairs as \ud…, so most values need no second pass.
  return text.includes('\\ud') ? JSON.stringify(value, whole) : text
}

function whole(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replace(HALF_PAIR, '\ufffd') : value
}

/**
 * A JSON object of fields that are JSON already. The caller's own fields come last: an object is merged into the one that is there,
 * `tools` and `include` are added to the lists that are there, and anything else replaces what is there.
 */
export function bodyOf(fields: Map<string, string>, own: Readonly<Record<string, Json>> = {}): string {
  for (const [name, value] of Object.entries(own)) {
    const before = fields.get(name)
    fields.delete(name)
    fields.set(name, before === undefined ? json(value) : mergedText(name, before, value))
  }
  // Not join: it would copy the whole history once more.
  let body = ''
  for (const [name, text] of fields) body += `${body === '' ? '{' : ','}${json(name)}:${text}`
  return `${body}}`
}

const ADDED: ReadonlySet<string> = new Set(['tools', 'include'])

function mergedText(name: string, before: string, value: Json): string {
  if (ADDED.has(name) && Array.isArray(value)) {
    const more = value.map((item: Json) => json(item)).join(',')
    return more === '' ? before : `${before.slice(0, -1)},${more}]`
  }
  return isObject(value) && before.startsWith('{') ? json(merged(JSON.parse(before) as Json, value)) : json(value)
}

function merged(before: Json, value: Json): Json {
  if (!isObject(before) || !isObject(value)) return value
  const all: Record<string, Json> = { ...before }
  for (const [name, item] of Object.entries(value))
    all[name] = name in before ? merged(before[name] ?? null, item) : item
  return all
}
