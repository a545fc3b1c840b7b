// The second turn after every recorded reply: what becomes of its thoughts. How each protocol encodes the rest is tested elsewhere.
import { describe, expect, it } from 'vitest'
import type { Reply } from '../../src/ports/model.ts'
import type { Message } from '../../src/kernel/transcript.ts'
import { endpoints } from '../../src/models/http/endpoints.ts'
import { parseEvents, UNFRAMED } from '../../src/models/http/framing.ts'
import type { ModelTarget } from '../../src/models/protocols/protocol.ts'
import { request, userSays } from './context.ts'
import { argsIn, protocols } from './oracle-said.ts'
import { committedStreams, type Recording, sharedStreams } from './oracle-streams.ts'

function to(endpoint: string, model = 'm'): ModelTarget {
  return { endpoint, model, settings: {}, quirks: endpoints[endpoint]?.quirks ?? {} }
}

function replyTo({ protocol, bytes }: Recording, target: ModelTarget): Reply | null {
  const reader = protocols[protocol]
  let state = reader.begin(target)
  for (const event of parseEvents(UNFRAMED, bytes)[1]) state = reader.step(state, event)[0]
  const answer = reader.finish(state)
  return answer.type === 'reply' ? answer : null
}

/** The body of the next request. */
function next(protocol: Recording['protocol'], { parts, calls }: Reply, target: ModelTarget): string {
  const shown = calls.map(({ id, tool, args }, i) => ({ key: `2.${i}`, id, tool, args: argsIn(args) }))
  const said: Message = { role: 'assistant', seq: 2, parts, calls: shown }
  const results = shown.map(({ key, id, tool }, i): Message => {
    return { role: 'tool', seq: 3 + i, call: key, id, tool, ok: true, content: 'fine' }
  })
  const messages = [userSays('Go.'), said, ...results, userSays('And?', 90)]
  return protocols[protocol].encode(request({ messages }), target).body
}

const hosts = { messages: ['anthropic', 'mine'], responses: ['openai', 'mine'] } as const
const chatHosts = Object.values(endpoints).flatMap(({ name, protocol }) => (protocol === 'chat' ? [name] : []))

/** What the model would read as something it said, in any of the three protocols. */
function visible(body: string): string {
  const { messages, input } = JSON.parse(body) as { messages?: readonly unknown[]; input?: readonly unknown[] }
  const texts: string[] = []
  JSON.stringify(messages ?? input, (key, value: unknown) => {
    if (key === 'thinking' || key === 'summary' || key.startsWith('reasoning')) return undefined
    if ((key === 'text' || key === 'content') && typeof value === 'string') texts.push(value)
    return value
  })
  return texts.join('\n')
}

const streams = [...committedStreams, ...sharedStreams]

describe('the second turn', () => {
  it('B-ORACLE-5: no thought of a recorded reply goes back to its provider as visible text', () => {
    let thoughts = 0
    for (const stream of streams) {
      for (const host of stream.protocol === 'chat' ? chatHosts : hosts[stream.protocol]) {
        const reply = replyTo(stream, to(host))
        if (reply === null) continue
        const text = reply.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
        const body = visible(next(stream.protocol, reply, to(host)))
        for (const part of reply.parts) {
          if (part.type !== 'reasoning' || part.text.trim() === '' || text.includes(part.text)) continue
          thoughts += 1
          expect([stream.name, host, body.includes(part.text), body.includes('<thinking>')]).toEqual([
            stream.name,
            host,
            false,
            false,
          ])
        }
      }
    }
    expect(thoughts).toBeGreaterThan(100)
  })

  it('B-ORACLE-5: another provider is told every thought once', () => {
    let thoughts = 0
    for (const stream of streams) {
      const reply = replyTo(stream, to('somewhere'))
      if (reply === null) continue
      for (const protocol of ['messages', 'responses', 'chat'] as const) {
        const body = next(protocol, reply, to('elsewhere'))
        const said = JSON.stringify(reply.parts.filter(({ type }) => type === 'text'))
        for (const part of reply.parts) {
          const words = part.type === 'reasoning' ? JSON.stringify(part.text.trim()).slice(1, -1) : ''
          if (words.length < 20 || said.includes(words)) continue
          thoughts += 1
          expect([stream.name, protocol, body.split(words).length - 1]).toEqual([stream.name, protocol, 1])
        }
      }
    }
    expect(thoughts).toBeGreaterThan(10)
  })
})
