// The part of a log that a page has in memory, over a real server: where it can be moved, what it follows, and that the session at any
// event is that of the server. In the pages it is used with pages of 1,000 events; here they are small.
import { describe, expect, it } from 'vitest'
import type { Event, Session } from '../../src/kernel/index.ts'
import type { EventsAnswer, StateAnswer } from '../../src/server/wire.ts'
import { LogWindow, type LogSource } from '../../src/web/data/log-window.ts'
import { LiveReplyBuilder } from '../../src/web/data/live-reply.ts'
import { until } from '../until.ts'
import { type SessionServer, sessionServer } from './session-server.ts'

function sourceOf(one: SessionServer, id: string): LogSource & { asked: number } {
  const path = `/v1/sessions/${encodeURIComponent(id)}`
  return {
    asked: 0,
    events(query) {
      this.asked += 1
      const params = new URLSearchParams(
        Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
      )
      return one.json<EventsAnswer>('GET', `${path}/events?${params.toString()}`)
    },
    state: (at) => one.json<StateAnswer>('GET', `${path}/state?at=${at}`),
  }
}

const plain = (session: Session | null): unknown => JSON.parse(JSON.stringify(session)) as unknown
const seqs = (log: LogWindow): readonly number[] => log.view.events.map(({ seq }) => seq)
const from = (first: number, last: number): readonly number[] =>
  Array.from({ length: last - first + 1 }, (_, i) => first + i)

/** The same numbers in every run. */
function dice(seed: number): (most: number) => number {
  let state = seed
  return (most) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * (most + 1))
  }
}

describe('the log in memory', () => {
  it('B-WEB-34: the session at any event, folded in the page, is the one that the server folds, wherever the part in memory begins', async () => {
    const one = await sessionServer()
    const ids = await Promise.all([
      one.open('Count 12'),
      one.open('Publish the news.'),
      one.open('Fail please'),
      one.open('Delegate it'),
      one.open({ topic: 'Oslo' }, 'report'),
    ])
    await one.allows(ids[1])
    const roll = dice(7)
    for (const id of ids) {
      const { head } = await one.rests(id)
      const log = new LogWindow(sourceOf(one, id), { head }, { page: 6, kept: 14 })
      await log.openAt(null)
      for (let i = 0; i < 12; i++) {
        const seq = 1 + roll(head - 1)
        const moved = roll(5)
        if (moved === 0) await log.older()
        else if (moved === 1) await log.newer()
        else await log.openAt(seq)
        const at = log.first - 1 + roll(log.last - log.first + 1)
        const { session } = await one.json<StateAnswer>('GET', `/v1/sessions/${id}/state?at=${at}`)
        expect([id, at, plain(log.stateAt(at))]).toEqual([id, at, session])
      }
    }
  })

  it('B-WEB-32: a log opens at its end, reaches every event, and has no more in memory than it may', async () => {
    const one = await sessionServer()
    const id = await one.open('Count 20')
    const { head } = await one.rests(id)
    const log = new LogWindow(sourceOf(one, id), { head }, { page: 10, kept: 30 })
    await log.openAt(null)
    expect(seqs(log)).toEqual(from(head - 9, head))
    expect(log.view).toMatchObject({ atEnd: true, cut: true, head })
    while (log.first > 1) {
      await log.older()
      expect(log.view.events.length).toBeLessThanOrEqual(30)
      expect(seqs(log)).toEqual(from(log.first, log.last))
    }
    expect(log.view).toMatchObject({ atEnd: false, cut: false })
    while (log.last < head) await log.newer()
    expect(log.view.events.length).toBeLessThanOrEqual(30)
    expect(log.view).toMatchObject({ atEnd: true, cut: true })
    for (const at of [1, Math.floor(head / 2), head]) {
      await log.openAt(at)
      expect(log.has(at)).toBe(true)
      expect(seqs(log)).toEqual(from(log.first, log.last))
    }
  })

  it('B-WEB-33: at its end it grows with the log; elsewhere new events only move the end', async () => {
    const one = await sessionServer()
    const id = await one.open('Count 8')
    const { head } = await one.rests(id)
    const { events } = await one.host.store.read(id, 0)
    let known = 20
    const source: LogSource = {
      events: async ({ after, before = 21, limit }) => {
        const start = after ?? Math.max(0, before - 1 - limit)
        const end = Math.min(known, after === undefined ? before - 1 : after + limit)
        return { events: events.slice(start, end), head: known }
      },
      state: (at) => one.json<StateAnswer>('GET', `/v1/sessions/${id}/state?at=${at}`),
    }
    const log = new LogWindow(source, { head: 20 }, { page: 5, kept: 100 })
    await log.openAt(null)
    log.take(events.slice(20, 22))
    // Told again, and one of them missing: nothing is doubled, and nothing is left out.
    log.take(events.slice(20, 23))
    known = 25
    log.take(events.slice(24, 25))
    await until(() => expect(seqs(log)).toEqual(from(16, 25)))
    await log.openAt(3)
    log.take(events.slice(25))
    await until(() => expect(log.view).toMatchObject({ head, atEnd: false }))
    expect(log.last).toBeLessThan(10)
    expect(plain(log.stateAt(4))).toEqual((await source.state(4)).session)
  })

  it('B-WEB-33: who asks for another place while one is read gets the last one only, and a failure can be tried again', async () => {
    const one = await sessionServer()
    const id = await one.open('Count 8')
    const { head } = await one.rests(id)
    const source = sourceOf(one, id)
    const log = new LogWindow(source, { head }, { page: 4, kept: 100 })
    await Promise.all([log.openAt(3), log.openAt(20), log.openAt(10)])
    expect(log.has(10)).toBe(true)
    expect(log.view.opened).toBe(1)
    const before = source.asked
    await Promise.all([log.older(), log.older(), log.older()])
    expect(source.asked).toBe(before + 1)
    // What was asked for beside a place that is being opened must not be joined to it.
    await Promise.all([log.openAt(30), log.older(), log.newer(), log.openAt(2), log.older()])
    expect(log.has(2)).toBe(true)
    expect(seqs(log)).toEqual(from(log.first, log.last))
    await log.openAt(10)
    const events = source.events.bind(source)
    source.events = () => Promise.reject(new Error('away'))
    await log.openAt(2)
    expect([log.view.error, log.has(10)]).toEqual([new Error('away'), true])
    source.events = events
    await log.openAt(2)
    expect([log.view.error, log.has(2)]).toEqual([null, true])
  })
})

describe('what is being said', () => {
  const delta = (seq: number, offset: number, text: string, kind = 'text', part = 0) => ({
    seq,
    part,
    offset,
    kind,
    text,
  })
  const reply = (seq: number) => ({ seq, type: 'agent.message' }) as Event

  it('B-WEB-36: pieces that are told again or late change nothing, and what is in an event is no longer being said', async () => {
    const saying = new LiveReplyBuilder()
    const texts = () => saying.said.parts.map(({ text }) => text)
    saying.hear(delta(4, 0, 'The page'))
    saying.hear(delta(4, 8, ' is'))
    saying.hear(delta(4, 0, 'The page is re'))
    saying.hear(delta(4, 30, 'lost'))
    await until(() => expect(texts()).toEqual(['The page is re']))
    saying.take([reply(5)])
    saying.flush()
    expect(texts()).toEqual([])
    saying.hear(delta(4, 14, 'ady'))
    saying.hear(delta(7, 0, 'Next'))
    await until(() => expect(texts()).toEqual(['Next']))
    saying.take([{ seq: 8, type: 'model.failed' } as Event])
    saying.flush()
    expect(texts()).toEqual([])
  })

  it('B-WEB-36: what a call prints is shown until its result is there', async () => {
    const saying = new LiveReplyBuilder()
    saying.hear(delta(5, 0, 'one\n', 'output', 1))
    saying.hear(delta(5, 4, 'two\n', 'output', 1))
    await until(() => expect(saying.said.outputs.get('5.1')).toBe('one\ntwo\n'))
    saying.take([{ seq: 9, type: 'agent.tool_result', call: '5.1' } as Event])
    saying.flush()
    saying.hear(delta(5, 8, 'late', 'output', 1))
    await until(() => expect(saying.said.outputs.size).toBe(0))
  })
})
