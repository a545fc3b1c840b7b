// Parses server-sent events from bytes. Pure: the given state is not changed, so any prefix of a stream can be
// continued. It knows lines and fields; protocols know the meaning of an event.
import type { WireEvent } from '../protocols/protocol.ts'

export type Framing = {
  /** The bytes of an incomplete character. */
  readonly tail: Uint8Array | null
  /** The incomplete line. */
  readonly line: string
  /** The last character was a carriage return: a line feed after it belongs to it. */
  readonly returned: boolean
  readonly event: string
  /** Null until the event has data; an event without data is ignored. */
  readonly data: string | null
  readonly begun: boolean
}

export const UNFRAMED: Framing = { tail: null, line: '', returned: false, event: '', data: null, begun: false }

/** No provider sends a longer line. */
export const LINE_CHARS_MAX = 16 * 1024 * 1024

/** Throws a RangeError for a line without end; nothing else is refused here. */
export function parseEvents(state: Framing, chunk: Uint8Array): readonly [Framing, readonly WireEvent[]] {
  const { text, tail } = decodeChunk(state.tail, chunk)
  const events: WireEvent[] = []
  let { event, data, line, returned } = state
  let at = !state.begun && text.charCodeAt(0) === 0xfeff ? 1 : 0
  if (returned && text.charCodeAt(at) === 0x0a) at += 1
  if (text !== '') returned = false
  const plain = !text.includes('\r')
  while (at < text.length) {
    if (plain && line === '' && event === '' && data === null) at = takeWholeEvents(text, at, events)
    const end = plain ? text.indexOf('\n', at) : lineEnd(text, at)
    if (end < 0) break
    const { name, value } = fieldOf(line + text.slice(at, end))
    line = ''
    if (name === 'data') data = data === null ? value : `${data}\n${value}`
    else if (name === 'event') event = value
    else if (name === null) {
      if (data !== null) events.push({ event, data })
      event = ''
      data = null
    }
    at = end + 1
    if (plain || text.charCodeAt(end) !== 0x0d) continue
    if (at === text.length) returned = true
    else if (text.charCodeAt(at) === 0x0a) at += 1
  }
  if (at < text.length) line += text.slice(at)
  if (line.length > LINE_CHARS_MAX)
    throw new RangeError(`a line of the stream is longer than ${LINE_CHARS_MAX} characters`)
  return [{ tail, line, returned, event, data, begun: state.begun || text !== '' }, events]
}

const FIELDS = [':', 'data:', 'event:', 'id:', 'retry:']
const BOM = 'ï»¿'

/**
 * Whether a body that starts with this text (one character per byte, without leading white space) is a stream of
 * events. Null if more text is needed. `named`: the content type is that of a stream, so any text but JSON and HTML
 * counts as one.
 */
export function isEventStream(start: string, named: boolean): boolean | null {
  const text = start.startsWith(BOM) ? start.slice(BOM.length).trimStart() : start
  if (text === '' || BOM.startsWith(text)) return null
  if (FIELDS.some((field) => text.startsWith(field))) return true
  if (named) return !'{[<"'.includes(text.charAt(0))
  return FIELDS.some((field) => field.startsWith(text)) ? null : false
}

/**
 * Most events are one line of data and a blank line, and there are thousands: these are taken in one step. Returns
 * where it stopped.
 */
function takeWholeEvents(text: string, from: number, events: WireEvent[]): number {
  let at = from
  while (text.startsWith('data: ', at)) {
    const end = text.indexOf('\n', at)
    if (end < 0 || text.charCodeAt(end + 1) !== 0x0a) break
    events.push({ event: '', data: text.slice(at + 6, end) })
    at = end + 2
  }
  return at
}

/** A blank line has no name, while a comment has an empty one. */
function fieldOf(line: string): { readonly name: string | null; readonly value: string } {
  if (line === '') return BLANK
  const colon = line.indexOf(':')
  if (colon < 0) return { name: line, value: '' }
  const from = line.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1
  return { name: line.slice(0, colon), value: line.slice(from) }
}

const BLANK = { name: null, value: '' } as const

function lineEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x0a || code === 0x0d) return at
  }
  return -1
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Bytes of an incomplete character wait for the next chunk. */
function decodeChunk(
  before: Uint8Array | null,
  chunk: Uint8Array,
): { readonly text: string; readonly tail: Uint8Array | null } {
  const bytes = before === null ? chunk : joinBytes(before, chunk)
  const whole = bytes.length - unfinishedBytes(bytes)
  if (whole === bytes.length) return { text: decoder.decode(bytes), tail: null }
  return { text: decoder.decode(bytes.subarray(0, whole)), tail: bytes.slice(whole) }
}

function joinBytes(before: Uint8Array, after: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(before.length + after.length)
  bytes.set(before)
  bytes.set(after, before.length)
  return bytes
}

/** The number of bytes at the end that begin an incomplete character. */
function unfinishedBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] as number
    if (byte < 0x80) return 0
    if (byte < 0xc0) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    return length > back ? back : 0
  }
  return 0
}
