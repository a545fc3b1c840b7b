// Titles over HTTP: who may give them, under whose name, and that a repeated request is one title.
import { expect, it } from 'vitest'
import type { OpenedAnswer, RenamedAnswer, SessionPage } from '../../src/server/wire.ts'
import { served } from './served.ts'

it('B-TITLE-11: giving a title takes what sending takes, and the log names the owner of the token', async () => {
  const one = await served(['Hello.'])
  const ann = one.token({ name: 'ann', role: 'operator', reach: 'own' })
  const eve = one.token({ name: 'eve', role: 'operator', reach: 'own' })
  const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { token: ann, body: {} })
  const path = `/v1/sessions/${session}/rename`
  const body = { title: ' Mine\u202e ' }
  for (const role of ['viewer', 'approver'] as const)
    expect((await one.ask('POST', path, { token: one.token({ name: role, role }), body })).status).toBe(403)
  expect((await one.ask('POST', path, { token: eve, body })).status).toBe(404)
  for (const bad of [{}, { title: '' }, { title: 5 }, { title: '\u200b' }, { ...body, by: 'eve' }])
    expect((await one.ask('POST', path, { token: ann, body: bad })).status).toBe(400)
  const ask = { token: ann, body, headers: { 'idempotency-key': 'k1' } }
  const given = await one.json<RenamedAnswer>('POST', path, ask)
  expect(given).toMatchObject({ title: 'Mine', duplicate: false })
  expect(await one.json<RenamedAnswer>('POST', path, ask)).toEqual({ ...given, duplicate: true })
  expect((await one.ask('POST', path, { ...ask, body: { title: 'Else' } })).status).toBe(422)
  const { sessions } = await one.json<SessionPage>('GET', '/v1/sessions?q=mine', { token: ann })
  expect(sessions).toMatchObject([{ session, title: 'Mine' }])
  const { events } = await one.json<{ events: readonly object[] }>('GET', `/v1/sessions/${session}/events`, {
    token: ann,
  })
  expect(events).toMatchObject([{ type: 'session.created' }, { type: 'user.rename', by: 'ann', title: 'Mine' }])
  expect(await one.json('POST', `/v1/sessions/${session}/close`, { token: ann })).toEqual({ ok: true })
  expect((await one.ask('POST', path, { token: ann, body })).status).toBe(410)
})
