// Approval is state: bound to the action, single-use, in time, and the first decision stands.
import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/kernel/content.ts'
import { ask, asking, call, type Logbook } from './logbook.ts'

function decide(
  log: Logbook,
  callKey: string,
  allow: boolean,
  extra: { digest?: string; by?: string; role?: string; scope?: 'run'; under?: string; remember?: Json } = {},
): void {
  const id = `d${log.session.seq}`
  log.inbox({ type: 'user.tool_confirmation', id, call: callKey, digest: 'digest-risky', allow, by: 'ana', ...extra })
}

describe('approval', () => {
  it('B-APPROVE-1: an allowed call runs exactly as proposed; a denied one gets its result and never runs', () => {
    const yes = asking()
    const turn = yes.reply([ask('risky')])
    yes.settle()
    decide(yes, `${turn}.0`, true)
    expect(yes.settle()).toMatchObject({
      type: 'perform',
      effects: [{ type: 'run', call: { proposal: { tool: 'risky' } } }],
    })
    const no = asking()
    const other = no.reply([ask('risky')])
    no.settle()
    decide(no, `${other}.0`, false)
    no.settle()
    expect(no.types()).not.toContain('agent.tool_use')
    expect(no.events.at(-2)).toMatchObject({ type: 'agent.tool_result', status: 'denied' })
  })

  it('B-APPROVE-2: the first decision stands; a second click changes nothing (AC-113, S4-13)', () => {
    const log = asking()
    const turn = log.reply([ask('risky')])
    decide(log, `${turn}.0`, false)
    decide(log, `${turn}.0`, true, { by: 'bob' })
    log.settle()
    expect(log.types()).not.toContain('agent.tool_use')
  })

  it('B-APPROVE-3: a decision for another action, a settled call or an unknown call is inert', () => {
    const log = asking()
    const turn = log.reply([ask('risky')])
    decide(log, `${turn}.0`, true, { digest: 'of something else' })
    decide(log, '99.0', true)
    expect(log.settle()).toMatchObject({ type: 'rest', waiting: 'approval' })
    decide(log, `${turn}.0`, false)
    log.settle()
    const before = JSON.stringify({ ...log.session, seq: 0 })
    decide(log, `${turn}.0`, true)
    expect(JSON.stringify({ ...log.session, seq: 0 })).toBe(before)
  })

  it('B-APPROVE-4: a question expires: the rest says when, a late decision is stale, the call is denied', () => {
    const log = asking()
    const expiresAt = log.now + 100
    const turn = log.reply([ask('risky', { expiresAt })])
    expect(log.settle()).toEqual({ type: 'rest', waiting: 'approval', until: expiresAt + 1 })
    log.now = expiresAt + 1
    decide(log, `${turn}.0`, true)
    log.settle()
    expect(log.events.find((event) => event.type === 'agent.tool_result')).toMatchObject({ status: 'denied' })
  })

  it('B-KERNEL-22: a call that was approved in time and waits for its sibling has nothing left that could expire', () => {
    const log = asking()
    const expiresAt = log.now + 100
    const turn = log.reply([ask('risky', { expiresAt }), ask('other')])
    decide(log, `${turn}.0`, true)
    log.now = expiresAt + 1_000
    expect(log.settle()).toEqual({ type: 'rest', waiting: 'approval', until: null })
  })

  it('B-APPROVE-5: n of m approvers, by role: distinct people, and anyone who may decide can deny', () => {
    const log = asking()
    const turn = log.reply([ask('risky', { n: 2, roles: ['operator'] })])
    decide(log, `${turn}.0`, true, { by: 'ana', role: 'operator' })
    decide(log, `${turn}.0`, true, { by: 'ana', role: 'operator' })
    decide(log, `${turn}.0`, true, { by: 'eve', role: 'guest' })
    expect(log.settle()).toMatchObject({ type: 'rest', waiting: 'approval' })
    decide(log, `${turn}.0`, true, { by: 'bob', role: 'operator' })
    expect(log.settle()).toMatchObject({ type: 'perform', effects: [{ type: 'run' }] })
  })

  it('B-APPROVE-6: an outside call takes the first answer; a late or second one is evidence and nothing more (AC-113)', () => {
    const log = asking()
    const turn = log.reply([call('host', { gate: { type: 'outside' } })])
    expect(log.settle()).toMatchObject({ type: 'rest', waiting: 'answer' })
    const answer = { type: 'user.custom_tool_result', call: `${turn}.0`, ok: true } as const
    const first = log.inbox({ ...answer, id: 'a', content: 'first' })
    log.inbox({ ...answer, id: 'b', content: 'second' })
    log.settle()
    expect(log.events.filter((event) => event.type === 'agent.tool_result')).toMatchObject([
      { status: 'ok', from: first },
    ])
  })

  it('B-APPROVE-7: a message during an approval waits and is shown after the decision', () => {
    const log = asking()
    const turn = log.reply([ask('risky')])
    log.settle()
    const seq = log.say('by the way')
    expect(log.settle()).toMatchObject({ type: 'rest', waiting: 'approval' })
    decide(log, `${turn}.0`, false)
    log.settle()
    expect(log.events.at(-1)).toMatchObject({ type: 'model.started', shows: [expect.any(Number), seq] })
  })

  it('B-CLI-170: a yes is for one call; one for the run covers later calls until anything is denied', () => {
    const log = asking()
    const rule = { effect: 'allow', tool: 'risky' }
    const gate = { class: 'risky', expiresAt: null }
    const calls = (...names: readonly string[]) => names.map((same) => ({ ...ask('risky', gate), same }))
    const turn = log.reply(calls('a', 'b', 'c', 'd'))
    const under = { by: 'terret', under: `${turn}.0` }
    decide(log, `${turn}.1`, true, under)
    expect(log.session.run?.turn?.open[1]?.state.type).toBe('asked')
    decide(log, `${turn}.0`, true, { scope: 'run', remember: rule })
    expect(log.session.run?.said?.yes).toEqual([{ call: `${turn}.0`, by: 'ana', rule, place: '' }])
    decide(log, `${turn}.1`, true, under)
    expect(log.session.run?.turn?.open[1]?.state.type).toBe('ready')
    decide(log, `${turn}.2`, false)
    decide(log, `${turn}.3`, true, under)
    expect(log.session.run?.turn?.open[3]?.state.type).toBe('asked')
    expect(log.session.run?.said).toEqual({ yes: [], denied: ['c'] })
  })

  it('B-CLI-171: a yes for the run given after a no does not cover the call that was denied', () => {
    const log = asking()
    const calls = ['x', 'y', 'x'].map((same) => ({ ...ask('risky'), same }))
    const turn = log.reply(calls)
    decide(log, `${turn}.0`, false)
    decide(log, `${turn}.1`, true, { scope: 'run', remember: { effect: 'allow' } })
    decide(log, `${turn}.2`, true, { by: 'terret', under: `${turn}.1` })
    expect(log.session.run?.turn?.open[2]?.state.type).toBe('asked')
    decide(log, `${turn}.2`, true)
    expect(log.session.run?.turn?.open[2]?.state.type).toBe('ready')
  })

  it('B-APPROVE-17: a yes for the run covers calls in the place it was given for, and none in another', () => {
    const log = asking()
    const calls = ['here', 'here', 'there'].map((place) => ({ ...ask('risky'), same: 'x', place }))
    const turn = log.reply(calls)
    decide(log, `${turn}.0`, true, { scope: 'run', remember: { effect: 'allow' } })
    for (const i of [1, 2]) decide(log, `${turn}.${i}`, true, { by: 'terret', under: `${turn}.0` })
    expect(log.session.run?.turn?.open.map(({ state }) => state.type)).toEqual(['ready', 'ready', 'asked'])
  })

  it('B-REVIEW-8: a yes for the run that was given in another store covers nothing after an import, and a no still counts', () => {
    const log = asking()
    const calls = ['a', 'b'].map((same) => ({ ...ask('risky'), same }))
    const turn = log.reply(calls)
    decide(log, `${turn}.0`, false)
    decide(log, `${turn}.1`, true, { scope: 'run', remember: { effect: 'allow' } })
    expect(log.session.run?.said?.yes).toHaveLength(1)
    log.owner({ type: 'session.imported', from: 'elsewhere' })
    expect(log.session.run?.said).toEqual({ yes: [], denied: ['a'] })
  })

  it('B-CLI-172: what is asked each time, by several people or by roles is covered by no yes, and gives none for the run', () => {
    for (const gate of [{ each: true as const }, { n: 2 }, { roles: ['lead'] }]) {
      const log = asking()
      const turn = log.reply([ask('risky'), ask('risky', gate)])
      const wide = { scope: 'run' as const, remember: { effect: 'allow' }, role: 'lead' }
      decide(log, `${turn}.1`, true, { ...wide, by: 'bob' })
      expect(log.session.run?.said).toBeUndefined()
      decide(log, `${turn}.0`, true, wide)
      const before = JSON.stringify(log.session.run?.turn?.open[1]?.state)
      decide(log, `${turn}.1`, true, { by: 'terret', under: `${turn}.0`, role: 'lead' })
      expect(JSON.stringify(log.session.run?.turn?.open[1]?.state)).toBe(before)
    }
  })
})
