// Texts for display: the text of a message's parts, and shortening. The command line handles the width on a terminal.
import type { Part } from '../kernel/content.ts'

/** Every request contains all pins. */
export const PIN_CHARS_MAX = 10_000

/** The text of the parts, without reasoning, pictures and files. */
export function textOf(parts: readonly Part[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** At most `chars` characters, including the mark of the cut. */
export function clipText(text: string, chars: number): string {
  return text.length <= chars ? text : shortenText(text, chars - 1)
}

/** The first `chars` characters, and a mark if there are more. Never cuts a surrogate pair. */
export function shortenText(text: string, chars: number): string {
  return text.length <= chars ? text : `${text.slice(0, chars).replace(/[\uD800-\uDBFF]$/, '')}…`
}

/** `1 call`, `2 calls`. */
export function countNoun(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/** `43 %`, and never 100 % of something that is not full. */
export function percentText(part: number, whole: number): string {
  const share = (100 * part) / Math.max(1, whole)
  if (share > 0 && share < 1) return '<1 %'
  return `${share >= 100 ? Math.round(share) : Math.floor(share)} %`
}

/** The unique id of an event among all sessions. */
export function eventId(session: string, seq: number): string {
  return `${session}:${seq}`
}

const NO_ERROR = 'something that is no Error was thrown'

/**
 * What was thrown: code of users may throw anything. Never empty, and never `[object Object]`. The other fields of an object are left out: they may hold anything.
 */
export function thrownText(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown || 'an error without a message'
  if (typeof thrown !== 'object' || thrown === null) return `${String(thrown)} was thrown`
  try {
    const { message, name } = thrown as { readonly message?: unknown; readonly name?: unknown }
    if (typeof message === 'string' && message !== '') return message
    return thrown instanceof Error && typeof name === 'string' && name !== '' ? name : NO_ERROR
  } catch {
    return NO_ERROR
  }
}
