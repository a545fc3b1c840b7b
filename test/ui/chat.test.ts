// chatHandler and the real client of the AI SDK: what a chat shows, approves and has again after a reload. Refusals are chat-refused.test.ts.
import { Chat } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  parseJsonEventStream,
  readUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
  uiMessageChunkSchema,
} from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, type Harness, type Model, type Script } from '../../src/index.ts'
import { uiMessageResponse, uiMessages } from '../../src/ui/index.ts'
import { ask, family, report, tool as childTool, use } from '../runtime/children-stage.ts'
import { makeFile, open } from '../stores/folder.ts'
import { make, moment, tool, waiting } from '../runtime/scene.ts'
import { chatServer, framesOf, post, type Seen, userMessage } from './stage.ts'

type Auto = 'approvals' | 'calls'

function chatAt(url: string, id: string, messages: UIMessage[] = [], auto: Auto = 'approvals') {
  const errors: string[] = []
  const chat = new Chat({
    id,
    messages,
    transport: new DefaultChatTransport({ api: url }),
    sendAutomaticallyWhen:
      auto === 'approvals'
        ? lastAssistantMessageIsCompleteWithApprovalResponses
        : lastAssistantMessageIsCompleteWithToolCalls,
    onError: (error) => void errors.push(error.message),
  })
  return { chat, errors }
}

/** The call of the last message that was asked about. */
function askedIn(messages: readonly UIMessage[]): {
  readonly state: string
  readonly approval: { readonly id: string }
} {
  return messages.at(-1)?.parts[1] as never
}

async function loaded(url: string, id: string): Promise<UIMessage[]> {
  const { messages } = (await (await fetch(`${url}/${id}/messages`)).json()) as { messages: UIMessage[] }
  return messages
}

/** Without fields that are undefined, and without the ids of reasoning, which are the stream's own. */
function shown(messages: readonly UIMessage[]): unknown {
  const whole = JSON.parse(JSON.stringify(messages)) as UIMessage[]
  for (const { parts } of whole) for (const part of parts) if (part.type === 'reasoning') delete part.id
  return whole
}

const until = async (ready: () => boolean) => {
  const end = Date.now() + 20_000
  while (!ready()) {
    if (Date.now() > end) throw new Error('it did not come')
    await new Promise((go) => setTimeout(go, 5))
  }
}

const weather = defineTool({
  name: 'get_weather',
  description: 'Weather',
  input: z.object({ city: z.string() }),
  effect: 'read',
  execute: ({ city }) => ({ city, celsius: 4 }),
})
const publish = (extra = {}) => tool('publish', { approval: 'ask', effect: 'once', ...extra })
const busy: Script = [
  {
    reasoning: 'I need the weather.',
    deltas: ['Let me ', 'look.'],
    calls: [{ tool: 'get_weather', args: { city: 'Oslo' } }],
  },
  { reasoning: 'Cold.', deltas: ['It is ', '4 °C.'] },
]

describe('a chat of the AI SDK', () => {
  it('B-UI-1: it shows texts, reasoning, calls and results as they come, and a reload shows the same', async () => {
    const url = await chatServer(make([...busy, 'Warmer.'], { tools: [weather] }))
    const { chat, errors } = chatAt(url, 'c1')
    await chat.sendMessage({ text: 'How warm is it in Oslo?' })
    expect(errors).toEqual([])
    expect(chat.status).toBe('ready')
    expect(chat.messages).toHaveLength(2)
    expect(chat.messages[1]?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'reasoning', text: 'I need the weather.', state: 'done' },
      { type: 'text', text: 'Let me look.', state: 'done' },
      {
        type: 'tool-get_weather',
        state: 'output-available',
        input: { city: 'Oslo' },
        output: { city: 'Oslo', celsius: 4 },
      },
      { type: 'step-start' },
      { type: 'reasoning', text: 'Cold.' },
      { type: 'text', text: 'It is 4 °C.' },
    ])
    expect(chat.messages[1]?.metadata).toMatchObject({ status: 'completed' })
    expect(shown(await loaded(url, 'c1'))).toEqual(shown(chat.messages))
    await chat.sendMessage({ text: 'And in Rome?' })
    expect(chat.messages).toHaveLength(4)
    expect(shown(await loaded(url, 'c1'))).toEqual(shown(chat.messages))
  })

  it('B-UI-1: every chunk is one that the AI SDK knows, and the answer names the protocol', async () => {
    const harness = make(busy, { tools: [weather] })
    const session = await harness.open()
    const response = await uiMessageResponse(session, session.stream('How warm is it?', { deltas: true }))
    expect(response.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1')
    const types: string[] = []
    const body = response.body as ReadableStream<Uint8Array<ArrayBuffer>>
    const chunks = parseJsonEventStream({ stream: body, schema: uiMessageChunkSchema })
    for await (const chunk of chunks as unknown as AsyncIterable<{ success: boolean; value?: UIMessageChunk }>) {
      expect(chunk).toMatchObject({ success: true })
      types.push(chunk.value?.type ?? '')
    }
    expect(types.join(' ')).toBe(
      'start start-step reasoning-start reasoning-delta reasoning-end text-start text-delta text-delta text-end ' +
        'tool-input-start tool-input-available tool-output-available finish-step start-step ' +
        'reasoning-start reasoning-delta reasoning-end text-start text-delta text-delta text-end finish-step finish',
    )
  })

  it('B-UI-2: an approval is asked, answered in the page and decided by the name that the server gives', async () => {
    const harness = make([{ calls: [{ tool: 'publish', args: { n: 7 } }] }, 'Online.'], { tools: [publish()] })
    const url = await chatServer(harness)
    const { chat, errors } = chatAt(url, 'c2')
    await chat.sendMessage({ text: 'Publish the news.' })
    const asked = chat.messages.at(-1)?.parts.find((part) => part.type === 'tool-publish')
    expect(asked).toMatchObject({ state: 'approval-requested', input: { n: 7 } })
    const id = (asked as { approval: { id: string } }).approval.id
    expect(chat.messages.at(-1)?.parts).toContainEqual(
      expect.objectContaining({
        type: 'data-approval',
        id,
        data: expect.objectContaining({ tool: 'publish' }) as object,
      }),
    )
    await chat.addToolApprovalResponse({ id, approved: true, reason: 'Fine.' })
    await until(() => chat.status === 'ready' && chat.messages.at(-1)?.parts.at(-1)?.type === 'text')
    expect(errors).toEqual([])
    expect(chat.messages).toHaveLength(2)
    expect(chat.messages[1]?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'tool-publish', state: 'output-available', output: 'publish 7' },
      { type: 'data-approval' },
      { type: 'step-start' },
      { type: 'text', text: 'Online.' },
    ])
    const { events } = await harness.session('c2').events()
    expect(events.find(({ type }) => type === 'user.tool_confirmation')).toMatchObject({
      allow: true,
      by: 'ana',
      why: 'Fine.',
    })
  })

  it('B-UI-2: a no is told to the model, and the page shows the call as denied', async () => {
    const url = await chatServer(
      make([{ calls: [{ tool: 'publish', args: {} }] }, 'Then not.'], { tools: [publish()] }),
    )
    const { chat } = chatAt(url, 'c3')
    await chat.sendMessage({ text: 'Publish.' })
    const [part] = chat.messages.at(-1)?.parts.filter(({ type }) => type === 'tool-publish') ?? []
    await chat.addToolApprovalResponse({ id: (part as { approval: { id: string } }).approval.id, approved: false })
    await until(() => chat.status === 'ready' && chat.messages.at(-1)?.parts.at(-1)?.type === 'text')
    expect(chat.messages.at(-1)?.parts).toMatchObject([{}, { state: 'output-denied' }, {}, {}, { text: 'Then not.' }])
    expect((await loaded(url, 'c3')).at(-1)?.parts[1]).toMatchObject({ state: 'output-denied' })
  })

  it('B-UI-3: a question that needs two people is asked again after the first yes', async () => {
    const policy = { rules: [{ effect: 'ask', tool: 'publish', class: 'release', n: 2, roles: ['lead'] }] } as const
    const harness = make([{ calls: [{ tool: 'publish', args: {} }] }, 'Online.'], {
      tools: [publish()],
      approvals: { policy },
    })
    let name = 'ana'
    const url = await chatServer(harness, { by: () => ({ name, role: 'lead' }) })
    const { chat, errors } = chatAt(url, 'c4')
    await chat.sendMessage({ text: 'Publish.' })
    const part = () => chat.messages.at(-1)?.parts[1] as { state: string; approval: { id: string } }
    await chat.addToolApprovalResponse({ id: part().approval.id, approved: true })
    await until(() => chat.status === 'ready' && part().state === 'approval-requested')
    name = 'ben'
    await chat.addToolApprovalResponse({ id: part().approval.id, approved: true })
    await until(() => chat.status === 'ready' && part().state === 'output-available')
    expect(errors).toEqual([])
  })

  it('B-UI-4: a call that the page answers itself goes on with its answer', async () => {
    const ask = defineTool({ name: 'color', description: 'Asks the user.', input: z.object({}) })
    const harness = make([{ calls: [{ tool: 'color', args: {} }] }, 'Blue it is.'], { tools: [ask] })
    const url = await chatServer(harness)
    const { chat, errors } = chatAt(url, 'c5', [], 'calls')
    await chat.sendMessage({ text: 'Paint it.' })
    const part = chat.messages.at(-1)?.parts[1] as { toolCallId: string; state: string }
    expect(part.state).toBe('input-available')
    await chat.addToolOutput({ tool: 'color', toolCallId: part.toolCallId, output: { color: 'blue' } })
    await until(() => chat.status === 'ready' && chat.messages.at(-1)?.parts.at(-1)?.type === 'text')
    expect(errors).toEqual([])
    expect(chat.messages.at(-1)?.parts).toMatchObject([{}, { output: { color: 'blue' } }, {}, { text: 'Blue it is.' }])
  })

  it('B-UI-17: the question of a child stands on the call that the child works for, and the answer reaches it', async () => {
    const roles = { root: [ask('Publish it.'), report], 'Publish it.': [use('publish'), 'Published.'] }
    const { harness } = family(roles, { tools: [childTool('publish', { approval: 'ask', effect: 'once' })] })
    const url = await chatServer(harness)
    await chatAt(url, 'c7').chat.sendMessage({ text: 'Go.' })
    const { chat, errors } = chatAt(url, 'c7', await loaded(url, 'c7'))
    await chat.resumeStream()
    const part = () => chat.messages.at(-1)?.parts[1] as { type: string; state: string; approval: { id: string } }
    expect(part()).toMatchObject({ type: 'tool-subagent', state: 'approval-requested' })
    const data = chat.messages.at(-1)?.parts.find(({ type }) => type === 'data-approval')
    expect(data).toMatchObject({ id: part().approval.id, data: { tool: 'publish', sessionId: 'c7~5.0' } })
    // A page cannot say in its place what the child found.
    const forged = harness.session('c7').answer({ callId: '5.0', content: 'Done.' })
    await expect(forged).rejects.toMatchObject({ code: 'decision_stale' })
    await chat.addToolApprovalResponse({ id: part().approval.id, approved: true })
    await until(() => chat.status === 'ready' && part().state === 'output-available')
    expect(errors).toEqual([])
    expect(chat.messages.at(-1)?.parts.at(-1)).toMatchObject({
      type: 'text',
      text: expect.stringContaining('Published.') as string,
    })
  })

  it('B-UI-5: a run that fails is shown with one sentence, and what was said before it stays', async () => {
    const script: Script = [
      { text: 'Wait.', calls: [{ tool: 'get_weather', args: { city: 'Oslo' } }] },
      { error: 'auth', message: 'The key is not valid.' },
    ]
    const { chat, errors } = chatAt(await chatServer(make(script, { tools: [weather] })), 'c6')
    await chat.sendMessage({ text: 'How warm is it?' })
    expect(chat.status).toBe('error')
    expect(errors).toEqual([expect.stringContaining('The key is not valid.')])
    expect(chat.messages.at(-1)).toMatchObject({ metadata: { status: 'failed' } })
    expect(chat.messages.at(-1)?.parts).toContainEqual(expect.objectContaining({ type: 'text', text: 'Wait.' }))
  })
})

/** Says a sentence in two halves; the second waits for the test. */
function speaker(): { model: Model; spoke: Promise<void>; go: () => void } {
  const [spoke, gate] = [moment(), moment()]
  const model: Model = {
    name: 'speaker',
    call: async (_, { emit }) => {
      emit({ kind: 'reasoning', part: 0, text: 'Hm.' })
      emit({ kind: 'text', part: 1, text: 'Hello, ' })
      spoke.come()
      await gate.here
      emit({ kind: 'text', part: 1, text: 'world' })
      const parts = [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'text', text: 'Hello, world.' },
      ] as const
      return { type: 'reply', parts, calls: [], finish: 'stop', usage: null }
    },
  }
  return { model, spoke: spoke.here, go: gate.come }
}

async function whole(chunks: readonly Seen[]): Promise<UIMessage> {
  const stream = new ReadableStream<UIMessageChunk>({
    start: (controller) => {
      for (const { data } of chunks) controller.enqueue(data as UIMessageChunk)
      controller.close()
    },
  })
  let last: UIMessage | null = null
  const errors: unknown[] = []
  for await (const message of readUIMessageStream({ stream, onError: (error) => void errors.push(error) }))
    last = message
  expect(errors).toEqual([])
  return last as unknown as UIMessage
}

const sent = (text: string, id: string) => ({ id, messages: [userMessage(text)], trigger: 'submit-message' })

describe('a page that is loaded again', () => {
  it('B-UI-6: it gets the message that is being said from its beginning, then the rest', async () => {
    const { model, spoke, go } = speaker()
    const harness = make(model)
    const url = await chatServer(harness)
    const first = chatAt(url, 'r1')
    const sending = first.chat.sendMessage({ text: 'Say it.' })
    await spoke
    await until(() => JSON.stringify(first.chat.messages).includes('Hello, '))
    await first.chat.stop()
    await sending
    const second = chatAt(url, 'r1', await loaded(url, 'r1'))
    const resumed = second.chat.resumeStream()
    await until(() => JSON.stringify(second.chat.messages).includes('Hello, '))
    go()
    await resumed
    expect(second.errors).toEqual([])
    expect(second.chat.messages).toHaveLength(2)
    expect(second.chat.messages[1]?.parts).toMatchObject([{}, { text: 'Hm.' }, { text: 'Hello, world.' }])
    const third = chatAt(url, 'r1', await loaded(url, 'r1'))
    await third.chat.resumeStream()
    expect(third.chat.status).toBe('ready')
    expect(third.chat.messages).toHaveLength(2)
  })

  it('B-UI-6: it shows an approval that waits, and answers it', async () => {
    const harness = make([{ calls: [{ tool: 'publish', args: {} }] }, 'Online.'], { tools: [publish()] })
    const url = await chatServer(harness)
    await chatAt(url, 'r2').chat.sendMessage({ text: 'Publish.' })
    const { chat, errors } = chatAt(url, 'r2', await loaded(url, 'r2'))
    await chat.resumeStream()
    const part = chat.messages.at(-1)?.parts[1] as { state: string; approval: { id: string } }
    expect(part.state).toBe('approval-requested')
    await chat.addToolApprovalResponse({ id: part.approval.id, approved: true })
    await until(() => chat.status === 'ready' && chat.messages.at(-1)?.parts.at(-1)?.type === 'text')
    expect(errors).toEqual([])
    expect(chat.messages.at(-1)?.parts).toMatchObject([{}, { state: 'output-available' }, {}, {}, { text: 'Online.' }])
  })

  it('B-UI-6: a call that was approved and still runs is not asked about again', async () => {
    const { tool: slow, runs, go } = waiting('slow', { approval: 'ask', effect: 'once' })
    const harness = make([{ calls: [{ tool: 'slow', args: {} }] }, 'Done.'], { tools: [slow] })
    const url = await chatServer(harness)
    const { chat } = chatAt(url, 'r3')
    await chat.sendMessage({ text: 'Go.' })
    await chat.addToolApprovalResponse({ id: askedIn(chat.messages).approval.id, approved: true })
    await runs.here
    expect((await loaded(url, 'r3')).at(-1)?.parts[1]).toMatchObject({ state: 'approval-responded' })
    const second = chatAt(url, 'r3', await loaded(url, 'r3'))
    const resumed = second.chat.resumeStream()
    await until(() => askedIn(second.chat.messages).state === 'input-available')
    go()
    await resumed
    expect(second.chat.messages.at(-1)?.parts.at(-1)).toMatchObject({ text: 'Done.' })
  })
})

describe('a stream that broke off', () => {
  it('B-UI-7: from every position that it gave it goes on without gap and without duplicate, once all is said', async () => {
    const script: Script = [
      ...busy.slice(0, 1),
      { calls: [{ tool: 'get_weather', args: { city: 'Rome' } }] },
      busy[1] ?? '',
    ]
    const url = await chatServer(make(script, { tools: [weather] }))
    const frames = await framesOf(await post(url, sent('How warm is it?', 's1')))
    const expected = await whole(frames)
    const cuts = frames.flatMap(({ id }, i) => (id === null ? [] : [{ id, i }]))
    expect(cuts.length).toBeGreaterThan(15)
    expect(new Set(cuts.map(({ id }) => id)).size).toBe(cuts.length)
    for (const { id, i } of cuts) {
      const rest = await framesOf(await fetch(`${url}/s1/stream`, { headers: { 'last-event-id': id } }))
      expect({ id, message: await whole([...frames.slice(0, i + 1), ...rest]) }).toEqual({ id, message: expected })
    }
  })

  it('B-UI-7: and in the middle of a text that is still being said', async () => {
    const { model, spoke, go } = speaker()
    const harness = make(model)
    const url = await chatServer(harness)
    const response = await post(url, sent('Say it.', 's2'))
    await spoke
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes('Hello, ')) text += (await reader?.read())?.value ?? ''
    await reader?.cancel()
    const before = await framesOf(new Response(text))
    const rest = fetch(`${url}/s2/stream?after=${before.at(-1)?.id}`).then(framesOf)
    await new Promise((soon) => setTimeout(soon, 50))
    go()
    const after = await rest
    expect(after.map(({ data }) => data['delta'] ?? data['type'])).toEqual(['world', '.', 'text-end', 'finish'])
    expect((await whole([...before, ...after])).parts).toMatchObject([{}, { text: 'Hm.' }, { text: 'Hello, world.' }])
  })

  it('B-UI-7: and over a run that was asked for by another page meanwhile', async () => {
    const harness = make(['One.', 'Two.'])
    const url = await chatServer(harness)
    const frames = await framesOf(await post(url, sent('first', 's3')))
    await framesOf(await post(url, sent('second', 's3')))
    const rest = await framesOf(await fetch(`${url}/s3/stream?after=${frames.at(-1)?.id}`))
    expect(rest.map(({ data }) => data['delta'] ?? data['type']).join(' ')).toBe(
      'start start-step text-start Two. text-end finish-step finish',
    )
    expect((await whole(rest)).id).toBe((await uiMessages(harness.session('s3'))).at(-1)?.id)
  })

  it('B-UI-7: and when the reply that was being said broke off and was asked for again', async () => {
    let asked = 0
    const model: Model = {
      name: 'broken',
      call: async (_, { emit }) => {
        asked += 1
        emit({ kind: 'text', part: 0, text: 'Hel' })
        if (asked === 1)
          return { type: 'failure', class: 'network', message: 'It broke off.', retryable: true, retryAfterMs: 0 }
        emit({ kind: 'text', part: 0, text: 'lo.' })
        return { type: 'reply', parts: [{ type: 'text', text: 'Hello.' }], calls: [], finish: 'stop', usage: null }
      },
    }
    const url = await chatServer(make(model))
    const frames = await framesOf(await post(url, sent('Say it.', 's7')))
    expect(frames.find(({ data }) => data['type'] === 'data-retry')?.data).toMatchObject({
      data: { message: 'It broke off.' },
    })
    const texts = async (chunks: readonly Seen[]) =>
      (await whole(chunks)).parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
    expect(await texts(frames)).toEqual(['Hel', 'Hello.'])
    for (const [i, { id }] of frames.entries()) {
      if (id === null) continue
      const rest = await framesOf(await fetch(`${url}/s7/stream?after=${id}`))
      expect((await texts([...frames.slice(0, i + 1), ...rest])).at(-1)).toBe('Hello.')
    }
    expect((await loaded(url, 's7')).at(-1)?.parts).toMatchObject([{}, {}, { type: 'text', text: 'Hello.' }])
  })

  it('B-UI-7: and on another server that opens the same store', async () => {
    const file = makeFile()
    const script = [{ text: 'First I ask.', calls: [{ tool: 'publish', args: {} }] }, 'Online.']
    const first = make(script.slice(0, 1), { tools: [publish()], store: open(file) })
    const frames = await framesOf(await post(await chatServer(first), sent('Publish.', 's8')))
    await first.close()
    const url = await chatServer(make(script.slice(1), { tools: [publish()], store: open(file) }))
    const at = frames.findIndex(({ data }) => data['type'] === 'text-delta')
    const rest = await framesOf(await fetch(`${url}/s8/stream?after=${frames[at]?.id}`))
    expect(await whole([...frames.slice(0, at + 1), ...rest])).toEqual(await whole(frames))
    const { chat, errors } = chatAt(url, 's8', await loaded(url, 's8'))
    const part = chat.messages.at(-1)?.parts[2] as { readonly approval: { readonly id: string } } | undefined
    await chat.addToolApprovalResponse({ id: part?.approval.id ?? '', approved: true })
    await until(() => chat.status === 'ready' && chat.messages.at(-1)?.parts.at(-1)?.type === 'text')
    expect(errors).toEqual([])
    expect(chat.messages.at(-1)?.parts.at(-1)).toMatchObject({ text: 'Online.' })
  })

  it('B-UI-8: a message that joins an open run is answered in a message of its own', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const script: Script = [{ calls: [{ tool: 'slow', args: {} }] }, 'Both.']
    const harness: Harness = make(script, { tools: [slow] })
    const url = await chatServer(harness)
    const first = post(url, sent('one', 's4')).then(framesOf)
    await runs.here
    const second = post(url, sent('two', 's4')).then(framesOf)
    while ((await harness.session('s4').events()).events.filter(({ type }) => type === 'user.message').length < 2)
      await new Promise((soon) => setTimeout(soon, 5))
    go()
    const joined = await second
    expect(joined.map(({ data }) => data['type'])).not.toContain('tool-output-available')
    expect((await whole(joined)).parts).toMatchObject([{ type: 'step-start' }, { text: 'Both.' }])
    expect((await whole(await first)).parts).toMatchObject([{}, { state: 'output-available' }, {}, { text: 'Both.' }])
    expect((await loaded(url, 's4')).map(({ role, parts }) => [role, parts.length])).toEqual([
      ['user', 1],
      ['assistant', 2],
      ['user', 1],
      ['assistant', 2],
    ])
  })

  it('B-UI-9: the same message sent twice is one message, and its answer is told again', async () => {
    const url = await chatServer(make(['Once.']))
    const first = await framesOf(await post(url, sent('Say it.', 's5')))
    const again = await framesOf(await post(url, sent('Say it.', 's5')))
    expect((await whole(again)).parts).toEqual((await whole(first)).parts)
    expect(await loaded(url, 's5')).toHaveLength(2)
  })

  it('B-UI-10: a page that leaves does not stop the run; DELETE does', async () => {
    const { tool: slow, runs } = waiting('slow')
    const harness = make([{ calls: [{ tool: 'slow', args: {} }] }, 'Never.'], { tools: [slow] })
    const url = await chatServer(harness)
    const leaving = new AbortController()
    const going = fetch(url, {
      method: 'POST',
      body: JSON.stringify(sent('Go.', 's6')),
      headers: { 'content-type': 'application/json' },
      signal: leaving.signal,
    })
    await runs.here
    await going
    leaving.abort()
    await new Promise((soon) => setTimeout(soon, 50))
    expect((await harness.session('s6').events()).events.some(({ type }) => type === 'user.interrupt')).toBe(false)
    expect((await fetch(`${url}/s6`, { method: 'DELETE' })).status).toBe(204)
    expect(await harness.session('s6').run()).toMatchObject({ status: 'interrupted' })
    expect((await loaded(url, 's6')).at(-1)).toMatchObject({ metadata: { status: 'interrupted' } })
  })
})
