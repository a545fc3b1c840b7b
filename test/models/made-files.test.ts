// Pictures that a model makes: read from recorded streams, kept beside the log, and given with the result.
import { createHash } from 'node:crypto'
import type { LanguageModelV3StreamPart } from '@ai-sdk/provider'
import { createOpenRouter } from '@openrouter/ai-sdk-provider'
import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, it } from 'vitest'
import { Harness, memory, type Message, type Model, type Part, type Reply, type Request } from '../../src/index.ts'
import { fromAiSdk } from '../../src/models/aisdk/aisdk.ts'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { chatProtocol } from '../../src/models/protocols/chat/chat-protocol.ts'
import type { Protocol, Quirks } from '../../src/models/protocols/protocol.ts'
import { messagesProtocol } from '../../src/models/protocols/messages/messages-protocol.ts'
import { responsesProtocol } from '../../src/models/protocols/responses/responses-protocol.ts'
import { exportSession } from '../../src/replay.ts'
import { bytesOf, finish, mock, mockV4, streamed } from './aisdk-stage.ts'
import { callContext, request, userSays } from './context.ts'
import { eventsOf, ofType } from './hosted-stage.ts'
import { recording } from './sse.ts'
import { openFile } from '../../sim/forge-file.ts'

const PNG = 'iVBORw0KGgoAAAANSUhEUg=='
const WEBP = 'UklGRhAAAABXRUJQVlA4IA=='
const TARGET = { endpoint: 'e', model: 'm', settings: {}, quirks: {} }

function read<State>(protocol: Protocol<State>, name: string): Reply {
  let state = protocol.begin(TARGET)
  for (const event of recording(name)) state = protocol.step(state, event)[0]
  return protocol.finish(state) as Reply
}

/** The files that the AI SDK reads from the same bytes. */
async function sdkFiles(name: string): Promise<readonly unknown[]> {
  const own = { apiKey: 'k', fetch: () => Promise.resolve(streamed(bytesOf(name))) }
  const model = name.startsWith('chat') ? createOpenRouter(own).chat('m') : createOpenAI(own).responses('gpt-5.2')
  const { stream } = await model.doStream({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'Draw.' }] }] })
  const files: unknown[] = []
  for await (const part of stream as AsyncIterable<LanguageModelV3StreamPart>) {
    if (part.type === 'file') files.push({ type: 'data', media: part.mediaType, data: part.data })
    if (part.type === 'tool-result' && !part.preliminary)
      files.push((part.result as { readonly result?: unknown }).result)
  }
  return files
}

function isData(part: Part): boolean {
  return part.type === 'data'
}

describe('a picture that a model made', () => {
  it('B-MADE-1: is a part of the reply, as the AI SDK reads it from the same recorded stream', async () => {
    const routed = read(chatProtocol, 'chat/openrouter-image')
    expect(routed).toMatchObject({ finish: 'stop', usage: { outputTokens: 1302 } })
    expect(routed.parts).toEqual([
      { type: 'text', text: 'Here is a dot.' },
      { type: 'data', media: 'image/png', data: PNG },
    ])
    expect(await sdkFiles('chat/openrouter-image')).toEqual(routed.parts.filter(isData))
    const openai = read(responsesProtocol, 'responses/image')
    expect(openai.parts).toEqual([
      { type: 'provider', tool: 'image_generation', opaque: expect.anything() as unknown },
      { type: 'data', media: 'image/webp', data: WEBP },
      { type: 'text', text: 'A dot.' },
    ])
    expect(await sdkFiles('responses/image')).toEqual([WEBP])
  })

  it('B-MADE-1: comes through the adapter of the AI SDK, of both specifications', async () => {
    const { context } = callContext()
    const v3 = mock([{ type: 'file', mediaType: 'image/png', data: Buffer.from(PNG, 'base64') }, finish('stop')])
    expect(await fromAiSdk(v3).call(request(), context)).toMatchObject({
      parts: [{ type: 'data', media: 'image/png', data: PNG }],
    })
    const v4 = mockV4([
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: PNG } },
      { type: 'file', mediaType: 'image/webp', data: { type: 'url', url: new URL('https://example.com/a.webp') } },
      finish('stop'),
    ])
    expect(await fromAiSdk(v4.model).call(request(), context)).toMatchObject({
      parts: [
        { type: 'data', media: 'image/png', data: PNG },
        { type: 'url', media: 'image/webp', url: 'https://example.com/a.webp' },
      ],
    })
  })

  function drawing(parts: readonly Part[], asked: Request[] = []): Model {
    return {
      name: 'drawing',
      call: (given) => {
        asked.push(given)
        return Promise.resolve({ type: 'reply', parts, calls: [], finish: 'stop', usage: null })
      },
    }
  }

  it('B-MADE-2, B-VERB-32: is kept beside the log by hash, is an answer without words, and is in the files of the result', async () => {
    const store = memory()
    const asked: Request[] = []
    const harness = new Harness({ model: drawing([{ type: 'data', media: 'image/png', data: PNG }], asked), store })
    const result = await harness.run('Draw.')
    const bytes = Buffer.from(PNG, 'base64')
    const hash = createHash('sha256').update(bytes).digest('hex')
    const ref = { type: 'blob', hash, bytes: bytes.length, media: 'image/png' }
    expect(result).toMatchObject({ status: 'completed', text: '', files: [ref] })
    expect(ofType(await eventsOf(store, result.sessionId), 'agent.message')).toMatchObject([{ parts: [ref] }])
    expect(Buffer.from((await store.blob(hash))?.data ?? [])).toEqual(bytes)
    const session = harness.session(result.sessionId)
    expect(await session.blob(ref)).toEqual(await store.blob(hash))
    expect(await session.blob(hash)).toEqual(await store.blob(hash))
    expect(await session.blob({ hash: 'f'.repeat(64) })).toBeNull()
    for (const wrong of [undefined, '../x', {}, { hash: '../x' }])
      await expect(session.blob(wrong as never)).rejects.toMatchObject({ code: 'invalid_input' })
    expect(openFile(await exportSession(store, result.sessionId)).blobs[hash]).toMatchObject({
      media: 'image/png',
      data: PNG,
    })
    const again = await harness.session(result.sessionId).run('Once more.')
    expect(again.files).toHaveLength(1)
    expect(asked[1]?.messages[1]).toMatchObject({ parts: [{ type: 'data', media: 'image/png', data: PNG }] })
    await harness.close()
    await expect(session.blob(ref)).rejects.toMatchObject({ code: 'harness_closed' })
  })

  /** The messages of the request after a reply with these parts. */
  function sentAfter<State>(protocol: Protocol<State>, parts: readonly Part[], quirks: Quirks = {}): unknown {
    const said = { role: 'assistant', seq: 2, parts, calls: [] } as const
    const body = protocol.encode(request({ messages: [userSays('Draw.'), said, userSays('Smaller.', 4)] }), {
      ...TARGET,
      quirks,
    }).body
    const { messages: list, input } = JSON.parse(body) as { readonly messages?: unknown; readonly input?: unknown }
    return list ?? input
  }
  const NEXT = '[file without a name (image/png) that was made here is in the next message]'
  const ABOVE = '[from the reply above]'
  const dot: Part = { type: 'data', media: 'image/png', data: PNG }
  const address = `data:image/png;base64,${PNG}`

  it('B-MADE-4: goes back to a host of Chat Completions and to Anthropic as a picture of the user, after the reply', () => {
    expect(sentAfter(chatProtocol, read(chatProtocol, 'chat/openrouter-image').parts)).toEqual([
      { role: 'user', content: 'Draw.' },
      { role: 'assistant', content: `Here is a dot.\n\n${NEXT}` },
      {
        role: 'user',
        content: [
          { type: 'text', text: ABOVE },
          { type: 'image_url', image_url: { url: address } },
        ],
      },
      { role: 'user', content: 'Smaller.' },
    ])
    expect(sentAfter(messagesProtocol, [dot])).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: [{ type: 'text', text: NEXT }] },
      {
        role: 'user',
        content: [
          { type: 'text', text: ABOVE },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
          { type: 'text', text: 'Smaller.' },
        ],
      },
    ])
  })

  it("B-MADE-4: goes back to OpenAI in the provider's own item, and as a picture of the user where there is none", () => {
    const { parts } = read(responsesProtocol, 'responses/image')
    const item = { type: 'image_generation_call', id: 'ig_01', status: 'completed', result: WEBP }
    expect(sentAfter(responsesProtocol, parts)).toMatchObject([
      { role: 'user' },
      item,
      { role: 'assistant', content: [{ type: 'output_text', text: 'A dot.' }] },
      { role: 'user' },
    ])
    expect(sentAfter(responsesProtocol, [dot])).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: [{ type: 'output_text', text: NEXT }] },
      { role: 'user', content: [{ text: ABOVE }, { type: 'input_image', image_url: address }] },
      { role: 'user' },
    ])
  })

  it('B-MADE-4: stands after the results where the reply also called tools, and is a note where the host takes no pictures', () => {
    const lacks = { lacks: ['images', 'files'] } as const
    for (const protocol of [chatProtocol, messagesProtocol, responsesProtocol] as readonly Protocol<unknown>[])
      expect(JSON.stringify(sentAfter(protocol, [dot], lacks))).toMatch(/16 bytes\) cannot be shown to this model/)
    const call = { id: 'call-1', tool: 'look', args: {} } as const
    const turn = { role: 'assistant', seq: 2, parts: [dot], calls: [{ ...call, key: '2.0' }] } as unknown as Message
    const result = { role: 'tool', seq: 3, call: '2.0', id: 'call-1', tool: 'look', ok: true, content: 'Seen.' }
    const asked = request({ messages: [userSays('Draw.'), turn, result as unknown as Message] })
    const body = JSON.parse(chatProtocol.encode(asked, TARGET).body) as {
      readonly messages: readonly { role: string }[]
    }
    expect(body.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
  })

  it("B-MADE-4: goes back through the AI SDK as Gemini's own file with its signature, and to others as the user's", async () => {
    const metadata = { google: { thoughtSignature: 'c2ln' } }
    const file = { type: 'file', mediaType: 'image/png', data: PNG, providerMetadata: metadata } as const
    const from = async (provider: string) => {
      const drawing = Object.assign(mock([file, finish('stop')]), { provider })
      const reply = (await fromAiSdk(drawing).call(request(), callContext().context)) as Reply
      return [
        userSays('Draw.'),
        { role: 'assistant', seq: 2, parts: reply.parts, calls: [] } as const,
        userSays('Go.', 4),
      ]
    }
    const bodies: unknown[] = []
    const fetch = (_url: unknown, init?: { readonly body?: unknown }) => {
      bodies.push(JSON.parse(String(init?.body)))
      return Promise.resolve(new Response('{}', { status: 400 }))
    }
    const gemini = createGoogleGenerativeAI({ apiKey: 'k', fetch })('gemini-3-pro-image')
    const { context } = callContext()
    await fromAiSdk(gemini).call(request({ messages: await from(gemini.provider) }), context)
    const inlineData = { mimeType: 'image/png', data: PNG }
    expect(bodies[0]).toMatchObject({
      contents: [{}, { role: 'model', parts: [{ inlineData, thoughtSignature: 'c2ln' }] }, {}],
    })
    const router = createOpenRouter({ apiKey: 'k', fetch }).chat('m')
    await fromAiSdk(router).call(request({ messages: await from(router.provider) }), context)
    expect(bodies[1]).toMatchObject({
      messages: [{}, { role: 'assistant', content: NEXT }, { content: [{}, { image_url: { url: address } }] }, {}],
    })
  })

  it('B-MADE-3: that is larger than is kept, or no base64, is said in words in its place', async () => {
    const store = memory()
    const parts: readonly Part[] = [
      { type: 'data', media: 'image/png', data: '!' },
      { type: 'data', media: 'image/png', data: Buffer.alloc(33_554_433).toString('base64') },
    ]
    const harness = new Harness({ model: drawing(parts), store })
    const result = await harness.run('Draw.')
    expect(result.files).toEqual([])
    expect(result.text).toContain('[left out: The data of this file is not base64, nor bytes.]')
    expect(result.text).toContain('[left out: this file has 33554433 bytes')
    await harness.close()
  })
})
