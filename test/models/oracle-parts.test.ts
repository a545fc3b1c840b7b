// The AI SDK as the oracle for files in requests: what its provider packages send for a result with a picture, or for an address, is what
// our own encoders send.
import { describe, expect, it } from 'vitest'
import type { Message, Part } from '../../src/index.ts'
import { fromAiSdk } from '../../src/models/aisdk/aisdk.ts'
import { messagesProtocol as anthropic } from '../../src/models/protocols/messages/messages-protocol.ts'
import { responsesProtocol } from '../../src/models/protocols/responses/responses-protocol.ts'
import { bytesOf, client, type Dialect, modelOf, streamed, VERSIONS } from './aisdk-stage.ts'
import { callContext, request, userSays } from './context.ts'

const PNG = 'iVBORw0KGgoAAAANSUhEUg=='
const image: Part = { type: 'data', media: 'image/png', data: PNG, name: 'a.png' }
const paper: Part = { type: 'data', media: 'application/pdf', data: 'JVBERi0=', name: 'a.pdf' }
const page: Part = { type: 'url', media: 'image/png', url: 'https://example.com/a.png' }
const tools = [{ name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }]

function log(...parts: readonly Part[]): readonly Message[] {
  return [
    { role: 'user', seq: 1, parts: [{ type: 'text', text: 'Look.' }, page] },
    { role: 'assistant', seq: 2, parts: [], calls: [{ key: '2.0', id: 'call_1', tool: 'look', args: {} }] },
    { role: 'tool', seq: 3, call: '2.0', id: 'call_1', tool: 'look', ok: true, content: 'A dot.', parts },
    userSays('Well?', 4),
  ]
}

type Fields = Readonly<Record<string, unknown>>

async function theirs(dialect: Dialect, version: (typeof VERSIONS)[number], said: readonly Message[]): Promise<Fields> {
  const { fetch, sent } = client(() => streamed(bytesOf(`${dialect}/text`)))
  const { context } = callContext()
  await fromAiSdk(modelOf(dialect, fetch, version)).call(request({ messages: said, tools }), context)
  return sent[0]?.body as Fields
}

/** Without what is a matter of taste: the default detail of an image, cache marks, names of documents. */
function essence(value: unknown): unknown {
  const left = ['detail', 'cache_control', 'title', 'filename']
  return JSON.parse(JSON.stringify(value, (key, each: unknown) => (left.includes(key) ? undefined : each)))
}

describe.each(VERSIONS)('files as the AI SDK %s sends them', (version) => {
  it('B-PART-10: a result with a picture and a document, and an address, are sent to Anthropic as its package sends them', async () => {
    const target = { endpoint: 'anthropic', model: 'claude-sonnet-4-5', settings: {}, quirks: {} }
    const ours = JSON.parse(anthropic.encode(request({ messages: log(image, paper), tools }), target).body) as Fields
    const sdk = await theirs('messages', version, log(image, paper))
    expect(essence(ours['messages'])).toEqual(essence(sdk['messages']))
  })

  it('B-PART-10: and to OpenAI Responses', async () => {
    const target = { endpoint: 'openai', model: 'gpt-5.2', settings: {}, quirks: {} }
    const ours = JSON.parse(
      responsesProtocol.encode(request({ messages: log(image, paper), tools }), target).body,
    ) as Fields
    const sdk = await theirs('responses', version, log(image, paper))
    const items = (body: Fields): readonly unknown[] =>
      (body['input'] as readonly Fields[]).map(({ type: _type, ...rest }) => rest)
    expect(essence(items(ours))).toEqual(essence(items(sdk)))
  })

  it('B-PART-11: a package that would write a file into the text of a result gets it in a message after the results', async () => {
    const { messages } = (await theirs('chat', version, log(image))) as { readonly messages: readonly Fields[] }
    expect(messages.slice(2, 4)).toEqual([
      {
        role: 'tool',
        tool_call_id: 'call_1',
        content: 'A dot.\n[file a.png (image/png) is in the message after the results]',
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: '[from the result of look]' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
        ],
      },
    ])
  })
})
