// Folding: old logs keep their meaning, unknown events are inert, and a snapshot is only a cache.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Event, InboxBody } from '../../src/kernel/event.ts'
import { Bug } from '../../src/kernel/failure.ts'
import { fold, open, take } from '../../src/kernel/fold.ts'
import { EMPTY, type Session } from '../../src/kernel/session.ts'
import { Transcript } from '../../src/kernel/transcript.ts'
import { upcast } from '../../src/stores/plan/upcast.ts'
import { ask, asking, call, Logbook } from './logbook.ts'

const golden = join(import.meta.dirname, '..', 'golden')
const logs = readdirSync(golden).filter((name) => name.endsWith('.jsonl'))

function readLog(name: string): readonly Event[] {
  const lines = readFileSync(join(golden, name), 'utf8').trim().split('\n')
  return lines.map((line) => upcast(JSON.parse(line) as Event))
}

describe('golden logs', () => {
  it.each(logs)('B-FOLD-1: %s still folds to the same session after every event, and to the same messages', (name) => {
    const events = readLog(name)
    const sessions = readFileSync(join(golden, name.replace('.jsonl', '.sessions.json')), 'utf8')
    const messages = readFileSync(join(golden, name.replace('.jsonl', '.messages.json')), 'utf8')
    let session: Session = EMPTY
    const folded = events.map((event) => {
      session = fold(session, event)
      return session
    })
    expect(folded).toEqual(JSON.parse(sessions))
    const transcript = new Transcript()
    for (const event of events) transcript.take(event)
    expect(transcript.messages).toEqual(JSON.parse(messages))
  })

  it('B-FOLD-2: a snapshot at any event plus the tail gives the same session: deleting it changes nothing', () => {
    for (const name of logs) {
      const events = readLog(name)
      const whole = JSON.stringify(events.reduce(fold, EMPTY))
      for (let cut = 0; cut <= events.length; cut++) {
        const snapshot = JSON.parse(JSON.stringify(events.slice(0, cut).reduce(fold, EMPTY))) as Session
        expect(JSON.stringify(events.slice(cut).reduce(fold, snapshot))).toBe(whole)
      }
    }
  })
})

describe('fold', () => {
  it('B-FOLD-3: an event of an unknown type is kept and inert', () => {
    const log = asking()
    const strange = { seq: log.session.seq + 1, at: log.now, epoch: 1, type: 'agent.dreamed', text: 'sheep' }
    const after = fold(log.session, strange as unknown as Event)
    expect({ ...after, seq: 0 }).toEqual({ ...log.session, seq: 0 })
  })

  it('B-FOLD-4: fold changes nothing of the session it was given', () => {
    const events = readLog(logs[0] ?? '')
    let session: Session = EMPTY
    for (const event of events) {
      const before = JSON.stringify(session)
      const after = fold(session, event)
      expect(JSON.stringify(session)).toBe(before)
      session = after
    }
  })

  it('B-FOLD-5: a gap, a second result or a result for no call is a Bug, and the log stays as it was', () => {
    const log = asking()
    const turn = log.reply([call('a')])
    log.settle()
    expect(() => fold(log.session, { seq: 99, at: 0, epoch: 1, type: 'session.closed' })).toThrow(Bug)
    log.result(`${turn}.0`)
    expect(() => log.result(`${turn}.0`)).toThrow(Bug)
    expect(() => log.result('1.5')).toThrow(Bug)
  })

  it('B-FOLD-6: the session stays bounded: after a thousand turns it holds no more than after one (TRAP-20)', () => {
    const log = asking({ modelRequests: 5_000 })
    const sizes: number[] = []
    for (let i = 0; i < 1_000; i++) {
      const turn = log.reply([call('a')])
      log.settle()
      log.result(`${turn}.0`)
      log.settle()
      sizes.push(JSON.stringify(log.session).length)
    }
    expect(sizes.at(-1)).toBeLessThan((sizes[0] ?? 0) + 40)
  })

  it('B-FOLD-8: a session works where it was created, and after an import where that says, or nowhere', () => {
    const created = { seq: 1, at: 1, epoch: 0, type: 'session.created', agent: 'a', planner: 'model' } as const
    const arrived = { seq: 2, at: 2, epoch: 0, type: 'session.imported', from: 's' } as const
    const folded = (...events: readonly Event[]): Session => events.reduce(fold, EMPTY)
    const there = { ...created, folder: '/there' }
    expect(folded(there).folder).toBe('/there')
    expect(folded(there, arrived)).not.toHaveProperty('folder')
    expect(folded(there, { ...arrived, folder: '/here' }).folder).toBe('/here')
    expect(folded(created, { ...arrived, folder: '/here' }).folder).toBe('/here')
  })

  it('B-FOLD-9: a transcript says that it has files when a reply of the model brought one', () => {
    const file = { type: 'blob', hash: 'h'.repeat(64), bytes: 9, media: 'image/png' } as const
    const parts = [[{ type: 'text', text: 'A picture.' }], [{ type: 'text', text: 'Here.' }, file]] as const
    const shown = parts.map((each) => {
      const transcript = new Transcript()
      const reply = { type: 'agent.message', parts: each, calls: [], verdict: { type: 'final' } } as const
      transcript.take({ seq: 1, at: 1, epoch: 0, type: 'session.created', agent: 'a', planner: 'model' })
      transcript.take({ seq: 2, at: 1, epoch: 1, ...reply })
      return transcript.hasBlobs
    })
    expect(shown).toEqual([false, true])
  })

  it('B-FOLD-7: inbox events in any order and number never break a log (rule 3)', () => {
    const bodies: fc.Arbitrary<InboxBody> = fc.oneof(
      fc.record({
        type: fc.constant('user.message' as const),
        id: fc.string({ minLength: 1 }),
        parts: fc.constant([]),
        when: fc.constantFrom('next', 'after', 'now'),
      }),
      fc.record({
        type: fc.constant('user.tool_confirmation' as const),
        id: fc.string({ minLength: 1 }),
        call: fc.constantFrom('5.0', '5.1', '9.9', ''),
        digest: fc.constantFrom('digest-b', 'x'),
        allow: fc.boolean(),
        by: fc.constantFrom('ana', 'bob'),
      }),
      fc.record({
        type: fc.constant('user.custom_tool_result' as const),
        id: fc.string({ minLength: 1 }),
        call: fc.constantFrom('5.0', '5.2', '__proto__'),
        ok: fc.boolean(),
        content: fc.string(),
      }),
      fc.record({
        type: fc.constant('user.interrupt' as const),
        id: fc.string({ minLength: 1 }),
        mode: fc.constantFrom('stop', 'pause'),
      }),
      fc.record({
        type: fc.constant('user.schedule' as const),
        id: fc.string({ minLength: 1 }),
        due: fc.nat(),
        reason: fc.string(),
        key: fc.constantFrom('a', '__proto__'),
      }),
      fc.record({
        type: fc.constant('user.unschedule' as const),
        id: fc.string({ minLength: 1 }),
        key: fc.constantFrom('a', '__proto__'),
      }),
      fc.record({
        type: fc.constant('user.rename' as const),
        id: fc.string({ minLength: 1 }),
        title: fc.string(),
      }),
    )
    fc.assert(
      fc.property(fc.array(bodies, { maxLength: 20 }), fc.nat(3), (inbox, at) => {
        const log = at === 0 ? new Logbook() : asking()
        if (at > 1) log.reply([call('a'), ask('b'), call('c', { gate: { type: 'outside' } })])
        if (at > 2) log.settle()
        for (const body of inbox) log.inbox(body)
        log.next()
        const copy = open(log.session)
        take(copy, { seq: copy.seq + 1, at: copy.at, epoch: 0, type: 'user.interrupt', id: 'last', mode: 'stop' })
        expect(copy.seq).toBe(log.session.seq + 1)
      }),
    )
  })
})
