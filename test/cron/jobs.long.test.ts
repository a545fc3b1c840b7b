// Cron jobs as sessions: when they begin runs, missed times, runs that overlap, two workers, stops, and changes.
import { afterEach, describe, expect, it } from 'vitest'
import { exportSession, importSession } from '../../src/replay.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'
import { HOUR, MINUTE, openStage, type Stage } from './stage.ts'

const stages: Stage[] = []
const stage = (options?: Parameters<typeof openStage>[0]): Stage => {
  const one = openStage(options)
  stages.push(one)
  return one
}
afterEach(async () => {
  for (const one of stages.splice(0)) await one.close()
})

const HOURLY = { name: 'report', line: '0 * * * *', prompt: 'Write the report.' }
const times = (runs: readonly (readonly [string, string | null])[]) => runs.map(([time]) => time)

describe('a job', () => {
  it('B-CRON-9: a job begins a session at each of its times, which has the prompt and ends on its own', async () => {
    const { jobs, work, during, clock, runs, harness } = stage()
    await work()
    await during(jobs.add({ ...HOURLY, zone: 'Europe/Oslo', limits: { modelRequests: 3 } }))
    await clock.pass(3 * HOUR)
    expect(await runs()).toEqual([
      ['20261119T0100Z', 'completed'],
      ['20261119T0200Z', 'completed'],
      ['20261119T0300Z', 'completed'],
    ])
    const run = harness.session('cron.report.20261119T0300Z')
    expect(await during(run.result())).toMatchObject({ status: 'completed', text: 'Write the report.' })
    expect((await during(run.status({ include: ['card'] }))).card?.title).toBe('report, 2026-11-19 04:00')
  })

  it('B-CRON-10: the list shows each job with its next five times, its last run and how that ended', async () => {
    const { jobs, work, during, clock } = stage()
    await work()
    await during(jobs.add(HOURLY))
    await clock.pass(HOUR)
    const { jobs: rows } = await during(jobs.list())
    expect(rows).toMatchObject([
      {
        name: 'report',
        on: true,
        agent: 'default',
        zone: 'UTC',
        missed: 'once',
        overlap: 'skip',
        last: { session: 'cron.report.20261119T0100Z', outcome: 'completed' },
        next: [2, 3, 4, 5, 6].map((hour) => Date.UTC(2026, 10, 19, hour)),
      },
    ])
  })
})

describe('missed times', () => {
  for (const [missed, expected] of [
    ['skip', []],
    ['once', ['20261119T0300Z']],
    ['all', ['20261119T0100Z', '20261119T0200Z', '20261119T0300Z']],
  ] as const)
    it(`B-CRON-11: of the times that no worker was there for, "${missed}" makes up for ${expected.length}, and the rest is noted`, async () => {
      const { jobs, work, stopWork, during, clock, runs } = stage({ workMs: () => 10_000 })
      await work()
      await during(jobs.add({ ...HOURLY, missed }))
      await stopWork()
      await clock.pass(2 * HOUR + 45 * MINUTE)
      await work()
      await clock.pass(10 * MINUTE)
      expect(times(await runs())).toEqual(expected)
      const row = await during(jobs.get('report'))
      const noted = row?.ticks.flatMap((tick) => ('skipped' in tick ? [[tick.at, tick.times]] : []))
      const left = 3 - expected.length
      expect(noted).toEqual(left === 0 ? [] : [[Date.UTC(2026, 10, 19, 1), left]])
      // One after the other, in order.
      const made = row?.ticks.flatMap((tick) => ('session' in tick ? [tick.at] : [])) ?? []
      expect(made).toEqual(made.toSorted((a, b) => b - a))
    })

  it('B-CRON-11: after a year without a worker, "all" makes up for the last hundred times', async () => {
    const { jobs, work, stopWork, during, clock, runs } = stage()
    await work()
    await during(jobs.add({ ...HOURLY, missed: 'all' }))
    await stopWork()
    await clock.pass(365 * 24 * HOUR)
    await work()
    await clock.pass(40 * MINUTE)
    const made = times(await runs())
    expect(made.length).toBeGreaterThanOrEqual(100)
    expect(made.at(-1)).toBe('20271119T0100Z')
  })
})

describe('runs that overlap', () => {
  it('B-CRON-12: with "skip" no run begins while an earlier one works, and the time is noted with the run', async () => {
    const { jobs, work, during, clock, runs } = stage({ workMs: () => 90 * MINUTE })
    await work()
    await during(jobs.add({ ...HOURLY, overlap: 'skip' }))
    await clock.pass(4 * HOUR)
    expect(times(await runs())).toEqual(['20261119T0100Z', '20261119T0300Z'])
    expect((await during(jobs.get('report')))?.ticks).toMatchObject([
      { at: Date.UTC(2026, 10, 19, 4), skipped: 'An earlier run still works: cron.report.20261119T0300Z.' },
      { session: 'cron.report.20261119T0300Z' },
      { at: Date.UTC(2026, 10, 19, 2), skipped: 'An earlier run still works: cron.report.20261119T0100Z.' },
      { session: 'cron.report.20261119T0100Z' },
    ])
  })

  it('B-CRON-12: with "queue" a run waits for the end of the one before', async () => {
    const { jobs, work, during, clock, runs } = stage({ workMs: () => 90 * MINUTE })
    await work()
    await during(jobs.add({ ...HOURLY, overlap: 'queue' }))
    await clock.pass(150 * MINUTE)
    expect(await runs()).toEqual([
      ['20261119T0100Z', 'completed'],
      ['20261119T0200Z', null],
    ])
    expect(await during(jobs.get('report'))).toMatchObject({ waiting: 1 })
    await clock.pass(90 * MINUTE)
    expect(times(await runs())).toEqual(['20261119T0100Z', '20261119T0200Z', '20261119T0300Z'])
  })

  it('B-CRON-12: with "replace" a run stops the one before', async () => {
    const { jobs, work, during, clock, runs } = stage({ workMs: () => 90 * MINUTE })
    await work()
    await during(jobs.add({ ...HOURLY, overlap: 'replace' }))
    await clock.pass(150 * MINUTE)
    expect(await runs()).toEqual([
      ['20261119T0100Z', 'interrupted'],
      ['20261119T0200Z', 'interrupted'],
      ['20261119T0300Z', null],
    ])
  })
})

describe('workers', () => {
  it('B-CRON-13: a clock that is set back and forward by hours begins no run twice, and the job goes on', async () => {
    const { jobs, work, during, clock, runs } = stage()
    await work()
    await work()
    await during(jobs.add({ ...HOURLY, missed: 'all' }))
    for (const hours of [-5, 3, -1, 7, -26, 30, -3]) {
      await clock.pass(2 * HOUR)
      clock.set(hours * HOUR)
    }
    await clock.pass(24 * HOUR)
    const made = times(await runs())
    expect(made).toEqual([...new Set(made)])
    const row = await during(jobs.get('report'))
    expect(row?.last?.at).toBe(Math.floor(clock.now() / HOUR) * HOUR)
  })

  it('B-CRON-13: two workers begin each run once', async () => {
    const { jobs, work, during, clock, runs } = stage()
    await work()
    await work()
    await during(jobs.add({ ...HOURLY, line: '*/5 * * * *' }))
    await clock.pass(500 * MINUTE)
    const made = times(await runs())
    expect(made).toHaveLength(100)
    expect(new Set(made).size).toBe(100)
  })
})

describe('stops', () => {
  it('B-CRON-14: a stop of one run leaves the job alone: the next time comes', async () => {
    const { jobs, work, during, clock, runs, harness } = stage({ workMs: () => 30 * MINUTE })
    await work()
    await during(jobs.add(HOURLY))
    await clock.pass(35 * MINUTE)
    await during(harness.session('cron.report.20261119T0100Z').interrupt())
    await clock.pass(HOUR)
    expect(await runs()).toEqual([
      ['20261119T0100Z', 'interrupted'],
      ['20261119T0200Z', null],
    ])
  })

  it('B-CRON-15: a stop of the job switches it off, the list shows so, and "on" brings the next time', async () => {
    const { jobs, work, during, clock, runs, harness } = stage()
    await work()
    await during(jobs.add(HOURLY))
    await during(harness.session('cron.report').interrupt())
    await clock.pass(2 * HOUR)
    expect(await runs()).toEqual([])
    expect(await during(jobs.get('report'))).toMatchObject({ on: false, next: [] })
    // A run by hand does not switch it on.
    expect(await during(jobs.run('report'))).toEqual({ session: 'cron.report.20261119T023000Z' })
    await clock.pass(HOUR)
    expect(await during(jobs.get('report'))).toMatchObject({ on: false, next: [] })
    await during(jobs.on('report'))
    await clock.pass(HOUR)
    expect(times(await runs())).toEqual(['20261119T023000Z', '20261119T0400Z'])
  })
})

describe('the log of a job', () => {
  it('B-CRON-15: a job from a file is held, and the list shows it as off', async () => {
    const { jobs, during, harness, store } = stage()
    await during(jobs.add(HOURLY))
    const file = await during(exportSession(completeStore(store), 'cron.report'))
    await during(harness.remove('cron.report'))
    await during(importSession(completeStore(store), file))
    expect(await during(jobs.get('report'))).toMatchObject({ on: false, next: [] })
  })

  it('B-CRON-25: what is read of a job for its next run stays short, however often it has run', async () => {
    const { jobs, work, during, clock, runs, harness } = stage()
    await work()
    await during(jobs.add({ ...HOURLY, line: '*/5 * * * *' }))
    await clock.pass(500 * MINUTE)
    const job = harness.session('cron.report')
    const { events } = await during(job.events())
    expect(events.filter(({ type }) => type === 'context.compacted').length).toBeGreaterThan(0)
    expect(events.filter(({ type }) => type === 'agent.message').length).toBeGreaterThan(150)
    expect((await during(job.messages())).length).toBeLessThan(210)
    expect(await runs()).toHaveLength(100)
  })
})

describe('changes', () => {
  it('B-CRON-16: a job is changed by adding it again, switched off and on, run by hand and removed', async () => {
    const { jobs, work, during, clock, runs } = stage()
    await work()
    await during(jobs.add(HOURLY))
    await during(jobs.add({ ...HOURLY, line: '45 * * * *', prompt: 'Otherwise.' }))
    await clock.pass(50 * MINUTE)
    expect(times(await runs())).toEqual(['20261119T0045Z'])
    expect(await during(jobs.off('report'))).toMatchObject({ on: false, next: [] })
    await clock.pass(2 * HOUR)
    expect(times(await runs())).toEqual(['20261119T0045Z'])
    // What it missed while it was off is not made up for.
    expect(await during(jobs.on('report'))).toMatchObject({ on: true })
    await during(jobs.run('report'))
    expect(await runs()).toHaveLength(2)
    await during(jobs.remove('report'))
    expect(await during(jobs.get('report'))).toBe(null)
    expect((await during(jobs.list())).jobs).toEqual([])
    await clock.pass(2 * HOUR)
    expect(await runs()).toHaveLength(2)
    await expect(during(jobs.run('report'))).rejects.toMatchObject({ code: 'session_missing' })
    // The name can be used again.
    expect(await during(jobs.add(HOURLY))).toMatchObject({ on: true, line: '0 * * * *' })
  })

  it('B-CRON-16: jobs of one time that follow each other under one name begin a run each, also within one minute', async () => {
    const { jobs, work, during, clock, runs } = stage()
    await work()
    const at = clock.now() + MINUTE
    for (const [ms, prompt] of [
      [0, 'First.'],
      [1_000, 'First.'],
      [1_500, 'Second.'],
    ] as const) {
      await during(jobs.add({ name: 'report', at: at + ms, prompt }))
      await clock.pass(at + ms - clock.now() + 100)
    }
    await clock.pass(MINUTE)
    expect(await runs()).toEqual([
      ['20261119T0031Z', 'completed'],
      ['20261119T003101000Z', 'completed'],
      ['20261119T003101500Z', 'completed'],
    ])
  })

  it('B-CRON-17: a job that cannot be is refused before anything is written, with what to do', async () => {
    const { jobs, during, harness } = stage()
    const refused = [
      [{ ...HOURLY, name: 'a b' }, 'must be 1 to 64 letters'],
      [{ ...HOURLY, name: 'a.b' }, 'must be 1 to 64 letters'],
      [{ ...HOURLY, line: '*/4 * * * *' }, 'at 00:00 and at 00:04'],
      [{ ...HOURLY, line: '60 * * * *' }, 'cannot be read'],
      [{ ...HOURLY, zone: 'Mars/Base' }, 'There is no time zone'],
      [{ ...HOURLY, prompt: 'x'.repeat(100_000) }, 'at most 10000 fit'],
      [{ ...HOURLY, agent: 'nobody' }, 'none of: default'],
      [{ ...HOURLY, agent: 'cron' }, 'none of: default'],
      [{ name: 'report', line: '0 * * * *' }, 'needs a prompt'],
      [{ name: 'report', prompt: 'x' }, 'needs a line'],
      [{ ...HOURLY, missed: 'all', overlap: 'replace' } as const, 'Use "overlap": "queue"'],
      [{ name: 'report', line: '* * * * *', input: { a: 1 } }, 'which is for workflows'],
    ] as const
    for (const [job, why] of refused) await expect(during(jobs.add(job))).rejects.toThrow(why)
    expect((await during(harness.list())).cards).toEqual([])
  })

  it('B-CRON-17: a message to a job that is no change is answered with what is wrong, and changes nothing', async () => {
    const { jobs, work, during, clock, runs, harness } = stage()
    await work()
    await during(jobs.add(HOURLY))
    const job = harness.session('cron.report')
    for (const said of [
      'Hello',
      '{"id":"1","cron":{"action":"explode"}}',
      '{"id":"2","cron":{"action":"set","job":{}}}',
    ])
      await during(job.send(said))
    await clock.pass(40 * MINUTE)
    expect(times(await runs())).toEqual(['20261119T0100Z'])
    const result = await during(job.result())
    expect(result?.status).toBe('completed')
  })
})
