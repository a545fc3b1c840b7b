// Pages of sessions through a harness, and sessions as they were after any event.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { stateAt } from '../../src/runtime/state/session-at.ts'
import {
  defineTool,
  Harness,
  memory,
  type Page,
  type ListOptions,
  scripted,
  type CompleteStore,
} from '../../src/index.ts'
import { fold } from '../../src/kernel/fold.ts'
import { EMPTY, FOLD_VERSION } from '../../src/kernel/session.ts'
import { exportSession, importSession } from '../../src/archive/portable.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { outcome } from '../contract/fixture.ts'

function file(): CompleteStore {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'terret-paging-'))
  const store = sqlite(join(folder, 'terret.db'))
  onTestFinished(async () => {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return store
}

function harnessOn(store: CompleteStore, drives = true): Harness {
  const look = defineTool({
    name: 'look',
    description: 'looks',
    effect: 'read',
    input: z.object({}),
    execute: () => 'seen',
  })
  const model = scripted((_request, taken) => (taken % 20 === 19 ? 'Enough.' : { calls: [{ tool: 'look', args: {} }] }))
  const limits = { modelRequests: 100 }
  const harness = new Harness({ model, tools: [look], store, worker: { drives }, secrets: {}, breaker: false, limits })
  onTestFinished(() => harness.close())
  return harness
}

describe.each([
  ['memory', memory],
  ['sqlite', file],
])('in %s', (_name, make) => {
  it('B-CARD-13: pages go on by a cursor that belongs to its query', async () => {
    const harness = harnessOn(make(), false)
    for (const [i, owner] of ['ana', 'bob', 'ana', 'ana'].entries()) {
      const session = await harness.open({ id: `s${i}`, metadata: { owner }, labels: { team: 'blue' } })
      await session.send(`Task number ${i}`, { id: 'm' })
    }
    const first = await harness.list({ owner: 'ana', limit: 2, order: 'made' })
    expect(first.cards.map(({ session, title }) => [session, title])).toEqual([
      ['s3', 'Task number 3'],
      ['s2', 'Task number 2'],
    ])
    const { next } = first
    expect(next).toMatch(/^[\w-]+$/)
    const again = { owner: 'ana', order: 'made', cursor: next ?? '' } as const
    // How many a page has is no part of the query.
    expect(await harness.list({ ...again, limit: 9 })).toMatchObject({
      cards: [{ session: 's0', owner: 'ana' }],
      next: null,
    })
    const other = 'This cursor is of another query.'
    const wrong: readonly ListOptions[] = [{ ...again, owner: 'bob' }, { ...again, q: 'task' }, { cursor: next ?? '' }]
    for (const options of wrong) await expect(harness.list(options)).rejects.toThrow(other)
    for (const cursor of ['', 'x', 'W10', Buffer.from('[1,"x",null,2]').toString('base64url'), 'x'.repeat(1_000_000)]) {
      expect(await outcome(harness.list({ ...again, cursor }))).toBe('invalid_input')
    }
    const found = await harness.list({ q: 'number TEAM=blue 1' })
    expect(found.cards).toMatchObject([{ session: 's1', owner: 'bob', tokens: 0 }])
    expect(await outcome(harness.list({ q: 'x'.repeat(1_000_000) }))).toBe('invalid_config')
    expect(await outcome(harness.list({ limit: 0 }))).toBe('invalid_config')
    await expect(harness.list({ onwer: 'ana' } as ListOptions)).rejects.toThrow('did you mean "owner"?')
  })

  it('B-STORE-174: a session after any event is the same with and without snapshots', async () => {
    const store = make()
    const harness = harnessOn(store)
    const session = await harness.open()
    for (const text of ['One.', 'Two.', 'Three.', 'Four.']) await session.run(text)
    const { events } = await store.read(session.id, 0)
    expect((await store.snapshot(session.id, events.length))?.version).toBe(FOLD_VERSION)
    let expected = EMPTY
    for (const event of [null, ...events]) {
      if (event) expected = fold(expected, event)
      expect(await stateAt(store, session.id, expected.seq)).toEqual(expected)
    }
    const lying = { ...store, read: store.read.bind(store), keep: store.keep.bind(store) }
    for (const body of ['{', '{"seq":5}', JSON.stringify({ ...expected, seq: 2 })]) {
      const snapshot = async (_id: string, upTo = 9) => (upTo >= 3 ? { seq: 3, version: FOLD_VERSION, body } : null)
      expect(await stateAt({ ...lying, snapshot }, session.id, 10)).toEqual(await stateAt(store, session.id, 10))
    }
    const old = async (_id: string, upTo = 9) => (upTo >= 3 ? { seq: 3, version: FOLD_VERSION - 1, body: '{}' } : null)
    expect(await stateAt({ ...lying, snapshot: old }, session.id, 10)).toEqual(await stateAt(store, session.id, 10))
    expect(await outcome(stateAt(store, session.id, events.length + 1))).toBe('invalid_input')
    expect(await outcome(stateAt(store, session.id, -1))).toBe('invalid_input')
    expect(await outcome(stateAt(store, 'none', 0))).toBe('session_missing')
  })

  it('B-STORE-174: what had to be folded from far away leaves snapshots, and an owner does not go on from these', async () => {
    const store = make()
    const session = await harnessOn(store, false).open({ id: 's' })
    for (let from = 0; from < 17_000; from += 1_000) {
      const events = Array.from({ length: 1_000 }, (_, i) => {
        return { type: 'user.interrupt', id: `${from + i}`, mode: 'resume' } as const
      })
      await store.commit([{ session: 's', lane: 'inbox', events }])
    }
    let reads = 0
    const counting = {
      snapshot: store.snapshot.bind(store),
      keep: store.keep.bind(store),
      read: (...asked: Parameters<CompleteStore['read']>): Promise<Page> => ((reads += 1), store.read(...asked)),
    }
    const there = await stateAt(counting, 's', 17_000)
    expect([there.seq, reads]).toEqual([17_000, 17])
    expect((await store.snapshot('s', 17_000))?.seq).toBe(16_384)
    expect(await store.snapshot('s')).toBeNull()
    reads = 0
    expect(await stateAt(counting, 's', 17_000)).toEqual(there)
    expect(reads).toBe(1)
    // They go with no copy, and a copy is folded as its own log.
    await importSession(store, await exportSession(store, session.id), { id: 'copy' })
    expect(await store.snapshot('copy', 17_000)).toBeNull()
    expect((await stateAt(store, 'copy', 10)).seq).toBe(10)
  })
})
