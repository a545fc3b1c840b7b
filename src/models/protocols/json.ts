// JSON for every provider: half of a surrogate pair makes the whole body invalid for some parsers, so it becomes U+FFFD.
// Signed blocks are not written by this, they go back as they came.
import type { Json } from '../../kernel/content.ts'

const HALF_PAIR = /\p{Surrogate}/gu

export function json(value: Json): string {
  const text = JSON.stringify(value)
  // JSON.stringify escapes half pairs and nothing else this way, so most values are written once and never searched again.
  return text.includes('\\ud') ? JSON.stringify(value, whole) : text
}

function whole(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? value.replace(HALF_PAIR, '\ufffd') : value
}
