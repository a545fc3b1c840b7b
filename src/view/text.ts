// Texts as they are shown: what the parts of a message say, and long ones made short. Widths on a terminal are the command line's.
import type { Part } from '../kernel/content.ts'

/** Every request carries all pins. */
export const PIN_CHARS_MAX = 10_000

/** What they say, without reasoning, pictures and files. */
export function textOf(parts: readonly Part[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** At most `chars` characters, the mark of the cut among them. */
export function clipped(text: string, chars: number): string {
  return text.length <= chars ? text : shortened(text, chars - 1)
}

/** The first `chars` characters, and a mark if there are more. Never half of a character. */
export function shortened(text: string, chars: number): string {
  return text.length <= chars ? text : `${text.slice(0, chars).replace(/[\uD800-\uDBFF]$/, '')}…`
}

/** `1 call`, `2 calls`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/** `43 %`, and never 100 % of what is not full. */
export function percent(part: number, whole: number): string {
  const share = (100 * part) / Math.max(1, whole)
  if (share > 0 && share < 1) return '<1 %'
  return `${share >= 100 ? Math.round(share) : Math.floor(share)} %`
}

/** The name of an event among those of all sessions. */
export function eventId(session: string, seq: number): string {
  return `${session}:${seq}`
}
