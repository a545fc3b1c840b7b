// Limits and retries: what is counted, when, and what happens at the limit.
import { describe, expect, it } from 'vitest'
import { asking, call, Logbook } from './logbook.ts'

describe('limits', () => {
  it('B-LIMIT-1: model requests are counted after success and checked before the call; 0 makes none (S0-13, TRAP-1)', () => {
    const none = new Logbook()
    const seq = none.say('go')
    none.begin({ modelRequests: 0 })
    none.settle()
    expect(none.types()).not.toContain('model.started')
    expect(none.events.at(-1)).toMatchObject({
      type: 'run.settled',
      outcome: { type: 'limit', limit: 'model_requests' },
      inputs: [seq],
    })
    const one = asking({ modelRequests: 1 })
    expect(one.session.run?.requests).toBe(0)
    const turn = one.reply([call('a')])
    expect(one.session.run?.requests).toBe(1)
    one.settle()
    one.result(`${turn}.0`)
    one.settle()
    expect(one.session.last).toEqual({ type: 'limit', limit: 'model_requests' })
  })

  it('B-LIMIT-2: a batch over the limit of tool calls runs none of it and sends no further request (S0-14, AC-4)', () => {
    const log = asking({ toolCalls: 1 })
    log.reply([call('a'), call('b')])
    log.settle()
    expect(log.types()).not.toContain('agent.tool_use')
    expect(log.types().slice(-3)).toEqual(['agent.tool_result', 'agent.tool_result', 'run.settled'])
    expect(log.session.last).toEqual({ type: 'limit', limit: 'tool_calls' })
  })

  it('B-LIMIT-3: active time stops a run; time parked for people and time without a worker do not count', () => {
    const log = asking({ activeMs: 1_000 })
    log.now += 400
    const turn = log.reply([call('host', { gate: { type: 'outside' } })])
    log.settle()
    log.now += 100_000
    log.inbox({ type: 'user.custom_tool_result', id: 'a', call: `${turn}.0`, ok: true, content: 'yes' })
    log.settle()
    expect(log.session.run?.activeMs).toBe(400)
    log.now += 100_000
    log.epoch = 2
    expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'call' }] })
    log.now += 599
    expect(log.next()).toMatchObject({ type: 'perform', effects: [{ type: 'call' }], stop: [] })
    log.now += 1
    expect(log.next()).toMatchObject({ type: 'perform', effects: [], stop: [{ type: 'call' }], reason: 'limit' })
    log.owner({ type: 'model.failed', class: 'interrupted', message: 'limit', retryable: true })
    log.settle()
    expect(log.session.last).toEqual({ type: 'limit', limit: 'active_ms' })
  })

  it('B-LIMIT-4: provider failures are retried at their time and counted; a fatal one ends the run at once', () => {
    const log = asking({ modelAttempts: 2 })
    log.owner({ type: 'model.failed', class: 'server', message: 'overloaded', retryable: true, retryAt: log.now + 200 })
    expect(log.next()).toEqual({ type: 'rest', waiting: 'retry', until: log.now + 200 })
    log.now += 200
    expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'call' }] })
    log.owner({ type: 'model.failed', class: 'server', message: 'overloaded', retryable: true })
    log.settle()
    expect(log.session.last).toMatchObject({ type: 'failed', reason: 'provider_error' })
    const fatal = asking()
    fatal.owner({ type: 'model.failed', class: 'auth', message: 'the key was refused', retryable: false })
    fatal.settle()
    expect(fatal.session.last).toMatchObject({ type: 'failed', failure: { message: 'the key was refused' } })
  })

  it('B-LIMIT-10: tries and the planned waits use up `outageMs`, a reply gives it back, and a clock that jumps uses none', () => {
    const log = asking({ modelAttempts: null, outageMs: 10_000, modelMs: 1_000 })
    const fail = (waitMs: number): void => {
      const retryAt = log.now + waitMs
      log.owner({ type: 'model.failed', class: 'server', message: 'HTTP 503', retryable: true, retryAt })
    }
    log.now += 300
    fail(2_000)
    expect(log.session.run).toMatchObject({ waitedMs: 2_300, trouble: { class: 'server', message: 'HTTP 503' } })
    // No worker drove the session for an hour.
    log.now += 3_600_000
    log.settle()
    log.now += 3_600_000
    fail(4_000)
    expect(log.session.run?.waitedMs).toBe(2_300 + 1_000 + 4_000)
    log.now += 4_000
    log.settle()
    log.reply([call('a')])
    expect(log.session.run).toMatchObject({ waitedMs: 0, trouble: null, failures: 0 })
  })

  it('B-LIMIT-10: a run that waited for longer than `outageMs` fails', () => {
    const log = asking({ modelAttempts: null, outageMs: 1_000 })
    log.owner({ type: 'model.failed', class: 'server', message: 'no', retryable: true, retryAt: log.now + 1_001 })
    log.now += 1_001
    log.settle()
    expect(log.session.last).toMatchObject({ type: 'failed', reason: 'provider_error' })
  })

  it('B-LIMIT-11: waiting for a provider is not active time, and a try that failed and is made again is none', () => {
    const log = asking({ modelAttempts: null, activeMs: 5_000, outageMs: 600_000 })
    for (let i = 0; i < 100; i++) {
      log.now += 100
      log.owner({ type: 'model.failed', class: 'server', message: 'no', retryable: true, retryAt: log.now + 1_000 })
      expect(log.next()).toMatchObject({ type: 'rest', waiting: 'retry', until: log.now + 1_000 })
      log.now += 1_000
      expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'call' }] })
    }
    expect(log.session.run?.activeMs).toBe(0)
  })

  it('B-LIMIT-12: an answer that was cut after it began is asked for again for as long as `outageMs`', () => {
    const log = asking({ modelAttempts: null })
    for (let i = 0; i < 20; i++) {
      expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'call' }] })
      log.owner({
        type: 'model.failed',
        class: 'network',
        message: 'cut',
        retryable: true,
        retryAt: log.now,
        partial: 'x',
      })
    }
    expect(log.session.run).toMatchObject({ cuts: 20, fatal: null })
  })

  it('B-PATIENCE-5: a message that steers and a resume make the next try due now, and give back what was not waited', () => {
    const log = asking({ modelAttempts: null, outageMs: 10_000 })
    const fail = (): void => {
      const retryAt = log.now + 9_000
      log.owner({ type: 'model.failed', class: 'server', message: 'HTTP 503', retryable: true, retryAt })
      expect(log.next()).toMatchObject({ type: 'rest', waiting: 'retry', until: retryAt })
    }
    for (let i = 0; i < 50; i++) {
      fail()
      log.now += 10
      if (i % 2 === 0) log.say(`Now ${i}?`)
      else log.inbox({ type: 'user.interrupt', id: `resume ${i}`, mode: 'resume' })
      expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'call' }] })
    }
    expect(log.session.run).toMatchObject({ waitedMs: 500, failures: 50 })
    fail()
    log.say('Later.', 'after')
    expect(log.next()).toMatchObject({ type: 'rest', waiting: 'retry' })
  })

  const bad = { retryKind: 'InvalidArguments' }
  /** Replies with calls of one tool, each call failing or succeeding. */
  const played = (toolRetries: number | undefined, turns: readonly (readonly boolean[])[]): Logbook => {
    const log = asking(toolRetries === undefined ? {} : { toolRetries })
    for (const calls of turns) {
      const turn = log.reply(calls.map(() => call('a')))
      log.settle()
      calls.forEach((ok, i) => log.result(`${turn}.${i}`, 'said', ok ? {} : bad))
      log.settle()
      if (log.session.run === null) break
    }
    return log
  }

  it('B-LIMIT-5: a tool that asks for a retry once too often ends the run; calls that fail in one reply use one retry', () => {
    const over = played(1, [[false, false, false], [false]])
    expect(over.session.last).toMatchObject({ type: 'failed', reason: 'tool_retries_exceeded' })
    expect(played(1, [[false, false, false]]).session.run).toMatchObject({ toolRetries: { a: 1 }, exhausted: null })
    expect(played(0, [[false]]).session.last).toMatchObject({ reason: 'tool_retries_exceeded' })
  })

  it('B-LIMIT-5: a success gives back the retries of earlier replies, in whatever order it lands beside a failure', () => {
    expect(played(1, [[false], [true], [false]]).session.run).toMatchObject({ toolRetries: { a: 1 } })
    for (const turn of [
      [false, true],
      [true, false],
    ]) {
      expect(played(1, [[false], turn]).session.run).toMatchObject({ toolRetries: { a: 1 }, exhausted: null })
      expect(played(0, [turn]).session.last).toMatchObject({ reason: 'tool_retries_exceeded' })
    }
  })

  it('B-LIMIT-5: five replies may fail in a row by default, and the sixth ends the run', () => {
    const failing = Array.from({ length: 6 }, () => [false])
    expect(played(undefined, failing.slice(1)).session.run).toMatchObject({ toolRetries: { a: 5 } })
    expect(played(undefined, failing).session.last).toMatchObject({ reason: 'tool_retries_exceeded' })
  })

  it('B-LIMIT-6: an output retry is counted when its request is made, after the model limit was checked (S0-44)', () => {
    const log = asking({ outputRetries: 1 })
    log.reply([], { type: 'retry_user_message', text: 'Answer in JSON.' })
    log.settle()
    expect(log.types().slice(-2)).toEqual(['note.added', 'model.started'])
    expect(log.session.run?.outputRetries).toBe(1)
    log.reply([], { type: 'retry_user_message', text: 'Answer in JSON.' })
    log.settle()
    expect(log.session.last).toMatchObject({ type: 'failed', reason: 'output_validation_failed' })
    const blocked = asking({ outputRetries: 1, modelRequests: 1 })
    blocked.reply([], { type: 'retry_user_message', text: 'Answer in JSON.' })
    blocked.settle()
    expect(blocked.session.last).toEqual({ type: 'limit', limit: 'model_requests' })
  })

  it('B-LIMIT-7: an empty answer cut by length is asked once more with room; empty again is a failure, never an answer', () => {
    const log = asking()
    log.reply([], { type: 'empty', boost: true })
    log.settle()
    expect(log.events.at(-1)).toMatchObject({ type: 'model.started', boost: true })
    log.reply([], { type: 'empty', boost: true })
    log.settle()
    expect(log.session.last).toMatchObject({ type: 'failed', reason: 'empty_answer' })
  })

  it('B-LIMIT-8: stop and unexpected verdicts end the run, and calls never dispatched still get a result each', () => {
    const stop = asking()
    stop.reply([call('a')], { type: 'stop', reason: 'budget hook' })
    stop.settle()
    expect(stop.session.last).toEqual({ type: 'halted', reason: 'budget hook' })
    expect(stop.types()).toContain('agent.tool_result')
    const odd = asking()
    odd.reply([call('a'), call('final_result')], { type: 'unexpected', reason: 'mixed' })
    odd.settle()
    expect(odd.session.last).toMatchObject({ type: 'failed', reason: 'unexpected_model_behavior' })
    expect(odd.types().filter((type) => type === 'agent.tool_result')).toHaveLength(2)
  })
})
