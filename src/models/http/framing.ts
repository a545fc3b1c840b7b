// Server-sent events out of bytes. Pure: the state given is not changed, so any prefix of a stream can be gone on from.
// It knows lines and fields; protocols know what an event means.
import type { WireEvent } from '../protocols/protocol.ts'

export type Framing = {
  /** The bytes of a character that is not whole yet. */
  readonly tail: Uint8Array | null
  /** The line that is not whole yet. */
  readonly line: string
  /** A carriage return was the last character: a line feed after it belongs to it. */
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
export function frame(state: Framing, chunk: Uint8Array): readonly [Framing, readonly WireEvent[]] {
  const { text, tail } = decode(state.tail, chunk)
  const events: WireEvent[] = []
  let { event, data, line, returned } = state
  let at = !state.begun && text.charCodeAt(0) === 0xfeff ? 1 : 0
  if (returned && text.charCodeAt(at) === 0x0a) at += 1
  if (text !== '') returned = false
  const plain = !text.includes('\r')
  while (at < text.length) {
    if (plain && line === '' && event === '' && data === null) at = wholeEvents(text, at, events)
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
 * Whether a body that starts with this text (one character a byte, without white space before it) is a stream of events. Null if
 * more of it is needed. `named`: its type says so, and then anything counts but JSON and pages.
 */
export function begins(start: string, named: boolean): boolean | null {
  const text = start.startsWith(BOM) ? start.slice(BOM.length).trimStart() : start
  if (text === '' || BOM.startsWith(text)) return null
  if (FIELDS.some((field) => text.startsWith(field))) return true
  if (named) return !'{[<"'.includes(text.charAt(0))
  return FIELDS.some((field) => field.startsWith(text)) ? null : false
}

/** Most are one line of data and a blank one, and there are thousands: these are taken in one go. Returns where it stopped. */
function wholeEvents(text: string, from: number, events: WireEvent[]): number {
  let at = from
  while (text.startsWith('data: ', at)) {
    const end = text.indexOf('\n', at)
    if (end < 0 || text.charCodeAt(end + 1) !== 0x0a) break
    events.push({ event: '', data: text.slice(at + 6, end) })
    at = end + 2
  }
  return at
}

/** A blank line has no name, not even an empty one as a comment has. */
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

/** Characters whose bytes are not all here yet wait for the next chunk. */
function decode(
  before: Uint8Array | null,
  chunk: Uint8Array,
): { readonly text: string; readonly tail: Uint8Array | null } {
  const bytes = before === null ? chunk : joined(before, chunk)
  const whole = bytes.length - unfinished(bytes)
  if (whole === bytes.length) return { text: decoder.decode(bytes), tail: null }
  return { text: decoder.decode(bytes.subarray(0, whole)), tail: bytes.slice(whole) }
}

function joined(before: Uint8Array, after: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(before.length + after.length)
  bytes.set(before)
  bytes.set(after, before.length)
  return bytes
}

/** How many bytes at the end begin a character that goes on. */
function unfinished(bytes: Uint8Array): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] as number
    if (byte < 0x80) return 0
    if (byte < 0xc0) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    return length > back ? back : 0
  }
  return 0
}
