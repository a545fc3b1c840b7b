// Pins over HTTP: who may pin, what a session at work says, and that the client has the verbs of the library.
import { describe, expect, it } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { Fault } from '../../src/index.ts'
import type { OpenedAnswer, PinnedAnswer, PinsAnswer } from '../../src/server/wire.ts'
import { tool } from '../runtime/scene.ts'
import { until } from '../until.ts'
import { served } from './served.ts'

type OpenApi = {
  readonly paths: Readonly<
    Record<
      '/v1/sessions/{id}/pins',
      { readonly post: { readonly requestBody: { readonly content: Readonly<Record<'application/json', Body>> } } }
    >
  >
}
type Body = { readonly schema: { readonly properties: { readonly text: object } } }

describe('pins of a server', () => {
  it('B-RULE-4: the client pins a text and a message, lists both, lets one go, and the next request holds the rest', async () => {
    const one = await served(['One.', 'Two.'])
    const client = connect({ url: one.server.url, token: one.tokens.own })
    const session = await client.open()
    await session.send('Use the blue theme.')
    await session.run()
    expect((await session.status({ include: ['pins'] })).pins).toEqual([])
    const { seq } = await session.pin('Only ever deploy to staging.')
    expect(await session.pin('Only ever deploy to staging.')).toEqual({ seq })
    const said = (await session.events()).events.find(({ type }) => type === 'user.message')?.seq ?? 0
    await session.pin(said)
    expect((await session.status({ include: ['pins'] })).pins.map(({ text }) => text)).toEqual([
      'Use the blue theme.',
      'Only ever deploy to staging.',
    ])
    await session.pin(said, { off: true })
    await session.run('More.')
    expect((await session.status({ include: ['pins'] })).pins).toEqual([{ seq, text: 'Only ever deploy to staging.' }])
    expect(JSON.stringify(await session.messages())).toContain('Only ever deploy to staging.')
  })

  it('B-RULE-4: pinning takes what sending takes: an operator, of a session within its reach; viewers see the list', async () => {
    const one = await served(['Hello.'])
    const ann = one.token({ name: 'ann', role: 'operator', reach: 'own' })
    const eve = one.token({ name: 'eve', role: 'operator', reach: 'own' })
    const viewer = one.token({ name: 'vic', role: 'viewer' })
    const approver = one.token({ name: 'abe', role: 'approver' })
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { token: ann, body: {} })
    const path = `/v1/sessions/${session}/pins`
    const body = { text: 'Never on Fridays.' }
    const { seq } = await one.json<PinnedAnswer>('POST', path, { token: ann, body })
    for (const token of [viewer, approver]) {
      expect((await one.json<PinsAnswer>('GET', path, { token })).pins).toEqual([{ seq, text: 'Never on Fridays.' }])
      expect((await one.ask('POST', path, { token, body })).status).toBe(403)
      expect((await one.ask('DELETE', `${path}/${seq}`, { token })).status).toBe(403)
    }
    for (const [method, where] of [
      ['GET', path],
      ['POST', path],
      ['DELETE', `${path}/${seq}`],
    ] as const)
      expect((await one.ask(method, where, { token: eve, ...(method === 'POST' ? { body } : {}) })).status).toBe(404)
    expect((await one.ask('DELETE', `${path}/${seq}`, { token: ann })).status).toBe(200)
    expect((await one.json<PinsAnswer>('GET', path, { token: ann })).pins).toEqual([])
  })

  it('B-RULE-4: bad input is one sentence with a code, and changes nothing', async () => {
    const one = await served(['Hello.'])
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: {} })
    const path = `/v1/sessions/${session}/pins`
    const bodies = [
      {},
      { text: 'a', seq: 1 },
      { text: '' },
      { text: ' ' },
      { seq: 0 },
      { seq: 1 },
      { seq: 99 },
      { text: 'x'.repeat(10_001) },
    ]
    for (const body of bodies) {
      const { status, text } = await one.ask('POST', path, { body })
      expect([body, status]).toEqual([body, 400])
      expect((JSON.parse(text) as { error: { code: string } }).error.code).toBe('invalid_input')
    }
    for (const seq of ['0', 'x', '-1', '99', '1e3', '%00', '%5E', '%5E99', '7%5E']) {
      const { status } = await one.ask('DELETE', `${path}/${seq}`)
      expect([seq, status]).toEqual([seq, 400])
    }
    expect((await one.json<PinsAnswer>('GET', path)).pins).toEqual([])
  })

  it('B-RULE-15: a pin from before a fork is let go by its name, beside one of the fork with the same number', async () => {
    const one = await served(['Hello.'])
    const client = connect({ url: one.server.url, token: one.tokens.own })
    const source = await client.open()
    const first = await source.pin('First.')
    const fork = await source.fork()
    let own = await fork.pin('Own.')
    for (let i = 0; own.seq < first.seq; i++) own = await fork.pin(`Own ${i}.`)
    expect(own.seq).toBe(first.seq)
    const both = (await fork.status({ include: ['pins'] })).pins.filter(({ seq }) => seq === own.seq)
    expect(both.map(({ name }) => name)).toEqual([`^${own.seq}`, undefined])
    await fork.pin(`^${own.seq}`, { off: true })
    expect((await fork.status({ include: ['pins'] })).pins.filter(({ seq }) => seq === own.seq)).toEqual([both[1]])
    await fork.pin(own.seq, { off: true })
    expect((await fork.status({ include: ['pins'] })).pins.filter(({ seq }) => seq === own.seq)).toEqual([])
  })

  it('B-COMPACT-28: a pin has the same bound over HTTP, in the client and in the OpenAPI document', async () => {
    const one = await served(['Hello.'])
    const session = await connect({ url: one.server.url, token: one.tokens.own }).open({})
    const text = 'r'.repeat(10_000)
    await session.pin(text)
    expect((await session.status({ include: ['pins'] })).pins.map((pin) => pin.text)).toEqual([text])
    await expect(session.pin(`${text}r`)).rejects.toMatchObject({ code: 'invalid_input' })
    const document = await one.json<OpenApi>('GET', '/v1/openapi.json')
    const { schema } = document.paths['/v1/sessions/{id}/pins'].post.requestBody.content['application/json']
    expect(schema.properties.text).toMatchObject({ minLength: 1, maxLength: 10_000 })
  })

  it('B-RULE-5: a session at work is busy for a pin, and takes the rule as a message that is pinned', async () => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const slow = tool('slow', { execute: () => held.then(() => 'ok') })
    const one = await served([{ calls: [{ tool: 'slow', args: { n: 1 } }] }, 'Done.'], { harness: { tools: [slow] } })
    const client = connect({ url: one.server.url, token: one.tokens.own })
    const session = await client.open()
    await session.send('Go.')
    await until(async () =>
      expect((await session.events()).events.some(({ type }) => type === 'agent.tool_use')).toBe(true),
    )
    const refused: unknown = await session.pin('Only UTC.').catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(Fault)
    expect(refused).toMatchObject({ code: 'session_busy' })
    await session.send('Only UTC.', { pin: true })
    release()
    await session.run()
    expect((await session.status({ include: ['pins'] })).pins.map(({ text }) => text)).toEqual(['Only UTC.'])
  })
})
