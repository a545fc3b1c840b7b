// Reads the calls that a model wrote into its text, in one dialect. Only the whole reply counts: if one call of it
// cannot be read, none is taken. What stands in a code fence or behind a backtick is prose. Pure, and linear in the
// text.
import type { ToolSchema } from '../../../ports/model.ts'
import { looksLikeCall } from '../leaked-calls.ts'
import { type CallBlock, CallReading, type ReadCall } from './call-reader.ts'
import { fenceAfter } from './fence.ts'
import { FENCE_MARKER, findAny } from './markers.ts'
import type { DialectRules } from './readers.ts'

/** How results are shown to the model. A reply that goes on with one makes it up. */
export const RESULT_OPENING = '<tool_result'

/** `raw`: the call as the model wrote it. A block of several calls stands with its first one. */
export type TextCall = ReadCall & { readonly raw: string }
/** `text`: the reply without its calls. */
export type CallsOfText = { readonly calls: readonly TextCall[]; readonly text: string }

/** Null if the text has no call, or a call that cannot be read. */
export function readCalls(text: string, rules: DialectRules, tools: readonly ToolSchema[]): CallsOfText | null {
  const calls: TextCall[] = []
  const prose: string[] = []
  let from = 0
  const reading = new CallReading(tools)
  for (const part of markedParts(text, rules, reading)) {
    prose.push(text.slice(from, part.at))
    from = part.end
    if (part.calls === null) {
      // What follows an invented result is based on it.
      if (calls.length > 0) from = text.length
      else prose.push(text.slice(part.at, part.end))
    } else {
      const raw = text.slice(part.at, part.end)
      calls.push(...part.calls.map((call, i) => ({ ...call, raw: i === 0 ? raw : '' })))
    }
    if (from === text.length) break
  }
  if (calls.length === 0 || reading.isOver) return null
  prose.push(text.slice(from))
  const rest = prose.flatMap((each) => each.trim() || []).join('\n\n')
  const names = tools.map(({ name }) => name)
  return looksLikeCall(rest, names) ? null : { calls, text: rest }
}

/** `calls` is null for the beginning of a result. */
type MarkedPart = { readonly at: number; readonly end: number; readonly calls: CallBlock['calls'] | null }

/** The calls of the text, and the results that it holds, in order. */
function* markedParts(text: string, { readers }: DialectRules, reading: CallReading): Generator<MarkedPart> {
  const marker = findAny([...readers.keys(), RESULT_OPENING], 'g')
  let found = marker.exec(text)
  let fence: string | null = null
  let isLineStart = true
  for (let at = 0; at < text.length && found !== null && !reading.isOver; ) {
    const line = text.indexOf('\n', at)
    const end = line < 0 ? text.length : line
    const before = fence
    if (isLineStart && !(fence === null && startsCall(text, at, readers)))
      fence = fenceAfter(text.slice(at, end), fence)
    const isProse = fence !== null || before !== null
    while (found !== null && found.index < at) found = next(marker, text, found.index + 1)
    if (found === null) return
    if (isProse || found.index >= end) {
      at = end + 1
      isLineStart = true
      continue
    }
    const { 0: word, index } = found
    const block = readPart(text, index, readers.get(word), reading)
    if (block !== null) yield { at: index, ...block }
    at = block === null ? index + word.length : block.end
    isLineStart = false
  }
}

/** The search goes on at `from`; what was passed is not searched again. */
function next(marker: RegExp, text: string, from: number): RegExpExecArray | null {
  marker.lastIndex = Math.max(marker.lastIndex, from)
  return marker.exec(text)
}

function startsCall(text: string, at: number, readers: DialectRules['readers']): boolean {
  return readers.has(FENCE_MARKER) && text.startsWith(FENCE_MARKER, at)
}

/** Null for prose that has the marker, and for a call that cannot be read. */
function readPart(
  text: string,
  at: number,
  reader: ReturnType<DialectRules['readers']['get']>,
  reading: CallReading,
): Omit<MarkedPart, 'at'> | null {
  if (text[at - 1] === '`') return null
  if (reader === undefined) return { end: at + RESULT_OPENING.length, calls: null }
  const block = reader(text, at, reading)
  if (block === null) reading.failed()
  return block
}
