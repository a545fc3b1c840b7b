// A message that is taken back: what the log means then.
import { describe, expect, it } from 'vitest'
import { conversationOf } from '../../src/runtime/state/run-messages.ts'
import { asking, Logbook } from './logbook.ts'

describe('a message that is taken back', () => {
  it('B-KERNEL-23: the run goes on without it, and no reader of the conversation has it', () => {
    const log = asking()
    const kept = log.say('kept')
    const message = log.say('dropped')
    log.inbox({ type: 'user.withdraw', id: 'w', message })
    log.inbox({ type: 'user.withdraw', id: 'w2', message })
    log.reply()
    expect(log.next()).toMatchObject({ type: 'record', events: [{ type: 'model.started', shows: [kept] }] })
    log.settle()
    log.reply()
    log.settle()
    expect(log.events.at(-1)).toMatchObject({ type: 'run.settled', outcome: { type: 'completed' } })
    expect(JSON.stringify(conversationOf(log.events))).not.toContain('dropped')
  })

  it('B-KERNEL-23: without it there is nothing more to answer, and the run is completed', () => {
    const log = asking()
    const message = log.say('dropped')
    log.reply()
    log.inbox({ type: 'user.withdraw', id: 'w', message })
    log.settle()
    expect(log.events.at(-1)).toMatchObject({ type: 'run.settled', outcome: { type: 'completed' } })
  })

  it('B-KERNEL-23: one that opened the run, or that a request has shown, stays', () => {
    const log = new Logbook()
    const first = log.say('go')
    log.inbox({ type: 'user.withdraw', id: 'w0', message: first })
    log.begin()
    log.inbox({ type: 'user.withdraw', id: 'w1', message: first })
    expect(log.next()).toMatchObject({ type: 'record', events: [{ type: 'model.started', shows: [first] }] })
    log.settle()
    const second = log.say('and')
    log.reply()
    log.settle()
    log.inbox({ type: 'user.withdraw', id: 'w2', message: second })
    log.reply()
    log.settle()
    const said = JSON.stringify(conversationOf(log.events))
    expect([said.includes('"go"'), said.includes('"and"')]).toEqual([true, true])
  })
})
