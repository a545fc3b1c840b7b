// Thoughts that a server of Chat Completions leaves in the text, between tags, and answers whose only choice has an odd number.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { chatProtocol } from '../../src/models/protocols/chat/chat-protocol.ts'
import { delta, hear, replyOf, send, target } from './chat-heard.ts'

const END = delta({}, 'stop')
const thought = (text: string) => ({
  type: 'reasoning',
  text,
  opaque: { by: 'openrouter', model: 'm', at: 0, data: null },
})
const said = (text: string) => ({ type: 'text', text })
const contents = (...texts: readonly string[]) => texts.map((content) => delta({ content }))

/** The parts that deltas make, in the order of their numbers. */
function heardParts(...data: readonly unknown[]): readonly (readonly [string, string])[] {
  const parts: [string, string][] = []
  for (const { kind, part, text } of hear(send(...data)).deltas) {
    parts[part] ??= [kind, '']
    parts[part][1] += text
  }
  return parts
}

describe('Chat: thoughts between tags', () => {
  it('B-STREAM2-1: <think> at the begin of the content is a thought, and what follows the text', () => {
    const whole = contents('<think>\nTides first.\n</think>\n\nAt six.')
    expect(replyOf(...whole, END)).toMatchObject({ parts: [thought('Tides first.\n'), said('At six.')] })
    expect(heardParts(...whole)).toEqual([
      ['reasoning', 'Tides first.\n'],
      ['text', 'At six.'],
    ])
  })

  it('B-STREAM2-1: it is told the same however its chunks are cut', () => {
    const full = ' \n<think>Is 3 < 4? </thin </think>\n\nYes, <think> is a tag.'
    fc.assert(
      fc.property(fc.array(fc.nat(full.length)), (cuts) => {
        const places = [0, ...new Set(cuts), full.length].sort((a, b) => a - b)
        const pieces = places.slice(1).map((end, i) => full.slice(places[i], end))
        const chunks = contents(...pieces)
        expect(replyOf(...chunks, END)).toMatchObject({
          parts: [thought('Is 3 < 4? </thin '), said('Yes, <think> is a tag.')],
        })
        expect(heardParts(...chunks)).toEqual([
          ['reasoning', 'Is 3 < 4? </thin '],
          ['text', 'Yes, <think> is a tag.'],
        ])
      }),
    )
  })

  it('B-STREAM2-1: an empty thought is none, and one that is cut off is kept', () => {
    expect(replyOf(...contents('<think>\n\n</think>\n\nSix.'), END)).toMatchObject({ parts: [said('Six.')] })
    const cut = replyOf(...contents('<think>Tides </thi'), delta({}, 'length'))
    expect(cut).toMatchObject({ parts: [thought('Tides </thi')], finish: 'length' })
  })

  it('B-SMALL-24: text before a closing tag that no opening one precedes is a thought of the whole answer', () => {
    const whole = contents('Tides', ' first.\n</th', 'ink>\n\nAt six, </think> it says.')
    expect(replyOf(...whole, END)).toMatchObject({
      parts: [thought('Tides first.\n'), said('At six, </think> it says.')],
    })
    expect(replyOf(...contents('</think>\n\nSix.'), END)).toMatchObject({ parts: [said('Six.')] })
    const call = { index: 0, id: 'c', function: { name: 'look', arguments: '{}' } }
    expect(replyOf(...contents('Look first.\n</think>'), delta({ tool_calls: [call] }), END)).toMatchObject({
      parts: [thought('Look first.\n')],
      calls: [{ tool: 'look' }],
    })
  })

  it.each([
    'Close it with `</think>` and go on.',
    '```\n</think>\n```\nis how it ends.',
    'Write <think> before and </think> after.',
    'The tag </think> ends it.',
    '{"text":"a</think>b"}',
    'Step 1: strip everything up to </think>.\nStep 2: parse the rest.',
    'Remove the line\n</think>\nfrom the file.',
    'Everything up to </think>\n\nis a thought.',
  ])('B-SMALL-24: a text about tags stays whole, also without quotes: %j', (text) => {
    expect(replyOf(...contents(text), END)).toMatchObject({ parts: [said(text)] })
  })

  it('B-SMALL-24: thoughts that come apart leave the text as it is', () => {
    const apart = delta({ reasoning_content: 'Tides.' })
    expect(replyOf(apart, ...contents('Six </think> is a tag.'), END)).toMatchObject({
      parts: [thought('Tides.'), said('Six </think> is a tag.')],
    })
  })

  it('B-STREAM2-1: a tag later in the text, and half a tag, are text', () => {
    for (const text of ['Use <think> here.', '<thinker>', '<thi', ' <', '<b>bold</b>'])
      expect(replyOf(...contents(...text.split('')), END)).toMatchObject({ parts: [said(text)] })
  })

  it('B-STREAM2-1: calls after a thought are calls, and a whole answer says the same', () => {
    const message = {
      content: '<think>Look.</think>',
      tool_calls: [{ index: 0, id: 'c1', function: { name: 'look', arguments: '{}' } }],
    }
    const body = JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })
    const calls = [{ id: 'c1', tool: 'look', args: '{}' }]
    expect(chatProtocol.whole(body, target)).toMatchObject({ parts: [thought('Look.')], calls, finish: 'calls' })
  })
})

describe('Chat: the number of the choice', () => {
  const choice = (index: unknown, content: string) => ({
    choices: [{ index, delta: { content }, finish_reason: null }],
  })

  it.each([[1], [7], [-1], [null], [undefined]])(
    'B-STREAM2-2: a sole choice with the index %s keeps its text',
    (index) => {
      const end = { choices: [{ index, delta: {}, finish_reason: 'stop' }] }
      const reply = replyOf(choice(index, 'The '), choice(index, 'tide.'), end)
      expect(reply).toMatchObject({ parts: [said('The tide.')], finish: 'stop' })
      const body = { choices: [{ index, message: { content: 'The tide.' }, finish_reason: 'stop' }] }
      expect(chatProtocol.whole(JSON.stringify(body), target)).toMatchObject({ parts: [said('The tide.')] })
    },
  )

  it('B-STREAM2-2: the text of a sole choice with another index is streamed', () => {
    const [first, more] = [choice(1, 'The '), choice(1, 'tide.')]
    expect(heardParts(first, more)).toEqual([['text', 'The tide.']])
  })

  it('B-STREAM2-2: of several choices one is read, and never a mix', () => {
    const mixed = [choice(0, 'a'), choice(1, 'x'), choice(0, 'b'), choice(1, 'y')]
    expect(replyOf(...mixed, END)).toMatchObject({ parts: [said('ab')] })
    const both = { choices: [...choice(1, 'x').choices, ...choice(0, 'a').choices] }
    expect(replyOf(both, choice(0, 'b'), END)).toMatchObject({ parts: [said('ab')] })
    expect(replyOf(choice(1, 'x'), choice(0, 'a'), choice(1, 'y'), END)).toMatchObject({ parts: [said('a')] })
    const sole = [choice(2, 'x'), choice(1, 'no'), choice(2, 'y')]
    expect(replyOf(...sole, '[DONE]')).toMatchObject({ parts: [said('xy')] })
  })
})
