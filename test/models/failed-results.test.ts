// What a model reads of calls that failed, on every protocol: that they failed, how, and once.
import { describe, expect, it } from 'vitest'
import type { CallStatus, FailureKind } from '../../src/kernel/content.ts'
import type { Event } from '../../src/kernel/event.ts'
import type { Request } from '../../src/ports/model.ts'
import { type Message, Transcript } from '../../src/kernel/transcript.ts'
import { buildCallOptions } from '../../src/models/aisdk/call-options.ts'
import { chatProtocol } from '../../src/models/protocols/chat/chat-protocol.ts'
import { messagesProtocol } from '../../src/models/protocols/messages/messages-protocol.ts'
import { responsesProtocol } from '../../src/models/protocols/responses/responses-protocol.ts'
import { mendMessages } from '../../src/models/protocols/mend-messages.ts'

type Ended = readonly [status: CallStatus, kind: FailureKind | null, said: string]

const ENDS: readonly Ended[] = [
  ['ok', null, '42'],
  ['error', 'Failed', '[failed: error]\n42'],
  ['error', null, '[failed: error]\n42'],
  ['error', 'NotFound', '[failed: error, NotFound]\n42'],
  ['denied', 'Denied', '[failed: denied]\n42'],
  ['aborted', 'Interrupted', '[failed: aborted]\n42'],
  ['timeout', 'Timeout', '[failed: timeout]\n42'],
  ['unknown', 'Unknown', '[failed: unknown]\n42'],
]

/** The messages of a log in which each call returned 42 and ended in one of these ways. */
function logged(ends: readonly Ended[], content = '42'): readonly Message[] {
  const calls = ends.map((_, i) => ({ id: `c${i}`, tool: 'look', args: {}, effect: 'once', timeoutMs: 1 }) as const)
  const results = ends.map(([status, kind], i) => {
    const failure = kind === null ? {} : { failure: { kind, message: content } }
    return { type: 'agent.tool_result', call: `3.${i}`, status, content, ...failure } as const
  })
  const bodies = [
    { type: 'user.message', id: 'u', parts: [{ type: 'text', text: 'Go' }], when: 'next' },
    { type: 'model.started', shows: [1] },
    { type: 'agent.message', parts: [], calls, verdict: { type: 'continue' } },
    ...results,
    { type: 'model.started', shows: results.map((_, i) => 4 + i) },
  ]
  const transcript = new Transcript()
  bodies.forEach((body, i) => transcript.take({ seq: i + 1, at: 0, epoch: 1, ...body } as Event))
  return transcript.messages
}

/** What was made fit to be sent, as messages again. */
function resent(shown: readonly Message[]): readonly Message[] {
  return mendMessages(shown).turns.flatMap((turn): readonly Message[] => {
    if (turn.type === 'user') return [turn.of]
    return [turn.of, ...turn.results.map((each, i): Message => ({ role: 'tool', seq: 4, call: `3.${i}`, ...each }))]
  })
}

const asked = (shown: readonly Message[]): Request => {
  return { session: 's', seq: 9, instructions: '', tools: [], allow: 'all', boost: false, messages: shown }
}
const target = (endpoint: string) => ({ endpoint, model: 'm', settings: { cache: false }, quirks: {} })
type Found = { readonly [key: string]: unknown }

/** Every object in the body of a request that has this field. */
function having(field: string, value: unknown, found: Found[] = []): readonly Found[] {
  if (Array.isArray(value)) for (const item of value) having(field, item, found)
  else if (typeof value === 'object' && value !== null) {
    if (field in value) found.push(value as Found)
    for (const item of Object.values(value)) having(field, item, found)
  }
  return found
}

const PROTOCOLS = {
  chat: (shown: readonly Message[]) => {
    const body: unknown = JSON.parse(chatProtocol.encode(asked(shown), target('openai')).body)
    return having('tool_call_id', body).map(({ content }) => content)
  },
  responses: (shown: readonly Message[]) => {
    const body: unknown = JSON.parse(responsesProtocol.encode(asked(shown), target('openai')).body)
    return having('output', body).map(({ output }) => output)
  },
  messages: (shown: readonly Message[]) => {
    const body: unknown = JSON.parse(messagesProtocol.encode(asked(shown), target('anthropic')).body)
    return having('tool_use_id', body).map(({ content }) => content)
  },
  'AI SDK': (shown: readonly Message[]) => {
    const { prompt } = buildCallOptions({ provider: 'openai.chat', modelId: 'm' }, {}, asked(shown), false)
    return having('toolName', prompt).flatMap(({ output }) => (output ? [(output as Found)['value']] : []))
  },
} as const

describe.each(Object.entries(PROTOCOLS))('results that failed, over %s', (_name, told) => {
  it('B-RESULT-1: begin with the word failed, the status and the kind of failure; others are as they were (S1-40)', () => {
    expect(told(logged(ENDS))).toEqual(ENDS.map(([, , said]) => said))
  })

  it('B-RESULT-2: say it once, also when what was sent is read and sent again', () => {
    const shown = logged(ENDS)
    const first = told(shown)
    expect(told(shown)).toEqual(first)
    expect(told(structuredClone(shown))).toEqual(first)
    expect(told(resent(shown))).toEqual(first)
    expect(told(logged([['error', 'NotFound', '']], '[failed: error, NotFound]\n42'))).toEqual([
      '[failed: error, NotFound]\n42',
    ])
  })

  it('B-RESULT-1: without any content, or without a result in the log, they say so too', () => {
    expect(told(logged([['error', 'Failed', '']], ' '))).toEqual(['[failed: error]\n(no output)'])
    const [missing] = told(logged(ENDS.slice(0, 1)).filter(({ role }) => role !== 'tool'))
    expect(missing).toMatch(/^\[failed: unknown\]\nmissing_tool_result_recovered/)
  })
})

it('B-RESULT-3: a protocol with a mark of its own for failures has it set too', () => {
  const body: unknown = JSON.parse(messagesProtocol.encode(asked(logged(ENDS)), target('anthropic')).body)
  const marks = having('tool_use_id', body).map((block) => block['is_error'] ?? false)
  expect(marks).toEqual(ENDS.map(([status]) => status !== 'ok'))
})
