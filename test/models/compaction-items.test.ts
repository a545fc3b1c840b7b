// What a provider makes of a long context itself goes back to it unchanged: compaction blocks of Anthropic, compaction items of OpenAI.
import { describe, expect, it } from 'vitest'
import type { Json, Part } from '../../src/kernel/content.ts'
import type { Message } from '../../src/kernel/transcript.ts'
import { messagesProtocol } from '../../src/models/protocols/messages/messages-protocol.ts'
import type { Protocol, RequestSettings, ModelTarget } from '../../src/models/protocols/protocol.ts'
import { responsesProtocol } from '../../src/models/protocols/responses/responses-protocol.ts'
import { request, userSays } from './context.ts'

const claude: ModelTarget = { endpoint: 'anthropic', model: 'claude-opus-4-6', settings: {}, quirks: {} }
const gpt = (settings: RequestSettings = {}): ModelTarget => ({
  endpoint: 'openai',
  model: 'gpt-5.2',
  settings,
  quirks: {},
})

function play<State>(protocol: Protocol<State>, target: ModelTarget, events: readonly object[]) {
  let state = protocol.begin(target)
  for (const event of events) [state] = protocol.step(state, { event: '', data: JSON.stringify(event) })
  return protocol.finish(state)
}

function partsOf(answer: ReturnType<typeof play>): readonly Part[] {
  if (answer.type !== 'reply') throw new Error(answer.message)
  return answer.parts
}

const after = (parts: readonly Part[]): readonly Message[] => [
  userSays('Go on.'),
  { role: 'assistant', seq: 3, parts, calls: [] },
  userSays('And now?', 4),
]
const block = (index: number, content_block: object) => ({ type: 'content_block_start', index, content_block })
const stop = (index: number) => ({ type: 'content_block_stop', index })
const ended = (stop_reason: string) => [{ type: 'message_delta', delta: { stop_reason } }, { type: 'message_stop' }]
const compacted = [
  { type: 'message_start', message: { id: 'm1', usage: {} } },
  block(0, { type: 'compaction', content: null, note: 'x' }),
  {
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'compaction_delta', content: 'So far: ', encrypted_content: 'Zm9v' },
  },
  { type: 'content_block_delta', index: 0, delta: { type: 'compaction_delta', content: 'tides.' } },
  stop(0),
]
const whole = { type: 'compaction', content: 'So far: tides.', note: 'x', encrypted_content: 'Zm9v' }

describe("a provider's own compaction", () => {
  it('B-STREAM2-3: a compaction block of Anthropic goes back unchanged and in its place', () => {
    const text = [block(1, { type: 'text', text: 'At six.' }), stop(1), ...ended('end_turn')]
    const parts = partsOf(play(messagesProtocol, claude, [...compacted, ...text]))
    const body = JSON.parse(messagesProtocol.encode(request({ messages: after(parts) }), claude).body) as {
      readonly messages: readonly { readonly content: readonly Json[] }[]
    }
    expect(body.messages[1]?.content).toMatchObject([whole, { type: 'text', text: 'At six.' }])
    expect(body.messages[1]?.content[0]).toEqual(whole)
    const other = messagesProtocol.encode(request({ messages: after(parts) }), { ...claude, endpoint: 'bedrock' }).body
    expect(other).not.toContain('So far')
  })

  it('B-STREAM2-3: a whole answer keeps its block too, and a pause after a compaction is gone on from', () => {
    const body = { content: [whole, { type: 'text', text: 'At six.' }], stop_reason: 'end_turn' }
    const [kept] = partsOf(messagesProtocol.whole(JSON.stringify(body), claude))
    expect(kept).toMatchObject({ type: 'provider', opaque: { data: whole } })
    expect(play(messagesProtocol, claude, [...compacted, ...ended('compaction')])).toMatchObject({ paused: [whole] })
  })

  const item = { id: 'cmp_1', type: 'compaction', encrypted_content: 'gAAAA', created_by: 'server' }
  const message = {
    id: 'msg_1',
    type: 'message',
    status: 'completed',
    content: [{ type: 'output_text', text: 'At six.' }],
  }
  const reasoning = { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'gBBB' }
  const done = (output: readonly object[]) => [
    ...output.map((one, output_index) => ({ type: 'response.output_item.done', output_index, item: one })),
    { type: 'response.completed', response: { id: 'r1', status: 'completed', output } },
  ]

  it.each([[{}], [{ reasoning: 'high' as const }], [{ reasoning: 'off' as const }]])(
    'B-STREAM2-3: a compaction item of OpenAI goes back unchanged, with settings %j',
    (settings) => {
      const parts = partsOf(play(responsesProtocol, gpt(settings), done([reasoning, item, message])))
      const sent = (to: ModelTarget) =>
        (
          JSON.parse(responsesProtocol.encode(request({ messages: after(parts) }), to).body) as {
            readonly input: readonly Json[]
          }
        ).input
      expect(sent(gpt(settings))).toContainEqual(item)
      expect(JSON.stringify(sent({ ...gpt(settings), endpoint: 'azure' }))).not.toContain('gAAAA')
    },
  )

  it('B-STREAM2-3: a compaction alone is no answer to the reasoning before it', () => {
    const parts = partsOf(play(responsesProtocol, gpt({ reasoning: 'high' }), done([reasoning, item])))
    const { body } = responsesProtocol.encode(request({ messages: after(parts) }), gpt({ reasoning: 'high' }))
    expect(body).toContain('gAAAA')
    expect(body).not.toContain('gBBB')
  })
})
