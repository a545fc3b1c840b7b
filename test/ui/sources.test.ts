// Sources as pages see them, with the real client of the AI SDK and over the wire of AG-UI: what replies cite and what searches found.
import { Chat } from '@ai-sdk/react'
import { DefaultChatTransport, type UIMessage } from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, type Model, output, type Part, scripted } from '../../src/index.ts'
import { make } from '../runtime/scene.ts'
import { agUiServer, chatServer, framesOf, post } from './stage.ts'

const cited: Part = { type: 'source', url: 'https://a.example/', title: 'A' }

/** Its last reply cites a page. */
function citing(): Model {
  const inner = scripted([{ calls: [{ tool: 'find' }] }, 'At noon.'])
  return {
    name: 'citing',
    call: async (request, context) => {
      const reply = await inner.call(request, context)
      return reply.type === 'reply' && reply.calls.length === 0 ? { ...reply, parts: [...reply.parts, cited] } : reply
    },
  }
}

const find = defineTool({
  name: 'find',
  description: 'Finds.',
  input: z.object({}),
  effect: 'read',
  execute: () => output({ content: 'found', metadata: { sources: [{ url: 'https://b.example/' }, cited, 'data:x'] } }),
})

describe('sources on a page', () => {
  it('B-UI-27: what a reply cites and what a search found are parts of the message, each page once', async () => {
    const url = await chatServer(make(citing(), { tools: [find] }))
    const errors: string[] = []
    const transport = new DefaultChatTransport({ api: url })
    const chat = new Chat({ id: 'c1', transport, onError: ({ message }) => void errors.push(message) })
    await chat.sendMessage({ text: 'When?' })
    expect(errors).toEqual([])
    const sources = [
      { type: 'source-url', sourceId: expect.any(String) as string, url: 'https://b.example/' },
      { type: 'source-url', sourceId: expect.any(String) as string, url: 'https://a.example/', title: 'A' },
    ]
    const shown = (messages: readonly UIMessage[]) => messages[1]?.parts.filter(({ type }) => type === 'source-url')
    expect(shown(chat.messages)).toMatchObject(sources)
    const { messages } = (await (await fetch(`${url}/c1/messages`)).json()) as { readonly messages: UIMessage[] }
    expect(shown(messages)).toEqual(sources)
  })

  it('B-UI-27: an AG-UI client gets them as custom events', async () => {
    const url = await agUiServer(make(citing(), { tools: [find] }))
    const said = [{ id: 'm1', role: 'user', content: 'When?' }]
    const told = await framesOf(await post(url, { threadId: 'c2', runId: 'r1', messages: said }))
    expect(told.map(({ data }) => data).filter(({ name }) => name === 'terret.source')).toMatchObject([
      { value: { url: 'https://b.example/' } },
      { value: { url: 'https://a.example/', title: 'A' } },
    ])
  })
})
