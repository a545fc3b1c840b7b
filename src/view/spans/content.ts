// What is captured of a run's content, in the shapes of the GenAI conventions. Each text is written once: arguments and
// results on their call, input where it is first shown, and what repeats (instructions, toolset) by hash elsewhere.
import type { BlobRef, Json, Part, Proposal } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'

/** Longer texts are cut here: a trace is to look at, and the log has the whole of it. */
const TEXT_CHARS_MAX = 32_768

export function bounded(text: string): string {
  if (text.length <= TEXT_CHARS_MAX) return text
  const half = /[\uD800-\uDBFF]/.test(text.charAt(TEXT_CHARS_MAX - 1)) ? 1 : 0
  return `${text.slice(0, TEXT_CHARS_MAX - half)}… [cut; ${text.length} characters in all]`
}

/** What an event says to the model, if it is one that does: input, or a note of the harness. */
export function saidBy(event: Event): readonly Part[] | null {
  if (event.type === 'user.message') return event.parts
  return event.type === 'note.added' ? [{ type: 'text', text: event.text }] : null
}

export function inputMessages(said: readonly (readonly Part[])[]): string {
  return JSON.stringify(said.map((parts) => ({ role: 'user', parts: parts.map(partOf) })))
}

/** Calls are named here; their arguments stand on their own spans. */
export function outputMessage(parts: readonly Part[], calls: readonly Proposal[]): string {
  const asked = calls.map(({ id, tool }) => ({ type: 'tool_call', id, name: tool }))
  return JSON.stringify([{ role: 'assistant', parts: [...parts.map(partOf), ...asked] }])
}

export function argumentsText(args: Json): string {
  return bounded(JSON.stringify(args))
}

/** A large result lives beside the log, and is only named: it can be read there by its hash. */
export function resultText(content: string | BlobRef): string | null {
  return typeof content === 'string' ? bounded(content) : null
}

function partOf(part: Part): Json {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, content: bounded(part.text) }
    case 'blob':
      return { type: 'file', mime_type: part.media, file_id: part.hash }
    case 'data':
    case 'url':
    case 'file_id':
      return { type: 'file', mime_type: part.media }
    case 'provider':
      return { type: 'server_tool', name: part.tool }
    case 'source':
      return { type: 'source', uri: part.url }
  }
}
