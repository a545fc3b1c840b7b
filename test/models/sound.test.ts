// The provider boundary over random logs: whatever happened to a session, what is sent is a conversation that providers take.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/kernel/content.ts'
import type { Request } from '../../src/ports/model.ts'
import type { Message } from '../../src/kernel/transcript.ts'
import { endpoints } from '../../src/models/http/endpoints.ts'
import type { Protocol, RequestSettings, ModelTarget } from '../../src/models/protocols/protocol.ts'
import { chatProtocol } from '../../src/models/protocols/chat/chat-protocol.ts'
import { messagesProtocol as anthropic } from '../../src/models/protocols/messages/messages-protocol.ts'
import { responsesProtocol } from '../../src/models/protocols/responses/responses-protocol.ts'
import { mendMessages, type MendedMessages, type SendableTurn } from '../../src/models/protocols/mend-messages.ts'
import { refusals as chatRefusals } from './chat-rules.ts'
import { logs } from './logs.ts'
import { refusals as messagesRefusals } from './messages-rules.ts'
import { refusals as responsesRefusals } from './responses-rules.ts'
import { runs } from '../runs.ts'

const WORD = /^[A-Za-z0-9_-]{1,64}$/
const patterns = [WORD, /^[A-Za-z0-9]{9}$/, /^[A-Za-z0-9_-]{1,40}$/, /^[\w.:-]{1,64}$/]
const CASES = { numRuns: runs(400) }

/** The same conversation as a log would have it, had nothing been wrong. */
function asLog(turns: readonly SendableTurn[]): readonly Message[] {
  return turns.flatMap((turn): readonly Message[] => {
    if (turn.type === 'user') return [{ role: 'user', seq: turn.of.seq, parts: turn.parts }]
    const { of, parts, calls, results } = turn
    const keys = calls.map((_, i) => `${of.seq}.${i}`)
    const shown = calls.map((call, i) => ({ ...call, key: keys[i] ?? '' }))
    const answers = results.map((result, i): Message => ({ role: 'tool', seq: of.seq, call: keys[i] ?? '', ...result }))
    return [{ role: 'assistant', seq: of.seq, parts, calls: shown }, ...answers]
  })
}

const plain = (turns: readonly SendableTurn[]): unknown => turns.map(({ of, ...rest }) => ({ seq: of.seq, ...rest }))

function request(messages: readonly Message[]): Request {
  const tools = [{ name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }]
  return { session: 's', seq: 99, instructions: '', tools, allow: 'all', boost: false, messages }
}

type Host = readonly [
  name: string,
  protocol: Protocol<never>,
  target: ModelTarget,
  refused: (body: string) => readonly string[],
]

const settings: readonly RequestSettings[] = [
  {},
  { reasoning: 'off' },
  { reasoning: 'high' },
  { chain: true, cache: false },
]

function hosts(): readonly Host[] {
  const all: Host[] = []
  for (const set of settings) {
    for (const { name, protocol, quirks } of Object.values(endpoints)) {
      const models = { messages: ['claude-sonnet-4-5', 'claude-opus-4-6'], responses: ['gpt-5.2'], chat: ['m'] }[
        protocol
      ]
      for (const model of models) {
        const target = { endpoint: name, model, settings: set, quirks }
        const pair = { messages: anthropic, responses: responsesProtocol, chat: chatProtocol }[
          protocol
        ] as unknown as Protocol<never>
        const refused = {
          messages: messagesRefusals,
          responses: responsesRefusals,
          chat: (body: string) => chatRefusals(body, name),
        }[protocol]
        all.push([`${name}:${model} ${JSON.stringify(set)}`, pair, target, refused])
      }
    }
  }
  return all
}

describe('a sound conversation', () => {
  it('B-SOUND-1: each call has exactly one result, in order; ids are unique and fit; names, arguments and texts can be sent', () => {
    fc.assert(
      fc.property(logs, fc.constantFrom(...patterns), (log, pattern) => {
        const { turns } = mendMessages(log, pattern)
        const calls = turns.flatMap((turn) => (turn.type === 'assistant' ? turn.calls : []))
        expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length)
        for (const { id, tool, args } of calls) {
          expect(id).toMatch(pattern)
          expect(tool).toMatch(WORD)
          expect(Object.prototype.toString.call(args)).toBe('[object Object]')
        }
        for (const turn of turns) {
          expect(turn.parts.every((part) => part.type !== 'text' || part.text.trim() !== '')).toBe(true)
          if (turn.type === 'user') expect(turn.parts).not.toHaveLength(0)
          else {
            expect(turn.results.map(({ id, tool }) => ({ id, tool }))).toEqual(
              turn.calls.map(({ id, tool }) => ({ id, tool })),
            )
            expect(turn.results.every(({ content }) => content.trim() !== '')).toBe(true)
            expect(turn.parts.length + turn.calls.length).toBeGreaterThan(0)
          }
        }
      }),
      CASES,
    )
  })

  it('B-SOUND-2: it is the same for the same log, and a conversation that is sound is left as it is', () => {
    fc.assert(
      fc.property(logs, fc.constantFrom(...patterns), (log, pattern) => {
        const once = mendMessages(log, pattern)
        expect(mendMessages(structuredClone(log), pattern)).toEqual(once)
        const twice = mendMessages(asLog(once.turns), pattern)
        expect(twice.mended).toEqual([])
        expect(plain(twice.turns)).toEqual(plain(once.turns))
      }),
      CASES,
    )
  })

  it('B-SOUND-3: it only grows: the turns of a start of the log are the start of its turns', () => {
    fc.assert(
      fc.property(logs, fc.nat(), (log, at) => {
        // Results belong to the turn before them, so a prefix must end before a message that is no tool result.
        const starts = log.flatMap((message, i) => (message.role === 'tool' ? [] : [i]))
        const end = starts[at % Math.max(1, starts.length)] ?? 0
        const start = mendMessages(log.slice(0, end)).turns
        expect(plain(mendMessages(log).turns.slice(0, start.length))).toEqual(plain(start))
      }),
      CASES,
    )
  })

  it('B-SOUND-7: a list that grows, or is changed in its place, is read as if it were new', () => {
    const cuts = fc.array(fc.nat(12), { maxLength: 4 })
    fc.assert(
      fc.property(logs, cuts, fc.constantFrom(...patterns), (log, sizes, pattern) => {
        const list: Message[] = []
        // A stray result that comes later is also found later.
        const told = ({ turns, mended }: MendedMessages) => ({
          turns,
          mended: new Set(mended.map((each) => JSON.stringify(each))),
        })
        const check = (): void =>
          expect(told(mendMessages(list, pattern))).toEqual(told(mendMessages(list.slice(), pattern)))
        for (const size of [...sizes, log.length]) {
          list.push(...log.slice(list.length, list.length + size))
          check()
        }
        // As a compaction does: the same array, with less in it and something else at its start.
        list.splice(0, Math.ceil(list.length / 2), {
          role: 'user',
          seq: 1,
          parts: [{ type: 'text', text: 'Summary.' }],
        })
        check()
      }),
      CASES,
    )
  })

  it('B-SOUND-4: what was wrong is named with the event it stands in (AC-70)', () => {
    const user: Message = { role: 'user', seq: 1, parts: [{ type: 'text', text: 'Look.' }] }
    const call = (i: number, id: string, tool = 'look', args: Json = {}) => {
      return { key: `2.${i}`, id, tool, args }
    }
    const calls = [
      call(0, ''),
      call(1, 'a'),
      call(2, 'a'),
      call(3, 'é'),
      call(4, 'd', 'made up'),
      call(5, 'e', 'look', [1]),
    ]
    const result = (seq: number, key: string): Message => {
      return { role: 'tool', seq, call: key, id: '', tool: 'look', ok: true, content: 'seen' }
    }
    const log: readonly Message[] = [
      user,
      { role: 'assistant', seq: 2, parts: [], calls },
      ...[0, 1, 2, 3, 4].map((i) => result(3 + i, `2.${i}`)),
      result(8, '2.0'),
      result(9, '77.0'),
      { role: 'user', seq: 10, parts: [{ type: 'text', text: ' ' }] },
      { role: 'assistant', seq: 11, parts: [], calls: [] },
    ]
    const { turns, mended } = mendMessages(log)
    expect(mended).toEqual([
      { seq: 8, what: 'stray_result', call: '2.0' },
      { seq: 9, what: 'stray_result', call: '77.0' },
      { seq: 2, what: 'blank_id', call: '2.0' },
      { seq: 2, what: 'repeated_id', call: '2.2' },
      { seq: 2, what: 'odd_id', call: '2.3' },
      { seq: 2, what: 'odd_name', call: '2.4' },
      { seq: 2, what: 'odd_arguments', call: '2.5' },
      { seq: 2, what: 'missing_result', call: '2.5' },
      { seq: 10, what: 'empty_message' },
      { seq: 11, what: 'empty_message' },
    ])
    expect(turns).toHaveLength(2)
    expect(turns[1]).toMatchObject({
      calls: [
        { id: 'call_2_0' },
        { id: 'a' },
        { id: 'call_2_2' },
        { id: 'call_2_3' },
        { tool: 'made_up' },
        { args: { arguments: [1] } },
      ],
      results: [
        {},
        {},
        {},
        {},
        {},
        { ok: false, content: expect.stringContaining('missing_tool_result_recovered') as string },
      ],
    })
  })

  it('B-SOUND-5: an id that a model wrote and that would be ours is not given twice', () => {
    const call = (seq: number, id: string) => [{ key: `${seq}.0`, id, tool: 'look', args: {} }]
    const log = (own: string): readonly Message[] => [
      { role: 'assistant', seq: 1, parts: [], calls: call(1, own) },
      { role: 'assistant', seq: 2, parts: [], calls: call(2, '') },
      { role: 'assistant', seq: 3, parts: [], calls: call(3, own) },
    ]
    const given = (own: string, pattern?: RegExp) =>
      mendMessages(log(own), pattern).turns.flatMap((turn) =>
        turn.type === 'assistant' ? turn.calls.map(({ id }) => id) : [],
      )
    expect(given('call_2_0')).toEqual(['call_2_0', 'call_2_0_1', 'call_3_0'])
    expect(given('000002000', /^[A-Za-z0-9]{9}$/)).toEqual(['000002000', '000002001', '000003000'])
  })

  it.each(hosts())('B-SOUND-6: no random log brings %s to refuse a request', (_name, protocol, target, refused) => {
    fc.assert(
      fc.property(logs, (log) => {
        expect(refused(protocol.encode(request(log), target).body)).toEqual([])
      }),
      { numRuns: runs(60), examples: [[FOREIGN_TOOL]] },
    )
  })
})

/** A thought of OpenAI that led to nothing but a call of another provider's tool, which is not sent on. */
const FOREIGN_TOOL: Message[] = [
  {
    role: 'assistant',
    seq: 1,
    parts: [
      {
        type: 'reasoning',
        text: '',
        opaque: {
          by: 'openai',
          model: 'gpt-5.2',
          at: 0,
          data: { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'g' },
        },
      },
      {
        type: 'provider',
        tool: 'web_search',
        opaque: {
          by: 'anthropic',
          model: 'm',
          at: 0,
          data: { type: 'server_tool_use', id: 's_0', name: 'web_search', input: {} },
        },
      },
    ],
    calls: [],
  },
]
