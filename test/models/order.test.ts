// The order and the form of calls, from the reply to the next request: texts between them, empty arguments, and several wrapped into
// one. Each protocol's other rules are in its own tests.
import { describe, expect, it } from 'vitest'
import type { Message } from '../../src/kernel/transcript.ts'
import type { Json, Part } from '../../src/kernel/content.ts'
import type { Reply } from '../../src/ports/model.ts'
import { model } from '../../src/index.ts'
import { fromAiSdk } from '../../src/models/aisdk/aisdk.ts'
import type { ModelTarget } from '../../src/models/protocols/protocol.ts'
import { unwrapParallel } from '../../src/models/protocols/parallel.ts'
import { finish, mock, streamed } from './aisdk-stage.ts'
import { callContext, request, userSays } from './context.ts'
import { protocols } from './oracle-said.ts'

const to = (endpoint: string): ModelTarget => ({ endpoint, model: 'm', settings: {}, quirks: {} })

/** The reply as the log shows it to the next request, with a result for each call. */
function shown({ parts, calls }: Pick<Reply, 'parts' | 'calls'>): readonly Message[] {
  const made = calls.map(({ id, tool, args }, i) => {
    return { key: `2.${i}`, id, tool, args: JSON.parse(args || '{}') as Json, raw: args }
  })
  const results = made.map(({ key, id, tool }, i): Message => {
    return { role: 'tool', seq: 3 + i, call: key, id, tool, ok: true, content: 'fine' }
  })
  return [userSays('Go.'), { role: 'assistant', seq: 2, parts, calls: made }, ...results]
}

type Item = { readonly type?: string; readonly text?: string; readonly [field: string]: unknown }

/** What the assistant said and called, in the order of the request. */
function order(protocol: 'messages' | 'responses', reply: Reply, endpoint: string): readonly string[] {
  const { body } = protocols[protocol].encode(request({ messages: shown(reply) }), to(endpoint))
  const { messages = [], input = [] } = JSON.parse(body) as { messages?: readonly Item[]; input?: readonly Item[] }
  const items = [...messages, ...input].filter(({ role, type }) => role === 'assistant' || type === 'function_call')
  return items
    .flatMap((item) => (Array.isArray(item['content']) ? (item['content'] as readonly Item[]) : [item]))
    .map(({ text, id, call_id: call }) => String(text ?? id ?? call))
}

function heard(protocol: 'messages' | 'responses', events: readonly object[], endpoint: string): Reply {
  const reader = protocols[protocol]
  let state = reader.begin(to(endpoint))
  for (const event of events) state = reader.step(state, { event: '', data: JSON.stringify(event) })[0]
  return reader.finish(state) as Reply
}

const block = (index: number, content_block: object) => [
  { type: 'content_block_start', index, content_block },
  { type: 'content_block_stop', index },
]
const anthropic = heard(
  'messages',
  [
    ...block(0, { type: 'text', text: 'First.' }),
    ...block(1, { type: 'tool_use', id: 'a', name: 'look', input: {} }),
    ...block(2, { type: 'text', text: 'Second.' }),
    ...block(3, { type: 'tool_use', id: 'b', name: 'look', input: {} }),
    ...block(4, { type: 'text', text: 'Third.' }),
    { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
    { type: 'message_stop' },
  ],
  'anthropic',
)
const message = (text: string) => ({ type: 'message', content: [{ type: 'output_text', text }] })
const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{}' })
const output = [message('First.'), call('a'), message('Second.'), call('b'), message('Third.')]
const openai = heard('responses', [{ type: 'response.completed', response: { output } }], 'openai')
const ORDER = ['First.', 'a', 'Second.', 'b', 'Third.']

describe('the order of a reply', () => {
  it('B-ORDER-1: a text between calls goes back to its place, on every protocol that can say so and to any provider', () => {
    for (const reply of [anthropic, openai]) {
      expect(reply.calls.map(({ id }) => id)).toEqual(['a', 'b'])
      for (const endpoint of ['anthropic', 'openai', 'elsewhere']) {
        expect(order('messages', reply, endpoint)).toEqual(ORDER)
        expect(order('responses', reply, endpoint)).toEqual(ORDER)
      }
    }
  })

  it('B-ORDER-1: so it does through the AI SDK', async () => {
    const said = (id: string, delta: string) =>
      [
        { type: 'text-start', id },
        { type: 'text-delta', id, delta },
        { type: 'text-end', id },
      ] as const
    const look = (toolCallId: string) => ({ type: 'tool-call', toolCallId, toolName: 'look', input: '' }) as const
    const sdk = mock([...said('0', 'First.'), look('a'), ...said('1', 'Second.'), look('b'), finish('tool-calls')])
    const reply = (await fromAiSdk(sdk).call(request(), callContext().context)) as Reply
    for (const told of [reply, anthropic]) {
      await fromAiSdk(sdk).call(request({ messages: shown(told) }), callContext().context)
      const content = sdk.doStreamCalls.at(-1)?.prompt[1]?.content as unknown as readonly Item[]
      expect(content.map(({ text, toolCallId: id }) => text ?? id)).toEqual(
        ORDER.slice(0, told.parts.length > 3 ? 5 : 4),
      )
    }
  })

  it('B-ORDER-2: empty arguments go back as an empty object', () => {
    for (const args of ['', ' ', '\n']) {
      const log = shown({ parts: [], calls: [{ id: 'a', tool: 'look', args: '{}' }] }).map((each) =>
        each.role === 'assistant' ? { ...each, calls: each.calls.map((made) => ({ ...made, raw: args })) } : each,
      )
      for (const name of ['chat', 'responses'] as const) {
        const { body } = protocols[name].encode(request({ messages: log }), to('openai'))
        expect(body).toContain('"arguments":"{}"')
      }
      expect(protocols.messages.encode(request({ messages: log }), to('anthropic')).body).toContain('"input":{}')
    }
  })
})

describe('several calls wrapped into one', () => {
  const uses = [
    { recipient_name: 'functions.look', parameters: { at: 1 } },
    { recipient_name: 'touch', parameters: {} },
  ]
  const wrapper = (tool: string, args: unknown = { tool_uses: uses }, id = 'w') => {
    return { id, tool, args: typeof args === 'string' ? args : JSON.stringify(args) }
  }
  const tool = (name: string) => ({ name, description: '', parameters: {} })
  const reply = (calls: Reply['calls'], parts: readonly Part[] = []): Reply => {
    return { type: 'reply', parts, calls, finish: 'calls', usage: null }
  }

  it('B-ORDER-3: the wrapper of OpenAI becomes the calls in it, and what stands after it keeps its place', () => {
    const place = (at: number): Part => ({
      type: 'reasoning',
      text: '',
      opaque: { by: 'openai', model: 'm', at, data: null },
    })
    const before = { id: 'x', tool: 'look', args: '{}' }
    const wrapped = reply(
      [before, wrapper('multi_tool_use.parallel'), { ...before, id: 'y' }],
      [place(1), place(2), place(3)],
    )
    expect(unwrapParallel(wrapped, [tool('look')])).toEqual(
      reply(
        [
          before,
          { id: 'w_0', tool: 'look', args: '{"at":1}' },
          { id: 'w_1', tool: 'touch', args: '{}' },
          { ...before, id: 'y' },
        ],
        [place(1), place(3), place(4)],
      ),
    )
  })

  it('B-ORDER-3: what is no such wrapper, is cut, or is a tool that was offered stays as it is', () => {
    for (const odd of [
      wrapper('multi_tool_use.parallel', '{"tool_uses":[{"recipient_name":"functions.lo'),
      wrapper('multi_tool_use.parallel', { tool_uses: [] }),
      wrapper('multi_tool_use.parallel', { tool_uses: [uses[0], { parameters: {} }] }),
      wrapper('multi_tool_use.parallel', { tool_uses: Array.from({ length: 300 }, () => uses[0]) }),
      wrapper('multi_tool_use.parallel', ''),
      wrapper('parallel', { jobs: 3 }),
      wrapper('look'),
    ]) {
      const same = reply([odd])
      expect(unwrapParallel(same, [])).toStrictEqual(same)
    }
    const offered = reply([wrapper('parallel')])
    expect(unwrapParallel(offered, [tool('parallel')])).toStrictEqual(offered)
  })

  it('B-ORDER-3: it is unwrapped over every protocol and through the AI SDK', async () => {
    const made = { name: 'multi_tool_use.parallel', arguments: JSON.stringify({ tool_uses: uses }) }
    const item = { type: 'function_call', call_id: 'w', ...made }
    const completed = { type: 'response.completed', response: { output: [item] } }
    const chunk = {
      choices: [
        { index: 0, delta: { tool_calls: [{ index: 0, id: 'w', function: made }] }, finish_reason: 'tool_calls' },
      ],
    }
    const calls = [
      { id: 'w_0', tool: 'look', args: '{"at":1}' },
      { id: 'w_1', tool: 'touch', args: '{}' },
    ]
    for (const [name, event] of [
      ['openai:gpt-x', completed],
      ['groq:m', chunk],
    ] as const) {
      const bytes = Buffer.from(`data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`)
      const fetch = async (): Promise<Response> => streamed(bytes)
      expect(await model(name, { key: 'k', fetch }).call(request(), callContext().context)).toMatchObject({ calls })
    }
    const input = made.arguments
    const sdk = mock([{ type: 'tool-call', toolCallId: 'w', toolName: made.name, input }, finish('tool-calls')])
    expect(await fromAiSdk(sdk).call(request(), callContext().context)).toMatchObject({ calls })
  })
})
