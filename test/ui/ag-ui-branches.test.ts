// A thread of AG-UI whose message is edited, or answered again: it goes on in a fork, and the log keeps the old branch. Seen by the real
// client where a client has a part in it.
import { HttpAgent, type Message } from '@ag-ui/client'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, memory, type Script, scripted } from '../../src/index.ts'
import { make, tool } from '../runtime/scene.ts'
import { agUiServer, chatServer, framesOf, post, userMessage } from './stage.ts'

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
  return { store, harness: new Harness({ model, store }), asked: () => asked }
}

function agentAt(url: string, messages: Message[] = [], threadId = 'trip') {
  const agent = new HttpAgent({ url, threadId, initialMessages: messages })
  const say = async (content: string, id = `m-${content}`) => {
    agent.addMessage({ id, role: 'user', content })
    await agent.runAgent()
  }
  return { agent, say, texts: () => agent.messages.map(({ content }) => content) }
}

/** What a client that comes anew is shown. */
async function loaded(url: string): Promise<readonly unknown[]> {
  const { agent, texts } = agentAt(url)
  await agent.runAgent()
  return texts()
}

const user = (id: string, content: string) => ({ id, role: 'user', content }) as const
const run = (messages: readonly object[], more: object = {}) => ({ threadId: 'trip', runId: 'r1', messages, ...more })
const again = (regenerate: unknown) => ({ forwardedProps: { regenerate } })

describe('a thread of AG-UI with branches', () => {
  it('B-STREAM2-8: an edited message is answered in a branch, which every client and process is shown', async () => {
    const { harness, store } = counting()
    const url = await agUiServer(harness)
    const { agent, say, texts } = agentAt(url)
    await say('A')
    await say('B')
    const [first, answer] = agent.messages as [Message, Message]
    agent.setMessages([first, answer, user('m-B', 'Bee')])
    await agent.runAgent()
    const shown = ['A', '1: A', 'Bee', '3: A Bee']
    expect(texts()).toEqual(shown)
    expect(await loaded(url)).toEqual(shown)
    expect(JSON.stringify(await harness.session('trip').messages())).toContain('2: A B')
    // The client goes on in the branch, and edits a message of the log that the branch comes from.
    await say('C')
    expect(texts()).toEqual([...shown, 'C', '4: A Bee C'])
    agent.setMessages([user('m-A', 'Ay')])
    await agent.runAgent()
    expect(texts()).toEqual(['Ay', '5: Ay'])
    expect((await harness.list({ order: 'id', limit: 500 })).cards.length).toBe(3)
    const other = new Harness({ model: scripted(['other']), store })
    const there = await agUiServer(other)
    expect(await loaded(there)).toEqual(['Ay', '5: Ay'])
    const stranger = agentAt(there)
    await stranger.say('D')
    expect(await loaded(url)).toEqual(['Ay', '5: Ay', 'D', 'other'])
    await other.close()
    await harness.close()
  })

  it('B-STREAM2-8: an edit that is sent twice is one branch and one run, also after a crash before its message', async () => {
    const { harness, asked } = counting()
    const url = await agUiServer(harness)
    await framesOf(await post(url, run([user('m1', 'A')])))
    const edited = async () => JSON.stringify(await framesOf(await post(url, run([user('m1', 'B')]))))
    expect(await edited()).toContain('2: B')
    expect(await edited()).toContain('2: B')
    expect([asked(), (await harness.list({ order: 'id', limit: 500 })).cards.length]).toEqual([2, 2])
    // A server that stopped after the fork: the branch is there, and its message is not.
    const { session: branch } = (await harness.list({ order: 'id', limit: 500 })).cards.find(
      ({ session }) => session !== 'trip',
    ) ?? { session: '' }
    await harness.session('trip').fork({ at: 1, id: branch.replace(/1$/, '2') })
    expect(await edited()).toContain('3: B')
    expect(await loaded(url)).toEqual(['B', '3: B'])
    await harness.close()
  })

  it('B-STREAM2-8: the same edit in two harnesses of one store at once is one branch and one run', async () => {
    const { harness, store, asked } = counting()
    let elsewhere = 0
    const other = new Harness({ model: scripted(() => `other ${++elsewhere}`), store })
    const [url, there] = [await agUiServer(harness), await agUiServer(other)]
    await framesOf(await post(url, run([user('m1', 'A')])))
    const both = [url, there].map(async (each) => framesOf(await post(each, run([user('m1', 'B')]))))
    const [one, two] = (await Promise.all(both)).map((frames) =>
      frames.map(({ data }) => (typeof data['delta'] === 'string' ? data['delta'] : '')).join(''),
    )
    expect(one).toBe(two)
    expect([asked() + elsewhere, (await harness.list({ order: 'id', limit: 500 })).cards.length]).toEqual([2, 2])
    await other.close()
    await harness.close()
  })

  it('B-STREAM2-9: regenerate answers a message again, named by itself or by its answer', async () => {
    const { harness } = counting()
    const url = await agUiServer(harness)
    const { agent, say, texts } = agentAt(url)
    await say('A')
    await say('B')
    await agent.runAgent(again('m-B'))
    expect(texts()).toEqual(['A', '1: A', 'B', '3: A B'])
    await agent.runAgent(again(agent.messages.at(-1)?.id))
    expect(texts()).toEqual(['A', '1: A', 'B', '4: A B'])
    // A client that cut its history back.
    agent.setMessages(agent.messages.slice(0, 1))
    await agent.runAgent(again('m-A'))
    expect(texts()).toEqual(['A', '5: A'])
    expect(await loaded(url)).toEqual(['A', '5: A'])
    await say('C')
    expect(texts()).toEqual(['A', '5: A', 'C', '6: A C'])
    await harness.close()
  })

  it('B-STREAM2-9: the same run again is the same branch, and a picture of the message stays', async () => {
    const { harness, asked } = counting()
    const url = await agUiServer(harness)
    const picture = { type: 'image', media: 'image/png', data: 'iVBORw0KGgo=' } as const
    const session = await harness.open({ id: 'trip' })
    await session.run([{ type: 'text', text: 'A' }, picture], { id: 'm1' })
    const regenerated = async () => JSON.stringify(await framesOf(await post(url, run([user('m1', 'A')], again('m1')))))
    expect(await regenerated()).toContain('2: A')
    expect(await regenerated()).toContain('2: A')
    expect([asked(), (await harness.list({ order: 'id', limit: 500 })).cards.length]).toEqual([2, 2])
    const branch = (await harness.list({ order: 'id', limit: 500 })).cards
      .map(({ session: id }) => id)
      .find((id) => id !== 'trip') as string
    expect(JSON.stringify(await harness.session(branch).messages())).toContain('image/png')
    // The branch of that run is not the newest any more: its retry does not reach the one that follows.
    await framesOf(await post(url, run([user('m1', 'Other')], { runId: 'r2' })))
    await framesOf(await post(url, run([], { ...again('m1'), runId: 'r3' })))
    expect(await loaded(url)).toEqual(['Other', '4: Other'])
    await harness.close()
  })

  it('B-STREAM2-9: what the thread does not have is not answered again, and nothing is made', async () => {
    const { harness, asked } = counting()
    const url = await agUiServer(harness)
    const none = await post(url, run([user('m1', 'A')], again('m1')))
    expect([none.status, await none.json()]).toMatchObject([400, { code: 'invalid_input' }])
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toEqual([])
    await framesOf(await post(url, run([user('m1', 'A')])))
    const other = await harness.open({ id: 'other' })
    await other.run('secret', { id: 'theirs' })
    const strange = ['m9', 'theirs', 'other', 'other:3', 'other:4', 'trip', 'trip:', 7, {}, ['m1'], '', true]
    for (const id of strange) {
      const refused = await post(url, run([user('m1', 'A')], again(id)))
      expect([id, refused.status]).toEqual([id, 400])
    }
    const fresh = await post(url, run([user('m1', 'A'), user('m2', 'new')], again('m1')))
    expect([fresh.status, await fresh.text()]).toEqual([400, expect.stringContaining('run of its own') as string])
    expect([asked(), (await harness.list({ order: 'id', limit: 500 })).cards.length]).toEqual([2, 2])
    await harness.close()
  })

  it('B-STREAM2-10: a message that is sent again is told again: no branch, no second run', async () => {
    const { harness, asked } = counting()
    let name = 'ana'
    const url = await agUiServer(harness, { by: () => name })
    const { agent, say, texts } = agentAt(url)
    await say('A')
    await say('B')
    const retry = async (messages: readonly object[]) => JSON.stringify(await framesOf(await post(url, run(messages))))
    expect(await retry(agent.messages.slice(0, 3))).toContain('2: A B')
    expect(await retry([user('m-B', 'B')])).toContain('2: A B')
    expect(await retry([user('m-A', 'A')])).toContain('1: A')
    // Another person who looks at the thread has the same messages.
    name = 'bob'
    expect(await retry([user('m-B', 'B')])).toContain('2: A B')
    name = 'ana'
    // A client that knows only its newest message.
    const short = agentAt(url)
    await short.say('C')
    expect(short.texts()).toEqual(['C', '3: A B C'])
    expect([asked(), (await harness.list({ order: 'id', limit: 500 })).cards.length]).toEqual([3, 1])
    // In a branch, a message of the log that it comes from is told again too.
    agent.setMessages([...agent.messages.slice(0, 2), user('m-B', 'Bee')])
    await agent.runAgent()
    expect(texts()).toEqual(['A', '1: A', 'Bee', '4: A Bee'])
    expect(await retry([user('m-A', 'A')])).toContain('1: A')
    expect(await loaded(url)).toEqual(texts())
    expect([asked(), (await harness.list({ order: 'id', limit: 500 })).cards.length]).toEqual([4, 2])
    await harness.close()
  })

  it('B-STREAM2-10: a message with a file, which a client has as a text only, is told again', async () => {
    const { harness, asked } = counting()
    const url = await agUiServer(harness)
    const session = await harness.open({ id: 'trip' })
    const picture = { type: 'image', media: 'image/png', data: 'iVBORw0KGgo=' } as const
    await session.run([{ type: 'text', text: 'A' }, picture], { id: 'm1' })
    const frames = await framesOf(await post(url, run([user('m1', 'A')])))
    expect(JSON.stringify(frames)).toContain('1: A')
    expect([asked(), (await harness.list({ order: 'id', limit: 500 })).cards.length]).toEqual([1, 1])
    await harness.close()
  })

  it('B-STREAM2-11: a yes to a question of the old branch allows nothing in the new one', async () => {
    let published = 0
    const publish = defineTool({
      name: 'publish',
      description: 'Publishes.',
      input: z.object({ n: z.number() }),
      approval: 'ask',
      effect: 'once',
      execute: () => `publish ${++published}`,
    })
    const ask = { calls: [{ tool: 'publish', args: { n: 1 } }] }
    const harness = make([ask, ask, ask, 'Online.'], { tools: [publish] })
    const { agent, say } = agentAt(await agUiServer(harness))
    await say('Publish.')
    // The client lets no run begin that does not name its open questions.
    const old = agent.pendingInterrupts[0]?.id ?? ''
    await agent.runAgent({ ...again('m-Publish.'), resume: [{ interruptId: old, status: 'cancelled' }] })
    const second = agent.pendingInterrupts[0]?.id ?? ''
    agent.setMessages([user('m-Publish.', 'Publish it.')])
    await agent.runAgent({ resume: [{ interruptId: second, status: 'cancelled' }] })
    expect(agent.messages[0]).toMatchObject({ content: 'Publish it.' })
    const fresh = agent.pendingInterrupts[0]?.id ?? ''
    expect(new Set([old, second, fresh]).size).toBe(3)
    const url = agent.url
    const yes = (interruptId: string) =>
      post(url, run([], { resume: [{ interruptId, status: 'resolved', payload: { approved: true } }] }))
    for (const id of [old, second]) {
      const refused = await yes(id)
      expect([refused.status, await refused.json()]).toMatchObject([409, { code: 'decision_stale' }])
    }
    const both = { resume: [{ interruptId: fresh, status: 'resolved', payload: { approved: true } }] }
    expect((await post(url, run([], { ...both, ...again('m-Publish.') }))).status).toBe(400)
    expect(published).toBe(0)
    await framesOf(await yes(fresh))
    expect(published).toBe(1)
    await harness.close()
  })

  it('B-STREAM2-11: nor does a page with useChat allow it', async () => {
    const ask = { calls: [{ tool: 'publish', args: {} }] }
    const harness = make([ask, ask, 'Online.'], { tools: [tool('publish', { approval: 'ask', effect: 'once' })] })
    const url = await chatServer(harness)
    const asked = async (trigger: string) => {
      const body = { id: 'trip', messages: [userMessage('Publish.', 'm1')], trigger }
      const frames = await framesOf(await post(url, body))
      return frames.map(({ data }) => data).find(({ type }) => type === 'tool-approval-request') ?? {}
    }
    const { approvalId: old, toolCallId } = await asked('submit-message')
    const { approvalId: fresh } = await asked('regenerate-message')
    const answer = (id: unknown) => {
      const part = { type: 'tool-publish', toolCallId, state: 'approval-responded', approval: { id, approved: true } }
      return post(url, { id: 'trip', messages: [{ id: 'a', role: 'assistant', parts: [part] }] })
    }
    expect((await answer(old)).status).toBe(409)
    expect(await (await answer(fresh)).text()).toContain('Online.')
    await harness.close()
  })

  it('B-STREAM2-11: calls of a branch have ids of their own, and only those are answered', async () => {
    const color = defineTool({ name: 'color', description: 'Asks the user.', input: z.object({ of: z.string() }) })
    const script: Script = [
      { calls: [{ tool: 'color', args: { of: 'door' } }] },
      'Blue.',
      { calls: [{ tool: 'color', args: { of: 'roof' } }] },
      { calls: [{ tool: 'color', args: { of: 'roof!' } }] },
      'Red.',
    ]
    const { agent, say, texts } = agentAt(await agUiServer(make(script, { tools: [color] })))
    const callsOf = () => agent.messages.flatMap((message) => ('toolCalls' in message ? (message.toolCalls ?? []) : []))
    const answered = async (id: string, toolCallId: string, content: string) => {
      agent.addMessage({ id, role: 'tool', toolCallId, content })
      await agent.runAgent()
    }
    await say('Door')
    const [door] = callsOf()
    await answered('t1', door?.id ?? '', 'blue')
    await say('Roof')
    await agent.runAgent(again('m-Roof'))
    const [, roof, ...more] = callsOf()
    expect(more).toEqual([])
    expect(callsOf().map(({ function: { arguments: args } }) => args)).toEqual(['{"of":"door"}', '{"of":"roof!"}'])
    const key = roof?.id.split(':').at(-1) ?? ''
    const foreign = run([{ id: 't2', role: 'tool', toolCallId: key, content: 'green' }])
    expect((await post(agent.url, foreign)).status).toBe(404)
    await answered('t3', roof?.id ?? '', 'red')
    expect(texts().at(-1)).toBe('Red.')
    expect(JSON.stringify(await loaded(agent.url))).not.toContain('green')
  })

  it('B-STREAM2-12: the person is asked about by the id of the thread, and a branch is used through it only', async () => {
    const { harness } = counting()
    const asked: string[] = []
    const by = (request: Request, session: string) => {
      asked.push(session)
      return session === 'trip' ? request.headers.get('x-user') : null
    }
    const url = await agUiServer(harness, { by })
    const ana = { 'x-user': 'ana' }
    await framesOf(await post(url, run([user('m1', 'A')]), ana))
    const frames = await framesOf(await post(url, run([user('m1', 'B')]), ana))
    expect(frames.flatMap(({ data }) => data['threadId'] ?? [])).toEqual(['trip', 'trip'])
    expect(new Set(asked)).toEqual(new Set(['trip']))
    const branch = (await harness.list({ order: 'id', limit: 500 })).cards
      .map(({ session }) => session)
      .find((id) => id !== 'trip') as string
    for (const threadId of ['trip', branch])
      expect((await post(url, { ...run([user('m1', 'C')]), threadId })).status).toBe(403)
    expect((await post(url, { ...run([user('m1', 'C')]), threadId: branch }, ana)).status).toBe(403)
    // A position of the old branch is none of the new one.
    const position = frames.findLast(({ id }) => id !== null)?.id
    await framesOf(await post(url, run([user('m1', 'D')]), ana))
    expect((await post(url, run([], { forwardedProps: { after: position } }), ana)).status).toBe(409)
    await harness.close()
  })
})
