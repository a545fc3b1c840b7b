// Wakes and messages for later that a host asks for: what the log means, and when a run begins.
import { describe, expect, it } from 'vitest'
import type { InboxBody } from '../../src/kernel/event.ts'
import { fold } from '../../src/kernel/fold.ts'
import { judgeLanding } from '../../src/kernel/landing.ts'
import { EMPTY, WAKES_MAX } from '../../src/kernel/session.ts'
import { cardOf } from '../../src/view/card.ts'
import { asking, call, Logbook } from './logbook.ts'

const DAY_MS = 24 * 3_600_000

const later = (id: string, notBefore: number): InboxBody => {
  return { type: 'user.message', id, parts: [{ type: 'text', text: id }], when: 'after', notBefore }
}
const schedule = (key: string, due: number): InboxBody => {
  return { type: 'user.schedule', id: `${key}@${due}`, due, reason: `look at ${key}`, key }
}
const unschedule = (key: string): InboxBody => ({ type: 'user.unschedule', id: `no ${key}`, key })

describe('schedules in the log', () => {
  it('B-SCHED-2: the first wake under a key stands, and the key is free again when its run has begun', () => {
    const log = new Logbook()
    const first = log.inbox(schedule('a', 5_000))
    log.inbox(schedule('a', 2_000))
    expect(log.session.wakes).toMatchObject([{ seq: first, due: 5_000, key: 'a' }])
    expect(log.next()).toEqual({ type: 'rest', waiting: 'input', until: 5_000 })
    log.now = 5_000
    log.begin()
    const again = log.inbox(schedule('a', 9_000))
    expect(log.session.wakes).toMatchObject([{ seq: again, due: 9_000 }])
    // Only wakes that a run asks for count against its limit.
    expect(log.session.run?.wakes).toBeUndefined()
  })

  it('B-SCHED-3: a wake is dropped by its key, also one that a run asked for', () => {
    const log = asking()
    log.owner({ type: 'wake.scheduled', due: 5_000, reason: 'its own', key: 'own' })
    log.inbox(schedule('a', 6_000))
    log.inbox(unschedule('own'))
    log.inbox(unschedule('nobody'))
    expect(log.session.wakes.map(({ key }) => key)).toEqual(['a'])
  })

  it('B-SCHED-4: no more wakes are folded than may wait', () => {
    const log = new Logbook()
    for (let i = 0; i <= WAKES_MAX; i++) log.inbox(schedule(`k${i}`, 5_000))
    expect(log.session.wakes).toHaveLength(WAKES_MAX)
    expect(log.session.wakes.some(({ key }) => key === `k${WAKES_MAX}`)).toBe(false)
  })

  it('B-SCHED-6: a wake that is dropped while its run is prepared begins no run, nor does another under its key before its time', () => {
    const log = new Logbook()
    const message = log.say('go')
    log.inbox(schedule('a', 1_000))
    const { effects = [] } = log.next() as { readonly effects?: Parameters<typeof judgeLanding>[1][] }
    const [prepare] = effects
    if (prepare?.type !== 'prepare') throw new Error('nothing is prepared')
    const here = { now: log.now, epoch: log.epoch }
    expect(judgeLanding(log.session, prepare, undefined, here)).toBe('keep')
    log.inbox(unschedule('a'))
    expect(judgeLanding(log.session, prepare, undefined, here)).toBe('drop')
    log.inbox(schedule('a', 9_000))
    expect(judgeLanding(log.session, prepare, undefined, here)).toBe('drop')
    expect(log.next()).toMatchObject({ effects: [{ type: 'prepare', inputs: [message], wakes: [] }] })
  })

  it('B-SCHED-14: both events come in any order, twice, and between any two events of a run', () => {
    const log = asking()
    const turn = log.reply([call('a')])
    log.settle()
    log.result(`${turn}.0`)
    log.settle()
    log.reply()
    log.settle()
    const bodies = [
      unschedule('x'),
      schedule('x', 3),
      schedule('x', 3),
      later('m', 4),
      unschedule('x'),
      unschedule('x'),
    ]
    for (let at = 1; at <= log.events.length; at++) {
      const before = log.events.slice(0, at)
      const put = bodies.map((body, i) => ({ ...body, seq: at + 1 + i, at: before.at(-1)?.at ?? 0, epoch: 0 }) as const)
      const session = [...before, ...put].reduce(fold, EMPTY)
      expect(session.wakes).toEqual([])
      expect(session.inputs.at(-1)).toMatchObject({ due: 4, when: 'after' })
      expect(session.run).toEqual(before.reduce(fold, EMPTY).run)
    }
  })
})

describe('messages for later', () => {
  it('B-SCHED-8: an open run does not read it, also after its time, and it opens one of its own', () => {
    const log = asking()
    const seq = log.inbox(later('m', 5_000))
    log.now = 6_000
    log.reply()
    log.settle()
    expect(log.session).toMatchObject({ run: null, last: { type: 'completed' }, inputs: [{ seq, due: 5_000 }] })
    expect(log.next()).toMatchObject({ type: 'perform', effects: [{ type: 'prepare', inputs: [seq] }] })
  })

  it('B-SCHED-8: later messages come first while its time has not come, and a pause stays', () => {
    const log = new Logbook()
    const first = log.inbox(later('m', 5_000))
    expect(log.next()).toEqual({ type: 'rest', waiting: 'input', until: 5_000 })
    const second = log.say('now')
    expect(log.next()).toMatchObject({ effects: [{ type: 'prepare', inputs: [second] }] })
    log.inbox({ type: 'user.interrupt', id: 'p', mode: 'pause' })
    log.inbox(later('n', 2_000))
    expect(log.session.paused).toBe(true)
    log.now = 6_000
    expect(log.next()).toEqual({ type: 'rest', waiting: 'resume', until: null })
    log.inbox({ type: 'user.interrupt', id: 'r', mode: 'resume' })
    expect(log.next()).toMatchObject({ effects: [{ type: 'prepare', inputs: [first, second] }] })
  })

  it('B-SCHED-5: a stop consumes it with all that waits, and a stop and a pause drop all wakes', () => {
    const log = new Logbook()
    const seq = log.inbox(later('m', 5_000))
    log.inbox(schedule('a', 4_000))
    log.inbox({ type: 'user.interrupt', id: 'p', mode: 'pause' })
    expect(log.session).toMatchObject({ wakes: [], inputs: [{ seq }] })
    log.inbox({ type: 'user.interrupt', id: 's', mode: 'stop' })
    log.settle()
    expect(log.events.at(-1)).toMatchObject({ type: 'run.settled', outcome: { type: 'interrupted' }, inputs: [seq] })
    expect(log.session).toMatchObject({ inputs: [], unshown: [seq] })
  })

  it('B-SCHED-12: the session is rescheduled, and due at the earliest time', () => {
    const log = new Logbook()
    log.inbox(later('m', 5_000))
    const card = (): unknown => cardOf('s', log.session, log.next())
    expect(card()).toMatchObject({ status: 'rescheduling', due: 5_000, wakes: 0 })
    log.inbox(schedule('a', 4_000))
    expect(card()).toMatchObject({ status: 'rescheduling', due: 4_000, wakes: 1 })
    log.inbox(unschedule('a'))
    expect(card()).toMatchObject({ status: 'rescheduling', due: 5_000, wakes: 0 })
  })

  it('B-SCHED-13: a time asked for by a clock far ahead is not waited for', () => {
    const log = new Logbook()
    log.now = 10 * DAY_MS
    const seq = log.inbox(later('m', 20 * DAY_MS))
    log.inbox(schedule('a', 20 * DAY_MS))
    log.now = 10 * DAY_MS - 1
    expect(log.next()).toMatchObject({ type: 'rest', until: 20 * DAY_MS })
    log.now = 8 * DAY_MS
    expect(log.next()).toMatchObject({ effects: [{ type: 'prepare', inputs: [seq], wakes: [{ key: 'a' }] }] })
  })

  it('B-SCHED-13: a clock that is set back does not hide a message whose run has begun', () => {
    const log = new Logbook()
    const seq = log.inbox(later('m', 5_000))
    log.now = 5_000
    log.begin()
    log.now = 1_000
    log.settle()
    expect(log.events.at(-1)).toMatchObject({ type: 'model.started', shows: [seq] })
  })
})
