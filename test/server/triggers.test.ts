// What came of deliveries, over HTTP: counts for each source, the last triggers, and decisions about dead ones.
import { describe, expect, it } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { scripted, type Script } from '../../src/index.ts'
import { findAnswerMismatch } from '../../src/server/wire-answer-check.ts'
import type { OpenedAnswer, TriggersAnswer } from '../../src/server/wire.ts'
import { createTriggers } from '../../src/triggers/index.ts'
import { DROP, ESCALATE, NOTIFY, REACT, TARGETS } from '../triggers/stage.ts'
import { until } from '../until.ts'
import { served } from './served.ts'

const KEY = { error: 'auth' } as const
const AWAY = { error: 'server' } as const

function triggered(triage: Script) {
  const triggers = createTriggers({
    models: [scripted(triage)],
    sources: { mail: { targets: TARGETS, cache: false }, shop: { cache: false } },
  })
  const subagents = { helper: { description: 'does small tasks' }, chief: { description: 'plans' } }
  return served(() => 'It is done.', { harness: { triggers, subagents } })
}

/** Each delivery has come to rest when the next comes in. */
async function deliver(one: Awaited<ReturnType<typeof triggered>>, labels: readonly string[], source = 'mail') {
  const sessions: string[] = []
  for (const label of labels) {
    const { sessionId } = await one.host.harness.trigger({ source, label, payload: label })
    await until(async () => {
      const card = await one.host.store.card(sessionId)
      expect(card?.outcome).not.toBe(null)
    })
    sessions.push(sessionId)
  }
  return sessions
}

describe('triggers over HTTP', () => {
  it('B-TRIGGER-40: a viewer sees what was decided about the newest deliveries of each source, and the last fifty', async () => {
    const one = await triggered([DROP, DROP, NOTIFY, REACT, ESCALATE, KEY, AWAY, AWAY])
    await deliver(one, ['news', 'offer', 'build', 'ticket', 'outage', 'key', 'away'])
    const token = one.token({ name: 'vera', role: 'viewer' })
    const seen = await one.json<TriggersAnswer>('GET', '/v1/triggers', { token })
    expect(findAnswerMismatch('Triggers', seen)).toBe(null)
    const none = { accepted: 0, more: false, dropped: 0, notified: 0, reacted: 0, escalated: 0, deferred: 0, dead: 0 }
    expect(seen.sources).toEqual([
      {
        source: 'mail',
        accepted: 7,
        more: false,
        dropped: 2,
        notified: 1,
        reacted: 1,
        escalated: 1,
        deferred: 1,
        dead: 1,
      },
      { ...none, source: 'shop' },
    ])
    expect(seen.triggers.map(({ label, state, action, target }) => [label, state, action, target])).toEqual([
      ['away', 'deferred', null, null],
      ['key', 'dead', null, null],
      ['outage', 'decided', 'escalate', 'chief'],
      ['ticket', 'decided', 'react', 'helper'],
      ['build', 'decided', 'notify', null],
      ['offer', 'decided', 'drop', null],
      ['news', 'decided', 'drop', null],
    ])
    expect(seen.triggers.find(({ label }) => label === 'news')).toMatchObject({
      path: 'first',
      reason: 'A newsletter.',
    })
    expect(seen.triggers[1]?.reason).toContain('refused its key')
    const labelsOf = async (query: string) =>
      (await one.json<TriggersAnswer>('GET', `/v1/triggers?${query}`)).triggers.map(({ label }) => label)
    expect(await labelsOf('decision=drop')).toEqual(['offer', 'news'])
    expect(await labelsOf('decision=dead&source=mail')).toEqual(['key'])
    expect(await labelsOf('source=shop')).toEqual([])
    expect((await one.ask('GET', '/v1/triggers?decision=perhaps')).status).toBe(400)
  })

  it('B-TRIGGER-41: the work for it is bounded: two hundred deliveries of a source are counted, and older dead ones are still listed', async () => {
    const one = await triggered((request) => (JSON.stringify(request).includes('broken') ? KEY : DROP))
    await deliver(one, ['broken'])
    const labels = Array.from({ length: 205 }, (_, i) => `news ${i}`)
    await Promise.all(labels.map((label) => deliver(one, [label])))
    const { sources, triggers } = await one.json<TriggersAnswer>('GET', '/v1/triggers?source=mail')
    expect(sources[0]).toMatchObject({ accepted: 200, more: true, dropped: 200, dead: 1 })
    expect(triggers).toHaveLength(50)
    const dead = await one.json<TriggersAnswer>('GET', '/v1/triggers?decision=dead')
    expect(dead.triggers.map(({ label }) => label)).toEqual(['broken'])
  })

  it('B-TRIGGER-42: an operator runs a dead trigger again or drops it, and whoever comes second is told who was first', async () => {
    const one = await triggered([KEY, KEY, DROP])
    const [first = '', second = ''] = await deliver(one, ['first', 'second'])
    const [vera, otto] = ['vera', 'otto'].map((name) =>
      one.token({ name, role: name === 'otto' ? 'operator' : 'viewer' }),
    ) as [string, string]
    const decide = (session: string, what: 'retry' | 'drop', token: string) =>
      one.ask('POST', `/v1/triggers/${session}/${what}`, { token, body: {} })
    expect((await decide(first, 'retry', vera)).status).toBe(403)
    const { server } = connect({ url: one.server.url, token: otto })
    await server.dropTrigger(second)
    const late = await decide(second, 'retry', one.tokens.own)
    expect(late.status).toBe(409)
    expect(late.text).toContain('dropped already by otto')
    await server.retryTrigger(first)
    await until(async () => {
      const { triggers } = await server.triggers({ source: 'mail' })
      expect(triggers.map(({ label, state, action }) => [label, state, action])).toEqual([
        ['second', 'stopped', null],
        ['first', 'decided', 'drop'],
      ])
    })
    const again = await decide(first, 'drop', otto)
    expect([again.status, again.text]).toEqual([409, expect.stringContaining('retried already by otto') as string])
    expect((await decide('none', 'drop', otto)).status).toBe(404)
    expect(one.reports).toEqual([])
  })

  it('B-TRIGGER-43: a token of its own sessions sees no triggers and decides about none', async () => {
    const one = await triggered([KEY])
    const [session = ''] = await deliver(one, ['x'])
    const token = one.token({ name: 'ana', role: 'operator', reach: 'own' })
    expect((await one.ask('GET', '/v1/triggers', { token })).status).toBe(403)
    for (const what of ['retry', 'drop'])
      expect((await one.ask('POST', `/v1/triggers/${session}/${what}`, { token, body: {} })).status).toBe(404)
    expect((await one.json<TriggersAnswer>('GET', '/v1/triggers')).sources[0]?.dead).toBe(1)
  })

  it('B-TRIGGER-43: a server without triggers has no sources, and sessions that are no triggers are left alone', async () => {
    const plain = await served(() => 'Done.')
    const { session } = await plain.json<{ session: string }>('POST', '/v1/sessions', { body: { id: 'talk' } })
    expect(await plain.json('GET', '/v1/triggers')).toMatchObject({ sources: [], triggers: [] })
    expect((await plain.ask('POST', `/v1/triggers/${session}/drop`, { body: {} })).status).toBe(400)
    const one = await triggered([])
    await one.json('POST', '/v1/sessions', { body: { id: 'talk' } })
    const refused = await one.ask('POST', '/v1/triggers/talk/drop', { body: {} })
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('is no dead trigger') as string])
  })

  it('B-SERVE-105: a token that reaches its own sessions opens none of a source, by no route: deliveries belong to nobody', async () => {
    const one = await triggered([DROP])
    const token = one.token({ name: 'eve', role: 'operator', reach: 'own' })
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { token, body: {} })
    const job = { name: 'mine', line: '0 3 * * *', agent: 'trigger_mail', input: { label: 'x' } }
    const agent = 'trigger_mail'
    for (const [path, body] of [
      ['/v1/sessions', { agent, input: { label: 'x', payload: 'Pay eve.' }, labels: { trigger: 'mail' } }],
      [`/v1/sessions/${session}/fork`, { agent }],
      ['/v1/cron', { action: 'add', job }],
    ] as const) {
      const { status, text } = await one.ask('POST', path, { token, body })
      expect([path, status, text]).toEqual([path, 403, expect.stringContaining('belong to nobody')])
    }
    const other = one.token({ name: 'ann', role: 'operator', reach: 'all' })
    expect((await one.ask('POST', '/v1/sessions', { token: other, body: { agent } })).status).toBe(201)
  })
})
