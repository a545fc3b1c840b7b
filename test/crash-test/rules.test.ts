// The rules on runs that are made up: each can be broken, also those that Terret itself keeps, so that no agent can show it.
import { describe, expect, it } from 'vitest'
import type { Json } from '../../src/kernel/content.ts'
import type { Event } from '../../src/kernel/event.ts'
import { comparedRun, CRASH_RULES, type CrashRuleName } from '../../src/testing/crash-test/crash-rules.ts'
import { type CrashTrial, SESSION, whyNotWhole } from '../../src/testing/crash-test/notes.ts'

const reply = { type: 'agent.message', seq: 5, parts: [], calls: [{ tool: 'pay', args: {} }] }
const result = { type: 'agent.tool_result', seq: 6, call: '5.0', status: 'ok' }
const started = { type: 'run.started', seq: 3 }
const settled = { type: 'run.settled', seq: 7, outcome: { type: 'completed' } }
const began = { type: 'began', key: `${SESSION}:5.0`, tool: 'pay', effect: 'once' } as const

function trial(given: Partial<CrashTrial> & { readonly events?: readonly object[] } = {}): CrashTrial {
  const { events = [started, reply, result, settled], ...rest } = given
  return {
    point: { n: 9, name: 'after commit 4' },
    reached: true,
    notes: [],
    trouble: null,
    logs: { [SESSION]: events as unknown as readonly Event[] },
    world: { paid: 1 },
    ...rest,
  }
}

function checked(rule: CrashRuleName, run: CrashTrial, clean = trial()) {
  const found = CRASH_RULES.find((each) => each.rule === rule)
  return found?.check(comparedRun(run), comparedRun(clean))
}

const unknown = [started, reply, { ...result, status: 'unknown' }, settled]
const other = { world: { paid: 2 } }

const BROKEN: readonly (readonly [CrashRuleName, CrashTrial, string])[] = [
  ['T1', trial({ trouble: 'it hangs' }), 'it hangs'],
  ['T1', trial({ events: [started, settled, started] }), 'its last run is open'],
  ['T2', trial({ events: [started, reply, settled] }), `call ${SESSION}:5.0 has 0 results`],
  ['T2', trial({ events: [started, reply, result, result, settled] }), `call ${SESSION}:5.0 has 2 results`],
  ['T2', trial({ events: [started, result, settled] }), `call ${SESSION}:5.0 has a result, and no reply made it`],
  ['T3', trial({ notes: [began, began] }), `pay (${SESSION}:5.0) began 2 times`],
  ['T4', trial(other), 'the world differs: paid was 1 and is 2'],
  [
    'T5',
    trial({ ...other, notes: [began, began].map((note) => ({ ...note, effect: 'idempotent' })) }),
    `after ${SESSION}:5.0 ran again the world differs: paid was 1 and is 2`,
  ],
  [
    'T8',
    trial({ events: [started, reply, result, { ...settled, outcome: { type: 'interrupted' } }] }),
    'the run ends otherwise: runs[0].outcome.type was "completed" and is "interrupted"',
  ],
  [
    'T9',
    trial({ notes: [{ type: 'request', session: SESSION, wrong: 'call 5.0 has no result' }] }),
    'call 5.0 has no result',
  ],
]

describe('the rules of a crash test', () => {
  it.each(BROKEN)('B-CRASHTEST-3: %s is broken by a run that breaks it, and says how', (rule, run, why) => {
    expect(checked(rule, run)?.wrong).toEqual([why])
    expect(checked(rule, trial())?.wrong).toEqual([])
  })

  it('B-CRASHTEST-3: a run with a call whose outcome is unknown, or that did not settle, is not compared', () => {
    for (const rule of ['T4', 'T8'] as const) {
      expect(checked(rule, trial({ ...other, events: unknown }))).toEqual({ cases: 0, wrong: [] })
      expect(checked(rule, trial({ ...other, trouble: 'it hangs' }))).toEqual({ cases: 0, wrong: [] })
    }
  })

  it('B-CRASHTEST-4: a rule without a case has no case', () => {
    const cases = CRASH_RULES.map(({ rule }) => [rule, checked(rule, trial())?.cases])
    expect(Object.fromEntries(cases)).toEqual({ T1: 1, T2: 1, T3: 0, T4: 1, T5: 0, T6: 0, T7: 0, T8: 1, T9: 0 })
  })

  it('B-CRASHTEST-3: a request is whole if each call has its one result before the next reply', () => {
    const call = { role: 'assistant', seq: 5, parts: [], calls: [{ key: '5.0', id: 'a', tool: 'pay', args: {} }] }
    const answer = { role: 'tool', seq: 6, call: '5.0', id: 'a', tool: 'pay', ok: true, content: '' }
    const why = (...messages: readonly object[]) => whyNotWhole(messages as Parameters<typeof whyNotWhole>[0])
    const text = { role: 'assistant', seq: 8, parts: [], calls: [] satisfies Json[] }
    expect(why(call, answer, text)).toBeNull()
    expect(why(call)).toBe('call 5.0 has no result')
    expect(why(call, text, answer)).toBe('call 5.0 has no result before the next reply')
    expect(why(call, answer, answer)).toBe('the result of call 5.0 has no call, or is there twice')
  })
})
