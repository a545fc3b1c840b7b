// Reads and writes JSON for providers. Half a surrogate pair makes the body invalid for some parsers, so it becomes U+FFFD. Signed
// blocks must go back unchanged and do not use `json`.
import type { Json } from '../../kernel/content.ts'

const HALF_PAIR = /\p{Surrogate}/gu

export function json(value: Json): string {
  const text = JSON.stringify(value)
  // JSON.stringify escapes only half pairs as \ud…, so most values need no second pass.
  return text.includes('\\ud') ? JSON.stringify(value, whole) : text
}

function whole(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replace(HALF_PAIR, '\ufffd') : value
}

/** A JSON object of fields that are JSON already. The caller's own fields come last and replace others of the same name. */
export function bodyOf(fields: Map<string, string>, own: Readonly<Record<string, Json>> = {}): string {
  for (const [name, value] of Object.entries(own)) {
    fields.delete(name)
    fields.set(name, json(value))
  }
  // Not join: it would copy the whole history once more.
  let body = ''
  for (const [name, text] of fields) body += `${body === '' ? '{' : ','}${json(name)}:${text}`
  return `${body}}`
}
