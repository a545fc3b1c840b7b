// The marker in a shortened text, which says that it is shortened and where the original is. A marker counts only if
// the log of the session has its token: a marker inside a document leads nowhere.

import { RETRIEVE } from '../../view/inherited-names.ts'

/** The tool that returns originals. */
export { RETRIEVE }
/** The beginning of a marker. */
export const MARKER_START = '⟦tj:'
const TOKEN_CHARS = 32
/** Texts with fewer bytes are never shortened, whatever their kind: for them no module of the router is loaded. */
export const ROUTED_BYTES_MIN = 512
/** The metadata fields in which the stages that shorten a result record their work. No tool may set them. */
export const STAGES = ['compressed', 'summarized', 'budgeted'] as const

const MARKER = /^(?:⟦tj:)?([0-9a-f]{32})⟧?$/

/** The token in the text that a model gives as a token: bare, or inside the marker. */
export function originalTokenIn(text: string): string | null {
  return MARKER.exec(text.trim())?.[1] ?? null
}

/** A token for the result of a call: its place in the log, and a part of the hash of the original. */
export function originalToken(seq: number, hash: string): string {
  const place = seq.toString(16).padStart(8, '0').slice(-8)
  return `${place}${hash.slice(0, TOKEN_CHARS - place.length)}`
}

/** The number of the event after which the result stands. */
export function seqOfToken(token: string): number {
  return Number.parseInt(token.slice(0, 8), 16)
}

export type OriginalRef = { readonly token: string; readonly bytes: number; readonly tool: string }

/** The last line of a shortened text. Without `original`, the text is complete and no original is kept. */
export function buildFooter(lossy: boolean, original: OriginalRef | null): string {
  if (original === null) return '\n[reformatted, no data lost]'
  const { token, bytes, tool } = original
  const marker = `${MARKER_START}${token}⟧`
  if (!lossy) return `\n[reformatted, no data lost; original (${bytes} bytes): ${marker}]`
  return `\n[PARTIAL view, full original (${bytes} bytes): ${tool} with the token ${marker}]`
}
