// Where a kill fell is judged from evidence; here from evidence made by hand, so that each answer is known beforehand.
import { beforeEach, describe, expect, it } from 'vitest'
import type { OwnerBody, OwnerEvent } from '../../src/kernel/event.ts'
import { fold } from '../../src/kernel/fold.ts'
import { DEFAULT_LIMITS } from '../../src/kernel/limits.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import { EMPTY } from '../../src/kernel/session.ts'
import { memory } from '../../src/stores/memory/memory-store.ts'
import { digestOf, type MarkLine, type OracleLine, placesIn } from './evidence.ts'
import { creation, message, ownerWrite } from './stage.ts'
import { Child } from './process.ts'
import { Strikes } from './strike.ts'

const claim: MarkLine = { type: 'claim', session: 's', epoch: 1, at: 0 }
const request: OwnerBody = { type: 'model.started', shows: [2] }
const begun: readonly OwnerBody[] = [
  { type: 'run.started', inputs: [2], wakes: [], limits: DEFAULT_LIMITS, toolset: '', instructions: '' },
  request,
]
const proposal = { id: 'x', tool: 'pay', args: {}, effect: 'once', timeoutMs: 1_000 } as const
const verdict = { type: 'continue' } as const
const intended: readonly OwnerBody[] = [
  { type: 'agent.message', parts: [], calls: [proposal], verdict },
  { type: 'agent.tool_use', call: '5.0' },
]
const answered: readonly OwnerBody[] = [
  { type: 'agent.tool_result', call: '5.0', status: 'ok', content: 'paid' },
  { ...request, shows: [7] },
]

const settled: readonly OwnerBody[] = [
  { type: 'agent.message', parts: [], calls: [], verdict: { type: 'final' } },
  { type: 'run.settled', outcome: { type: 'completed' } },
]

let store: CompleteStore
let strikes: Strikes

beforeEach(async () => {
  store = memory()
  strikes = new Strikes()
  await store.commit([creation('s', store.now())])
})

describe('a kill', () => {
  it('B-CRASH-6: is counted before intent while no intent of the turn is on disk', async () => {
    await attempt(begun)
    await strikes.judge(store, [claim], [])
    expect(strikes.struck).toMatchObject({ kills: { before: 1, between: 0, after: 0, commit: 0 }, idle: 0 })
  })

  it('B-CRASH-6: is counted before intent when the session was only claimed', async () => {
    await attempt([])
    await strikes.judge(store, [claim], [])
    expect(strikes.struck.kills).toEqual({ before: 1, between: 0, after: 0, commit: 0 })
  })

  it('B-CRASH-6: is counted between intent and result, and the oracle says how far the effect had come', async () => {
    await attempt([...begun, ...intended])
    const effect = { key: 's:5.0', effect: 'once', pid: 1 } as const
    const start: OracleLine = { ...effect, phase: 'start' }
    for (const oracle of [[], [start], [start, { ...effect, phase: 'end' } as const]]) {
      await strikes.judge(store, [claim], oracle)
    }
    expect(strikes.struck.kills).toEqual({ before: 0, between: 3, after: 0, commit: 0 })
    expect(strikes.struck.effects).toEqual({ not: 1, begun: 1, ended: 1 })
  })

  it('B-CRASH-6: is counted after result when the next request is open', async () => {
    await attempt([...begun, ...intended, ...answered])
    await strikes.judge(store, [claim], [])
    expect(strikes.struck.kills).toEqual({ before: 0, between: 0, after: 1, commit: 0 })
  })

  it('B-CRASH-6: is counted during a commit that had not returned, on disk or not', async () => {
    const events = await attempt(begun)
    const writes = [{ session: 's', seq: 3, digests: events.map(digestOf) }]
    const never = [{ session: 's', seq: 5, digests: ['x'] }]
    await strikes.judge(
      store,
      [
        { type: 'begin', n: 1, writes },
        { type: 'begin', n: 2, writes: never },
      ],
      [],
    )
    expect(strikes.struck.kills.commit).toBe(1)
    expect(strikes.struck.commits).toEqual({ whole: 1, none: 1 })
    expect(strikes.wrong).toEqual([])
  })

  it('B-CRASH-6: is counted as idle when the worker drove nothing, or drove it to its rest', async () => {
    await strikes.judge(store, [], [])
    await attempt([...begun, ...settled])
    await strikes.judge(store, [claim], [])
    expect(strikes.struck.idle).toBe(2)
  })

  it('B-CRASH-1: that takes away what a worker was promised is found', async () => {
    const events = await attempt(begun)
    const there: MarkLine = { type: 'begin', n: 1, writes: [{ session: 's', seq: 3, digests: events.map(digestOf) }] }
    const gone: MarkLine = { type: 'begin', n: 2, writes: [{ session: 's', seq: 5, digests: ['x', 'y'] }] }
    const refused: MarkLine = { type: 'begin', n: 3, writes: [{ session: 's', seq: 5, digests: ['z'] }] }
    const ends: readonly MarkLine[] = [1, 2, 3].map((n) => ({ type: 'end', n, ok: n !== 3 }))
    await strikes.compare(store, [there, gone, refused, ...ends])
    expect(strikes).toMatchObject({ acknowledged: 4, lost: 2 })
    expect(strikes.wrong).toHaveLength(1)
  })
})

/** A message, and what a worker that claims the session writes after it. */
async function attempt(bodies: readonly OwnerBody[]): Promise<readonly OwnerEvent[]> {
  await store.commit([{ session: 's', lane: 'inbox', events: [message('c1', { turns: [] })] }])
  const { epoch } = (await store.claim('s', 'w', 60_000)) ?? { epoch: 0 }
  if (bodies.length === 0) return []
  const before = (await store.read('s', 0)).events.reduce(fold, EMPTY)
  const write = ownerWrite('s', before, { at: store.now(), epoch, bodies })
  await store.commit([write])
  return write.events
}

it('B-CRASH-9: what a worker leaves has a number that no other worker of the run has, also when its pid comes again', async () => {
  const children = [new Child('./nothing.js', []), new Child('./nothing.js', [])]
  await Promise.all(children.map(({ exited }) => exited))
  expect(new Set(children.map(({ serial }) => serial)).size).toBe(2)
  const places = placesIn('folder')
  expect(new Set(children.map(({ serial }) => places.marks(serial))).size).toBe(2)
})
