// The captured content of a run, in the shapes of the GenAI conventions. Each text is written once: arguments and
// results on their call, input where it is first shown, and repeated texts (instructions, toolset) by hash elsewhere.
import type { BlobRef, Json, Part, Proposal } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'

/** Longer texts are cut here: a trace is for looking at, and the log has the whole text. */
const TEXT_CHARS_MAX = 32_768

export function boundText(text: string): string {
  if (text.length <= TEXT_CHARS_MAX) return text
  const half = /[\uD800-\uDBFF]/.test(text.charAt(TEXT_CHARS_MAX - 1)) ? 1 : 0
  return `${text.slice(0, TEXT_CHARS_MAX - half)}… [cut; ${text.length} characters in all]`
}

/** The message of an event to the model, if it has one: input, or a note of the harness. */
export function promptParts(event: Event): readonly Part[] | null {
  if (event.type === 'user.message') return event.parts
  return event.type === 'note.added' ? [{ type: 'text', text: event.text }] : null
}

export function inputMessages(said: readonly (readonly Part[])[]): string {
  return JSON.stringify(said.map((parts) => ({ role: 'user', parts: parts.map(partOf) })))
}

/** Calls are named here; their arguments are on their own spans. */
export function outputMessage(parts: readonly Part[], calls: readonly Proposal[]): string {
  const asked = calls.map(({ id, tool }) => ({ type: 'tool_call', id, name: tool }))
  return JSON.stringify([{ role: 'assistant', parts: [...parts.map(partOf), ...asked] }])
}

export function argumentsText(args: Json): string {
  return boundText(JSON.stringify(args))
}

/** A large result is stored beside the log and only named: its hash leads to it. */
export function resultText(content: string | BlobRef): string | null {
  return typeof content === 'string' ? boundText(content) : null
}

function partOf(part: Part): Json {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, content: boundText(part.text) }
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
