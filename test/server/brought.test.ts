// What the library has, over a server: a conversation that is brought along, settings of one run, and a question with fields.
import { describe, expect, it } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { type Request, scripted } from '../../src/index.ts'
import { askUserTool } from '../../src/tools/ask-user.ts'
import { type Served, served } from './served.ts'

const clientOf = (one: Served, token = one.tokens.own) => connect({ url: one.server.url, token })

/** A server whose model answers "Hi" and keeps each request. */
async function keeping() {
  const requests: Request[] = []
  const model = scripted((request) => {
    // Its list grows with the session.
    requests.push({ ...request, messages: [...request.messages] })
    return 'Hi'
  })
  return { requests, one: await served([], { harness: { model } as object }) }
}

const MESSAGES = [
  { role: 'user', content: 'My name is Ana.' },
  { role: 'assistant', content: 'Hello, Ana.' },
] as const

describe('a conversation that is brought to a server', () => {
  it('B-BRING-20: the model reads it before the first message, and the session is that of the token', async () => {
    const { one, requests } = await keeping()
    const token = one.token({ name: 'otto', role: 'operator', reach: 'own' })
    const session = await clientOf(one, token).open({ messages: MESSAGES })
    expect(requests).toEqual([])
    expect(await session.run('What is my name?')).toMatchObject({ status: 'completed', text: 'Hi' })
    expect(requests[0]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect((await session.status()).labels).toMatchObject({ owner: 'otto' })
    const stranger = clientOf(one, one.token({ name: 'mia', role: 'operator', reach: 'own' }))
    await expect(stranger.session(session.id).status()).rejects.toMatchObject({ code: 'session_missing' })
  })

  it('B-BRING-20: with a first message it is one request, and the same id or key is the same session', async () => {
    const { one, requests } = await keeping()
    const client = clientOf(one)
    const body = { id: 'trip', messages: MESSAGES }
    expect((await client.open(body)).id).toBe((await client.open(body)).id)
    await expect(client.open({ id: 'trip', messages: MESSAGES.slice(0, 1) })).rejects.toMatchObject({
      code: 'id_reused',
    })
    const headers = { 'idempotency-key': 'once' }
    const keyed = { headers, body: { messages: MESSAGES, input: 'And now?' } }
    const made = await Promise.all([1, 2].map(() => one.ask('POST', '/v1/sessions', keyed)))
    const again = await one.json<{ session: string }>('POST', '/v1/sessions', keyed)
    expect(Math.min(...made.map(({ status }) => status))).toBe(201)
    await client.session(again.session).run()
    expect(requests.map(({ messages }) => messages.length)).toEqual([3])
    expect((await one.ask('POST', '/v1/sessions', { headers, body: { messages: [] } })).status).toBe(422)
  })

  const call = { id: 'a', type: 'function', function: { name: 'weather', arguments: '{}' } }
  const hash = 'a'.repeat(64)
  const refused: readonly (readonly [string, unknown, RegExp])[] = [
    ['no list', 'Hello', /messages.*array/],
    ['no message', ['Hello'], /messages\/0.*object/],
    ['no role', [{ content: 'x' }], /role/],
    ['a system message', [{ role: 'system', content: 'x' }], /messages\[0\] has the role "system".*instructions/],
    ['another role', [{ role: 'owner', content: 'x' }], /messages\[0\] has the role "owner"/],
    ['an open call', [{ role: 'assistant', tool_calls: [call] }], /messages\[0\] calls "weather"/],
    ['too many', Array.from({ length: 10_001 }, () => ({ role: 'user', content: 'x' })), /10000/],
    [
      'a file of another session',
      [{ role: 'user', content: [{ type: 'blob', hash, bytes: 8, media: 'image/png' }] }],
      /messages\[0\] has a blob.*file itself/,
    ],
    [
      'a file of another session in a result',
      [
        { role: 'assistant', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'a', content: [{ type: 'blob', hash, bytes: 8, media: 'image/png' }] },
      ],
      /messages\[1\] has a blob.*file itself/,
    ],
  ]
  it('B-BRING-20, B-BRING-21: what cannot be read is refused with one sentence, and no session is made', async () => {
    const { one } = await keeping()
    for (const [what, messages, sentence] of refused) {
      const { status, text } = await one.ask('POST', '/v1/sessions', { body: { messages, input: 'Go.' } })
      const { error } = JSON.parse(text) as { error: { code: string; message: string } }
      expect([what, status, error.code, error.message]).toEqual([
        what,
        400,
        'invalid_input',
        expect.stringMatching(sentence) as string,
      ])
    }
    const large = [{ role: 'user', content: 'x'.repeat(1024 * 1024) }]
    expect((await one.ask('POST', '/v1/sessions', { body: { messages: large } })).status).toBe(413)
    const viewer = one.token({ name: 'vera', role: 'viewer' })
    expect((await one.ask('POST', '/v1/sessions', { token: viewer, body: { messages: MESSAGES } })).status).toBe(403)
    expect(await one.host.store.list({ limit: 10 })).toEqual([])
  })
})

describe('settings of one run over a server', () => {
  it('B-SETTINGS-20: they are in the requests of that run, and in no other', async () => {
    const { one, requests } = await keeping()
    const session = await clientOf(one).open()
    const settings = { temperature: 0.2, outputTokensMax: 321, stop: ['END'], reasoning: 'low' } as const
    await session.run('Hello', { settings })
    await session.run('Again')
    expect(requests.map((request) => request.settings)).toEqual([settings, undefined])
  })

  it('B-SETTINGS-20: what is unknown, or no value of a setting, is refused, and nothing is written', async () => {
    const { one, requests } = await keeping()
    const session = await clientOf(one).open()
    const seq = (await session.status()).seq
    const wrong: readonly unknown[] = [
      { temperature: 'hot' },
      { temperature: -1 },
      { topP: 7 },
      { outputTokensMax: 0 },
      { seed: 1.5 },
      { stop: 'END' },
      { stop: [7] },
      { toolChoice: 'sometimes' },
      { toolChoice: { tool: 'x', more: 1 } },
      { reasoning: 'heroic' },
      { reasoning: { budgetTokens: -1 } },
      { apiKey: 'x' },
      { baseUrl: 'http://elsewhere' },
      [],
      'hot',
      null,
    ]
    for (const settings of wrong) {
      const body = { input: 'Hello', settings }
      const { status, text } = await one.ask('POST', `/v1/sessions/${session.id}/messages`, { body })
      expect([settings, status, text]).toEqual([settings, 400, expect.stringContaining('"message"') as string])
    }
    expect([requests.length, (await session.status()).seq]).toEqual([0, seq])
  })
})

describe('a question with fields over a server', () => {
  it('B-ERROR2-7: the client has its fields, an answer that does not fit is refused, and one that fits goes on', async () => {
    const fields = [
      { name: 'city', type: 'text', description: 'Where to' },
      { name: 'nights', type: 'number', description: 'How long' },
    ]
    const ask = { calls: [{ tool: 'ask_user', args: { question: 'Where to?', fields } }] }
    const one = await served([ask, 'Booked.'], { harness: { tools: [askUserTool()] } })
    const session = await clientOf(one).open()
    await session.send('Book it.')
    await session.run()
    const [question] = (await session.status()).pending
    expect(question).toMatchObject({ needs: 'answer', args: { question: 'Where to?', fields } })
    const callId = question?.callId ?? ''
    const wrong = session.answer({ callId, content: '{"city":"Rome","nights":"two"}' })
    await expect(wrong).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('nights') as string,
    })
    await session.answer({ callId, content: '{"city":"Rome","nights":2}' })
    expect(await session.result({ waitMs: 20_000 })).toMatchObject({ status: 'completed', text: 'Booked.' })
  })
})
