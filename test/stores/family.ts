// A root with a child, a long result in a blob, money and a label; and one whose child reads the log of its parent.
import { tmpdir } from 'node:os'
import { expect } from 'vitest'
import { scripted, type Store } from '../../src/index.ts'
import { calls, make, tool } from '../runtime/scene.ts'
import { until } from '../until.ts'

export async function family(store: Store, { folder = true } = {}): Promise<void> {
  const helper = { description: 'helps', model: scripted(() => 'helped') }
  const long = tool('long', { execute: () => 'x'.repeat(100_000) })
  const options = {
    store,
    tools: [long],
    subagents: { helper },
    detached: true,
    results: { compression: 'off' as const },
  }
  const harness = make(scripted([calls('long'), 'done', 'heard']), options)
  const session = await harness.open({
    id: 'root',
    labels: { team: 'a' },
    ...(folder ? { folder: tmpdir() } : {}),
    metadata: { title: 'Old' },
  })
  expect(await session.run('hello', { id: 'm' })).toMatchObject({ status: 'completed' })
  const { sessionId } = await session.spawn('helper', 'help me')
  // The child's report is heard by its parent, which then rests too.
  for (const id of [sessionId, 'root'])
    await until(async () => expect(await store.card(id)).toMatchObject({ outcome: 'completed', due: null }))
  const charges = [
    { type: 'hold', key: 'k', accounts: ['session:root', 'tree:root', 'day:x'], amount: 10 },
    { type: 'settle', key: 'k', amount: 7.25 },
    { type: 'hold', key: 'l', accounts: ['session:root'], amount: 3 },
    { type: 'settle', key: 'l', amount: 3, assumed: true },
    { type: 'limit', account: 'session:root', limit: 5 },
  ] as const
  await store.commit([{ session: 'root', lane: 'inbox', events: [], charges }])
  await harness.close()
}

/** The child is a fork of its parent. */
export async function forkedFamily(store: Store, id = 'root'): Promise<void> {
  const look = { calls: [{ tool: 'spawn_subagent', args: { agent_id: 'fork', prompt: 'Look.', blocking: true } }] }
  const model = scripted((request) =>
    request.session.includes('~') ? 'found' : request.messages.some(({ role }) => role === 'tool') ? 'done' : look,
  )
  const harness = make(model, { store, subagents: true, detached: true })
  const session = await harness.open({ id })
  expect(await session.run('look')).toMatchObject({ status: 'completed' })
  for (const { session: each } of await store.list({ root: id, limit: 9 }))
    await until(async () => expect(await store.card(each)).toMatchObject({ outcome: 'completed', due: null }))
  await harness.close()
}
