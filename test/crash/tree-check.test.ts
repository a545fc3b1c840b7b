// The comparison of parents and children can fail: logs of a tree that nobody killed, changed by hand.
import { beforeAll, describe, expect, it } from 'vitest'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Event } from '../../src/kernel/event.ts'
import { Worker } from '../../src/runtime/loop/worker.ts'
import { memory } from '../../src/stores/memory/memory-store.ts'
import { until } from '../until.ts'
import { Appender, type OracleLine } from './evidence.ts'
import { creation, message, servicesOf } from './stage.ts'
import { checkTrees, type Logs } from './tree-check.ts'
import type { Plan } from './plan.ts'
import { agentOf } from './workload.ts'

const turn = (calls: Plan['turns'][number]['calls']) => ({ thinkMs: 0, flaky: false, calls })
const leaf: Plan = { turns: [turn([{ tool: 'put', ms: 0, bytes: 9 }])] }
const middle: Plan = { turns: [turn([{ order: 'many', tasks: [leaf, leaf] }])] }
const top: Plan = {
  turns: [
    turn([{ order: 'spawn', task: middle, blocking: false, key: null }]),
    turn([{ order: 'spawn', task: leaf, blocking: true, key: null }]),
    turn([{ order: 'wait', which: 0 }]),
  ],
}

describe('the comparison of parents and children', () => {
  let logs: Logs = new Map()

  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'terret-crash-'))
    const oracle = join(folder, 'oracle.jsonl')
    const store = memory()
    await store.commit([creation('s', store.now())])
    await store.commit([{ session: 's', lane: 'inbox', events: [message('c1', top)] }])
    const worker = new Worker(servicesOf(store, agentOf(new Appender<OracleLine>(oracle), oracle)), { id: 'w' })
    worker.start()
    await until(async () => {
      const cards = await store.list({ limit: 100 })
      expect(cards).toHaveLength(5)
      expect(cards.every(({ status, due }) => status === 'idle' && due === null)).toBe(true)
    })
    await worker.close()
    const cards = await store.list({ limit: 100 })
    logs = new Map(
      await Promise.all(cards.map(async ({ session }) => [session, (await store.read(session, 0)).events] as const)),
    )
    rmSync(folder, { recursive: true })
  }, 20_000)

  const changed = (session: string, change: (events: readonly Event[]) => readonly Event[]): Logs =>
    new Map([...logs].map(([id, events]) => [id, id === session ? change(events) : events]))
  const isReport = (event: Event): boolean => event.type === 'user.message' && event.report !== undefined

  it('finds nothing wrong where nothing is', () => {
    const report = checkTrees(logs)
    expect(report.wrong).toEqual([])
    expect(report).toMatchObject({ children: [2, 2], detached: 3, lost: 0, twice: 0 })
    expect(report.shown).toBe(report.reports)
    expect(report.reports).toBeGreaterThanOrEqual(4)
  })

  it('B-SPAWN-23: finds a child that was never made, one that nobody ordered, and one that was made twice', () => {
    const deepest = [...logs.keys()].at(-2) ?? ''
    const without = new Map([...logs].filter(([id]) => id !== deepest))
    expect(checkTrees(without).wrong).toContainEqual(expect.stringMatching(/ordered .*, which was never made/))
    const more = new Map([...logs, ['s~99.0', logs.get(deepest) ?? []]])
    expect(checkTrees(more).wrong).toContainEqual('s~99.0 was made, and nobody ordered it')
    const again = changed(deepest, (events) => [...events, ...events.slice(0, 2)])
    expect(checkTrees(again).wrong).toContainEqual(`${deepest} was made 2 times, with 2 tasks`)
  })

  it('B-SPAWN-23: finds a report that never came, came twice, was never shown, or was shown twice', () => {
    const lost = checkTrees(changed('s', (events) => events.filter((event) => !isReport(event))))
    expect(lost.lost).toBeGreaterThan(0)
    expect(lost.wrong).toContainEqual(expect.stringMatching(/^lost: .* never came to s$/))
    const twice = checkTrees(changed('s', (events) => [...events, ...events.filter(isReport)]))
    expect(twice.twice).toBeGreaterThan(0)
    const hidden = changed('s', (events) =>
      events.map((event) => (event.type === 'model.started' ? { ...event, shows: [] } : event)),
    )
    expect(checkTrees(hidden).wrong).toContainEqual(expect.stringMatching(/^lost: .* was never shown to s$/))
    const reports = (logs.get('s') ?? []).filter(isReport).map(({ seq }) => seq)
    const reshown = changed('s', (events) =>
      events.map((event) => (event.type === 'model.started' ? { ...event, shows: reports } : event)),
    )
    expect(checkTrees(reshown).wrong).toContainEqual(expect.stringMatching(/^twice: .* was shown \d+ times to s$/))
  })

  it('B-SPAWN-23: finds a child that worked on after its parent was stopped, and one that did more after it was told', () => {
    const child = [...logs.keys()][1] ?? ''
    const late = (event: Event): Event => (event.type === 'run.settled' ? { ...event, at: event.at + 10_000 } : event)
    const stopped = changed('s', (events) =>
      events.map((event) =>
        event.type === 'run.settled' ? { ...event, at: event.at + 5_000, outcome: { type: 'interrupted' } } : event,
      ),
    )
    const worked = new Map([...stopped].map(([id, events]) => [id, id === child ? events.map(late) : events]))
    expect(checkTrees(worked).wrong).toContainEqual(expect.stringMatching(/worked on after s was stopped/))
    const told = new Map(
      [...worked].map(([id, events]) => [
        id,
        id !== child
          ? events
          : events.flatMap((event): readonly Event[] =>
              event.type === 'run.started'
                ? [
                    event,
                    { ...event, type: 'user.interrupt', id: 'terret:parent:stop:9', mode: 'stop' } as unknown as Event,
                  ]
                : [event],
            ),
      ]),
    )
    expect(checkTrees(told).wrong).toContainEqual(expect.stringMatching(/was told to stop at event \d+, and did/))
  })

  it('B-SPAWN-23: one that is closed while it rests stops those below when it is closed, and not when it is told', () => {
    const child = [...logs.keys()][1] ?? ''
    const last = (logs.get('s') ?? []).at(-1) as Event
    const word = { type: 'user.interrupt', id: 'terret:parent:close:9', mode: 'stop', closes: true }
    const closed = changed('s', (events) => [
      ...events,
      { ...word, seq: last.seq + 1, at: last.at + 5_000, epoch: 0 } as Event,
      { type: 'session.closed', seq: last.seq + 2, at: last.at + 9_000, epoch: last.epoch },
    ])
    const endsAfter = (ms: number) =>
      new Map(
        [...closed].map(([id, events]) => [
          id,
          id !== child
            ? events
            : events.map((event) => (event.type === 'run.settled' ? { ...event, at: last.at + ms } : event)),
        ]),
      )
    expect(checkTrees(endsAfter(7_000)).wrong.filter((text) => text.includes('worked on'))).toEqual([])
    expect(checkTrees(endsAfter(20_000)).wrong).toContainEqual(expect.stringMatching(/worked on after s was stopped/))
  })
})
