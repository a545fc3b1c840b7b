// Cron jobs that cannot be, or are not there: each is refused with one sentence and its code, and nothing is written.
import { describe, expect, it, onTestFinished } from 'vitest'
import type { CronJobOptions } from '../../src/cron/index.ts'
import { openStage, type Stage } from './stage.ts'

const stage = (): Stage => {
  const one = openStage()
  onTestFinished(() => one.close())
  return one
}
const HOURLY = { name: 'report', line: '0 * * * *', prompt: 'Write the report.' }

describe('a job that cannot be', () => {
  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic
  const ONCE = { name: 'once', prompt: 'x' }
  const WORKFLOW = { name: 'flow', line: '0 * * * *', agent: 'flow' }
  const cases: readonly (readonly [what: string, job: object, why: string])[] = [
    ['no time', { ...ONCE, at: Number.NaN }, '"at" of a cron job must be a time in ms'],
    ['an endless time', { ...ONCE, at: Number.POSITIVE_INFINITY }, '"at" of a cron job must be a time in ms'],
    ['a time before 1970', { ...ONCE, at: -1 }, '"at" of a cron job must be a time in ms'],
    ['a time no date can hold', { ...ONCE, at: 8.64e15 + 1 }, 'the year 9999'],
    ['a time of the year 10000', { ...ONCE, at: Date.UTC(10_000, 0) }, 'the year 9999'],
    ['half a millisecond', { ...ONCE, at: 1.5 }, '"at" of a cron job must be a time in ms'],
    ['a Date', { ...ONCE, at: new Date(0) }, '"at" of a cron job must be a time in ms'],
    ['a cyclic input', { ...WORKFLOW, input: cyclic }, '"input" of a cron job must be plain JSON'],
    ['a bigint', { ...WORKFLOW, input: { n: 1n } }, 'holds a bigint'],
    ['a function', { ...WORKFLOW, input: () => 1 }, 'holds a function'],
    ['a Map', { ...WORKFLOW, input: [new Map()] }, 'holds a Map'],
    ['no number', { ...WORKFLOW, input: Number.NaN }, 'holds NaN'],
    ['a long input', { ...WORKFLOW, input: 'x'.repeat(10_001) }, 'at most 10000 fit'],
    ['a name with a blank', { ...HOURLY, name: 'a b' }, '"name" of a cron job must be'],
    ['no name', { ...HOURLY, name: undefined }, '"name" of a cron job is missing'],
    ['another field', { ...HOURLY, lin: 'x' }, 'lin'],
    ['limits that are none', { ...HOURLY, limits: { modelRequests: -1 } }, 'limits.modelRequests'],
    ['a rule that is none', { ...HOURLY, overlap: 'never' }, '"overlap" of a cron job'],
    ['no job', null as unknown as object, 'must be an object'],
  ]
  it.each(cases)('B-CRON-17: with %s is refused as input before anything is written', async (_, job, why) => {
    const { jobs, during, harness } = stage()
    await expect(during(jobs.add(job as CronJobOptions))).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining(why) as string,
    })
    expect((await during(harness.list())).cards).toEqual([])
  })

  it('B-CRON-32: that is not there is session_missing for every verb, also under the id of another session', async () => {
    const { jobs, during, harness } = stage()
    await during(harness.open({ id: 'a.talk' }))
    await during(jobs.add(HOURLY))
    await during(jobs.remove('report'))
    for (const name of ['nobody', 'a.talk', 'report', { session: 'a.talk' }, { session: 'nobody' }])
      for (const verb of ['on', 'off', 'run', 'remove'] as const)
        await expect(during<unknown>(jobs[verb](name))).rejects.toMatchObject({ code: 'session_missing' })
    expect(await during(harness.session('a.talk').messages())).toEqual([])
  })
})
