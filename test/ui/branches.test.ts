// A chat whose answer is made again, or whose message is edited: it goes on in a fork, and the log keeps the old branch.
import { Chat } from '@ai-sdk/react'
import { DefaultChatTransport, type UIMessage } from 'ai'
import { describe, expect, it } from 'vitest'
import { Harness, memory, scripted } from '../../src/index.ts'
import { chatServer, post, userMessage } from './stage.ts'

/** Answers with the texts of the user so far, and a count of all requests. */
function counting() {
  let asked = 0
  const store = memory()
  const model = scripted(({ messages }) => {
    asked += 1
    const said = messages.flatMap((message) =>
      message.role === 'user' ? message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [],
    )
    return `${asked}: ${said.join(' ')}`
  })
  return { store, harness: new Harness({ model, store }) }
}

function chatAt(url: string, messages: UIMessage[] = []) {
  const errors: string[] = []
  const chat = new Chat({
    id: 'trip',
    messages,
    transport: new DefaultChatTransport({ api: url }),
    onError: (error) => void errors.push(error.message),
  })
  return { chat, errors }
}

const textsOf = (messages: readonly UIMessage[]) =>
  messages.map(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(''))

async function loaded(url: string, id = 'trip'): Promise<UIMessage[]> {
  const { messages } = (await (await fetch(`${url}/${id}/messages`)).json()) as { messages: UIMessage[] }
  return messages
}

describe('a chat with branches', () => {
  it('B-STREAM2-4: regenerate answers the same message anew, and the old answer stays in its log', async () => {
    const { harness } = counting()
    const url = await chatServer(harness)
    const { chat, errors } = chatAt(url)
    await chat.sendMessage({ text: 'A' })
    await chat.sendMessage({ text: 'B' })
    await chat.regenerate()
    expect(errors).toEqual([])
    const shown = ['A', '1: A', 'B', '3: A B']
    expect(textsOf(chat.messages)).toEqual(shown)
    const kept = await loaded(url)
    expect(textsOf(kept)).toEqual(shown)
    expect(kept.map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id))
    const old = await harness.session('trip').messages()
    expect(JSON.stringify(old)).toContain('2: A B')
    await chat.sendMessage({ text: 'C' })
    await chat.regenerate()
    expect(textsOf(chat.messages)).toEqual([...shown, 'C', '5: A B C'])
    expect(textsOf(await loaded(url))).toEqual([...shown, 'C', '5: A B C'])
    await harness.close()
  })

  it('B-STREAM2-4: an edited message begins a branch before itself, also one of an older branch', async () => {
    const { harness } = counting()
    const url = await chatServer(harness)
    const { chat, errors } = chatAt(url)
    await chat.sendMessage({ text: 'A' })
    await chat.sendMessage({ text: 'B' })
    await chat.regenerate()
    const [first, , second] = chat.messages.map(({ id }) => id)
    await chat.sendMessage({ text: 'Bee', messageId: second as string })
    expect(textsOf(chat.messages)).toEqual(['A', '1: A', 'Bee', '4: A Bee'])
    expect(textsOf(await loaded(url))).toEqual(['A', '1: A', 'Bee', '4: A Bee'])
    await chat.sendMessage({ text: 'Ay', messageId: first as string })
    expect(errors).toEqual([])
    expect(textsOf(await loaded(url))).toEqual(['Ay', '5: Ay'])
    expect((await harness.list({ order: 'id', limit: 500 })).cards.length).toBe(4)
    // A page that is loaded now goes on in the newest branch.
    const again = chatAt(url, await loaded(url))
    await again.chat.sendMessage({ text: 'C' })
    expect(textsOf(await loaded(url))).toEqual(['Ay', '5: Ay', 'C', '6: Ay C'])
    await harness.close()
  })

  it('B-STREAM2-4: an edit that is sent twice makes one branch, and other processes find it', async () => {
    const { harness, store } = counting()
    const url = await chatServer(harness)
    const sent = (text: string, more: object = {}) =>
      post(url, { id: 'trip', messages: [userMessage(text, 'm1')], trigger: 'submit-message', ...more })
    await (await sent('A')).text()
    await (await sent('B', { messageId: 'm1' })).text()
    const repeated = await (await sent('B', { messageId: 'm1' })).text()
    expect(repeated).toContain('2: B')
    expect((await harness.list({ order: 'id', limit: 500 })).cards.length).toBe(2)
    const other = new Harness({ model: scripted(['other']), store })
    expect(textsOf(await loaded(await chatServer(other)))).toEqual(['B', '2: B'])
    await other.close()
    await harness.close()
  })

  it('B-STREAM2-5: what is not in the chat is not answered anew, and nothing is made', async () => {
    const { harness } = counting()
    const url = await chatServer(harness)
    const again = { trigger: 'regenerate-message' }
    const none = await post(url, { id: 'trip', messages: [userMessage('A', 'm1')], ...again })
    expect([none.status, await none.json()]).toMatchObject([400, { code: 'invalid_input' }])
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toEqual([])
    await (await post(url, { id: 'trip', messages: [userMessage('A', 'm1')], trigger: 'submit-message' })).text()
    const strange = await post(url, { id: 'trip', messages: [userMessage('A', 'm9')], ...again })
    expect(strange.status).toBe(400)
    expect((await harness.list({ order: 'id', limit: 500 })).cards.length).toBe(1)
    await harness.close()
  })

  it('B-STREAM2-5: a branch is read and written only by those who may use the chat', async () => {
    const { harness } = counting()
    const by = (request: Request, session: string) => {
      const user = request.headers.get('x-user')
      return session === 'trip' && user === 'ana' ? user : null
    }
    const url = await chatServer(harness, { by })
    const ana = { 'x-user': 'ana' }
    const body = { id: 'trip', messages: [userMessage('A', 'm1')] }
    await (await post(url, { ...body, trigger: 'submit-message' }, ana)).text()
    await (await post(url, { ...body, trigger: 'regenerate-message' }, ana)).text()
    const branch = (await harness.list({ order: 'id', limit: 500 })).cards
      .map(({ session }) => session)
      .find((id) => id !== 'trip') as string
    for (const id of ['trip', branch]) {
      expect((await fetch(`${url}/${id}/messages`, { headers: { 'x-user': 'bob' } })).status).toBe(403)
      expect((await post(url, { ...body, id, trigger: 'regenerate-message' }, { 'x-user': 'bob' })).status).toBe(403)
    }
    const shown = await fetch(`${url}/trip/messages`, { headers: ana })
    expect(textsOf(((await shown.json()) as { messages: UIMessage[] }).messages)).toEqual(['A', '2: A'])
    await harness.close()
  })
})
