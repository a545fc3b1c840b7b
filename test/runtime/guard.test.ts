// The guard: what a model is told near a limit, which tools it keeps, and where tokens end a run.
import { describe, expect, it } from 'vitest'
import type { Usage } from '../../src/kernel/content.ts'
import type { Event } from '../../src/kernel/event.ts'
import { ask, call } from '../kernel/logbook.ts'
import { ENDLESS, failed, Guarded } from './guarded.ts'

function used(guarded: Guarded, usage: Usage): void {
  const seq = guarded.log.owner({
    type: 'agent.message',
    parts: [],
    calls: [call('look', { args: { at: guarded.log.session.seq } })],
    verdict: { type: 'continue' },
    usage,
  })
  guarded.settle()
  guarded.log.result(`${seq}.0`, `saw ${seq}`)
  guarded.settle()
}

/** What the last request shows for the first time, as kinds of events. */
function shown(guarded: Guarded): readonly string[] {
  const { events } = guarded.log
  const asked = events.findLast(
    (event): event is Extract<Event, { type: 'model.started' }> => event.type === 'model.started',
  )
  return (asked?.shows ?? []).map((seq) => events[seq - 1]?.type ?? '')
}

describe('notices', () => {
  it('B-NOTICE-1: the last model request is announced in it, also when it is the first of the run (AC-2, S0-23)', () => {
    const only = new Guarded({ limits: { modelRequests: 1 } })
    expect(only.limits).toEqual([expect.stringMatching(/^This is the last model request of this run\..*answer now/)])
    expect(shown(only)).toEqual(['note.added', 'user.message'])
    const two = new Guarded({ limits: { modelRequests: 2 } })
    expect(two.limits).toEqual([])
    two.one('look', { at: 1 }, 'saw')
    expect(two.limits).toHaveLength(1)
    expect(shown(two)).toEqual(['agent.tool_result', 'note.added'])
  })

  it('B-NOTICE-2: the notice about the model stands before the one about tools, each once (AC-3)', () => {
    const guarded = new Guarded({ limits: { modelRequests: 2, toolCalls: 2 } })
    guarded.one('look', { at: 1 }, 'saw')
    expect(guarded.limits).toEqual([
      expect.stringContaining('last model request'),
      expect.stringContaining('One tool call is left'),
    ])
    expect(guarded.words.at(-1)).toBeNull()
  })

  it('B-NOTICE-3: one call left warns of fan-out; none left and none at all are told in different words (S0-23)', () => {
    const guarded = new Guarded({ limits: { toolCalls: 2 } })
    expect(guarded.limits).toEqual([])
    guarded.one('look', { at: 1 }, 'saw')
    expect(guarded.limits).toEqual([expect.stringContaining('do not fan out')])
    guarded.one('look', { at: 2 }, 'saw more')
    expect(guarded.limits).toHaveLength(2)
    expect(guarded.limits[1]).toBe('No tool calls are left in this run. Answer without tools.')
    const never = new Guarded({ limits: { toolCalls: 0 } })
    expect(never.limits).toEqual(['No tool calls are available in this run. Answer without tools.'])
    const unbound = new Guarded({ limits: { toolCalls: null } })
    for (let at = 0; at < 5; at++) unbound.one('look', { at }, `saw ${at}`)
    expect(unbound.limits).toEqual([])
  })

  it('B-NOTICE-4: where the answer is a call of final_result, the notices say so (S0-23)', () => {
    const traits = { finalResult: true, writers: new Set(['write']) }
    const guarded = new Guarded({ limits: { modelRequests: 3, toolCalls: 2 }, traits })
    guarded.one('look', { at: 1 }, 'saw')
    guarded.one('write', { at: 1 }, 'wrote')
    expect(guarded.limits).toHaveLength(4)
    for (const text of guarded.limits) expect(text).toContain('final_result')
    const never = new Guarded({ limits: { modelRequests: 1, toolCalls: 0 }, traits })
    for (const text of never.limits) expect(text).toContain('final_result')
  })

  it('B-NOTICE-5: a notice is told once in a run: not again after an approval, a failed request or a restart (AC-5)', () => {
    const guarded = new Guarded({ limits: { toolCalls: 2 } })
    guarded.one('look', { at: 1 }, 'saw')
    expect(guarded.limits).toHaveLength(1)
    guarded.log.owner({ type: 'model.failed', class: 'server', message: 'overloaded', retryable: true })
    guarded.settle()
    guarded.restart()
    const seq = guarded.log.reply([ask('send')])
    expect(guarded.settle()).toMatchObject({ type: 'rest', waiting: 'approval' })
    guarded.restart()
    const decision = { type: 'user.tool_confirmation', call: `${seq}.0`, digest: 'digest-send', by: 'ann' } as const
    guarded.log.inbox({ ...decision, id: 'no', allow: false })
    guarded.settle()
    expect(guarded.limits.filter((text) => text.includes('One tool call'))).toHaveLength(1)
    expect(guarded.limits).toHaveLength(2)
  })

  it('B-NOTICE-6: a new run has limits and notices of its own', () => {
    const guarded = new Guarded({ limits: { modelRequests: 1 } })
    guarded.log.reply()
    guarded.settle()
    guarded.log.say('again')
    guarded.log.begin({ modelRequests: 1 })
    guarded.settle()
    expect(guarded.limits).toHaveLength(2)
  })

  it('B-NOTICE-7: a batch over the limit of calls gets no notice and no further request (AC-4)', () => {
    const guarded = new Guarded({ limits: { toolCalls: 3 } })
    guarded.log.reply([call('a'), call('b'), call('c'), call('d')])
    guarded.settle()
    expect(guarded.notes).toEqual([])
    expect(guarded.log.session.last).toEqual({ type: 'limit', limit: 'tool_calls' })
  })

  it('B-NOTICE-8: a notice alone ends nothing: a run that answers in time has completed (AC-6)', () => {
    const guarded = new Guarded({ limits: { modelRequests: 1, toolCalls: 0 } })
    expect(guarded.limits).toHaveLength(2)
    guarded.log.reply()
    guarded.settle()
    expect(guarded.log.session.last).toEqual({ type: 'completed' })
  })

  it('B-NOTICE-9: with three requests or more the last has no tools and the one before only those that write; the model is told (S2-19, TRAP-9)', () => {
    const traits = { writers: new Set(['write', 'edit']) }
    const guarded = new Guarded({ limits: { modelRequests: 4 }, traits })
    const allowed = () =>
      guarded.log.events.map((event) => (event.type === 'model.started' ? (event.allow ?? 'all') : null))
    for (let at = 0; at < 3; at++) guarded.one('look', { at }, `saw ${at}`)
    expect(allowed().filter(Boolean)).toEqual(['all', 'all', 'writers', 'none'])
    expect(guarded.limits).toEqual([
      expect.stringMatching(/^Two model requests are left.*withdrawn: edit, write\. Write what must be written now/),
      expect.stringMatching(/^This is the last model request.*The tools are withdrawn\. Give your final answer now/),
    ])
  })

  it('B-NOTICE-10: without tools that write only the last request is without tools, and under three requests none is (S2-19)', () => {
    const plain = new Guarded({ limits: { modelRequests: 3 } })
    const { session } = plain.log
    expect(plain.guard.allow(session, plain.traits)).toBe('all')
    plain.one('look', { at: 1 }, 'saw')
    expect(plain.guard.allow(plain.log.session, plain.traits)).toBe('all')
    expect(plain.limits).toEqual([])
    plain.one('look', { at: 2 }, 'saw more')
    expect(plain.guard.allow(plain.log.session, plain.traits)).toBe('none')
    const few = new Guarded({ limits: { modelRequests: 2 }, traits: { writers: new Set(['write']) } })
    expect(few.guard.allow(few.log.session, few.traits)).toBe('all')
    few.one('look', { at: 1 }, 'saw')
    expect(few.guard.allow(few.log.session, few.traits)).toBe('all')
    expect(few.limits).toEqual([expect.not.stringContaining('withdrawn')])
  })

  it('B-NOTICE-11: tokens of a run are counted, announced once over 80 % and end it at the limit', () => {
    const guarded = new Guarded({ limits: { tokens: 100 } })
    used(guarded, { inputTokens: 50, outputTokens: 30 })
    expect(guarded.limits).toEqual([])
    used(guarded, { inputTokens: 1, outputTokens: 0 })
    used(guarded, { inputTokens: 0, outputTokens: 1 })
    expect(guarded.limits).toEqual([expect.stringContaining('80 % of the 100 tokens')])
    used(guarded, { inputTokens: 10, outputTokens: 8 })
    expect(guarded.log.session.last).toEqual({ type: 'limit', limit: 'tokens' })
    guarded.log.say('more')
    guarded.log.begin({ tokens: 100 })
    expect(guarded.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'call' }] })
    const none = new Guarded({ limits: { tokens: 0 } })
    expect(none.log.types()).not.toContain('model.started')
  })

  it('B-NOTICE-12: a limit reached after a provider failed is that limit, not the failure (TRAP-12)', () => {
    const guarded = new Guarded({ limits: { tokens: 10 } })
    guarded.log.owner({ type: 'model.failed', class: 'server', message: 'overloaded', retryable: true })
    guarded.settle()
    used(guarded, { inputTokens: 10, outputTokens: 0 })
    expect(guarded.log.session.last).toEqual({ type: 'limit', limit: 'tokens' })
  })

  it('B-NOTICE-13: a notice that reads otherwise in the log, because it looks like a secret, is not told again', () => {
    const guarded = new Guarded({ limits: { modelRequests: 2, toolCalls: 2 } })
    guarded.redact = (text) => text.replaceAll('run', '⟦secret:X⟧')
    guarded.one('look', { at: 1 }, 'saw')
    expect(guarded.notes).toHaveLength(2)
    expect(guarded.log.session.run?.model).not.toBeNull()
  })

  it('B-NOTICE-14: a limit is told after a nudge; with no tools left there is no nudge', () => {
    const guarded = new Guarded({ limits: { modelRequests: 4, toolCalls: 3 } })
    guarded.one('read', { path: 'a' }, failed('no such file'))
    guarded.one('read', { path: 'a' }, failed('no such file'))
    expect(guarded.notes.map(({ kind }) => kind)).toEqual(['nudge', 'limit'])
    const last = new Guarded({ limits: { modelRequests: 3 } })
    last.one('read', { path: 'a' }, failed('no such file'))
    last.one('read', { path: 'a' }, failed('no such file'))
    expect(last.notes.map(({ kind }) => kind)).toEqual(['limit'])
  })
  it('B-NOTICE-15: what was said and did not reach the log is said again, in the same words', () => {
    const guarded = new Guarded({ limits: { modelRequests: 3 } })
    guarded.one('look', { at: 1 }, 'saw')
    const { session } = guarded.log
    const told = { ...session, run: session.run && { ...session.run, requests: 2 } }
    const first = guarded.guard.beforeRequest(told, guarded.traits, ENDLESS)
    expect(first).toMatchObject({ type: 'note', kind: 'limit' })
    expect(guarded.guard.beforeRequest(told, guarded.traits, ENDLESS)).toEqual(first)
    guarded.restart()
    expect(guarded.guard.beforeRequest(told, guarded.traits, ENDLESS)).toEqual(first)
  })
})
