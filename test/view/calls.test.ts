// The projection of calls: what a log says of each, and what a session waits for.
import { describe, expect, it } from 'vitest'
import { EMPTY, type Session } from '../../src/kernel/session.ts'
import { CallLog, contentOf, decisionsIn } from '../../src/view/call-log.ts'
import { isInterrupted, ownPending } from '../../src/view/pending-calls.ts'
import { ask, asking, call, type Logbook } from '../kernel/logbook.ts'

const outside = (tool: string, child?: string) =>
  call(tool, { gate: { type: 'outside', ...(child === undefined ? {} : { child }) } })

function logOf({ events }: Logbook): CallLog {
  const calls = new CallLog()
  for (const event of events) calls.take(event)
  return calls
}

function decide(log: Logbook, key: string, allow: boolean, by = 'ana', digest = 'digest-risky'): void {
  log.inbox({ type: 'user.tool_confirmation', id: `d${log.session.seq}`, call: key, digest, allow, by })
}

function answer(log: Logbook, key: string, content: string): number {
  return log.inbox({ type: 'user.custom_tool_result', id: `a${log.session.seq}`, call: key, ok: true, content })
}

describe('the calls of a log', () => {
  it('B-VERB-3: each has its proposal, its intent and its result, in the order of the model', () => {
    const log = asking()
    const turn = log.reply([call('one'), call('two')])
    log.settle()
    log.result(`${turn}.1`, 'second')
    const [one, two] = logOf(log).all
    expect(one).toMatchObject({ key: `${turn}.0`, proposal: { tool: 'one' }, starts: 1, result: null })
    expect(two).toMatchObject({ key: `${turn}.1`, reply: { seq: turn }, intent: { call: `${turn}.1` } })
    expect([one, two].map((each) => each && contentOf(each))).toEqual(['', 'second'])
  })

  it('B-TRACE-7: one that was started again is one call with two starts, and one that never ran has no intent', () => {
    const log = asking()
    const turn = log.reply([call('read', { effect: 'read' }), ask('risky')])
    decide(log, `${turn}.1`, false)
    log.settle()
    const first = log.events.find(({ type }) => type === 'agent.tool_use')?.seq
    log.epoch = 2
    log.owner({ type: 'agent.tool_use', call: `${turn}.0` })
    expect(logOf(log).all).toMatchObject([
      { intent: { seq: first }, starts: 2, result: null },
      { intent: null, starts: 0, result: { status: 'denied' } },
    ])
  })

  it('B-APPROVE-6: a result from outside says what the first answer said, and a second answer changes nothing', () => {
    const log = asking()
    const turn = log.reply([outside('person')])
    log.settle()
    const first = answer(log, `${turn}.0`, 'blue')
    answer(log, `${turn}.0`, 'green')
    expect(logOf(log).all).toMatchObject([{ answer: null, result: null }])
    log.settle()
    const [told] = logOf(log).all
    expect(told).toMatchObject({ answer: { seq: first }, result: { from: first, content: '' } })
    expect(told && contentOf(told)).toBe('blue')
  })

  it('B-PORT-14: one that was asked about anew keeps its proposal and has the terms of here', () => {
    const { log, key } = imported()
    expect(logOf(log).at(key)).toMatchObject({
      proposal: { digest: 'digest-risky' },
      terms: { gate: { class: 'here' } },
    })
  })

  it('an event gives the calls it proposes or the one it is about, and none for a call that nobody proposed', () => {
    const log = asking()
    const calls = logOf(log)
    const turn = log.reply([call('one'), call('two')])
    const [reply] = log.events.slice(-1)
    expect(reply && calls.take(reply).map(({ key }) => key)).toEqual([`${turn}.0`, `${turn}.1`])
    const about = { seq: 99, at: 0, epoch: 1, type: 'agent.tool_use' } as const
    expect(calls.take({ ...about, call: `${turn}.1` })).toMatchObject([{ proposal: { tool: 'two' } }])
    expect(calls.take({ ...about, call: '77.0' })).toEqual([])
    expect(calls.take({ seq: 99, at: 0, epoch: 1, type: 'session.closed' })).toEqual([])
  })
})

describe('the decisions of a log', () => {
  it('B-DECIDE-3: every vote that counts is named, and the call is decided only with the last one needed', () => {
    const log = asking()
    const key = `${log.reply([ask('risky', { n: 2 })])}.0`
    decide(log, key, true, 'ana')
    decide(log, key, true, 'ana')
    decide(log, key, true, 'eve', 'of something else')
    expect(saidOf(log, key)).toEqual({ by: ['ana'], decided: null })
    decide(log, key, true, 'bob')
    const decided = { allow: true, by: 'bob', voters: ['ana', 'bob'] }
    expect(saidOf(log, key)).toEqual({ by: ['ana', 'bob'], decided })
  })

  it('B-APPROVE-2: the first decision stands, also when only the events of its run are there', () => {
    const log = asking()
    const key = `${log.reply([ask('risky')])}.0`
    decide(log, key, false)
    decide(log, key, true, 'bob')
    const whole = { by: ['ana'], decided: { allow: false, by: 'ana' } }
    expect(saidOf(log, key)).toEqual(whole)
    log.events.splice(
      0,
      log.events.findIndex(({ type }) => type === 'run.started'),
    )
    expect(saidOf(log, key)).toEqual(whole)
  })

  it('B-PORT-14: what was decided elsewhere is named and is no decision here', () => {
    const { log, key } = imported()
    expect(saidOf(log, key)).toEqual({ by: ['ana'], decided: null })
    decide(log, key, false, 'bob', 'digest-here')
    expect(saidOf(log, key)).toEqual({ by: ['ana', 'bob'], decided: { allow: false, by: 'bob' } })
  })
})

describe('what a session waits for', () => {
  const pendingOf = (session: Session) => ownPending(session, ['root', 'root~1.0'], () => ({}))

  it('B-APPROVE-10: questions and what is answered from outside, with who said yes so far, and not what a child works on', () => {
    const log = asking()
    const turn = log.reply([outside('person'), outside('child', 'helper')])
    log.settle()
    const where = { sessionId: 'root~1.0', path: ['root', 'root~1.0'], costUsd: 0 }
    expect(pendingOf(log.session)).toEqual([
      { callId: `${turn}.0`, tool: 'person', args: {}, needs: 'answer', ...where },
    ])
    const other = asking()
    const key = `${other.reply([ask('risky', { n: 2 })])}.0`
    decide(other, key, true)
    const asked = { class: 'risky', n: 2, roles: [], expiresAt: null, votes: ['ana'], digest: 'digest-risky' }
    expect(pendingOf(other.session)).toEqual([
      { callId: key, tool: 'risky', args: {}, needs: 'approval', ...asked, ...where },
    ])
  })

  it('B-PORT-21: nothing of what came out of a file, until it was asked about anew', () => {
    const log = asking()
    log.reply([ask('risky')])
    log.owner({ type: 'session.imported', from: 'elsewhere' })
    expect(pendingOf(log.session)).toEqual([])
    expect(pendingOf(imported().log.session)).toMatchObject([{ needs: 'approval', digest: 'digest-here' }])
  })

  it('B-MONEY-33: money, with the account that is empty, unless there is input that goes on', () => {
    const last = { type: 'limit', limit: 'usd', account: 'day' } as const
    expect(pendingOf({ ...EMPTY, last })).toMatchObject([{ callId: 'budget', args: { account: 'day' } }])
    expect(pendingOf({ ...EMPTY, last, inputs: [{ seq: 9, when: 'next' }] })).toEqual([])
  })

  it('B-DECIDE-1: a session is stopped by its own interrupt, and by that of a session above that waits for it', async () => {
    const above = asking()
    const turn = above.reply([outside('child', 'helper'), outside('person')])
    above.settle()
    const child = (of: string): Session => {
      return { ...EMPTY, parent: { session: 'root', call: of, root: 'root', depth: 1 } }
    }
    const isOver = (session: Session) => isInterrupted(session, () => Promise.resolve(above.session))
    expect(await isOver(child(`${turn}.0`))).toBe(false)
    above.inbox({ type: 'user.interrupt', id: 'i', mode: 'stop' })
    expect(await isOver(child(`${turn}.0`))).toBe(true)
    expect(await isOver(child('1.0'))).toBe(false)
    expect(await isOver({ ...EMPTY, stop: 4 })).toBe(true)
  })
})

/** A call that was allowed elsewhere, and is asked about again here. */
function imported(): { readonly log: Logbook; readonly key: string } {
  const log = asking()
  const key = `${log.reply([ask('risky')])}.0`
  decide(log, key, true)
  log.owner({ type: 'session.imported', from: 'elsewhere' })
  const { limits = null } = log.session.run ?? {}
  if (limits) log.owner({ type: 'run.reviewed', limits, toolset: 't', instructions: 'i' })
  const gate = { type: 'ask', class: 'here', n: 1, roles: [], expiresAt: null } as const
  log.owner({ type: 'call.reviewed', call: key, effect: 'once', timeoutMs: 1_000, gate, digest: 'digest-here' })
  return { log, key }
}

function saidOf(log: Logbook, key: string): unknown {
  const { counted = [], decided = null } = decisionsIn(log.events).get(key) ?? {}
  return { by: counted.map(({ by }) => by), decided }
}
