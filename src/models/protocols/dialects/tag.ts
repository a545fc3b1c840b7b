// Reads and writes a call in a tag, such as `<tool_call>{"name": "read", "arguments": {}}</tool_call>`. In each tag
// P-Format is tried first, then JSON. Arguments may hold the tag itself. Pure, and linear in the text.
import { type CallBlock, type CallReader, type CallReading, type ReadCall, readJsonCalls } from './call-reader.ts'
import { skipSpace } from './json-span.ts'
import { readPFormat } from './p-format.ts'

export const readTag: CallReader = (text, from, reading) => {
  const start = text.indexOf('>', from) + 1
  return readTagBody(text, start, `</${text.slice(from + 1, start)}`, reading)
}

/** Reads up to `closing`, which may also stand within the strings of the JSON. */
export function readTagBody(text: string, from: number, closing: string, reading: CallReading): CallBlock | null {
  const start = skipSpace(text, from)
  const end = text[start] === '{' || text[start] === '[' ? reading.endOfJson(text, start) : -1
  const close = end < 0 ? -1 : skipSpace(text, end)
  if (close >= 0 && text.startsWith(closing, close)) {
    const calls = readJsonCalls(text.slice(start, end), reading)
    if (calls !== null) return { calls, end: close + closing.length }
  }
  const at = reading.find(text, closing, start)
  if (at < 0) return null
  const body = text.slice(start, at).trim()
  const positional = readPFormat(body, reading)
  const calls = positional === null ? readJsonCalls(body, reading) : [positional]
  return calls === null ? null : { calls, end: at + closing.length }
}

export function callJson({ tool, args }: ReadCall): string {
  return `{"name": ${JSON.stringify(tool)}, "arguments": ${args}}`
}

export function writeTag(call: ReadCall): string {
  return `<tool_call>\n${callJson(call)}\n</tool_call>`
}
