// How a shortened text says that it is one, and where the original is. A marker means something only where the log of the session
// has the token: one that stands in a document leads nowhere.

import { RETRIEVE } from '../../view/inherited-names.ts'

/** The tool that gives originals back. */
export { RETRIEVE }
/** How a marker begins. */
export const MARKER_START = '⟦tj:'
const TOKEN_CHARS = 32
/** No text with fewer bytes is made shorter, whatever its kind: for these nothing of the router need be loaded. */
export const ROUTED_BYTES_MIN = 512
/** What the stages that make a result shorter say of it in its metadata, and nothing else may. */
export const STAGES = ['compressed', 'summarized', 'budgeted'] as const

const MARKER = /^(?:⟦tj:)?([0-9a-f]{32})⟧?$/

/** The token in what a model writes as one: bare, or as the marker has it. */
export function tokenIn(text: string): string | null {
  return MARKER.exec(text.trim())?.[1] ?? null
}

/** A token for the result of a call: where to look for it in the log, and a part of the hash of the original. */
export function tokenOf(seq: number, hash: string): string {
  const place = seq.toString(16).padStart(8, '0').slice(-8)
  return `${place}${hash.slice(0, TOKEN_CHARS - place.length)}`
}

/** The event after which its result stands. */
export function seqOf(token: string): number {
  return Number.parseInt(token.slice(0, 8), 16)
}

export type Original = { readonly token: string; readonly bytes: number; readonly tool: string }

/** The last line of a shortened text. Without `original`, the text is complete and nothing is kept. */
export function footer(lossy: boolean, original: Original | null): string {
  if (original === null) return '\n[reformatted, no data lost]'
  const { token, bytes, tool } = original
  const marker = `${MARKER_START}${token}⟧`
  if (!lossy) return `\n[reformatted, no data lost; original (${bytes} bytes): ${marker}]`
  return `\n[PARTIAL view, full original (${bytes} bytes): ${tool} with the token ${marker}]`
}
