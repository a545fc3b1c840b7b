// A conversation that took place elsewhere, given to `open({ messages })`: what the model is shown of it, and that nothing of it runs.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  type BroughtMessage,
  defineTool,
  Fault,
  Harness,
  memory,
  scripted,
  sqlite,
  type CompleteStore,
} from '../../src/index.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import type { Model, Request } from '../../src/ports/model.ts'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const folder = mkdtempSync(join(tmpdir(), 'terret-bring-'))
const closing: (() => Promise<void>)[] = []
let count = 0
let ran = 0

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  ran = 0
})

const weather = defineTool({
  name: 'weather',
  description: 'The weather of a city.',
  input: z.object({ city: z.string() }),
  effect: 'once',
  execute: () => `ran ${++ran}`,
})

/** A model that answers from a script and keeps each request. */
function keeping(script: Parameters<typeof scripted>[0]): { readonly model: Model; readonly requests: Request[] } {
  const requests: Request[] = []
  const inner = scripted(script)
  const call: Model['call'] = (request, context) => {
    requests.push(structuredClone(request))
    return inner.call(request, context)
  }
  return { requests, model: { name: inner.name, call } }
}

function make(store: CompleteStore, model: Model, more: object = {}): Harness {
  const harness = new Harness({ model, store, tools: [weather], ...more })
  closing.push(() => harness.close())
  return harness
}

/** What a model reads of a request: one line for each message. */
function linesOf({ messages }: Pick<Request, 'messages'>): readonly string[] {
  return messages.map((message) => {
    if (message.role === 'tool')
      return `tool ${message.tool} ${message.ok ? 'ok' : 'failed'}: ${typeof message.content === 'string' ? message.content : 'not text'}`
    const parts = message.parts.map((part) => (part.type === 'text' ? part.text : `<${part.type}>`)).join(' ')
    const calls =
      message.role === 'assistant' ? message.calls.map(({ tool, args }) => `${tool}${JSON.stringify(args)}`) : []
    return [`${message.role}:`, parts, ...calls].filter((text) => text !== '').join(' ')
  })
}

/** The same conversation as three libraries write it. */
const shapes: Readonly<Record<string, readonly BroughtMessage[]>> = {
  'chat completions': [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Is it cold there?' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: '-4 degrees' },
    { role: 'assistant', content: 'It is cold.' },
  ],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Is it cold there?' },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
      ],
    },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'weather', input: { city: 'Oslo' } }] },
    {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: '-4 degrees' }] }],
    },
    { role: 'assistant', content: [{ type: 'text', text: 'It is cold.' }] },
  ],
  'the AI SDK': [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Is it cold there?' },
        { type: 'image', image: PNG, mediaType: 'image/png' },
      ],
    },
    {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: 'a', toolName: 'weather', input: { city: 'Oslo' } }],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: 'a', toolName: 'weather', output: { type: 'text', value: '-4 degrees' } },
      ],
    },
    { role: 'assistant', content: 'It is cold.' },
  ],
}
const SHOWN = [
  'user: Is it cold there? <data>',
  'assistant: weather{"city":"Oslo"}',
  'tool weather ok: -4 degrees',
  'assistant: It is cold.',
]

describe('open({ messages })', () => {
  it.each(Object.entries(shapes))(
    'B-BRING-1: the model reads a conversation of %s first, and nothing of it runs',
    async (_, messages) => {
      const { model, requests } = keeping(['Take a coat.'])
      const harness = make(memory(), model)
      const session = await harness.open({ messages })
      expect(requests).toHaveLength(0)
      expect((await session.status({ include: ['card'] })).card).toMatchObject({
        status: 'idle',
        cost: 0,
        asks: [],
        waits: [],
      })
      const result = await session.run('What should I wear?')
      expect(result).toMatchObject({ status: 'completed', text: 'Take a coat.' })
      expect(requests.map(linesOf)).toEqual([[...SHOWN, 'user: What should I wear?']])
      expect(ran).toBe(0)
      expect(result.usage).toMatchObject({ modelRequests: 1, toolCalls: 0 })
    },
  )

  it('B-BRING-2: a last message without an answer is read with the next one, and starts no run', async () => {
    const { model, requests } = keeping(['Both.'])
    const harness = make(memory(), model)
    const session = await harness.open({
      messages: [
        { role: 'assistant', content: 'How can I help?' },
        { role: 'user', content: 'Coat' },
        { role: 'user', content: 'or hat?' },
      ],
    })
    expect(await harness.work({ session: session.id })).toMatchObject({})
    expect(requests).toHaveLength(0)
    await session.run('Say.')
    expect(requests.map(linesOf)).toEqual([['assistant: How can I help?', 'user: Coat', 'user: or hat?', 'user: Say.']])
  })

  it('B-BRING-3: the conversation is in the log: another process, a fork and an imported copy go on with it', async () => {
    const store = sqlite(join(folder, `${count++}.db`))
    closing.push(() => store.close())
    const messages = shapes['messages'] ?? []
    const first = make(store, keeping([]).model)
    const { id } = await first.open({
      messages,
      environment: 'staging',
      labels: { tenant: 'acme' },
      metadata: { a: 1 },
    })
    await first.close()
    const here = keeping(['One.', 'Two.'])
    const second = make(store, here.model)
    await second.session(id).run('Go on.')
    expect(here.requests.map(linesOf)[0]).toEqual([...SHOWN, 'user: Go on.'])
    expect(here.requests[0]?.instructions).toContain('Environment: staging')
    expect((await second.session(id, { stored: true }).status({ include: ['card'] })).card).toMatchObject({
      labels: { tenant: 'acme' },
    })
    const fork = await second.session(id).fork()
    await fork.run('Another way.')
    expect(here.requests.map(linesOf)[1]?.slice(0, SHOWN.length)).toEqual(SHOWN)
    const elsewhere = memory()
    await importSession(elsewhere, await exportSession(store, id))
    const there = keeping(['Three.'])
    await make(elsewhere, there.model).session(id).run('Go on there.')
    expect(there.requests.map(linesOf)[0]?.slice(0, SHOWN.length)).toEqual(SHOWN)
    expect(ran).toBe(0)
    expect(await second.session(id).undo()).toEqual([])
  })

  it('B-BRING-4: with an id the same messages give the same session, and others are refused', async () => {
    const harness = make(memory(), keeping([]).model)
    const messages = [{ role: 'user', content: 'Hi' }] as const
    await harness.open({ id: 'order-7', messages })
    const { seq } = (await harness.session('order-7', { stored: true }).status({ include: ['card'] })).card
    expect((await harness.open({ id: 'order-7', messages })).id).toBe('order-7')
    const other = [{ role: 'user', content: 'Ho' }] as const
    await expect(harness.open({ id: 'order-7', messages: other })).rejects.toMatchObject({ code: 'id_reused' })
    await expect(harness.open({ id: 'order-7' })).rejects.toMatchObject({ code: 'id_reused' })
    expect((await harness.open({ id: 'order-7', messages: other, reuse: true })).id).toBe('order-7')
    expect((await harness.session('order-7', { stored: true }).status({ include: ['card'] })).card).toMatchObject({
      seq,
    })
  })

  const call = { id: 'a', type: 'function', function: { name: 'weather', arguments: '{}' } }
  const refused: readonly (readonly [string, unknown, RegExp])[] = [
    ['a text', 'Hi', /"messages" of open must be a list/],
    ['an unknown role', [{ role: 'bot', content: 'Hi' }], /messages\[0\] has the role "bot".*user, assistant or tool/],
    ['a system message', [{ role: 'system', content: 'Be brief.' }], /messages\[0\].*`instructions`/],
    ['no content', [{ role: 'user' }], /messages\[0\] has no content/],
    ['an empty text', [{ role: 'user', content: '  ' }], /messages\[0\] has no content/],
    ['a part of no kind', [{ role: 'user', content: [{ type: 'hologram' }] }], /messages\[0\].*"hologram"/],
    [
      'bad base64',
      [{ role: 'user', content: [{ type: 'image', media: 'image/png', data: '!' }] }],
      /messages\[0\].*base64/,
    ],
    ['an open call', [{ role: 'assistant', tool_calls: [call] }], /messages\[0\] calls "weather" \(a\).*no result/],
    [
      'a call that is answered too late',
      [
        { role: 'assistant', tool_calls: [call] },
        { role: 'user', content: 'x' },
        { role: 'tool', tool_call_id: 'a', content: 'y' },
      ],
      /messages\[0\] calls "weather" \(a\).*no result/,
    ],
    ['a result of no call', [{ role: 'tool', tool_call_id: 'b', content: 'y' }], /messages\[0\].*"b".*no call/],
    ['two calls of one id', [{ role: 'assistant', tool_calls: [call, call] }], /messages\[0\].*two calls.*"a"/],
    [
      'arguments that are no JSON',
      [{ role: 'assistant', tool_calls: [{ ...call, function: { name: 'weather', arguments: '{' } }] }],
      /messages\[0\].*arguments.*JSON/,
    ],
    ['too many', Array.from({ length: 10_001 }, () => ({ role: 'user', content: 'x' })), /at most 10000 messages/],
  ]
  it.each(refused)(
    'B-BRING-5: %s is refused by one sentence, and nothing is written',
    async (_, messages, sentence) => {
      const store = memory()
      const harness = make(store, keeping([]).model)
      const opening = harness.open({ messages: messages as readonly BroughtMessage[] })
      await expect(opening).rejects.toThrow(sentence)
      await expect(opening).rejects.toBeInstanceOf(Fault)
      expect((await harness.list({ order: 'id', limit: 500 })).cards).toEqual([])
    },
  )

  it('B-BRING-6: secrets of a conversation are not written, and a refused or denied result is shown as one', async () => {
    const { model, requests } = keeping(['Fine.'])
    const harness = make(memory(), model, { secrets: { TOKEN: 'hunter2-hunter2' } })
    const session = await harness.open({
      messages: [
        { role: 'user', content: 'My token is hunter2-hunter2' },
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: 'a', name: 'gone', input: { key: 'hunter2-hunter2' } },
            { type: 'tool_use', id: 'b', name: 'hunter2-hunter2', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: 'no: hunter2-hunter2', is_error: true },
            { type: 'tool_result', tool_use_id: 'b', content: 'no' },
          ],
        },
      ],
    })
    await session.run('And now?')
    expect(JSON.stringify(await session.events())).not.toContain('hunter2')
    expect(requests.map(linesOf)[0]?.[2]).toMatch(/^tool gone failed: no: ⟦secret:TOKEN⟧/)
  })
})
