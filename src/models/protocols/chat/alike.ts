// Chunks that differ in nothing but their text. Nearly all of a long reply are such, and reading only the text of one costs a
// third of reading it whole. What a chunk means is stream.ts; this only says where the text of the next one stands.
import { isObject } from '../../../view/json.ts'

/** Whatever JSON text stands between the two, the chunk is the same but for this one value. */
export type Alike = { readonly before: string; readonly after: string }

/** Null if the place of the text cannot be told for certain. */
export function alikeOf(data: string, text: string): Alike | null {
  const literal = JSON.stringify(text)
  const at = data.indexOf(literal, data.indexOf('"content"') + '"content"'.length)
  if (at < 0) return null
  const alike = { before: data.slice(0, at), after: data.slice(at + literal.length) }
  return contentIn(`${alike.before}"${PROBE}"${alike.after}`) === PROBE ? alike : null
}

/** A text no model writes. If it is the content once it stands there, that is the place. */
const PROBE = 'terret-probe'

function contentIn(data: string): unknown {
  try {
    const { choices } = JSON.parse(data) as { readonly choices: readonly { readonly delta: unknown }[] }
    const delta = choices[0]?.delta
    return isObject(delta) ? delta['content'] : null
  } catch {
    return null
  }
}

const QUOTE = 0x22

/** The text of a chunk that is alike; null if it is not, and must be read whole. */
export function textIn(data: string, { before, after }: Alike): string | null {
  const end = data.length - after.length
  // By slices: once it is compiled, startsWith compares character by character.
  if (data.slice(0, before.length) !== before || data.slice(end) !== after) return null
  const literal = data.slice(before.length, end)
  if (literal.charCodeAt(0) !== QUOTE) return null
  try {
    // One string and nothing more, or it is no JSON.
    return JSON.parse(literal) as string
  } catch {
    return null
  }
}
