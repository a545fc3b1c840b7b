// agUiHandler and the real client of AG-UI: what an agent tells, an approval as an interrupt, and a run that goes on elsewhere.
import { EventType, HttpAgent, type Message, type RunFinishedEvent } from '@ag-ui/client'
import { EventSchemas } from '@ag-ui/core/schemas'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, type Model, type Script } from '../../src/index.ts'
import { make, moment, tool } from '../runtime/scene.ts'
import { agUiServer, framesOf, post, type Seen } from './stage.ts'

function agentAt(url: string, threadId: string, messages: Message[] = []) {
  const agent = new HttpAgent({ url, threadId, initialMessages: messages })
  const finished: RunFinishedEvent[] = []
  const events: Record<string, unknown>[] = []
  agent.subscribe({
    onRunFinishedEvent: ({ event }) => void finished.push(event),
    onEvent: ({ event }) => void events.push(event),
  })
  const say = async (content: string) => {
    agent.addMessage({ id: `m-${content}`, role: 'user', content })
    await agent.runAgent()
  }
  return { agent, say, finished, events }
}

const publish = tool('publish', { approval: 'ask', effect: 'once' })
const script: Script = [
  { reasoning: 'Look first.', deltas: ['Let me ', 'look.'], calls: [{ tool: 'look', args: { n: 3 } }] },
  { reasoning: 'Good.', deltas: ['It is ', 'fine.'] },
]
const run = (threadId: string, content: string, extra = {}) => ({
  threadId,
  runId: 'r',
  messages: [{ id: 'm', role: 'user', content }],
  ...extra,
})

describe('an agent of AG-UI', () => {
  it('B-UI-20: it tells texts, reasoning, calls and results, and every event is one that AG-UI knows', async () => {
    const url = await agUiServer(make(script, { tools: [tool('look')] }))
    const { agent, say, finished, events } = agentAt(url, 't1')
    await say('How is it?')
    expect(agent.messages).toMatchObject([
      { role: 'user' },
      { role: 'reasoning', content: 'Look first.' },
      { role: 'assistant', content: 'Let me look.', toolCalls: [{ function: { name: 'look', arguments: '{"n":3}' } }] },
      { role: 'tool', content: 'look 3' },
      { role: 'reasoning', content: 'Good.' },
      { role: 'assistant', content: 'It is fine.' },
    ])
    expect(finished).toMatchObject([{ threadId: 't1', outcome: { type: 'success' } }])
    const frames = await framesOf(
      await post(
        url,
        run('t1', 'How is it?', { messages: [{ id: 'm-How is it?', role: 'user', content: 'How is it?' }] }),
      ),
    )
    expect(frames.filter(({ data }) => !EventSchemas.safeParse(data).success)).toEqual([])
    expect(frames.map(({ data }) => data['type'])).toEqual(
      expect.arrayContaining([EventType.RUN_STARTED, EventType.TOOL_CALL_ARGS, EventType.RUN_FINISHED]),
    )
    expect(events.at(-1)).toHaveProperty('metadata.position')
  })

  it('B-UI-21: an approval ends the run with an interrupt, and the next run brings the answer', async () => {
    const harness = make([{ calls: [{ tool: 'publish', args: {} }] }, 'Online.'], { tools: [publish] })
    const { agent, say, finished } = agentAt(await agUiServer(harness), 't2')
    await say('Publish.')
    const [interrupt] = agent.pendingInterrupts
    expect(interrupt).toMatchObject({ reason: 'approval', metadata: { approval: { tool: 'publish', args: { n: 0 } } } })
    const interruptId = interrupt?.id ?? ''
    await agent.runAgent({
      resume: [{ interruptId, status: 'resolved', payload: { approved: true, reason: 'Fine.' } }],
    })
    expect(agent.pendingInterrupts).toEqual([])
    expect(finished.map(({ outcome }) => outcome?.type)).toEqual(['interrupt', 'success'])
    expect(agent.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'Publish.'],
      ['assistant', undefined],
      ['tool', 'publish 0'],
      ['assistant', 'Online.'],
    ])
    const { events } = await harness.session('t2').events()
    expect(events.find(({ type }) => type === 'user.tool_confirmation')).toMatchObject({ by: 'ana', why: 'Fine.' })
  })

  it('B-UI-21: an interrupt that is abandoned is a no', async () => {
    const harness = make([{ calls: [{ tool: 'publish', args: {} }] }, 'Then not.'], { tools: [publish] })
    const { agent, say } = agentAt(await agUiServer(harness), 't3')
    await say('Publish.')
    const interruptId = agent.pendingInterrupts[0]?.id ?? ''
    await agent.runAgent({ resume: [{ interruptId, status: 'cancelled' }] })
    expect(agent.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'Then not.' })
  })

  it('B-UI-22: a call that the client answers itself is named when the run ends, and goes on with its message', async () => {
    const ask = defineTool({ name: 'color', description: 'Asks the user.', input: z.object({}) })
    const harness = make([{ calls: [{ tool: 'color', args: {} }] }, 'Blue it is.'], { tools: [ask] })
    const { agent, say, finished } = agentAt(await agUiServer(harness), 't4')
    await say('Paint it.')
    const { outcome } = finished[0] ?? {}
    const [toolCallId = ''] = (outcome?.type === 'success' && outcome.pendingToolCallIds) || []
    agent.addMessage({ id: 'a1', role: 'tool', toolCallId, content: 'blue' })
    await agent.runAgent()
    expect(agent.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'Blue it is.' })
  })

  it('B-UI-23: a client that comes without messages gets all of them, then what is being said', async () => {
    const [spoke, gate] = [moment(), moment()]
    const model: Model = {
      name: 'speaker',
      call: async ({ messages }, { emit }) => {
        const reply = { type: 'reply', calls: [], finish: 'stop', usage: null } as const
        if (messages.length === 1) return { ...reply, parts: [{ type: 'text', text: 'One.' }] }
        emit({ kind: 'text', part: 0, text: 'Hello, ' })
        spoke.come()
        await gate.here
        return { ...reply, parts: [{ type: 'text', text: 'Hello, world.' }] }
      },
    }
    const url = await agUiServer(make(model))
    const { say } = agentAt(url, 't5')
    await say('first')
    const saying = say('second')
    await spoke.here
    const { agent } = agentAt(url, 't5')
    const connected = agent.runAgent()
    await new Promise((soon) => setTimeout(soon, 50))
    gate.come()
    await Promise.all([connected, saying])
    expect(agent.messages.map(({ content }) => content)).toEqual(['first', 'One.', 'second', 'Hello, world.'])
    await agent.runAgent()
    expect(agent.messages.map(({ content }) => content)).toEqual(['first', 'One.', 'second', 'Hello, world.'])
  })

  it('B-UI-24: from every position that it gave a client goes on without gap and without duplicate', async () => {
    const url = await agUiServer(make(script, { tools: [tool('look')] }))
    const frames = await framesOf(await post(url, run('t6', 'How is it?')))
    const expected = await messagesOf([frames])
    expect(expected).toHaveLength(5)
    const cuts = frames.flatMap(({ id }, i) => (id === null ? [] : [{ id, i }]))
    expect(cuts.length).toBeGreaterThan(10)
    for (const { id, i } of cuts) {
      const rest = await framesOf(await post(url, run('t6', 'How is it?', { forwardedProps: { after: id } })))
      expect({ id, messages: await messagesOf([frames.slice(0, i + 1), rest]) }).toEqual({ id, messages: expected })
    }
  })

  it('B-UI-25: a run that fails is told as an error with its code', async () => {
    const url = await agUiServer(make([{ error: 'auth', message: 'The key is not valid.' }]))
    const frames = await framesOf(await post(url, run('t7', 'Go.')))
    expect(frames.at(-1)?.data).toMatchObject({
      type: 'RUN_ERROR',
      code: 'provider_error',
      message: expect.stringContaining('key') as string,
    })
  })
})

/** What the real client makes of answers that came one after the other: one that was cut is ended where it was cut. */
async function messagesOf(answers: readonly (readonly Seen[])[]): Promise<unknown> {
  const agent = new HttpAgent({ url: 'http://unused', threadId: 't' })
  for (const [i, frames] of answers.entries()) {
    const body = frames.map(({ data }) => data)
    const last = i === answers.length - 1
    const text = (last ? body : ended(body)).map((data) => `data: ${JSON.stringify(data)}\n\n`).join('')
    agent.fetch = async () => new Response(text, { headers: { 'content-type': 'text/event-stream' } })
    await agent.runAgent()
  }
  return agent.messages.map(({ id, role, content, ...more }) => ({
    id,
    role,
    content,
    calls: 'toolCalls' in more ? more.toolCalls : null,
  }))
}

/** The client refuses a run that ends in the middle of something, so the test closes what is open. */
function ended(events: readonly Record<string, unknown>[]): readonly Record<string, unknown>[] {
  if (events.at(-1)?.['type'] === 'RUN_FINISHED') return events
  const open = new Map<unknown, string[]>()
  for (const { type, messageId } of events) {
    if (type === 'TEXT_MESSAGE_START') open.set(messageId, ['TEXT_MESSAGE_END'])
    if (type === 'REASONING_START') open.set(messageId, ['REASONING_MESSAGE_END', 'REASONING_END'])
    if (type === 'TEXT_MESSAGE_END' || type === 'REASONING_END') open.delete(messageId)
  }
  const ends = [...open].flatMap(([messageId, types]) => types.map((type) => ({ type, messageId })))
  return [...events, ...ends, { type: 'RUN_FINISHED', threadId: 't', runId: 'r' }]
}
