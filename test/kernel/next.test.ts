// What must happen now, state by state. Each test names the behaviour it shows.
import { describe, expect, it } from 'vitest'
import { announceEnd, completeLanding, judgeLanding } from '../../src/kernel/landing.ts'
import { next } from '../../src/kernel/next.ts'
import { ask, asking, call, Logbook } from './logbook.ts'

describe('deciding what must happen now', () => {
  it('B-KERNEL-1: a session with nothing to do rests and leaves no trace', () => {
    const log = new Logbook()
    expect(log.next()).toEqual({ type: 'rest', waiting: 'input', until: null })
    expect(log.types()).toEqual(['session.created'])
  })

  it('B-KERNEL-2: input starts a run, and the first request shows it: this is promotion', () => {
    const log = new Logbook()
    const seq = log.say('go')
    expect(log.next()).toMatchObject({ type: 'perform', effects: [{ type: 'prepare', inputs: [seq] }] })
    log.begin()
    const decision = log.settle()
    expect(log.events.at(-1)).toMatchObject({ type: 'model.started', shows: [seq] })
    expect(decision).toMatchObject({ type: 'perform', effects: [{ type: 'call', seq: log.session.seq }] })
    expect(log.session.inputs).toEqual([])
  })

  it('B-KERNEL-3: a turn is two batches: the reply with its first intents, the results with the next request', () => {
    const log = asking()
    const turn = log.reply([call('a'), call('b')])
    log.settle()
    expect(log.types().slice(-3)).toEqual(['agent.message', 'agent.tool_use', 'agent.tool_use'])
    log.result(`${turn}.1`)
    log.result(`${turn}.0`)
    log.settle()
    expect(log.types().slice(-3)).toEqual(['agent.tool_result', 'agent.tool_result', 'model.started'])
  })

  it('B-KERNEL-4: results are shown in model order, whatever order they landed in (S1-5, TRAP-25)', () => {
    const log = asking()
    const turn = log.reply([call('a'), call('b')])
    log.settle()
    const second = log.result(`${turn}.1`)
    const first = log.result(`${turn}.0`)
    log.settle()
    expect(log.events.at(-1)).toMatchObject({ type: 'model.started', shows: [first, second] })
  })

  it('B-KERNEL-5: calls run one at a time if any called tool is sequential, else up to the limit at once', () => {
    const wide = asking({ parallel: 2 })
    wide.reply([call('a'), call('b'), call('c')])
    expect(wide.settle()).toMatchObject({ effects: [{ type: 'run' }, { type: 'run' }] })
    const serial = asking({ parallel: 16 })
    serial.reply([call('a'), call('b', { sequential: true })])
    const decision = serial.settle()
    expect(decision.type === 'perform' && decision.effects).toHaveLength(1)
  })

  it('B-KERNEL-6: the siblings of an open question wait; the siblings of an outside call run', () => {
    const asked = asking()
    asked.reply([ask('risky'), call('a')])
    expect(asked.settle()).toMatchObject({ type: 'rest', waiting: 'approval' })
    expect(asked.types()).not.toContain('agent.tool_use')
    const outside = asking()
    outside.reply([call('host', { gate: { type: 'outside' } }), call('a')])
    expect(outside.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'run' }] })
    expect(outside.types().slice(-2)).toEqual(['agent.custom_tool_use', 'agent.tool_use'])
  })

  it('B-KERNEL-7: a final reply completes the run, unless steering waits: then it is asked again', () => {
    const done = asking()
    done.reply()
    expect(done.settle()).toMatchObject({ type: 'rest', waiting: 'input' })
    expect(done.session.last).toEqual({ type: 'completed' })
    const steered = asking()
    const seq = steered.say('one more thing')
    steered.reply()
    steered.settle()
    expect(steered.events.at(-1)).toMatchObject({ type: 'model.started', shows: [seq] })
  })

  it('B-KERNEL-8: nothing is promoted while a model call is open; "now" first closes it as superseded', () => {
    const log = asking()
    log.say('wait', 'next')
    expect(log.next()).toMatchObject({ type: 'perform', effects: [{ type: 'call' }], stop: [] })
    const seq = log.say('stop that', 'now')
    expect(log.next()).toMatchObject({ type: 'perform', effects: [], stop: [{ type: 'call' }], reason: 'superseded' })
    log.owner({ type: 'model.failed', class: 'superseded', message: 'superseded', retryable: true })
    log.settle()
    expect(log.events.at(-1)).toMatchObject({ type: 'model.started', shows: [seq - 1, seq] })
  })

  it('B-KERNEL-9: input that asks to come after starts its own run, one run each', () => {
    const log = asking()
    const first = log.say('later', 'after')
    const second = log.say('even later', 'after')
    log.reply()
    expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'prepare', inputs: [first] }] })
    log.begin()
    log.settle()
    expect(log.events.at(-1)).toMatchObject({ type: 'model.started', shows: [first] })
    log.reply()
    expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'prepare', inputs: [second] }] })
  })
})

describe('stopping', () => {
  it('B-KERNEL-10: an interrupt stops what is in flight, awaits it, gives every call its result, then settles', () => {
    const log = asking({ parallel: 1 })
    const turn = log.reply([call('a'), call('b')])
    log.settle()
    log.inbox({ type: 'user.interrupt', id: 'i', mode: 'stop' })
    expect(log.next()).toMatchObject({ type: 'perform', effects: [], stop: [{ type: 'run', key: `run:${turn}.0` }] })
    log.owner({ type: 'agent.tool_result', call: `${turn}.0`, status: 'unknown', content: '' })
    expect(log.settle()).toMatchObject({ type: 'rest', waiting: 'input' })
    expect(log.events.slice(-2)).toMatchObject([
      { type: 'agent.tool_result', status: 'aborted' },
      { type: 'run.settled' },
    ])
  })

  it('B-KERNEL-21: orders that were handed over as their run ends were carried out, and their call says so', () => {
    const log = asking()
    const turn = log.reply([call('order', { gate: { type: 'outside', orders: [{ type: 'none' }] } }), call('a')])
    log.owner({ type: 'agent.custom_tool_use', call: `${turn}.0` })
    log.owner({ type: 'agent.tool_result', call: `${turn}.1`, status: 'error', content: '', ends: 'A hook failed.' })
    log.settle()
    expect(log.events.slice(-2)).toMatchObject([
      { type: 'agent.tool_result', call: `${turn}.0`, status: 'ok' },
      { type: 'run.settled', outcome: { type: 'failed', reason: 'hook_error' } },
    ])
  })

  it('B-KERNEL-11: an interrupt stops everything admitted before it: that input joins the transcript and starts nothing', () => {
    const log = asking()
    const before = log.say('never mind')
    log.inbox({ type: 'user.interrupt', id: 'i', mode: 'stop' })
    const after = log.say('this instead')
    log.owner({ type: 'model.failed', class: 'interrupted', message: 'stopped', retryable: true })
    expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'prepare', inputs: [after] }] })
    expect(log.events.at(-1)).toMatchObject({ type: 'run.settled', outcome: { type: 'interrupted' }, inputs: [before] })
    log.begin()
    log.settle()
    expect(log.events.at(-1)).toMatchObject({ type: 'model.started', shows: [before, after] })
  })

  it('B-KERNEL-12: an interrupt before any run settles what waits without starting it, and clears queued wakes (AC-115)', () => {
    const log = new Logbook()
    log.owner({ type: 'wake.scheduled', due: 5_000, reason: 'later', key: 'w' })
    log.say('go')
    log.inbox({ type: 'user.interrupt', id: 'i', mode: 'stop' })
    expect(log.settle()).toEqual({ type: 'rest', waiting: 'input', until: null })
    expect(log.types()).not.toContain('run.started')
    expect(log.session.last).toEqual({ type: 'interrupted' })
  })

  it('B-KERNEL-13: a pause lets what runs finish, starts nothing, and ends with the next message', () => {
    const log = asking({ parallel: 1 })
    const turn = log.reply([call('a'), call('b')])
    log.settle()
    log.inbox({ type: 'user.interrupt', id: 'p', mode: 'pause' })
    expect(log.next()).toMatchObject({ type: 'perform', effects: [{ key: `run:${turn}.0` }] })
    log.result(`${turn}.0`)
    expect(log.settle()).toMatchObject({ type: 'rest', waiting: 'resume' })
    log.say('go on')
    expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ key: `run:${turn}.1` }] })
  })

  it('B-KERNEL-13: a pause holds input that has not begun a run, also what comes after the run that ends', () => {
    const log = asking()
    log.inbox({ type: 'user.interrupt', id: 'p', mode: 'pause' })
    log.say('later', 'after')
    log.reply([])
    expect(log.settle()).toMatchObject({ type: 'rest', waiting: 'resume' })
    expect(log.session).toMatchObject({ run: null, paused: true, last: { type: 'completed' } })
    log.inbox({ type: 'user.interrupt', id: 'r', mode: 'resume' })
    expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'prepare' }] })
    log.inbox({ type: 'user.interrupt', id: 'q', mode: 'pause' })
    expect(log.settle()).toMatchObject({ type: 'rest', waiting: 'resume' })
    log.inbox({ type: 'user.interrupt', id: 's', mode: 'stop' })
    log.say('again', 'after')
    expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'prepare' }] })
  })
})

describe('what an older attempt left open', () => {
  it('B-KERNEL-14: a once call lost between intent and result becomes unknown and is never run again (P4, F6–F8)', () => {
    const log = asking()
    const turn = log.reply([call('pay')])
    log.settle()
    log.epoch = 2
    log.settle()
    expect(log.events.at(-2)).toMatchObject({ type: 'agent.tool_result', call: `${turn}.0`, status: 'unknown' })
    expect(log.types().filter((type) => type === 'agent.tool_use')).toHaveLength(1)
  })

  it('B-KERNEL-15: a read or idempotent call that was lost runs again under the same key', () => {
    const log = asking()
    const turn = log.reply([call('look', { effect: 'read' })])
    log.settle()
    for (const epoch of [2, 3]) {
      log.epoch = epoch
      expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ key: `run:${turn}.0`, mode: 'execute' }] })
    }
  })

  it('B-LOSS-1: it runs again while the losses of the run last; then the run fails, and its planner is not asked', () => {
    const log = asking({ lossesMax: 6, parallel: 2 })
    const turn = log.reply(['a', 'b', 'c'].map((name) => call(name, { effect: 'idempotent' })))
    log.settle()
    for (const epoch of [2, 3, 4, 5, 6]) {
      log.epoch = epoch
      expect(log.settle()).toMatchObject({ effects: [{ key: `run:${turn}.0` }, { key: `run:${turn}.1` }] })
    }
    log.epoch = 7
    expect(log.settle()).toMatchObject({ type: 'rest', waiting: 'input' })
    expect(log.session.last).toMatchObject({ type: 'failed', reason: 'crashed_too_often' })
    const results = log.events.filter((event) => event.type === 'agent.tool_result')
    expect(results.map(({ call, status }) => [call, status])).toEqual([
      [`${turn}.0`, 'aborted'],
      [`${turn}.1`, 'aborted'],
      [`${turn}.2`, 'aborted'],
    ])
    expect(log.types().filter((type) => type === 'model.started')).toHaveLength(1)
  })

  it('B-LOSS-1: a once call that can be reconciled is awaited before a run that was lost too often ends', () => {
    const log = asking({ lossesMax: 1 })
    const turn = log.reply([call('look', { effect: 'read' }), call('pay', { reconcile: true })])
    log.settle()
    log.epoch = 2
    expect(log.settle()).toMatchObject({ type: 'perform', stop: [{ key: `run:${turn}.1`, mode: 'reconcile' }] })
    log.result(`${turn}.1`)
    log.settle()
    expect(log.session.last).toMatchObject({ type: 'failed', reason: 'crashed_too_often' })
  })

  it('B-LOSS-2: an attempt counts once, whatever it had open, and a whole turn gives the losses back', () => {
    const log = asking({ lossesMax: 3 })
    for (let lost = 0; lost < 4; lost++) {
      log.epoch += 1
      log.settle()
      const turn = log.reply([call('a', { effect: 'read' }), call('b', { effect: 'read' })])
      log.settle()
      log.epoch += 1
      log.settle()
      expect(log.session.run?.losses).toBe(2)
      log.result(`${turn}.0`)
      log.result(`${turn}.1`)
      log.settle()
      expect(log.session.run?.losses).toBe(0)
    }
  })

  it('B-KERNEL-16: a once call that can be reconciled is asked about before anyone is bothered', () => {
    const log = asking()
    const turn = log.reply([call('pay', { reconcile: true })])
    log.settle()
    log.epoch = 2
    expect(log.next()).toMatchObject({ type: 'perform', effects: [{ key: `run:${turn}.0`, mode: 'reconcile' }] })
  })

  it('B-KERNEL-17: a model call lost with its worker is recorded as lost and made again (F2–F4)', () => {
    const log = asking()
    log.epoch = 2
    expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'call' }] })
    expect(log.types().slice(-2)).toEqual(['model.failed', 'model.started'])
    expect(log.events.at(-1)).toMatchObject({ shows: [] })
  })

  it('B-KERNEL-18: a run whose worker is lost again and again is given up, not retried for ever (F29)', () => {
    const log = asking({ lossesMax: 3 })
    for (const epoch of [2, 3, 4]) {
      log.epoch = epoch
      log.settle()
    }
    expect(log.session.last).toMatchObject({ type: 'failed', reason: 'crashed_too_often' })
  })
})

describe('wakes', () => {
  it('B-KERNEL-19: a pending wake with the same key is the same wake; only due ones start a run (AC-117, S4-22)', () => {
    const log = new Logbook()
    log.owner({ type: 'wake.scheduled', due: 5_000, reason: 'follow up', key: 'f' })
    log.owner({ type: 'wake.scheduled', due: 6_000, reason: 'follow up', key: 'f' })
    log.owner({ type: 'wake.scheduled', due: 9_000, reason: 'other', key: 'o' })
    expect(log.next()).toEqual({ type: 'rest', waiting: 'input', until: 5_000 })
    log.now = 5_000
    expect(log.next()).toMatchObject({ type: 'perform', effects: [{ type: 'prepare', wakes: [{ key: 'f' }] }] })
    log.begin()
    expect(log.session.wakes.map((wake) => wake.key)).toEqual(['o'])
  })

  it('B-KERNEL-20: a wake is consumed by run.started, or by the run.settled that names it, and by nothing else: an attempt that dies before leaves it due (AC-112)', () => {
    const log = new Logbook()
    log.owner({ type: 'wake.scheduled', due: 5_000, reason: 'follow up', key: 'f' })
    log.now = 5_000
    const before = log.next()
    log.epoch = 2
    expect(log.next()).toEqual(before)
    const other = new Logbook()
    other.owner({ type: 'wake.scheduled', due: 0, reason: 'follow up', key: 'f' })
    const outcome = { type: 'failed', reason: 'prepare_failed', failure: { kind: 'Failed', message: 'no' } } as const
    other.owner({ type: 'run.settled', outcome })
    expect(other.session.wakes).toHaveLength(1)
    other.owner({ type: 'run.settled', outcome, wakes: ['f'] })
    expect(other.session.wakes).toEqual([])
    log.begin()
    expect(log.session.wakes).toEqual([])
  })
})

describe('the end of a run', () => {
  /** A run that was stopped, and whose end is announced. */
  function ending(): Logbook {
    const log = new Logbook()
    log.say('go')
    log.begin()
    log.inbox({ type: 'user.interrupt', id: 'stop', mode: 'stop' })
    log.owner({ type: 'run.ending', outcome: { type: 'interrupted' } })
    return log
  }
  const ends = { type: 'perform', effects: [{ type: 'end', outcome: { type: 'interrupted' } }], stop: [] }

  it('B-END-1: is announced instead of settled where it has work, and not a second time', () => {
    const log = new Logbook()
    log.say('go')
    log.begin()
    const { session } = log
    const settled = [{ type: 'run.settled', outcome: { type: 'completed' } }] as const
    const announced = [{ type: 'run.ending', outcome: { type: 'completed' } }]
    expect(announceEnd(session, settled, () => true)).toEqual(announced)
    expect(announceEnd(session, settled, () => false)).toBe(settled)
    expect(announceEnd(ending().session, settled, () => true)).toBe(settled)
    expect(announceEnd({ ...session, run: null }, settled, () => true)).toBe(settled)
  })

  it('B-END-2: is performed again after a loss, and settles after three', () => {
    const log = ending()
    expect(log.next()).toMatchObject(ends)
    for (const epoch of [2, 3]) {
      log.epoch = epoch
      expect(log.next()).toEqual({ type: 'record', events: [{ type: 'run.ending', outcome: { type: 'interrupted' } }] })
      expect(log.settle()).toMatchObject(ends)
    }
    log.epoch = 4
    log.settle()
    expect(log.session).toMatchObject({ run: null, last: { type: 'interrupted' }, stop: 0 })
  })

  it('B-END-3: is not begun anew by a second stop, and a close waits for it', () => {
    const log = ending()
    log.inbox({ type: 'user.interrupt', id: 'again', mode: 'stop' })
    log.inbox({ type: 'user.interrupt', id: 'close', mode: 'stop', closes: true })
    expect(log.next()).toMatchObject(ends)
    log.owner({ type: 'run.settled', outcome: { type: 'interrupted' } })
    expect(log.next()).toEqual({ type: 'record', events: [{ type: 'session.closed' }] })
  })

  it('B-END-7: consumes the input that came before a stop, and no later one', () => {
    const log = ending()
    log.say('one more')
    log.inbox({ type: 'user.interrupt', id: 'again', mode: 'stop' })
    log.say('then this')
    const settled = completeLanding(log.session, { type: 'run.settled', outcome: { type: 'interrupted' } })
    expect(settled).toMatchObject({ inputs: [2, 6] })
    log.owner(settled)
    expect(log.next()).toMatchObject({ effects: [{ type: 'prepare', inputs: [8] }] })
  })

  it('B-END-7: of a completed run is taken back by a message for that run, and not by one for later', () => {
    const log = new Logbook()
    log.say('go')
    log.begin()
    log.settle()
    log.reply()
    log.owner({ type: 'run.ending', outcome: { type: 'completed' } })
    log.say('later', 'after')
    expect(log.next()).toMatchObject({ effects: [{ type: 'end', outcome: { type: 'completed' } }] })
    const seq = log.say('wait')
    expect(log.next()).toMatchObject({ type: 'record', events: [{ type: 'model.started', shows: [seq] }] })
  })

  it('B-END-9: of a run that went on with a message and then met a limit is performed anew, and the first one does not land', () => {
    const log = new Logbook()
    log.say('go')
    log.begin({ modelRequests: 1 })
    log.settle()
    log.reply()
    log.owner({ type: 'run.ending', outcome: { type: 'completed' } })
    const endIn = (): Parameters<typeof judgeLanding>[1] => {
      const decision = log.next()
      const [effect] = decision.type === 'perform' ? decision.effects : []
      if (effect?.type !== 'end') throw new Error('nothing ends')
      return effect
    }
    const first = endIn()
    log.say('wait')
    const outcome = { type: 'limit', limit: 'model_requests' } as const
    expect(log.next()).toMatchObject({ type: 'record', events: [{ type: 'run.settled', outcome }] })
    log.owner({ type: 'run.ending', outcome })
    const here = { now: log.now, epoch: log.epoch }
    expect(judgeLanding(log.session, first, { type: 'run.settled', outcome: { type: 'completed' } }, here)).toBe('drop')
    expect(judgeLanding(log.session, endIn(), { type: 'run.settled', outcome }, here)).toBe('keep')
  })

  it('B-END-5: of a session with a folder is the effect before it closes', () => {
    const log = new Logbook()
    log.inbox({ type: 'user.interrupt', id: 'close', mode: 'stop', closes: true })
    expect(log.next()).toEqual({ type: 'record', events: [{ type: 'session.closed' }] })
    const inFolder = { ...log.session, folder: '/work' }
    expect(next(inFolder, { now: log.now, epoch: 1 })).toMatchObject({ effects: [{ type: 'end', outcome: null }] })
  })

  it('B-END-8: is decided anew where its log was imported', () => {
    const log = ending()
    log.owner({ type: 'session.imported', from: 'elsewhere' })
    expect(log.session.run).not.toHaveProperty('ending')
    expect(log.next()).toEqual({ type: 'rest', waiting: 'resume', until: null })
  })
})
