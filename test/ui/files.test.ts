// Pictures and files as pages see them, with the real client of the AI SDK and over the wire of AG-UI: those that the model made, those
// in results, and those of the user.
import { Chat } from '@ai-sdk/react'
import { HttpAgent } from '@ag-ui/client'
import { DefaultChatTransport, type FileUIPart, type UIMessage } from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, memory, type Model, output, scripted } from '../../src/index.ts'
import { uiMessages } from '../../src/ui/index.ts'
import { make } from '../runtime/scene.ts'
import { agUiServer, chatServer } from './stage.ts'

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUg==', 'base64')
const PAGE = Buffer.from('<script>alert(1)</script>')

/** Takes a screenshot, and then draws. */
function drawing(): Model {
  const inner = scripted([{ calls: [{ tool: 'shoot' }] }, 'Drawn.'])
  const made = { type: 'data', media: 'image/png', data: PNG.toString('base64') } as const
  return {
    name: 'drawing',
    call: async (request, context) => {
      const reply = await inner.call(request, context)
      return reply.type === 'reply' && reply.calls.length === 0 ? { ...reply, parts: [...reply.parts, made] } : reply
    },
  }
}

const shoot = defineTool({
  name: 'shoot',
  description: 'Shoots.',
  input: z.object({}),
  effect: 'read',
  execute: () =>
    output({ content: 'shot', parts: [{ type: 'file', media: 'text/html', data: PAGE, name: 'page.html' }] }),
})

const bytesOf = async (response: Response | undefined) => response && Buffer.from(await response.arrayBuffer())
const files = (message: UIMessage | undefined) =>
  (message?.parts ?? []).filter((part): part is FileUIPart => part.type === 'file')

describe('files on a page', () => {
  it('B-UI-28: what a model made and what a result holds are files of the message, now and after a reload', async () => {
    const harness = make(drawing(), { tools: [shoot], store: memory() })
    const url = await chatServer(harness)
    const errors: string[] = []
    const transport = new DefaultChatTransport({ api: `${url}/api/chat` })
    const chat = new Chat({ id: 'c:1', transport, onError: ({ message }) => void errors.push(message) })
    const sent: FileUIPart = {
      type: 'file',
      mediaType: 'image/png',
      url: `data:image/png;base64,${PNG.toString('base64')}`,
    }
    await chat.sendMessage({ text: 'Look.', files: [sent] })
    expect(errors).toEqual([])
    const shown = files(chat.messages[1])
    expect(shown).toMatchObject([
      { mediaType: 'text/html', providerMetadata: { terret: { toolCallId: expect.any(String) as string } } },
      { mediaType: 'image/png', providerMetadata: { terret: { hash: expect.any(String) as string } } },
    ])
    const loaded = await fetch(`${url}/api/chat/c%3A1/messages`)
    const { messages } = (await loaded.json()) as { readonly messages: UIMessage[] }
    expect(files(messages[1])).toEqual(shown)
    const [page, picture] = await Promise.all(shown.map((file) => fetch(new URL(file.url, url))))
    expect(await bytesOf(picture)).toEqual(PNG)
    expect(picture?.headers.get('content-type')).toBe('image/png')
    // Strangers may have written it: it is saved, and never run.
    expect(page?.headers.get('content-disposition')).toBe('attachment')
    expect(page?.headers.get('content-security-policy')).toContain('sandbox')
    expect(await bytesOf(page)).toEqual(PAGE)
    const own = files(messages[0])
    expect(own).toMatchObject([{ mediaType: 'image/png', url: picture && new URL(picture.url).pathname }])
  })

  it('B-UI-28: a file is given only to a caller who may use a session that holds it', async () => {
    const store = memory()
    const harness = make(drawing(), { tools: [shoot], store })
    const url = await chatServer(harness, { by: (_request, session) => (session === 'locked' ? null : 'ana') })
    const { sessionId, files: made } = await harness.run('Draw.')
    const hash = made[0]?.hash ?? ''
    await harness.open({ id: 'other' })
    const status = async (id: string, name: string) => (await fetch(`${url}/${id}/files/${name}`)).status
    expect(await status(sessionId, hash)).toBe(200)
    expect(await status('other', hash)).toBe(404)
    expect(await status('locked', hash)).toBe(403)
    expect(await status('nowhere', hash)).toBe(404)
    expect(await status(sessionId, 'f'.repeat(64))).toBe(404)
    expect(await status(sessionId, '..%2f..%2fetc')).toBe(404)
  })

  it('B-UI-29: a file with an odd media type in its log is served as bytes to save', async () => {
    const store = memory()
    const harness = make(scripted(['Done.']), { store })
    const url = await chatServer(harness)
    await harness.open({ id: 'old' })
    const part = { type: 'blob', hash: 'a'.repeat(64), bytes: 2, media: 'text/plain\r\nx: y' } as const
    const event = { type: 'user.message', id: 'm', parts: [part], when: 'after' } as const
    const blobs = [{ hash: part.hash, media: part.media, data: Buffer.from('hi') }]
    await store.commit([{ session: 'old', lane: 'inbox', events: [event], blobs }])
    const response = await fetch(`${url}/old/files/${part.hash}`)
    expect([response.status, await response.text()]).toEqual([200, 'hi'])
    expect(response.headers.get('content-type')).toBe('application/octet-stream')
    expect(response.headers.get('content-disposition')).toBe('attachment')
  })

  it('B-UI-28: without an address a file is its reference, and an AG-UI client gets it as a custom event', async () => {
    const harness = make(drawing(), { tools: [shoot], store: memory() })
    const agent = new HttpAgent({ url: await agUiServer(harness), threadId: 'c2' })
    agent.messages = [{ id: 'm1', role: 'user', content: 'Draw.' }]
    const told: unknown[] = []
    await agent.runAgent({ runId: 'r1' }, { onCustomEvent: ({ event }) => void told.push([event.name, event.value]) })
    const [shot, made] = told as readonly [string, Record<string, unknown>][]
    expect(shot).toMatchObject([
      'terret.file',
      { media: 'text/html', name: 'page.html', toolCallId: expect.any(String) as string },
    ])
    expect(made).toMatchObject(['terret.file', { media: 'image/png', bytes: PNG.length }])
    const session = harness.session('c2')
    const parts = (await uiMessages(session)).at(-1)?.parts.filter(({ type }) => type === 'data-file')
    expect(parts).toMatchObject([{ data: shot?.[1] }, { data: made?.[1] }])
    const blob = await session.blob(made?.[1] as { readonly hash: string })
    expect(Buffer.from(blob?.data ?? [])).toEqual(PNG)
  })
})
