// What a session remembers of single events until it is needed, and what a shortened request leaves as it is.
import { describe, expect, it } from 'vitest'
import { Bug } from '../../src/kernel/failure.ts'
import { fitMessage } from '../../src/kernel/transcript.ts'
import { asking, Logbook } from './logbook.ts'

const LIMITS_OF = { inputs: [], wakes: [], toolset: 't', instructions: 'i' } as const

describe('what a session remembers', () => {
  it('B-FOLD-9: the trace that a run was given is that of its run, and of no later one', () => {
    const log = new Logbook()
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    log.say('go')
    const { limits } = asking().session.run ?? {}
    if (!limits) throw new Error('no run is open')
    log.owner({ type: 'run.started', ...LIMITS_OF, inputs: [2], limits, traceparent })
    expect(log.session.run?.traceparent).toBe(traceparent)
    log.owner({ type: 'run.settled', outcome: { type: 'interrupted' } })
    log.say('again')
    log.begin()
    expect(log.session.run).not.toHaveProperty('traceparent')
  })

  it('B-FOLD-9: a message that waits keeps the trace that came with it', () => {
    const log = new Logbook()
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const parts = [{ type: 'text', text: 'go' }] as const
    log.inbox({ type: 'user.message', id: 'm', parts, when: 'next', traceparent })
    log.say('and more')
    expect(log.session.inputs.map((input) => input.traceparent)).toEqual([traceparent, undefined])
  })

  it('B-FOLD-9: a wake keeps the options that its run will have', () => {
    const log = asking()
    log.owner({ type: 'wake.scheduled', due: 5_000, reason: 'later', key: 'with', options: 'hash' })
    log.owner({ type: 'wake.scheduled', due: 5_000, reason: 'later', key: 'without' })
    expect(log.session.wakes).toEqual([
      expect.objectContaining({ key: 'with', options: 'hash' }),
      expect.not.objectContaining({ options: expect.anything() as unknown }),
    ])
    expect(log.session.wakes[1]).not.toHaveProperty('options')
  })

  it('B-FOLD-9: a note that no request has shown when its run ends is shown by the next one, and once', () => {
    const log = new Logbook()
    log.say('go')
    log.begin()
    const note = log.owner({ type: 'note.added', kind: 'limit', text: 'told' })
    log.owner({ type: 'run.settled', outcome: { type: 'interrupted' } })
    log.say('again')
    log.begin()
    const decision = log.next()
    const [started] = decision.type === 'record' ? decision.events : []
    expect(started?.type === 'model.started' && started.shows.filter((seq) => seq === note)).toEqual([note])
  })

  it('B-FOLD-5: a run that is put off inside another run is a Bug', () => {
    const log = asking()
    const retry = { message: 'away', retryAt: 9_000, waitedMs: 0 }
    expect(() => log.owner({ type: 'run.deferred', ...retry })).toThrow(Bug)
  })

  it('B-COMPACT-7: a shortened request leaves answers and what is pinned word for word', () => {
    const text = 'word '.repeat(2_000)
    const parts = [{ type: 'text', text }] as const
    const pinned = { role: 'user', seq: 2, parts, pin: true } as const
    const answer = { role: 'assistant', seq: 3, parts, calls: [] } as const
    expect(fitMessage(pinned, 0)).toBe(pinned)
    expect(fitMessage(answer, 0)).toBe(answer)
    expect(JSON.stringify(fitMessage({ role: 'user', seq: 2, parts }, 0)).length).toBeLessThan(text.length)
    const fits = { type: 'text', text: 'x'.repeat(2_000) } as const
    const shorter = fitMessage({ role: 'user', seq: 2, parts: [fits, ...parts] }, 4_000)
    expect(shorter.role === 'user' && shorter.parts[0]).toBe(fits)
  })
})
