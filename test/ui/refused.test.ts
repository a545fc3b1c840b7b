// What a browser may not do: refused with a status, a code and one sentence, and nothing is lost. What it may is chat.test.ts and ag-ui.test.ts.
import { describe, expect, it } from 'vitest'
import { Fault, type Harness, memory } from '../../src/index.ts'
import { agUiHandler, chatHandler, type UiMessage, uiMessages } from '../../src/ui/index.ts'
import { make, tool } from '../runtime/scene.ts'
import { agUiServer, ANA, chatServer, framesOf, post, userMessage } from './stage.ts'

const publish = () => tool('publish', { approval: 'ask', effect: 'once' })
const asking = () => make([{ calls: [{ tool: 'publish', args: {} }] }, 'Online.', 'More.'], { tools: [publish()] })
const sent = (id: unknown, ...messages: readonly unknown[]) => ({ id, messages, trigger: 'submit-message' })

type Refused = { readonly code: string; readonly message: string }
async function refused(response: Response): Promise<readonly [number, string]> {
  const { code, message } = (await response.json()) as Refused
  expect(message).toMatch(/^[A-Z"].*\.$/)
  return [response.status, code]
}

/** The last message of a session with its approval answered, as a browser would send it. */
async function answered(harness: Harness, id: string, approval: object): Promise<UiMessage> {
  const message = structuredClone((await uiMessages(harness.session(id))).at(-1)) as UiMessage
  for (const part of message.parts)
    if ('approval' in part)
      Object.assign(part, { state: 'approval-responded', approval: { ...part.approval, ...approval } })
  return message
}

const seqOf = async (harness: Harness, id: string) => (await harness.session(id).events()).events.length

describe('a request to a chat', () => {
  it('B-UI-11: a position of another session, of a removed one or of the future is stale, and what is no position is no input', async () => {
    const harness = make(['One.', 'Two.', 'Three.'], { store: memory() })
    const url = await chatServer(harness)
    const frames = await framesOf(await post(url, sent('a', userMessage('one'))))
    await framesOf(await post(url, sent('b', userMessage('two'))))
    const own = frames.at(-1)?.id ?? ''
    const at = async (id: string, after: string) => refused(await fetch(`${url}/${id}/stream?after=${after}`))
    expect(await at('b', own)).toEqual([409, 'cursor_stale'])
    expect(await at('a', own.replace(/\d+$/, '999'))).toEqual([409, 'cursor_stale'])
    expect(await at('a', own.replace(/\.\d+$/, '.0'))).toEqual([409, 'cursor_stale'])
    expect(await at('nowhere', own)).toEqual([404, 'session_missing'])
    for (const wrong of ['7', 'x'.repeat(5_000), `${own}.c1.t0--1`, `${own}%0Aid:%201`, '__proto__'])
      expect([wrong, ...(await at('a', wrong))]).toEqual([wrong, 400, 'invalid_input'])
    await harness.remove('a')
    await harness.open({ id: 'a' })
    expect(await at('a', own)).toEqual([409, 'cursor_stale'])
    const agent = await agUiServer(harness)
    const run = { threadId: 'a', runId: 'r', messages: [], forwardedProps: { after: own } }
    expect(await refused(await post(agent, run))).toEqual([409, 'cursor_stale'])
    expect(await refused(await post(agent, { ...run, forwardedProps: { after: { a: 1 } } }))).toEqual([
      400,
      'invalid_input',
    ])
  })

  it('B-UI-26: a session that is there stays as the server opened it, also where the server had to wait for how to', async () => {
    const harness = make(['One.', 'Two.'])
    const open = async (request: Request) => ({ labels: { user: request.headers.get('x-user') ?? '' } })
    const url = await chatServer(harness, { ...ANA, open })
    await framesOf(await post(url, sent('a', userMessage('one')), { 'x-user': 'ana' }))
    await framesOf(await post(url, sent('a', userMessage('two')), { 'x-user': 'bob' }))
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toMatchObject([
      { session: 'a', labels: { user: 'ana' } },
    ])
  })

  it('B-UI-12: who decides is what the server says; a decision must name the open call and its digest', async () => {
    const harness = asking()
    const url = await chatServer(harness)
    await framesOf(await post(url, sent('a', userMessage('Publish.'))))
    const before = await seqOf(harness, 'a')
    const yes = await answered(harness, 'a', { approved: true, by: 'root', role: 'owner' })
    const id = (yes.parts.find((part) => 'approval' in part) as { approval: { id: string } }).approval.id
    for (const [wrong, status, code] of [
      [id.replace(/.$/, (last) => (last === '0' ? '1' : '0')), 409, 'decision_stale'],
      [id.replace(/\/\d+\./, '/999.'), 404, 'call_unknown'],
      [id.replace(/^\//, '~2.0/'), 400, 'invalid_input'],
      [id.slice(0, 20), 400, 'invalid_input'],
      ['budget', 400, 'invalid_input'],
      [7, 400, 'invalid_input'],
    ] as const) {
      const message = await answered(harness, 'a', { id: wrong, approved: true })
      expect([wrong, ...(await refused(await post(url, sent('a', message))))]).toEqual([wrong, status, code])
    }
    const unclear = await answered(harness, 'a', { approved: 'yes' })
    expect(await refused(await post(url, sent('a', unclear)))).toEqual([400, 'invalid_input'])
    expect(await seqOf(harness, 'a')).toBe(before)
    await framesOf(await post(url, sent('a', yes)))
    const { events } = await harness.session('a').events()
    const decision = events.find(({ type }) => type === 'user.tool_confirmation')
    expect(decision).toMatchObject({ allow: true, by: 'ana' })
    expect(decision).not.toHaveProperty('role')
    expect(await refused(await post(url, sent('a', yes)))).toEqual([409, 'decision_stale'])
  })

  it('B-UI-13: a session that the person may not use is neither read, written, stopped nor made', async () => {
    const harness = asking()
    const options = {
      by: (request: Request, session: string) => (session === request.headers.get('x-user') ? session : null),
    }
    for (const url of [await chatServer(harness, options), await agUiServer(harness, options)]) {
      const other = { 'x-user': 'ben' }
      expect(
        await refused(await post(url, { ...sent('ana', userMessage('Hi')), threadId: 'ana', runId: 'r' }, other)),
      ).toEqual([403, 'forbidden'])
    }
    const url = await chatServer(harness, options)
    const headers = { 'x-user': 'ben' }
    for (const path of ['ana/stream', 'ana/messages', 'x/../ana/messages', '%61na/stream'])
      expect([path, ...(await refused(await fetch(`${url}/${path}`, { headers })))]).toEqual([path, 403, 'forbidden'])
    expect(await refused(await fetch(`${url}/ana`, { method: 'DELETE', headers }))).toEqual([403, 'forbidden'])
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toEqual([])
  })

  it('B-UI-13: whoever is given no name may use none', async () => {
    const harness = asking()
    for (const person of [undefined, false, true, '', ' ', 5, {}, { name: '' }, { name: 'ana', role: 5 }]) {
      const by = (): null => person as unknown as null
      for (const url of [await chatServer(harness, { by }), await agUiServer(harness, { by })]) {
        const answer = await post(url, { ...sent('ana', userMessage('Hi')), threadId: 'ana', runId: 'r' })
        expect([person, ...(await refused(answer))]).toEqual([person, 403, 'forbidden'])
      }
    }
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toEqual([])
  })

  it('B-UI-14: what is no request of useChat is refused, and no message of it is written', async () => {
    const harness = asking()
    const url = await chatServer(harness, { ...ANA, bytesMax: 10_000 })
    const parts = (...list: readonly unknown[]) => sent('a', { id: 'm', role: 'user', parts: list })
    const cases: readonly (readonly [unknown, number, string])[] = [
      ['no json', 400, 'invalid_input'],
      ['[]', 400, 'invalid_input'],
      [sent('a'), 400, 'invalid_input'],
      [sent(undefined, userMessage('Hi')), 400, 'invalid_input'],
      [sent({}, userMessage('Hi')), 400, 'invalid_input'],
      [sent('x'.repeat(600), userMessage('Hi')), 400, 'invalid_input'],
      [sent('a~1.0', userMessage('Hi')), 400, 'invalid_input'],
      [sent('a', { role: 'user', parts: 'Hi' }), 400, 'invalid_input'],
      [sent('a', { role: 'system', parts: [] }), 400, 'invalid_input'],
      [sent('a', userMessage(' ')), 400, 'invalid_input'],
      [sent('a', userMessage('Hi', 'terret:decision:1.0')), 400, 'invalid_input'],
      [sent('a', userMessage('Hi', 'x'.repeat(600))), 400, 'invalid_input'],
      [
        parts({ type: 'tool-publish', toolCallId: '1.0', state: 'output-available', output: 'x' }),
        400,
        'invalid_input',
      ],
      [parts({ type: 'file', mediaType: 'image/png', url: 'http://169.254.169.254/' }), 400, 'invalid_input'],
      [parts({ type: 'file', mediaType: 'text', url: 'data:text;base64,QQ==' }), 400, 'invalid_input'],
      [sent('a', userMessage('x'.repeat(20_000))), 413, 'too_many'],
      [sent('a', userMessage('x'.repeat(20_000_000))), 413, 'too_many'],
      [{ ...sent('a', userMessage('Hi')), trigger: 'regenerate-message' }, 400, 'invalid_input'],
    ]
    for (const [body, status, code] of cases)
      expect([body, ...(await refused(await post(url, body)))]).toEqual([body, status, code])
    const form = await post(url, JSON.stringify(sent('a', userMessage('Hi'))), { 'content-type': 'text/plain' })
    expect(await refused(form)).toEqual([400, 'invalid_input'])
    expect(await refused(await fetch(`${url}/a`))).toEqual([404, 'not_found'])
    expect(await refused(await fetch(`${url}/%ff/stream`))).toEqual([400, 'invalid_input'])
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toEqual([])
  })

  it('B-UI-14: an edited message is another message, and unknown fields are left alone', async () => {
    const harness = make(['One.', 'Two.'])
    const url = await chatServer(harness)
    const body = { ...sent('a', { ...userMessage('Hi', 'm1'), by: 'root', when: 'now' }), agent: 'admin', limits: {} }
    await framesOf(await post(url, body))
    expect(await refused(await post(url, sent('a', userMessage('Ho', 'm1'))))).toEqual([409, 'id_reused'])
    const [, message] = (await harness.session('a').events()).events
    expect(message).toMatchObject({ type: 'user.message', by: 'ana', when: 'next' })
  })

  it('B-UI-14: what is no request of AG-UI is refused', async () => {
    const harness = asking()
    const url = await agUiServer(harness)
    await harness.open({ id: 'b' })
    const user = { id: 'm', role: 'user', content: 'Hi' }
    for (const body of [
      { runId: 'r', messages: [user] },
      { threadId: 'a', messages: [user] },
      { threadId: 'a', runId: 'r', messages: [{ ...user, content: [{ type: 'image', source: {} }] }] },
      { threadId: 'a', runId: 'r', messages: [{ ...user, content: ' ' }] },
      { threadId: 'b', runId: 'r', messages: [], resume: [{ interruptId: '7', status: 'resolved', payload: true }] },
    ])
      expect([body, ...(await refused(await post(url, body)))]).toEqual([body, expect.any(Number), 'invalid_input'])
    expect(await refused(await fetch(url))).toEqual([405, 'not_found'])
    const stale = { threadId: 'a', runId: 'r', messages: [user], forwardedProps: { after: '0123456789ab.1.1' } }
    expect(await refused(await post(url, stale))).toEqual([404, 'session_missing'])
    expect((await harness.list({ order: 'id', limit: 500 })).cards.map(({ session }) => session)).toEqual(['b'])
  })

  it('B-UI-15: options that are not known, or not usable, are refused when the handler is made', () => {
    const harness = asking()
    for (const handler of [chatHandler, agUiHandler]) {
      expect(() => handler(harness, {} as never)).toThrow('who is behind a request')
      expect(() => handler(harness, { ...ANA, byts: 1 } as never)).toThrow(Fault)
      expect(() => handler(harness, { ...ANA, bytesMax: 0 })).toThrow('bytesMax')
    }
  })

  it('B-UI-16: trouble of the server itself is told without what it says inside', async () => {
    const harness = asking()
    const url = await chatServer(harness, { by: () => Promise.reject(new Error('password of the database')) })
    const response = await post(url, sent('a', userMessage('Hi')))
    expect([response.status, await response.json()]).toEqual([
      500,
      { code: 'failed', message: 'The server could not do this.' },
    ])
  })
})
