// Removal of sessions that a harness drove: the names of its accounts, its blobs and its forks are those the stores go by.
import { describe, expect, it } from 'vitest'
import type { CompleteStore } from '../../src/ports/store.ts'
import { chaosOf, harnessOf, hosted } from '../models/hosted-stage.ts'
import { outcome } from '../contract/fixture.ts'
import { makeFile, meddle, open } from './folder.ts'

const HOSTED = { prices: { 'anthropic:*': { input: 3, output: 15 } }, outputTokensMax: 1_000 }
const DAY_MS = 86_400_000
const TABLES = [
  'events',
  'heads',
  'spans',
  'sessions',
  'inbox',
  'holds',
  'blobs',
  'blob_refs',
  'snapshots',
  'forks',
  'finds',
]

const dayOf = (store: CompleteStore): string => `day:default:${Math.floor(store.now() / DAY_MS)}`

describe('removal of what was run', () => {
  it('B-STORE-132: of the accounts of a run, a session and a tree, raised or not, none is left, and the day has spent the same', async () => {
    const file = makeFile()
    const store = open(file)
    const chaos = await chaosOf(() => ({ text: 'Dear.', usage: { inputTokens: 1_000, outputTokens: 1_000 } }))
    const budget = { runUsd: 0.02, sessionUsd: 0.02, treeUsd: 5, dayUsd: 5 }
    const harness = harnessOf({ model: hosted(chaos, 'messages', HOSTED), store, budget })
    const { sessionId, cost } = await harness.run('One.')
    const session = harness.session(sessionId)
    expect((await session.run('Two.')).status).toBe('limit')
    await session.decide({ callId: 'budget', allow: true, by: 'ann', usd: 1 })
    expect((await session.run()).status).toBe('completed')
    const before = await store.account(dayOf(store))
    expect(before?.spent).toBe(cost.micros * 2)
    await store.remove(sessionId, 'ann')
    const ids = meddle(file, (db) => db.prepare('SELECT id FROM accounts ORDER BY id').all() as { id: string }[])
    expect(ids.map(({ id }) => id)).toEqual([dayOf(store), `raised:${dayOf(store)}`])
    expect(await store.account(dayOf(store))).toEqual(before)
    for (const table of TABLES)
      expect(meddle(file, (db) => db.prepare(`SELECT count(*) AS left FROM ${table}`).get())).toEqual({ left: 0 })
  })

  it('B-STORE-134: a fork keeps what it reads through, and reads on', async () => {
    const store = open(makeFile())
    const chaos = await chaosOf(() => ({ text: 'Dear.', usage: { inputTokens: 1, outputTokens: 1 } }))
    const harness = harnessOf({ model: hosted(chaos, 'messages', HOSTED), store })
    const { sessionId } = await harness.run('One.')
    const fork = await harness.session(sessionId).fork()
    expect(await outcome(store.remove(sessionId, 'ann'))).toBe('conflict')
    await fork.run('Two.')
    expect(JSON.stringify(await fork.messages())).toContain('One.')
    await store.remove(fork.id, 'ann')
    expect(await outcome(store.remove(sessionId, 'ann'))).toBe('ok')
    expect(await outcome(harness.session(sessionId).fork())).toBe('session_missing')
  })
})
