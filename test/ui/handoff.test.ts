// A conversation that is handed over: the page of the session shows what the other agent says while it says it, once.
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai'
import { describe, expect, it } from 'vitest'
import { Chat } from '@ai-sdk/react'
import { HttpAgent } from '@ag-ui/client'
import { z } from 'zod'
import { defineTool, type Harness, type HarnessOptions, type Model, type Script, scripted } from '../../src/index.ts'
import { make } from '../runtime/scene.ts'
import { until } from '../until.ts'
import { agUiServer, chatServer, framesOf, post, type Seen, userMessage } from './stage.ts'

const HAND = { calls: [{ tool: 'handoff_to_billing', args: { task: 'Refund.' } }] }
const SLOW = { deltas: ['It is ', 'refunded.'], delayMs: 30 }
const refund = defineTool({
  name: 'refund',
  description: 'Refunds an order.',
  input: z.object({}),
  approval: 'ask',
  execute: () => 'refunded',
})
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({}),
  effect: 'read',
  execute: () => 'seen',
})

function handing(desk: Script, billing: Script | Model, options: Partial<HarnessOptions> = {}): Harness {
  const model = 'call' in billing ? billing : scripted(billing, 'billing')
  const agent = { description: 'Money.', instructions: 'You are billing.', handoff: true, model, tools: [refund, look] }
  return make(desk, { ...options, subagents: { billing: agent } })
}

async function loaded(url: string, id: string): Promise<UIMessage[]> {
  const { messages } = (await (await fetch(`${url}/${id}/messages`)).json()) as { messages: UIMessage[] }
  return messages
}

const textsOf = (messages: readonly UIMessage[]) =>
  (messages.at(-1)?.parts ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : []))
/** What a page shows: the start of a step is not seen. */
const kindsOf = (messages: readonly UIMessage[]) =>
  messages.at(-1)?.parts.flatMap(({ type }) => (type === 'step-start' ? [] : [type]))

async function chatOf(url: string) {
  const errors: string[] = []
  const transport = new DefaultChatTransport({ api: url })
  const onError = ({ message }: Error): void => void errors.push(message)
  const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses
  const chat = new Chat({ id: 'c', transport, onError, sendAutomaticallyWhen })
  await chat.sendMessage({ text: 'Money!' })
  expect(errors).toEqual([])
  return chat
}

const ASK = { id: 'r', messages: [userMessage('Money!')], trigger: 'submit-message' }
const deltasOf = (frames: readonly Seen[]) =>
  frames.flatMap(({ data }) => (data['type'] === 'text-delta' ? [String(data['delta'])] : []))
const wordsOf = (reply: number, count: number) => Array.from({ length: count }, (_, i) => `${reply}-${i} `)
const replaced = {
  type: 'before_answer',
  agents: ['billing'],
  run: ({ text }: { readonly text: string }) => (text.includes('refunded') ? { replace: 'Ask later.' } : undefined),
} as const

/** It looks first, then answers, with `count` texts each time. */
function verbose(count: number): Model {
  let replies = 0
  return {
    name: 'verbose',
    call: async (_request, { emit }) => {
      const reply = replies++
      const parts = wordsOf(reply, count).map((text) => ({ type: 'text', text }) as const)
      for (const [part, { text }] of parts.entries()) emit({ kind: 'text', part, text })
      const calls = reply === 0 ? [{ id: 'l', tool: 'look', args: '{}' }] : []
      return { type: 'reply', parts, calls, finish: reply === 0 ? 'calls' : 'stop', usage: null }
    },
  }
}

describe('the page of a conversation that is handed over', () => {
  it('B-HANDOFF-9: a chat shows the text of the other agent as it comes, once, and a reload shows the same', async () => {
    const url = await chatServer(handing([HAND], [SLOW]))
    const body = { id: 'f', messages: [userMessage('Money!')], trigger: 'submit-message' }
    const frames = await framesOf(await post(url, body))
    const types = frames.map(({ data }) => data['type'])
    const deltas = frames.flatMap(({ data }) => (data['type'] === 'text-delta' ? [data['delta']] : []))
    expect(deltas).toEqual(['It is ', 'refunded.'])
    expect(types.indexOf('text-delta')).toBeLessThan(types.indexOf('tool-output-available'))
    const again = await chatServer(handing([HAND], [SLOW]))
    const chat = await chatOf(again)
    const there = await loaded(again, 'c')
    expect(textsOf(chat.messages)).toEqual(['It is refunded.'])
    expect([textsOf(there), kindsOf(there)]).toEqual([textsOf(chat.messages), kindsOf(chat.messages)])
  })

  it('B-HANDOFF-9: an attempt that failed begins again in a text of its own', async () => {
    let tries = 0
    const flaky: Model = {
      name: 'flaky',
      call: async (_request, { emit }) => {
        tries += 1
        for (const text of ['It is ', ...(tries > 1 ? ['refunded.'] : [])]) emit({ kind: 'text', part: 0, text })
        if (tries === 1)
          return { type: 'failure', class: 'server', message: 'overloaded', retryable: true, retryAfterMs: 1 }
        return {
          type: 'reply',
          parts: [{ type: 'text', text: 'It is refunded.' }],
          calls: [],
          finish: 'stop',
          usage: null,
        }
      },
    }
    const chat = await chatOf(await chatServer(handing([HAND], flaky)))
    expect(textsOf(chat.messages)).toEqual(['It is ', 'It is refunded.'])
    expect(chat.messages.at(-1)?.parts.every((part) => part.type !== 'text' || part.state === 'done')).toBe(true)
  })

  it.each([
    ['replace', { replace: 'Ask later.' }, ['It is refunded.', 'Ask later.']],
    ['block', { block: 'A secret.' }, ['It is refunded.', 'I cannot say.']],
  ] as const)(
    'B-HANDOFF-9: a hook of the first agent has the last word, and nothing is said twice: %s',
    async (_how, word, texts) => {
      const run = ({ text }: { readonly text: string }) => (text.includes('refunded') ? word : undefined)
      const hooks = [{ type: 'before_answer', agents: ['default'], run }] as const
      const harness = handing([HAND, 'I cannot say.'], [SLOW], { hooks })
      const url = await chatServer(harness)
      expect(textsOf((await chatOf(url)).messages)).toEqual(texts)
      expect(textsOf(await loaded(url, 'c'))).toEqual(texts.slice(1))
      const stream = handing([HAND, 'I cannot say.'], [SLOW], { hooks }).stream('Money!')
      const heard: string[] = []
      for await (const text of stream.text) heard.push(text)
      expect(heard.join('')).toBe(texts.join('\n\n'))
    },
  )

  it('B-HANDOFF-9: a reader that comes back in the middle gets what it lacks', async () => {
    const url = await chatServer(handing([HAND], [SLOW]))
    const frames = await framesOf(
      await post(url, { id: 'r', messages: [userMessage('Money!')], trigger: 'submit-message' }),
    )
    const at = frames.findIndex(({ data }) => data['type'] === 'text-delta')
    const id = frames[at]?.id ?? ''
    const rest = await framesOf(await fetch(`${url}/r/stream`, { headers: { 'last-event-id': id } }))
    const said = rest.flatMap(({ data }) => (data['type'] === 'text-delta' ? [data['delta']] : []))
    expect(said).toEqual(['refunded.'])
    // A reader that had heard all of it gets nothing again.
    const last = frames.findLast(({ data }) => data['type'] === 'text-delta' || data['type'] === 'text-end')
    const none = await framesOf(await fetch(`${url}/r/stream`, { headers: { 'last-event-id': last?.id ?? '' } }))
    expect(none.filter(({ data }) => data['type'] === 'text-delta')).toEqual([])
  })

  it('B-HANDOFF-9: what it says before it asks a person is heard once, and so is the answer after that', async () => {
    const before = { text: 'One moment.', calls: [{ tool: 'refund', args: {} }] }
    const harness = handing([HAND], [before, SLOW])
    const url = await chatServer(harness)
    const chat = await chatOf(url)
    expect(textsOf(chat.messages)).toEqual(['One moment.'])
    const asked = chat.messages
      .at(-1)
      ?.parts.flatMap((part) => ('approval' in part && part.approval ? [part.approval.id] : []))
    await chat.addToolApprovalResponse({ id: asked?.[0] ?? '', approved: true })
    await until(() => expect(textsOf(chat.messages)).toEqual(['One moment.', 'It is refunded.']))
    await until(() => expect(chat.status).toBe('ready'))
    expect(textsOf(chat.messages)).toEqual(['One moment.', 'It is refunded.'])
    const session = harness.session('c')
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'It is refunded.' })
  })

  it.each([20, 130])('B-HANDOFF-9: a reply of %i texts takes nothing from the next one', async (count) => {
    const url = await chatServer(handing([HAND], verbose(count)))
    const frames = await framesOf(await post(url, ASK))
    expect(deltasOf(frames).join('')).toBe(wordsOf(0, count).join('') + wordsOf(1, count).join(''))
    expect(textsOf(await loaded(url, 'r')).join('')).toContain(wordsOf(1, count).join(''))
    for (const [i, { id }] of frames.entries()) {
      if (id === null || i % 40 !== 0) continue
      const rest = await framesOf(await fetch(`${url}/r/stream`, { headers: { 'last-event-id': id } }))
      const had = deltasOf(frames.slice(0, i + 1))
      const answers = [...had, ...deltasOf(rest)].join('').split(wordsOf(1, count).join(''))
      expect([id, answers.length, answers[1]]).toEqual([id, 2, ''])
    }
    const agent = new HttpAgent({ url: await agUiServer(handing([HAND], verbose(count))), threadId: 't' })
    agent.messages = [{ id: 'm', role: 'user', content: 'Money!' }]
    const heard: string[] = []
    await agent.runAgent({}, { onTextMessageContentEvent: ({ event }) => void heard.push(event.delta) })
    expect(heard.join('')).toBe(deltasOf(frames).join(''))
  })

  it.each([
    ['one answer', [SLOW], 'It is refunded.', {}],
    [
      'an answer after words and a call',
      [{ text: 'One moment.', calls: [{ tool: 'look', args: {} }] }, SLOW],
      'It is refunded.',
      {},
    ],
    ['an answer that a hook of the other agent replaced', [SLOW], 'Ask later.', { hooks: [replaced] }],
  ] as const)(
    'B-HANDOFF-9: whoever comes back, after whichever frame, gets what it lacks: %s',
    async (_what, says, answer, options) => {
      const url = await chatServer(handing([HAND], says, options))
      const frames = await framesOf(await post(url, ASK))
      for (const [i, { id, data }] of frames.entries()) {
        if (id === null) continue
        const had = deltasOf(frames.slice(0, i + 1)).join('')
        const back = await fetch(`${url}/r/stream`, { headers: { 'last-event-id': id } })
        const rest = back.status === 204 ? [] : await framesOf(back)
        // A reader that comes back in the middle is not told again what came before the answer.
        const answers = (had + deltasOf(rest).join('')).split(answer)
        expect([data['type'], id, answers.length, answers[1]]).toEqual([data['type'], id, 2, ''])
      }
    },
  )

  it('B-HANDOFF-9: an AG-UI client hears it as it comes, in one message that is ended', async () => {
    const agent = new HttpAgent({ url: await agUiServer(handing([HAND], [SLOW])), threadId: 't' })
    agent.messages = [{ id: 'm', role: 'user', content: 'Money!' }]
    const heard: string[] = []
    await agent.runAgent(
      {},
      {
        onTextMessageContentEvent: ({ event }) => void heard.push(event.delta),
        onToolCallResultEvent: () => void heard.push('result'),
      },
    )
    expect(heard).toEqual(['It is ', 'refunded.', 'result'])
  })
})
