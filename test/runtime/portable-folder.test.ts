// Where a session works, and files: an export does not say it, and an import does not read it.
import { afterEach, expect, it } from 'vitest'
import { type Harness, memory } from '../../src/index.ts'
import { exportSession, importSession } from '../../src/archive/portable.ts'
import { readLog } from '../../src/view/session-log.ts'
import { desk as makeDesk, type Desk, forged } from './portable-stage.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

function desk(): Desk {
  const made = makeDesk(() => 'done')
  open.push(made.harness)
  return made
}

it('B-PORT-28: the folder a session works in is in no file, and a log that is there with one is the same log', async () => {
  const { harness, store } = desk()
  const first = await harness.open({ id: 'first', folder: '/home/ana/first' })
  await first.run('one')
  await (await first.fork({ id: 'second' })).run('two')
  const value = await exportSession(store, 'second')
  expect(JSON.stringify(value)).not.toContain('/home/ana')
  expect(await importSession(store, value, { id: 'third' })).not.toHaveProperty('folder')
  const again = await exportSession(store, (await importSession(store, value, { id: 'x', folder: '/here' })).session)
  expect(JSON.stringify(again)).not.toContain('/here')
})

it('B-PORT-29: no file chooses a folder: neither for the session, nor for those it was forked from, nor for a fork of them', async () => {
  const { harness, store } = desk()
  const first = await harness.open({ id: 'first' })
  await first.run('one')
  const second = await first.fork({ id: 'second' })
  await (await second.fork({ id: 'third' })).run('three')
  const value = await exportSession(store, 'third')
  const forgery = forged(value, (copy) => {
    for (const { events } of [copy, ...copy.parents]) (events[0] as unknown as { folder: string }).folder = '/etc'
    const { events } = copy
    const { seq = 0, at = 0, epoch = 0 } = events.at(-1) ?? {}
    events.push({ seq: seq + 1, at, epoch, type: 'session.imported', from: 'x', folder: '/etc' })
  })
  const there = desk()
  expect(await importSession(there.store, forgery, { folder: '/work' })).toMatchObject({ folder: '/work' })
  expect(await there.store.card('third')).toMatchObject({ folder: '/work' })
  await there.harness.session('third').fork({ id: 'early', at: 2 })
  expect(await there.store.card('early')).toMatchObject({ folder: '/work' })
  await there.harness.session('first').fork({ id: 'of-first' })
  for (const id of ['first', 'second', 'of-first']) expect(await there.store.card(id)).not.toHaveProperty('folder')
  expect(await there.store.list({ folder: '/etc', limit: 9 })).toEqual([])
  for (const id of ['first', 'second', 'third'])
    expect(JSON.stringify(await readLog(there.store, id))).not.toContain('/etc')
  expect(await importSession(memory(), forgery)).not.toHaveProperty('folder')
  await expect(importSession(memory(), forgery, { folder: 'here' })).rejects.toMatchObject({ code: 'invalid_input' })
})
