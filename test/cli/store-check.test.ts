// `terret store check`, `backup` and `move` of a file that holds no store, and the check of cards that an earlier version wrote.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Harness, scripted } from '../../src/index.ts'
import type { Card } from '../../src/ports/store.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { meddle } from '../stores/folder.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

it.each([
  ['an empty file', (file: string) => writeFileSync(file, '')],
  ['a database without tables', (file: string) => meddle(file, (db) => db.exec('CREATE TABLE t (a); DROP TABLE t'))],
])('B-BACKUP-13: %s is no store, and stays as it is', async (_, make) => {
  const file = join(stage.folder, 'backup.db')
  make(file)
  const [bytes, names] = [readFileSync(file), readdirSync(stage.folder)]
  for (const args of [
    ['check'],
    ['backup', join(stage.folder, 'copy.db')],
    ['move', '--to', join(stage.folder, 'x.db')],
  ]) {
    const { code, err } = await stage.terret('store', ...args, '--store', file)
    expect([code, err]).toEqual([6, expect.stringContaining('this is no store')])
    expect(readFileSync(file).equals(bytes)).toBe(true)
    expect(readdirSync(stage.folder)).toEqual(names)
  }
})

it('B-PAGELIST-13: a check counts cards of an earlier version, and --repair brings them up to date', async () => {
  mkdirSync(stage.home, { recursive: true })
  const file = join(stage.home, 'terret.db')
  const store = sqlite(file)
  const model = scripted([{ error: 'bad_request', message: 'It was refused.' }])
  const harness = new Harness({ model, store, secrets: {} })
  await (await harness.open({ id: 'failed' })).run('Go.')
  await harness.close()
  const { cause, ...old } = (await store.card('failed')) as Card
  const { epoch = 0, seq = 0 } = (await store.claim('failed', 'me', 60_000)) ?? {}
  await store.commit([
    { session: 'failed', lane: 'owner', epoch, expectedSeq: seq, events: [], card: old, release: true },
  ])
  await store.close()
  const check = (...more: string[]) => stage.terret('store', 'check', ...more)
  const behind = await check()
  expect([behind.code, behind.out]).toEqual([0, expect.stringMatching(/ 1 card is of an earlier version\.\n$/)])
  expect(behind.err).toContain('terret store check --repair')
  expect(JSON.parse((await check('--json')).out)).toMatchObject({ problems: [], behind: 1, repaired: 0 })
  const repaired = await check('--repair')
  expect([repaired.code, repaired.err]).toEqual([0, ''])
  expect(repaired.out).toMatch(/Nothing is wrong\.\n1 card is brought up to date\.\n$/)
  expect((await check()).out).toMatch(/Nothing is wrong\.\n$/)
  expect((await stage.terret('store', 'backup', join(stage.folder, 'x.db'), '--repair')).code).toBe(2)
  const after = sqlite(file)
  expect(await after.card('failed')).toMatchObject({ cause })
  await after.close()
})
