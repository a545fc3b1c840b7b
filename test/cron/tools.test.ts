// The tools of a model: its own jobs, and one later look or run.
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { cron, cronPlanner, cronTool, scheduleTool } from '../../src/cron/index.ts'
import { Harness, memory, type Script, scripted } from '../../src/index.ts'
import { SteppedClock } from '../models/stepped-clock.ts'
import { HOUR, MINUTE } from './stage.ts'

const open: (() => Promise<void>)[] = []
// Code that is loaded when it is first needed would take its time while the clock is stepped.
beforeAll(async () => {
  const harness = new Harness({ model: scripted(['Done.']), graphs: [cronPlanner()] })
  await cron(harness).add({ name: 'warm', line: '0 3 * * *', prompt: 'x' })
  await cron(harness).run('warm')
  await harness.close()
})
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

function stage(script: Script, options: { readonly jobsMax?: number; readonly agents?: readonly string[] } = {}) {
  const clock = new SteppedClock(Date.UTC(2026, 10, 19, 0, 30))
  const given = { ...options, sessions: () => harness }
  const harness: Harness = new Harness({
    model: scripted(script),
    store: memory({ clock }),
    tools: [cronTool(given), scheduleTool(given)],
    approvals: {
      policy: {
        rules: [
          { tool: 'cron', effect: 'allow' },
          { tool: 'schedule', effect: 'allow' },
        ],
      },
    },
    subagents: { helper: { description: 'helps' } },
    graphs: [cronPlanner()],
    system: { clock },
  })
  const done = harness.work()
  open.push(() =>
    clock.during(
      harness
        .close()
        .then(() => done)
        .then(() => {}),
    ),
  )
  const texts = async (session: string): Promise<readonly string[]> =>
    (await clock.during(harness.session(session).messages())).flatMap((message) =>
      message.role === 'tool' && typeof message.content === 'string' ? [message.content] : [],
    )
  return { clock, harness, texts }
}

const ADD = { action: 'add', name: 'watch', line: '0 9 * * *', zone: 'Europe/Oslo', prompt: 'Look at the inbox.' }
const call = (tool: string, args: Readonly<Record<string, string | number>>) => ({ calls: [{ tool, args }] })

describe('the tool cron', () => {
  it('B-CRON-19: a model adds, lists and removes jobs of its own, which have the labels of its session', async () => {
    const { clock, harness, texts } = stage([
      call('cron', ADD),
      call('cron', { action: 'list' }),
      call('cron', { action: 'remove', name: 'watch' }),
      call('cron', { action: 'list' }),
      'Done.',
    ])
    const session = await clock.during(harness.open({ id: 'talk', labels: { owner: 'ana' } }))
    await clock.during(session.run('Watch it.'))
    const said = await texts('talk')
    expect(said[0]).toBe('The job watch is set. It runs next at 2026-11-19T08:00:00.000Z.')
    expect(said[1]).toContain('watch: 0 9 * * * Europe/Oslo, on, next 2026-11-19T08:00:00.000Z, last never')
    expect(said.slice(2)).toEqual(['Removed watch.', 'You have no jobs.'])
    const { cards } = await clock.during(harness.list({ agent: 'cron' }))
    expect(cards.map(({ labels }) => labels?.['owner'])).toEqual(['ana'])
  })

  it('B-CRON-19: a model does not see or change the jobs of others, and has as many as its host allows', async () => {
    const { clock, harness, texts } = stage(
      [
        call('cron', { action: 'list' }),
        call('cron', { action: 'remove', name: 'nightly' }),
        call('cron', ADD),
        call('cron', { ...ADD, name: 'second' }),
        call('cron', { ...ADD, prompt: 'Otherwise.' }),
        call('cron', { ...ADD, agent: 'helper' }),
        call('cron', { ...ADD, line: '*/2 * * * *' }),
        'Done.',
      ],
      { jobsMax: 1 },
    )
    await clock.during(cron(harness).add({ name: 'nightly', line: '0 3 * * *', prompt: 'Report.' }))
    const session = await clock.during(harness.open({ id: 'talk' }))
    await clock.during(session.run('Watch it.'))
    const said = await texts('talk')
    for (const [i, text] of [
      'You have no jobs.',
      'You have no job "nightly"',
      'The job watch is set.',
      'You have 1 jobs, which is the most. Yours are: watch.',
      'The job watch is set.',
      'cannot run as "helper". Choose one of: default',
      'fires at 00:00 and at 00:02',
    ].entries())
      expect(said[i]).toContain(text)
    expect(await clock.during(cron(harness).get('nightly'))).toMatchObject({ on: true })
  })
})

describe('the tool schedule', () => {
  it('B-CRON-20: a model asks for a later look at its session, or for one new session at a time', async () => {
    const { clock, harness, texts } = stage(({ messages }) => {
      const said = JSON.stringify(messages.at(-1))
      if (said.includes('Begin')) return call('schedule', { note: 'Look again.', in_minutes: 30 })
      if (said.includes('goes on at') && messages.length < 5)
        return call('schedule', { note: 'Write it.', at: '2026-11-19T03:00:00+01:00', where: 'new' })
      return 'Done.'
    })
    const session = await clock.during(harness.open({ id: 'talk' }))
    await clock.during(session.run('Begin'))
    await clock.pass(35 * MINUTE)
    const said = await texts('talk')
    expect(said[0]).toBe('This session goes on at 2026-11-19T01:00:00.000Z.')
    expect(said[1]).toContain('A new session begins at 2026-11-19T02:00:00.000Z. To take it back: cron, remove, once-')
    const { events } = await clock.during(session.events())
    expect(events.filter(({ type }) => type === 'run.started')).toHaveLength(2)
    expect((await clock.during(cron(harness).list())).jobs).toHaveLength(1)
    await clock.pass(HOUR)
    const { cards } = await clock.during(harness.list({ agent: 'default' }))
    const made = cards.filter(({ session: id }) => id.includes('.cron.once-'))
    expect(made.map(({ session: id, outcome }) => [id.slice(-14), outcome])).toEqual([['20261119T0200Z', 'completed']])
    // A job of one time is over when its run has begun.
    expect((await clock.during(cron(harness).list())).jobs).toEqual([])
  })

  it('B-CRON-20: a time that cannot be is refused for the model, and a time in the past is now', async () => {
    const { clock, harness, texts } = stage([
      call('schedule', { note: 'x' }),
      call('schedule', { note: 'x', at: '2026-11-20T09:00:00' }),
      call('schedule', { note: 'x', at: '2036-11-20T09:00:00Z' }),
      call('schedule', { note: 'x', at: '2020-11-20T09:00:00Z' }),
      'Done.',
      'Looked.',
    ])
    const session = await clock.during(harness.open({ id: 'talk' }))
    await clock.during(session.run('Begin'))
    const said = await texts('talk')
    expect(said[0]).toContain('Give at or in_minutes.')
    expect(said[1]).toContain('is no time with a zone')
    expect(said[2]).toContain('more than a year ahead')
    expect(said[3]).toContain('This session goes on at 2026-11-19T00:30:')
  })
})

describe('approvals', () => {
  it('B-CRON-21: a person is asked about a new job with its line, its prompt and its agent, and not about a list', async () => {
    const clock = new SteppedClock(Date.UTC(2026, 10, 19, 0, 30))
    const harness: Harness = new Harness({
      model: scripted([call('cron', { action: 'list' }), call('cron', ADD), 'Done.']),
      store: memory({ clock }),
      tools: [cronTool({ sessions: () => harness })],
      graphs: [cronPlanner()],
      system: { clock },
    })
    open.push(() => clock.during(harness.close()))
    const result = await clock.during(harness.run('Watch it.'))
    expect(result.status).toBe('requires_action')
    expect(await clock.during(harness.pending())).toMatchObject([{ tool: 'cron', args: ADD }])
  })
})
