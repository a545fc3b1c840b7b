// What people do through a server: open, send, decide, answer, fork; who did it, what a repeat does, and what others cannot see.
import { createHash } from 'node:crypto'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { type HarnessOptions, scripted } from '../../src/index.ts'
import type { Event } from '../../src/kernel/index.ts'
import type {
  EventsAnswer,
  OpenedAnswer,
  ResultAnswer,
  SessionAnswer,
  SessionPage,
  WireError,
  WirePending,
  WireReceipt,
} from '../../src/server/wire.ts'
import { ROUTES } from '../../src/server/wire.ts'
import { openApi } from '../../src/server/open-api.ts'
import { tool } from '../runtime/scene.ts'
import { until } from '../until.ts'
import { type Ask, PEOPLE, type Served, served } from './served.ts'

const publish = tool('publish', { approval: 'ask', effect: 'once' })
const asks = { calls: [{ tool: 'publish', args: { n: 1 } }] }

async function opened(one: Served, ask: Ask = {}): Promise<string> {
  return (await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: { input: 'Go.' }, ...ask })).session
}

async function logOf(one: Served, session: string): Promise<readonly Event[]> {
  return (await one.host.store.read(session, 0)).events
}

async function waiting(one: Served, session: string): Promise<WirePending> {
  return until(async () => {
    const { pending } = await one.json<SessionAnswer>('GET', `/v1/sessions/${session}`)
    if (!pending[0]) throw new Error('nothing waits')
    return pending[0]
  })
}

async function stage(script: Parameters<typeof served>[0], harness: Omit<HarnessOptions, 'model' | 'store'> = {}) {
  const one = await served(script, { harness })
  const [vera, otto, ana, bob] = PEOPLE.map((person) => one.token(person))
  return { one, vera: vera ?? '', otto: otto ?? '', ana: ana ?? '', bob: bob ?? '' }
}

const messageOf = ({ text }: { readonly text: string }): string => (JSON.parse(text) as WireError).error.message

describe('sessions over HTTP', () => {
  it('B-SERVE-11: a session is opened with its first message, driven, and read: card, events, messages, state, result, each as its schema says', async () => {
    const { one } = await stage(['Done.'])
    const session = await opened(one)
    const ajv = new Ajv2020({ strict: false })
    const { components } = openApi('1', '/') as { readonly components: object }
    const checked = async (name: keyof typeof ROUTES, path: string): Promise<unknown> => {
      const json = await one.json('GET', path)
      const check = ajv.compile({ $ref: `#/components/schemas/${ROUTES[name].answer}`, components })
      expect([name, check(json), check.errors]).toEqual([name, true, null])
      return json
    }
    const result = (await checked('result', `/v1/sessions/${session}/result?wait=20`)) as ResultAnswer
    expect(result).toMatchObject({ open: false, result: { status: 'completed', text: 'Done.' } })
    expect(await checked('session', `/v1/sessions/${session}`)).toMatchObject({
      card: { session, outcome: 'completed' },
    })
    expect(await checked('messages', `/v1/sessions/${session}/messages`)).toMatchObject({
      messages: [{ role: 'user' }, { role: 'assistant' }],
    })
    const { events, head } = (await checked('events', `/v1/sessions/${session}/events`)) as EventsAnswer
    expect(events).toEqual(await logOf(one, session))
    expect(await checked('state', `/v1/sessions/${session}/state?at=${head}`)).toMatchObject({ seq: head })
    for (const name of ['health', 'me', 'openapi', 'sessions', 'pending', 'agents', 'usage', 'due', 'tokens'] as const)
      await checked(name, ROUTES[name].path)
    expect(await one.json('GET', '/v1/health')).toMatchObject({
      ok: true,
      trouble: null,
      durability: { kind: 'sqlite' },
    })
  })

  it('B-SERVE-12: pages of events go forwards, backwards and through a search, and end where there is no more', async () => {
    const { one } = await stage(['One.', 'Two.'])
    const session = await opened(one)
    await one.json('GET', `/v1/sessions/${session}/result?wait=20`)
    await one.json('POST', `/v1/sessions/${session}/messages`, { body: { input: 'More needles.' } })
    await one.json('GET', `/v1/sessions/${session}/result?wait=20`)
    const log = await until(async () => {
      const events = await logOf(one, session)
      expect(events.filter(({ type }) => type === 'run.settled')).toHaveLength(2)
      return events
    })
    const page = (query: string) => one.json<EventsAnswer>('GET', `/v1/sessions/${session}/events?${query}`)
    const forwards: Event[] = []
    for (let after: number | null = 0; after !== null; ) {
      const found: EventsAnswer = await page(`after=${after}&limit=3`)
      forwards.push(...found.events)
      after = found.after
    }
    expect(forwards).toEqual(log)
    const backwards: Event[] = []
    for (let before: number | null = log.length + 1; before !== null; ) {
      const found: EventsAnswer = await page(`before=${before}&limit=3`)
      backwards.unshift(...found.events)
      before = found.before
    }
    expect(backwards).toEqual(log)
    expect((await page('types=run.settled,session.created')).events.map(({ type }) => type)).toEqual([
      'session.created',
      'run.settled',
      'run.settled',
    ])
    expect((await page('q=NEEDLES')).events).toMatchObject([{ type: 'user.message' }])
    expect((await one.ask('GET', `/v1/sessions/${session}/events?after=999`)).status).toBe(409)
    expect((await one.ask('GET', `/v1/sessions/${session}/events?after=1&before=2`)).status).toBe(400)
  })

  it('B-SERVE-13: who did it is the name of the token, whatever the body says', async () => {
    const { one, ana, otto } = await stage([asks, 'Done.'], { tools: [publish] })
    const session = await opened(one, { token: otto })
    const { callId, digest } = await waiting(one, session)
    const path = `/v1/sessions/${session}/decisions`
    const lie = await one.ask('POST', path, { token: ana, body: { callId, digest, allow: true, by: 'bob' } })
    expect(lie.status).toBe(400)
    await one.json('POST', path, { token: ana, body: { callId, digest, allow: true } })
    const log = await logOf(one, session)
    expect(log.find(({ type }) => type === 'user.message')).toMatchObject({ by: 'otto' })
    expect(log.find(({ type }) => type === 'user.tool_confirmation')).toMatchObject({ by: 'ana' })
  })

  it('B-POWER-12: a caller chooses only models that the configuration has', async () => {
    const { one } = await stage(['Done.', 'Again.', 'Forked.'], { models: { named: { other: scripted(['Other.']) } } })
    const session = await opened(one)
    const asks = [
      ['/v1/sessions', { input: 'Go.' }],
      [`/v1/sessions/${session}/messages`, { input: 'Go.' }],
      [`/v1/sessions/${session}/fork`, {}],
    ] as const
    for (const [path, body] of asks) {
      const refused = await one.ask('POST', path, { body: { ...body, model: 'ollama:any' } })
      expect(refused.status).toBe(400)
      expect(messageOf(refused)).toMatch(/^This server has no model "ollama:any"\. Choose one of: .*other/)
      expect((await one.ask('POST', path, { body: { ...body, model: 'other' } })).status).toBeLessThan(300)
    }
  })

  it('B-SERVE-14: the same Idempotency-Key is one change, also after a restart; with another body it is refused, and while the first is answered too', async () => {
    const { one, otto } = await stage(['Done.', 'Again.'])
    const headers = { 'idempotency-key': 'k-1' }
    const [first, second] = await Promise.all(
      [0, 1].map(() => one.ask('POST', '/v1/sessions', { headers, body: { input: 'Go.' } })),
    )
    expect(new Set([first?.status, second?.status])).toEqual(new Set([201, 409]))
    const again = await one.json<OpenedAnswer>('POST', '/v1/sessions', { headers, body: { input: 'Go.' } })
    expect(again.receipt).toMatchObject({ duplicate: true })
    const { session } = again
    expect((await one.ask('POST', '/v1/sessions', { headers, body: { input: 'Go elsewhere.' } })).status).toBe(422)
    expect(await opened(one, { headers, token: otto })).not.toBe(session)
    const send = (input: string, key: string) =>
      one.ask('POST', `/v1/sessions/${session}/messages`, { headers: { 'idempotency-key': key }, body: { input } })
    const receipts = [await send('More.', 'k-2'), await send('More.', 'k-2')].map(
      ({ text }) => JSON.parse(text) as WireReceipt,
    )
    expect(receipts[1]).toEqual({ ...receipts[0], duplicate: true })
    const reused = await send('Less.', 'k-2')
    expect([reused.status, (JSON.parse(reused.text) as WireError).error.code]).toEqual([422, 'id_reused'])
    for (const [path, body, changed] of [
      ['interrupt', { mode: 'stop' }, { mode: 'pause' }],
      ['commands', { commands: [{ type: 'message', input: 'a' }] }, { commands: [{ type: 'message', input: 'b' }] }],
      ['fork', {}, { at: 1 }],
    ] as const) {
      const say = (sent: object) =>
        one.ask('POST', `/v1/sessions/${session}/${path}`, { headers: { 'idempotency-key': `k-${path}` }, body: sent })
      const [a, b, c] = [await say(body), await say(body), await say(changed)]
      expect([path, a.status, b.status, c.status]).toEqual([path, ROUTES[path].status, ROUTES[path].status, 422])
      const [x, y] = [a, b].map(({ text }) => JSON.parse(text) as Partial<WireReceipt & OpenedAnswer>)
      expect([y?.seq, y?.session]).toEqual([x?.seq, x?.session])
    }
    expect((await logOf(one, session)).filter(({ type }) => type === 'user.interrupt')).toHaveLength(1)
  })

  it('B-SERVE-15: another principal’s session is not there, byte for byte', async () => {
    const { one } = await stage([asks, asks, 'Done.'], { tools: [publish] })
    const [mine, theirs] = ['mia', 'tom'].map((name) => one.token({ name, role: 'operator', reach: 'own' }))
    const session = await opened(one, { token: mine ?? '' })
    await waiting(one, session)
    const token = theirs ?? ''
    for (const [, { method, path, body, role }] of Object.entries(ROUTES)) {
      if (!path.includes(':id') || role === 'approver' || role === 'admin') continue
      const ask = { token, ...(body ? { body: bodyFor(path) } : {}) }
      const [found, missing] = await Promise.all([
        one.ask(method, path.replace(':id', session).replace(':hash', 'a'.repeat(64)), ask),
        one.ask(method, path.replace(':id', 'x'.repeat(session.length)).replace(':hash', 'a'.repeat(64)), ask),
      ])
      expect([path, found?.status]).toEqual([path, 404])
      expect(found?.text.replaceAll(session, 'X')).toBe(missing?.text.replaceAll('x'.repeat(session.length), 'X'))
      expect({ ...found?.headers, date: '' }).toEqual({ ...missing?.headers, date: '' })
    }
    expect(await one.json('GET', '/v1/sessions', { token })).toMatchObject({ sessions: [] })
    expect(await one.json('GET', '/v1/pending', { token })).toMatchObject({ pending: [] })
    expect(await one.json('GET', '/v1/usage', { token })).toMatchObject({ rows: [] })
    const page = await one.json<SessionPage>('GET', '/v1/sessions', { token: mine ?? '' })
    expect(page.sessions.map((card) => card.session)).toEqual([session])
    expect((await one.ask('POST', '/v1/sessions', { token, body: { labels: { owner: 'mia' } } })).status).toBe(400)
  })

  it('B-SERVE-93: a fork is whose token made it, with labels of its own, and its key is not that of the other owner', async () => {
    const { one, otto } = await stage(['Done.'])
    const token = one.token({ name: 'mia', role: 'operator', reach: 'own' })
    const session = await opened(one, { token })
    const path = `/v1/sessions/${session}/fork`
    const headers = { 'idempotency-key': 'f-1' }
    const body = { labels: { why: 'test' }, metadata: { n: 1 } }
    const { session: fork } = await one.json<OpenedAnswer>('POST', path, { token: otto, headers, body })
    const { card } = await one.json<SessionAnswer>('GET', `/v1/sessions/${fork}`, { token: otto })
    expect([card.owner, card.labels]).toEqual(['otto', { owner: 'otto', why: 'test' }])
    expect((await logOf(one, fork))[0]).toMatchObject({ metadata: { owner: 'otto', n: 1 } })
    expect((await one.json<OpenedAnswer>('POST', path, { token: otto, headers, body })).session).toBe(fork)
    expect((await one.ask('GET', `/v1/sessions/${fork}`, { token })).status).toBe(404)
    const own = await one.json<OpenedAnswer>('POST', path, { token, headers, body })
    expect(own.session).not.toBe(fork)
    expect((await one.ask('POST', path, { token, body: { labels: { owner: 'otto' } } })).status).toBe(400)
    // Without an owner and with no room for one, it is forked all the same.
    const full = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`l${i}`, 'x']))
    const { id } = await one.host.harness.open({ labels: full })
    const plain = { token: otto, headers: { 'idempotency-key': 'f-2' }, body: {} }
    const copied = await one.json<OpenedAnswer>('POST', `/v1/sessions/${id}/fork`, plain)
    expect((await one.json<OpenedAnswer>('POST', `/v1/sessions/${id}/fork`, plain)).session).toBe(copied.session)
    expect((await one.host.store.card(copied.session))?.labels).toEqual(full)
  })

  it('B-SERVE-16: an old digest, an expired question and a wrong role decide nothing: 409, 409, 403', async () => {
    const rule = { effect: 'ask', tool: 'publish', roles: ['lead'] } as const
    const { one, ana } = await stage([asks, 'Done.'], { tools: [publish], approvals: { policy: { rules: [rule] } } })
    const session = await opened(one)
    const { callId, digest } = await waiting(one, session)
    const decide = (token: string, body: object) =>
      one.ask('POST', `/v1/sessions/${session}/decisions`, { token, body })
    const guest = one.token({ name: 'gus', role: 'approver', roles: ['guest'] })
    expect((await decide(guest, { callId, digest, allow: true })).status).toBe(403)
    expect((await decide(guest, { callId, digest, allow: true, role: 'lead' })).status).toBe(403)
    expect((await decide(ana, { callId, allow: true })).status).toBe(400)
    const old = createHash('sha256').update('old').digest('hex')
    expect((await decide(ana, { callId, digest: old, allow: true })).status).toBe(409)
    expect((await decide(ana, { callId: 'budget', allow: true, usd: 1 })).status).toBe(403)
    expect((await decide(ana, { callId: '99.0', digest, allow: true })).status).toBe(404)
    expect((await logOf(one, session)).some(({ type }) => type === 'agent.tool_use')).toBe(false)
    expect((await decide(ana, { callId, digest, allow: true })).status).toBe(202)
    await until(async () => expect((await logOf(one, session)).at(-1)).toMatchObject({ type: 'run.settled' }))
    const late = await stage([asks, 'Done.'], { tools: [publish], approvals: { timeoutMs: 1 } })
    const other = await opened(late.one)
    const said = await until(async () => {
      const log = await logOf(late.one, other)
      const reply = log.find(({ type }) => type === 'agent.message')
      if (reply?.type !== 'agent.message') throw new Error('no reply yet')
      return { callId: `${reply.seq}.0`, digest: reply.calls[0]?.digest }
    })
    await until(async () =>
      expect((await logOf(late.one, other)).some(({ type }) => type === 'agent.tool_result')).toBe(true),
    )
    const answer = await late.one.ask('POST', `/v1/sessions/${other}/decisions`, {
      token: late.ana,
      body: { ...said, allow: true },
    })
    expect(answer.status).toBe(409)
  })

  it('B-SERVE-17: of two that decide at once one is heard, and the other is told who and when; a repeat is the same receipt', async () => {
    const { one, ana, bob } = await stage([asks, 'Done.'], { tools: [publish] })
    const session = await opened(one)
    const { callId, digest } = await waiting(one, session)
    const decide = (token: string, allow: boolean) =>
      one.ask('POST', `/v1/sessions/${session}/decisions`, { token, body: { callId, digest, allow } })
    const answers = await Promise.all([decide(ana, true), decide(bob, false)])
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202, 409]))
    const winner = answers[0]?.status === 202 ? 'ana' : 'bob'
    const loser = answers.find(({ status }) => status === 409)
    expect(messageOf(loser ?? { text: '' })).toMatch(
      new RegExp(`^${winner} (allowed|denied) call ${callId} at \\d{4}-`),
    )
    const again = await decide(winner === 'ana' ? ana : bob, winner === 'ana')
    const first = answers.find(({ status }) => status === 202)
    const [x, y] = [first, again].map((answer) => JSON.parse(answer?.text ?? '') as WireReceipt)
    expect([again.status, y?.seq, y?.eventId]).toEqual([202, x?.seq, x?.eventId])
    expect((await logOf(one, session)).filter(({ type }) => type === 'user.tool_confirmation')).toHaveLength(1)
  })

  it('B-SERVE-18: where two must allow, one is shown, and the same person twice counts once', async () => {
    const rule = { effect: 'ask', tool: 'publish', n: 2 } as const
    const { one, ana, bob } = await stage([asks, 'Done.'], {
      tools: [publish],
      approvals: { policy: { rules: [rule] } },
    })
    const session = await opened(one)
    const { callId, digest } = await waiting(one, session)
    const decide = (token: string) =>
      one.ask('POST', `/v1/sessions/${session}/decisions`, { token, body: { callId, digest, allow: true } })
    expect([(await decide(ana)).status, (await decide(ana)).status]).toEqual([202, 202])
    const { pending } = await one.json<SessionAnswer>('GET', `/v1/sessions/${session}`)
    expect(pending).toMatchObject([{ n: 2, votes: ['ana'] }])
    expect((await decide(bob)).status).toBe(202)
    await until(async () => expect((await logOf(one, session)).at(-1)).toMatchObject({ type: 'run.settled' }))
  })

  it('B-OUTCOME-28: an outcome over HTTP has a rubric and a goal as long as in the library, and longer ones are refused with the bound', async () => {
    const { one } = await stage(() => 'Done.')
    const pursue = async (body: object) => {
      const session = await opened(one, { body: {} })
      return one.ask('POST', `/v1/sessions/${session}/pursue`, { body: { roundsMax: 1, ...body } })
    }
    const [description, rubric] = ['x'.repeat(8_000), `- ${'é'.repeat(32 * 1024 - 1)}`]
    expect(await pursue({ description, rubric })).toMatchObject({ status: 202 })
    const long = await pursue({ description: `${description}x`, rubric })
    expect([long.status, messageOf(long)]).toEqual([
      400,
      expect.stringContaining('has 8001 characters and may have 8000'),
    ])
    const wide = await pursue({ description, rubric: `${rubric}x` })
    expect([wide.status, messageOf(wide)]).toEqual([400, expect.stringContaining('has 65537 bytes and may have 65536')])
    expect((await pursue({ description: '', rubric })).status).toBe(400)
  })

  it('B-SERVE-106: a model without a message is refused, since it is chosen for the run of a message, and no session is opened', async () => {
    const { one } = await stage(() => 'Done.', { models: { named: { other: scripted(['Other.']) } } })
    const wanted = { model: 'other', messages: [{ role: 'user', content: 'Hi.' }] }
    for (const body of [{ model: 'other' }, wanted]) {
      const refused = await one.ask('POST', '/v1/sessions', { body })
      expect([refused.status, messageOf(refused)]).toEqual([
        400,
        'A model is chosen for the run of a message. Give an input with it, or name the model with the message.',
      ])
    }
    expect((await one.json<SessionPage>('GET', '/v1/sessions')).sessions).toEqual([])
  })

  it('B-SERVE-19: a file of a session is downloaded and never shown, and only through a session that refers to it', async () => {
    const { one } = await stage(['Done.', 'Done.'])
    const page = Buffer.from('<script>alert(1)</script>').toString('base64')
    const input = [{ type: 'file', media: 'text/html', data: page, name: 'x.html' }]
    const session = await opened(one, { body: { input } })
    const message = (await logOf(one, session)).find(({ type }) => type === 'user.message')
    const hash = message?.type === 'user.message' && message.parts[0]?.type === 'blob' ? message.parts[0].hash : ''
    const { status, headers, text } = await one.ask('GET', `/v1/sessions/${session}/blobs/${hash}`)
    expect([status, text]).toEqual([200, '<script>alert(1)</script>'])
    expect(headers).toMatchObject({ 'content-type': 'application/octet-stream', 'x-content-type-options': 'nosniff' })
    expect(headers['content-disposition']).toMatch(/^attachment/)
    expect(headers['content-security-policy']).toContain('sandbox')
    const other = await opened(one)
    expect((await one.ask('GET', `/v1/sessions/${other}/blobs/${hash}`)).status).toBe(404)
    expect((await one.ask('GET', `/v1/sessions/${session}/blobs/..%2F`)).status).toBe(404)
  })

  it('B-SERVE-20: a session is exported, removed, and imported again, held; a closed one takes nothing more (410)', async () => {
    const { one } = await stage(['Done.'])
    const session = await opened(one)
    await one.json('GET', `/v1/sessions/${session}/result?wait=20`)
    const lines = await one.ask('GET', `/v1/sessions/${session}/export`)
    expect(lines.text.trim().split('\n')).toHaveLength((await logOf(one, session)).length)
    const file = await one.ask('GET', `/v1/sessions/${session}/export?format=json`)
    expect(await one.json('POST', `/v1/sessions/${session}/close`)).toEqual({ ok: true })
    expect(await one.json('POST', `/v1/sessions/${session}/close`)).toEqual({ ok: true })
    expect((await one.ask('POST', `/v1/sessions/${session}/messages`, { body: { input: 'x' } })).status).toBe(410)
    expect(await one.json('DELETE', `/v1/sessions/${session}`)).toMatchObject({ removed: [{ session, by: 'owner' }] })
    expect((await one.ask('GET', `/v1/sessions/${session}`)).status).toBe(404)
    expect((await one.ask('POST', '/v1/import', { raw: file.text })).status).toBe(201)
    expect((await one.ask('POST', '/v1/import', { body: { format: 'other' } })).status).toBe(400)
    expect(await logOf(one, session)).not.toEqual([])
  })
})

function bodyFor(path: string): object {
  if (path.endsWith('/messages')) return { input: 'x' }
  if (path.endsWith('/commands')) return { commands: [{ type: 'resume' }] }
  if (path.endsWith('/pursue')) return { description: 'x', rubric: 'x' }
  if (path.endsWith('/schedule')) return { inMs: 1_000, reason: 'x', key: 'x' }
  if (path.endsWith('/unschedule')) return { key: 'x' }
  if (path.endsWith('/rename')) return { title: 'x' }
  if (path.endsWith('/what-if')) return { at: 1 }
  return path.endsWith('/answers') ? { callId: '1.0', content: 'x' } : {}
}
