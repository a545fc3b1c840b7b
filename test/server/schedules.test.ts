// Schedules over HTTP: who may make them, under whose name, and that a repeated request is one wake.
import { describe, expect, it } from 'vitest'
import type { DueAnswer, OpenedAnswer, ScheduledAnswer, UnscheduledAnswer } from '../../src/server/wire.ts'
import { until } from '../until.ts'
import { served } from './served.ts'

const FAR_MS = 3_600_000

describe('schedules of a server', () => {
  it('B-SCHED-15: scheduling takes what sending takes, and the log names the owner of the token', async () => {
    const one = await served(['Hello.'])
    const ann = one.token({ name: 'ann', role: 'operator', reach: 'own' })
    const eve = one.token({ name: 'eve', role: 'operator', reach: 'own' })
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { token: ann, body: {} })
    const [schedule, unschedule] = [`/v1/sessions/${session}/schedule`, `/v1/sessions/${session}/unschedule`]
    const body = { inMs: FAR_MS, reason: 'Look.', key: 'a' }
    for (const role of ['viewer', 'approver'] as const) {
      const token = one.token({ name: role, role })
      expect((await one.ask('POST', schedule, { token, body })).status).toBe(403)
      expect((await one.ask('POST', unschedule, { token, body: { key: 'a' } })).status).toBe(403)
    }
    expect((await one.ask('POST', schedule, { token: eve, body })).status).toBe(404)
    expect((await one.ask('POST', unschedule, { token: eve, body: { key: 'a' } })).status).toBe(404)
    expect((await one.ask('POST', schedule, { token: ann, body: { ...body, by: 'eve' } })).status).toBe(400)
    expect(await one.json<ScheduledAnswer>('POST', schedule, { token: ann, body })).toMatchObject({
      key: 'a',
      duplicate: false,
    })
    expect(await one.json<UnscheduledAnswer>('POST', unschedule, { token: ann, body: { key: 'a' } })).toEqual({
      dropped: true,
    })
    const { events } = await one.json<{ events: readonly object[] }>('GET', `/v1/sessions/${session}/events`, {
      token: ann,
    })
    expect(events).toMatchObject([
      { type: 'session.created' },
      { type: 'user.schedule', by: 'ann', key: 'a' },
      { type: 'user.unschedule', by: 'ann', key: 'a' },
    ])
  })

  it('B-SCHED-15: a repeated key of a request is one wake, though `inMs` gives another time', async () => {
    const one = await served([])
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: {} })
    const headers = { 'idempotency-key': 'k1' }
    const ask = { headers, body: { inMs: FAR_MS, reason: 'Look.' } }
    const path = `/v1/sessions/${session}/schedule`
    const first = await one.json<ScheduledAnswer>('POST', path, ask)
    const second = await one.json<ScheduledAnswer>('POST', path, ask)
    expect([second.key, second.due, second.seq]).toEqual([first.key, first.due, first.seq])
    expect((await one.ask('POST', path, { headers, body: { inMs: 1, reason: 'Else.' } })).status).toBe(422)
  })

  it('B-SCHED-17: the list of what is due has each wake with its key, and messages for later without one', async () => {
    const one = await served([])
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: {} })
    const at = Date.now() + FAR_MS
    await one.json('POST', `/v1/sessions/${session}/schedule`, { body: { at: at + 5, reason: 'Look.', key: 'a' } })
    await one.json('POST', `/v1/sessions/${session}/messages`, { body: { at, input: 'Write the report.' } })
    await until(async () => {
      const { due } = await one.json<DueAnswer>('GET', '/v1/due')
      expect(due).toMatchObject([
        {
          session,
          due: at,
          reason: 'Write the report.',
          scheduled: [
            { due: at, reason: 'Write the report.' },
            { due: at + 5, reason: 'Look.', key: 'a' },
          ],
        },
      ])
    })
  })
})
