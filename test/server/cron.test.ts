// Cron jobs over HTTP: roles, owners, refusals, and the verbs of a client.
import { describe, expect, it } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { cron, type CronJobOptions, cronPlanner } from '../../src/cron/index.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import type { CronChangedAnswer, CronJobsAnswer } from '../../src/server/wire.ts'
import { findAnswerMismatch } from '../../src/server/wire-answer-check.ts'
import { served } from './served.ts'

const NIGHTLY = { name: 'nightly', line: '0 3 * * *', zone: 'Europe/Oslo', prompt: 'Report.' }
const add = (job: object) => ({ body: { action: 'add', job } })

describe('cron jobs over HTTP', () => {
  it('B-CRON-22: an operator adds, runs, switches and removes jobs; a viewer only sees them', async () => {
    const one = await served(() => 'Done.', { harness: { graphs: [cronPlanner()] } })
    const viewer = one.token({ name: 'vera', role: 'viewer' })
    expect((await one.ask('POST', '/v1/cron', { ...add(NIGHTLY), token: viewer })).status).toBe(403)
    const added = await one.json<CronChangedAnswer>('POST', '/v1/cron', add(NIGHTLY))
    expect(findAnswerMismatch('CronChanged', added)).toBe(null)
    expect(added.job).toMatchObject({ ...NIGHTLY, session: 'cron.nightly', on: true })
    const session = 'cron.nightly'
    const ran = await one.json<CronChangedAnswer>('POST', '/v1/cron', { body: { action: 'run', session } })
    expect(ran.began).toMatch(/^cron\.nightly\.\d{8}T\d{6}Z$/)
    const off = await one.json<CronChangedAnswer>('POST', '/v1/cron', { body: { action: 'off', session } })
    expect(off.job).toMatchObject({ on: false, next: [] })
    const seen = await one.json<CronJobsAnswer>('GET', '/v1/cron', { token: viewer })
    expect(findAnswerMismatch('CronJobs', seen)).toBe(null)
    expect(seen.jobs.map(({ name }) => name)).toEqual(['nightly'])
    await one.json('POST', '/v1/cron', { body: { action: 'remove', session } })
    expect((await one.json<CronJobsAnswer>('GET', '/v1/cron')).jobs).toEqual([])
  })

  it('B-CRON-22: a token of its own sessions has jobs and runs of its own, and does not reach those of others', async () => {
    const one = await served(() => 'Done.', { harness: { graphs: [cronPlanner()] } })
    const [ana, bob] = ['ana', 'bob'].map((name) => one.token({ name, role: 'operator', reach: 'own' })) as [
      string,
      string,
    ]
    await one.json('POST', '/v1/cron', add(NIGHTLY))
    for (const token of [ana, bob]) await one.json('POST', '/v1/cron', { ...add(NIGHTLY), token })
    const { jobs } = await one.json<CronJobsAnswer>('GET', '/v1/cron', { token: ana })
    expect(jobs.map((job) => job.session)).toEqual(['ana:cron.nightly'])
    for (const session of ['bob:cron.nightly', 'cron.nightly', 'none'])
      expect((await one.ask('POST', '/v1/cron', { body: { action: 'off', session }, token: ana })).status).toBe(404)
    const own = { body: { action: 'run', session: 'ana:cron.nightly' }, token: ana }
    const { began = '' } = await one.json<CronChangedAnswer>('POST', '/v1/cron', own)
    expect((await one.ask('GET', `/v1/sessions/${began}`, { token: ana })).status).toBe(200)
    expect((await one.ask('GET', `/v1/sessions/${began}`, { token: bob })).status).toBe(404)
  })

  it('B-CRON-22: a job or a request that cannot be is refused with a sentence', async () => {
    const one = await served(() => 'Done.', { harness: { graphs: [cronPlanner()] } })
    for (const [body, why] of [
      [{ action: 'add' }, 'Give the job'],
      [{ action: 'add', job: { ...NIGHTLY, line: '60 * * * *' } }, 'cannot be read'],
      [{ action: 'add', job: { ...NIGHTLY, extra: 1 } }, 'extra'],
      [{ action: 'add', job: { ...NIGHTLY, zone: 'Mars' } }, 'There is no time zone'],
      [{ action: 'add', job: { ...NIGHTLY, name: '../x' } }, 'must be 1 to 64'],
      [{ action: 'add', job: { ...NIGHTLY, prompt: 'x'.repeat(100_000) } }, 'at most 10000 fit'],
      [{ action: 'run' }, 'Name the session'],
      [{ action: 'explode' }, 'action'],
    ] as const) {
      const { status, text } = await one.ask('POST', '/v1/cron', { body })
      expect({ status, text }).toMatchObject({ status: 400 })
      expect(text).toContain(why)
    }
    expect(one.reports).toEqual([])
  })

  it('B-CRON-32: a refusal has one code, in the library, in a client and over HTTP', async () => {
    const one = await served(() => 'Done.', { harness: { graphs: [cronPlanner()] } })
    await one.json('POST', '/v1/sessions', { body: { id: 'talk' } })
    // A job of the session's name is another one.
    await one.json('POST', '/v1/cron', add({ ...NIGHTLY, name: 'talk' }))
    await one.json('POST', '/v1/cron', add(NIGHTLY))
    await one.json('POST', '/v1/cron', { body: { action: 'remove', session: 'cron.nightly' } })
    const verbs = [cron(one.host.harness), cron(connect({ url: one.server.url, token: one.tokens.own }))]
    const odd = { ...NIGHTLY, name: 'odd' }
    const cases: readonly (readonly [body: object, status: number, code: string, CronJobOptions | string])[] = [
      [add({ ...odd, name: 'a b' }).body, 400, 'invalid_input', { ...odd, name: 'a b' }],
      [add({ ...odd, zone: 'Mars' }).body, 400, 'invalid_input', { ...odd, zone: 'Mars' }],
      [add({ ...odd, agent: 'nobody' }).body, 400, 'invalid_input', { ...odd, agent: 'nobody' }],
      [add({ ...odd, line: '*/4 * * * *' }).body, 400, 'invalid_input', { ...odd, line: '*/4 * * * *' }],
      [add({ name: 'odd', prompt: 'x', at: 1e16 }).body, 400, 'invalid_input', { name: 'odd', prompt: 'x', at: 1e16 }],
      [{ action: 'run', session: 'cron.nightly' }, 404, 'session_missing', 'cron.nightly'],
      [{ action: 'run', session: 'cron.nobody' }, 404, 'session_missing', 'cron.nobody'],
      [{ action: 'run', session: 'talk' }, 404, 'session_missing', ''],
    ]
    for (const [body, status, code, wanted] of cases) {
      const answer = await one.ask('POST', '/v1/cron', { body })
      expect([body, answer.status, answer.text]).toEqual([body, status, expect.stringContaining(`"${code}"`) as string])
      for (const jobs of verbs)
        if (wanted !== '')
          await expect(typeof wanted === 'string' ? jobs.run(wanted) : jobs.add(wanted)).rejects.toMatchObject({ code })
    }
    expect((await one.json<CronJobsAnswer>('GET', '/v1/cron')).jobs).toMatchObject([{ name: 'talk', ticks: [] }])
    expect(one.reports).toEqual([])
  })

  it('B-CRON-29: an imported job is switched on over HTTP, also one whose id has no dot', async () => {
    const one = await served(() => 'Done.', { harness: { graphs: [cronPlanner()] } })
    await one.json('POST', '/v1/cron', add(NIGHTLY))
    const file = await exportSession(one.host.store, 'cron.nightly')
    await importSession(one.host.store, file, { id: 'nightly' })
    const on = await one.json<CronChangedAnswer>('POST', '/v1/cron', { body: { action: 'on', session: 'nightly' } })
    expect(on.job).toMatchObject({ session: 'nightly', on: true })
    const off = await one.json<CronChangedAnswer>('POST', '/v1/cron', { body: { action: 'off', session: 'nightly' } })
    expect(off.job).toMatchObject({ session: 'nightly', on: false })
    expect(await cron(one.host.harness).get('nightly')).toMatchObject({ session: 'cron.nightly', on: true })
  })

  it('B-CRON-22: a server whose harness has no cron planner says so', async () => {
    const one = await served(() => 'Done.')
    const { status, text } = await one.ask('POST', '/v1/cron', add(NIGHTLY))
    expect(status).toBe(400)
    expect(text).toContain('cron')
  })

  it('B-CRON-22: the verbs of a harness are those of a client too', async () => {
    const one = await served(() => 'Done.', { harness: { graphs: [cronPlanner()] } })
    const jobs = cron(connect({ url: one.server.url, token: one.tokens.own }))
    expect(await jobs.add(NIGHTLY)).toMatchObject({ name: 'nightly', on: true })
    expect(await jobs.add({ ...NIGHTLY, line: '0 4 * * *' })).toMatchObject({ line: '0 4 * * *' })
    expect(await jobs.run('nightly')).toMatchObject({ session: expect.stringContaining('cron.nightly.') as string })
    expect(await jobs.off('nightly')).toMatchObject({ on: false })
    expect((await jobs.list()).jobs).toHaveLength(1)
    await jobs.remove('nightly')
    expect((await jobs.list()).jobs).toEqual([])
  })
})
