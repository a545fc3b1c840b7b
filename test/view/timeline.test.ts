// Rows and bars of a session, from logs written by hand. How they are drawn is for pages.
import { describe, expect, it } from 'vitest'
import { open, take } from '../../src/kernel/fold.ts'
import { EMPTY } from '../../src/kernel/session.ts'
import { jsonLine } from '../../src/view/untrusted-json.ts'
import { Timeline, timelineOf, type TimelineRow } from '../../src/view/timeline.ts'
import { barsOf, placeOn, scaleOf } from '../../src/view/waterfall.ts'
import type { Event } from '../../src/kernel/event.ts'
import { Tale } from '../tracing/tale.ts'

const MINUTE = 60_000
const call = (tool: string, gate?: object) =>
  ({ id: `${tool}-1`, tool, args: { q: 1 }, effect: 'once', timeoutMs: 1_000, ...gate }) as const
const ASK = { gate: { type: 'ask', class: 'write', n: 1, roles: [], expiresAt: null }, digest: 'x' } as const

/** A run whose worker was lost, that waited an hour for a person and then for a message. */
function told(): Tale {
  const tale = new Tale('s')
  const said = tale.say('hello')
  tale.begin([said])
  tale.ask([said])
  tale.epoch = 2
  tale.add({ type: 'model.failed', class: 'lost', message: 'The worker was lost.', retryable: true })
  tale.ask()
  const usage = { inputTokens: 1_000, outputTokens: 50, cachedTokens: 900 }
  const missed = { why: 'history', at: 3, tokens: 800, cost: 70 }
  const reply = tale.reply([call('search'), call('publish', ASK)], { usage, cost: 1_500, missed })
  tale.at += 60 * MINUTE
  tale.add({ type: 'user.tool_confirmation', id: 'd', call: `${reply}.1`, digest: 'x', allow: true, by: 'ana' })
  for (const i of [0, 1]) tale.use(`${reply}.${i}`)
  tale.ask()
  tale.at += 5 * MINUTE
  tale.reply([], { cost: 500 })
  tale.add({ type: 'run.settled', outcome: { type: 'completed' } })
  tale.at += 10 * MINUTE
  tale.say('more')
  return tale
}

describe('the timeline', () => {
  it('B-VIEW-10: one row for each request with its usage, cost and cache miss, its calls below it, and all else in the order of the log', () => {
    const rows = timelineOf(told().events)
    expect(rows.map(({ type }) => type)).toEqual(
      'begun message turn lost turn call call idle decision turn settled idle message'.split(' '),
    )
    const [first, second, third] = rows.filter((row) => row.type === 'turn')
    expect(first).toMatchObject({ n: 1, state: 'lost', seq: 4, endedAt: 1_040 })
    expect(second).toMatchObject({
      n: 2,
      state: 'replied',
      cost: 1_500,
      usage: { cachedTokens: 900 },
      calls: ['7.0', '7.1'],
      missed: { seq: 7, why: 'history', at: 3, tokens: 800, cost: 70 },
    })
    expect(third).toMatchObject({ n: 3, verdict: 'final', calls: [] })
    expect(rows.find((row) => row.type === 'settled')).toMatchObject({ cost: 2_000, startedAt: 1_020 })
  })

  it('B-VIEW-11: a call shows how it stands: proposed, asked, running, outside, or how it ended, and how often it was started', () => {
    const { events } = told()
    const rows = (upTo: number) => timelineOf(events.slice(0, upTo)).filter((row) => row.type === 'call')
    expect(rows(7).map(({ state, turn }) => [state, turn])).toEqual([
      ['proposed', 2],
      ['asked', 2],
    ])
    expect(rows(9)[0]).toMatchObject({ state: 'running', starts: 1, endedAt: null })
    expect(rows(10)[0]).toMatchObject({ state: 'ok', result: 10, endedAt: expect.any(Number) as number })
    const again = [...events.slice(0, 9), { ...(events[8] as Event), seq: 10, epoch: 3 }]
    expect(timelineOf(again).find((row) => row.type === 'call')).toMatchObject({ state: 'running', starts: 2 })
  })

  it('B-VIEW-12: a minute or more in which nothing worked is one row that says what was waited for; work that takes long is none', () => {
    const idle = timelineOf(told().events).filter((row) => row.type === 'idle')
    expect(idle.map(({ waits, at, endedAt }) => [waits, Math.round((endedAt - at) / MINUTE)])).toEqual([
      ['person', 60],
      ['input', 10],
    ])
  })

  it('B-VIEW-13: taken one by one, in parts or twice, events give the same rows; a row that did not change is the same object', () => {
    const { events } = told()
    const timeline = new Timeline()
    for (const event of events.slice(0, 8)) timeline.take(event)
    const before = [...timeline.rows]
    for (const event of events) timeline.take(event)
    expect(timeline.rows).toEqual(timelineOf(events))
    expect(timeline.rows.slice(0, 5).every((row, i) => row === before[i])).toBe(true)
  })

  it('B-VIEW-14: an event of a type that this version does not know is a row with its name', () => {
    const later = { seq: 2, at: 5, epoch: 1, type: 'session.renamed' } as unknown as Event
    const { events } = new Tale('s')
    expect(timelineOf([...events, later]).at(-1)).toEqual({ type: 'other', seq: 2, at: 5, name: 'session.renamed' })
  })
})

describe('the middle of a log', () => {
  it('B-VIEW-15: begun in the middle, with the session until there, it has rows of what is open, and all later rows as if it had begun at the first event', () => {
    const { events } = told()
    const whole = timelineOf(events)
    const session = open(EMPTY)
    for (const event of events) {
      take(session, event)
      const timeline = new Timeline(open(session))
      for (const later of events) timeline.take(later)
      const named = (rows: readonly TimelineRow[]) =>
        rows.map((row) => [row.type, row.seq, 'state' in row ? row.state : ''])
      const after = (row: TimelineRow): boolean => row.seq > event.seq
      expect(named(timeline.rows.filter(after))).toEqual(named(whole.filter(after)))
      const ended = timeline.rows.filter((row) => row.type === 'call' && row.state !== 'ok')
      expect([event.seq, ended]).toEqual([event.seq, []])
    }
    const asks = open(EMPTY)
    for (const event of events.slice(0, 7)) take(asks, event)
    expect(new Timeline(asks).rows.map((row) => row.type === 'call' && [row.tool, row.state])).toEqual([
      ['search', 'proposed'],
      ['publish', 'asked'],
    ])
  })

  it('B-VIEW-16: a value of any size is written on one line, up to a bound', () => {
    expect(jsonLine({ query: 'a "b"', list: [1, null, { deep: true }] }, 200)).toBe(
      '{query: "a \\"b\\"", list: [1, null, {deep: true}]}',
    )
    expect(jsonLine({ text: 'x'.repeat(10_000_000) }, 20)).toBe('{text: "xxxxxxxxxxxx…')
    expect(
      jsonLine(
        Array.from({ length: 100_000 }, (_, i) => i),
        10,
      ),
    ).toBe('[0, 1, 2, …')
  })
})

describe('the waterfall', () => {
  const { events } = told()
  const rows = timelineOf(events)
  const bars = barsOf(rows)

  it('B-VIEW-20: a bar for each run, request and call, with what it cost; what goes on has no end', () => {
    expect(bars.map(({ kind, name, state }) => [kind, name, state])).toEqual([
      ['run', 'run', 'completed'],
      ['model', 'model', 'lost'],
      ['model', 'anthropic:claude-test', 'replied'],
      ['call', 'search', 'ok'],
      ['call', 'publish', 'ok'],
      ['model', 'anthropic:claude-test', 'replied'],
    ])
    expect(bars[0]).toMatchObject({ cost: 2_000, startedAt: 1_020 })
    const open = barsOf(timelineOf(events.slice(0, 6)))
    expect(open.at(-1)).toMatchObject({ kind: 'model', endedAt: null })
  })

  it('B-VIEW-21: the scale folds an hour of waiting into a narrow stretch, covers all else, and never goes back', () => {
    const scale = scaleOf(bars, 0)
    expect(scale.stretches.map(({ folded }) => folded)).toEqual([false, true, false])
    expect(scale.stretches[1]?.width).toBeCloseTo(0.03)
    const last = scale.stretches.at(-1)
    expect((last?.x ?? 0) + (last?.width ?? 0)).toBeCloseTo(1)
    const moments = Array.from({ length: 400 }, (_, i) => scale.from + ((scale.to - scale.from) * i) / 399)
    const places = moments.map((at) => placeOn(scale, at))
    expect(places.every((place, i) => place >= (places[i - 1] ?? 0))).toBe(true)
    expect([places[0], places.at(-1)?.toFixed(6)]).toEqual([0, '1.000000'])
    expect(scaleOf([], 5)).toEqual({ from: 5, to: 5, stretches: [] })
  })
})
