// Server-sent events out of bytes, however they are cut. The rules are those of the HTML standard, section "Interpreting an
// event stream"; the simple reader here follows them on a whole text and is the measure for the real one.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseEvents, type Framing, LINE_CHARS_MAX, UNFRAMED } from '../../src/models/http/framing.ts'
import type { WireEvent } from '../../src/models/protocols/protocol.ts'

function eventsOf(...chunks: readonly (string | Uint8Array)[]): readonly WireEvent[] {
  const events: WireEvent[] = []
  let state: Framing = UNFRAMED
  for (const chunk of chunks) {
    const [next, more] = parseEvents(state, typeof chunk === 'string' ? Buffer.from(chunk) : chunk)
    state = next
    events.push(...more)
  }
  return events
}

const data = (...texts: readonly string[]) => texts.map((text) => ({ event: '', data: text }))

/** All at once and the plain way. */
function read(bytes: Uint8Array): readonly WireEvent[] {
  const lines = new TextDecoder().decode(bytes).split(/\r\n|\n|\r/)
  const events: WireEvent[] = []
  let event = ''
  let said: string[] = []
  for (const line of lines.slice(0, -1)) {
    const [, field = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (line === '') {
      if (said.length > 0) events.push({ event, data: said.join('\n') })
      event = ''
      said = []
    } else if (field === 'data') said.push(value)
    else if (field === 'event') event = value
  }
  return events
}

/** Split at these places, each a fraction of the length. */
function splitAt(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const cuts = [0, ...places.map((place) => Math.floor(place * bytes.length)).toSorted((a, b) => a - b), bytes.length]
  return cuts.slice(1).map((end, at) => bytes.subarray(cuts[at], end))
}

describe('framing', () => {
  it.each([
    ['a line feed', '\n'],
    ['a carriage return with a line feed', '\r\n'],
    ['a carriage return', '\r'],
  ])('B-FRAME-1: an event ends with a blank line, also where %s ends a line', (_name, end) => {
    const stream = ['event: one', 'data: {"a":1}', '', 'data: two', '', ''].join(end)
    const expected = [{ event: 'one', data: '{"a":1}' }, ...data('two')]
    expect(eventsOf(stream)).toEqual(expected)
    expect(eventsOf(...Array.from(stream))).toEqual(expected)
  })

  it('B-FRAME-1: a line feed after a carriage return belongs to it, also in the next chunk, and only one does', () => {
    expect(eventsOf('data: a\r', '\n', '\r', '\n')).toEqual(data('a'))
    expect(eventsOf('data: a\r', '\n', '\n')).toEqual(data('a'))
    expect(eventsOf('data: a\r', '', '\ndata: b\r', '\n\r\n')).toEqual(data('a\nb'))
  })

  it('B-FRAME-2: lines of data are joined, and only the first space of a value is not part of it', () => {
    expect(eventsOf('data: a\ndata:b\ndata\ndata:  c \n\n')).toEqual(data('a\nb\n\n c '))
    expect(eventsOf('data: x: y\n\n')).toEqual(data('x: y'))
  })

  it('B-FRAME-2: comments, ids, unknown fields and events without data leave no trace', () => {
    expect(eventsOf(': ping\n\n:\nid: 7\nretry: 10\nDATA: no\n data: no\nevent: lost\n\ndata: a\n: b\n\n')).toEqual(
      data('a'),
    )
    expect(eventsOf('event: ping\ndata:\n\n')).toEqual([{ event: 'ping', data: '' }])
    expect(eventsOf('event: a\nevent: b\ndata: c\n\ndata: d\n\n')).toEqual([{ event: 'b', data: 'c' }, ...data('d')])
  })

  it('B-FRAME-3: a byte order mark before the first line is not part of it, and a later one is', () => {
    const mark = Buffer.from([0xef, 0xbb, 0xbf])
    expect(eventsOf(mark, 'data: a\n\n')).toEqual(data('a'))
    expect(eventsOf(mark.subarray(0, 2), mark.subarray(2), 'data: a\n\n')).toEqual(data('a'))
    expect(eventsOf('data: \ufeffa\n\n\ufeffdata: b\n\n')).toEqual(data('\ufeffa'))
  })

  it('B-FRAME-4: a character in pieces is whole again, and one that is broken does not spoil its neighbours', () => {
    const bytes = Buffer.from('data: aé漢🚀z\n\n')
    for (let at = 0; at <= bytes.length; at++) {
      expect(eventsOf(bytes.subarray(0, at), bytes.subarray(at))).toEqual(data('aé漢🚀z'))
    }
    expect(eventsOf('data: a', Buffer.from([0xf0, 0x9f]), 'b\n\n')).toEqual(data('a\ufffdb'))
    expect(eventsOf('data: a', Buffer.from([0x80, 0xff]), 'b\n\n')).toEqual(data('a\ufffd\ufffdb'))
  })

  it('B-FRAME-5: any split of any stream gives the events of the whole, which are those of the standard', () => {
    const words = '\n \r \r\n \n\n \ufeff data data: data:_ event:_ : _ é 漢 🚀 {"a":1}'.split(' ')
    const piece = fc.constantFrom(...words.map((word) => word.replace('_', ' ')))
    const text = fc.array(piece, { maxLength: 40 }).map((pieces) => Buffer.from(pieces.join('')))
    const noise = fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes))
    const stream = fc
      .array(fc.oneof({ weight: 4, arbitrary: text }, noise), { maxLength: 4 })
      .map((all) => Buffer.concat(all))
    const places = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 })
    fc.assert(
      fc.property(stream, places, (bytes, at) => {
        const whole = read(bytes)
        expect(eventsOf(bytes)).toEqual(whole)
        expect(eventsOf(...splitAt(bytes, at))).toEqual(whole)
        expect(eventsOf(...Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(whole)
      }),
      { numRuns: 2_000 },
    )
  })

  it('B-FRAME-6: a line without end is refused, and long ones that end are not', () => {
    const chunk = Buffer.alloc(LINE_CHARS_MAX / 4, 'a')
    const long = ['data: ', chunk, chunk, chunk, '\n\n']
    expect(eventsOf(...long, ...long)[1]?.data).toHaveLength(3 * chunk.length)
    expect(() => eventsOf('data: ', chunk, chunk, chunk, chunk)).toThrow(RangeError)
  })

  it('B-FRAME-7: a state is not changed, and what was not ended is no event', () => {
    const [state, none] = parseEvents(UNFRAMED, Buffer.from('event: a\ndata: b\ndata: c'))
    expect(none).toEqual([])
    const before = structuredClone(state)
    const ends = ['\n\n', 'd\n\n', '\ndata: e\n\n'].map((end) => parseEvents(Object.freeze(state), Buffer.from(end))[1])
    expect(ends.flat().map((event) => event.data)).toEqual(['b\nc', 'b\ncd', 'b\nc\ne'])
    expect(state).toEqual(before)
    expect(eventsOf('data: a\n')).toEqual([])
  })
})
