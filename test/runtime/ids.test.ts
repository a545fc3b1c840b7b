// Which ids a session may have from outside, and where those of older versions still do.
import { expect, it, onTestFinished } from 'vitest'
import { exportSession, importSession } from '../../src/replay.ts'
import { Harness, memory, scripted } from '../../src/index.ts'
import { agUiHandler, chatHandler } from '../../src/ui/index.ts'
import { makeOldSession } from '../old-session.ts'

const GOOD = ['a', '-', '-a', '--yes', 'A.b_c:d~e-f', '~', '...', '1a2b3c4d', 'x'.repeat(128)]
const BAD = [
  '',
  ' ',
  'a b',
  'a/b',
  '$(id)',
  'a\nb',
  '\u001b',
  'é',
  '.',
  '..',
  'latest',
  'x'.repeat(129),
  'a\0',
  '\ud800',
]
const invalid = { code: 'invalid_input' }

function stage() {
  const store = memory()
  const harness = new Harness({ model: scripted(() => 'done'), store })
  onTestFinished(() => harness.close())
  return { store, harness }
}

it.each(GOOD)('B-ID-1: %j can be the id of a session, at every door', async (id) => {
  const { store, harness } = stage()
  const opened = await harness.open({ id })
  expect(harness.session(id).id).toBe(id)
  const file = await exportSession(store, id)
  await opened.run('Hello.')
  const other = stage()
  await importSession(other.store, file)
  expect((await (await other.harness.open()).fork({ id: 'fork' })).id).toBe('fork')
  expect(await other.store.card(id)).toMatchObject({ session: id })
})

it.each(BAD)('B-ID-1, B-ID-2: %j is refused at every door, and nothing is written', async (id) => {
  const { store, harness } = stage()
  const plain = await harness.open({ id: 'plain' })
  expect(() => harness.session(id)).toThrow(expect.objectContaining(invalid))
  await expect(harness.open({ id })).rejects.toMatchObject(invalid)
  await expect(plain.fork({ id })).rejects.toMatchObject(invalid)
  await expect(importSession(store, await exportSession(store, 'plain'), { id })).rejects.toMatchObject(invalid)
  const asked = { id, threadId: id, runId: 'r', messages: [{ id: 'm', role: 'user', content: 'x', parts: [] }] }
  for (const handler of [chatHandler, agUiHandler]) {
    const by = (): string => expect.fail('the host was asked about an id that no session has')
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://a/', { method: 'POST', headers, body: JSON.stringify(asked) })
    const response = await handler(harness, { by })(request)
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('invalid_input')])
  }
  expect((await store.list({ limit: 10 })).map(({ session }) => session)).toEqual(['plain'])
})

it('B-ID-3: a session of an older version is listed, read, driven, exported and removed under the id that it has', async () => {
  const { store, harness } = stage()
  const id = 'tenant/42 $(id)\n'
  await makeOldSession(store, id, { text: 'Hello.' })
  expect((await harness.list({ order: 'id', limit: 500 })).cards.map(({ session }) => session)).toEqual([id])
  expect((await harness.session(id, { stored: true }).status({ include: ['card'] })).card).toMatchObject({
    session: id,
  })
  const session = harness.session(id, { stored: true })
  expect(await session.run()).toMatchObject({ status: 'completed', text: 'done' })
  const file = await exportSession(store, id)
  expect(await importSession(store, file, { id: 'tenant.42' })).toMatchObject({ session: 'tenant.42' })
  const fork = await session.fork()
  expect(fork.id).toMatch(/^[0-9a-f-]{36}$/)
  await harness.remove(fork.id)
  await harness.remove(id)
  await expect(harness.session(id, { stored: true }).status()).rejects.toMatchObject({ code: 'session_missing' })
})

it('B-ID-4: children of a session with a long id can be named, and message ids have no character that is not drawn', async () => {
  const { harness } = stage()
  const id = 'x'.repeat(128)
  expect(harness.session(`${id}~3.0~12.1.4`).id).toHaveLength(139)
  const session = await harness.open({ id })
  for (const own of ['a\nb', '\u202ea', 'a\u200b', '\u001b[2J'])
    await expect(session.send('x', { id: own })).rejects.toMatchObject(invalid)
  expect(await session.send('x', { id: '<mail.1@example.com>' })).toMatchObject({ duplicate: false })
})
