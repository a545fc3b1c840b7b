// Chunks that differ only in their text are read by their text alone. Whatever they look like, it must mean the same as reading
// them whole: that is done by giving the event a name, which no host of Chat Completions does.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Delta } from '../../src/ports/model.ts'
import { surroundingsOf, textBetween, chatProtocol } from '../../src/models/protocols/chat/chat-protocol.ts'

const target = { endpoint: 'host', model: 'm', settings: {}, quirks: {} }

function read(chunks: readonly string[], event: string) {
  const deltas: Delta[] = []
  let state = chatProtocol.begin(target)
  for (const data of chunks) {
    const [next, more] = chatProtocol.step(state, { event, data })
    state = next
    deltas.push(...more)
  }
  return { deltas, answer: chatProtocol.finish(state), alike: state.alike }
}

/** Texts that try to look like something else, and some that are long enough to be anything. */
const texts = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    'a',
    '"',
    '\\',
    '\n',
    '"content":"x"',
    '},{',
    'terret-probe',
    '\u2028',
    '\ud83d',
    '😀',
    'null',
  ),
  fc.string({ maxLength: 20 }),
)

type Shape = { readonly id: string; readonly extra: object; readonly delta: object; readonly finish: string | null }

const shapes: fc.Arbitrary<Shape> = fc.record({
  id: fc.constantFrom('one', 'two', '"content":"a"'),
  extra: fc.constantFrom<object>(
    {},
    { usage: null },
    { usage: { prompt_tokens: 3, completion_tokens: 1 } },
    { x: 'a' },
  ),
  delta: fc.constantFrom<object>(
    {},
    { role: 'assistant' },
    { content: null },
    { refusal: 'a' },
    { reasoning_content: 'a' },
    { tool_calls: [{ index: 0, id: 'c', function: { name: 'look', arguments: '{}' } }] },
    { reasoning_details: [{ type: 'reasoning.encrypted', index: 0, data: 'a' }] },
  ),
  finish: fc.constantFrom(null, null, null, 'stop'),
})

function chunkOf({ id, extra, delta, finish }: Shape, text: string): string {
  const choice = { index: 0, delta: { ...delta, content: text }, finish_reason: finish }
  return JSON.stringify({ id, choices: [choice], ...extra })
}

/** Mostly the same shape again and again, as hosts send them. */
const streams = fc
  .array(fc.tuple(shapes, fc.array(texts, { minLength: 1, maxLength: 6 })), { minLength: 1, maxLength: 6 })
  .map((runs) => runs.flatMap(([shape, said]) => said.map((text) => chunkOf(shape, text))))

describe('chunks that are alike', () => {
  it('B-CHAT-32: a chunk that differs from the last only in its text means the same as one that is read whole', () => {
    const plain = { id: 'one', extra: {}, delta: {}, finish: null }
    expect(
      read(
        ['a', 'b'].map((text) => chunkOf(plain, text)),
        '',
      ).alike,
    ).not.toBeNull()
    fc.assert(
      fc.property(streams, (chunks) => {
        const { deltas, answer } = read(chunks, '')
        const whole = read(chunks, 'message')
        expect({ deltas, answer }).toEqual({ deltas: whole.deltas, answer: whole.answer })
      }),
      { numRuns: 1_000 },
    )
  })

  it('B-CHAT-33: only one whole JSON string in the place of the text is such a chunk', () => {
    const alike = surroundingsOf('{"choices":[{"delta":{"content":"a"},"n":1}]}', 'a')
    if (alike === null) throw new Error('the place of the text was not found')
    const middle = (literal: string): string | null => textBetween(`${alike.before}${literal}${alike.after}`, alike)
    expect(middle('"b\\n"')).toBe('b\n')
    const others = ['', '"', 'null', '1', '"a","x":"b"', '"a"},"delta":{"content":"b"', '"a\n"', '[]']
    expect(others.map(middle)).toEqual(others.map(() => null))
    // Shorter than what stands around the text.
    expect([textBetween('', alike), textBetween(alike.before, alike), textBetween(alike.after, alike)]).toEqual([
      null,
      null,
      null,
    ])
    expect(surroundingsOf('{"choices":[{"delta":{"content":["a"]}}]}', 'a')).toBeNull()
    expect(surroundingsOf('{"choices":[{"delta":{"refusal":"a","content":null}}]}', 'a')).toBeNull()
  })
})
