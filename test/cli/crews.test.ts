// Which sessions a process claims that drives the sessions of several folders.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { memory } from '../../src/index.ts'
import { readCommandArgs } from '../../src/cli/args.ts'
import { DueDriver } from '../../src/cli/state/due-driver.ts'
import { findHome } from '../../src/cli/state/cli-home.ts'
import { create } from '../contract/fixture.ts'
import { openStage } from './stage.ts'

it('B-DIST-26, B-DIST-23: of one tree no more than its share is claimed, of each folder what waits longest, and none of a folder that is not here', async () => {
  const stage = openStage()
  onTestFinished(() => stage.close())
  const store = memory()
  const other = join(stage.folder, 'other')
  mkdirSync(other)
  const due = store.now() - 1_000
  const { folder } = stage
  for (let i = 0; i < 20; i++) await create(store, `big ${10 + i}`, { root: 'big 10', due: due + i, folder })
  for (const id of ['x', 'y']) await create(store, id, { due: due + 100, folder })
  await create(store, 'z', { due: due + 5, folder: other })
  await create(store, 'foreign', { due, folder: join(folder, 'not here') })
  const call = readCommandArgs('worker', ['--model', 'offline:any', '--quiet'])
  const place = { home: findHome(stage.env), folder, store, at: null }
  const crews = new DueDriver(place, call, { leaseMs: 60_000, says: false })
  onTestFinished(() => crews.close())
  const take = async (limit: number): Promise<readonly string[]> => {
    const taken = await crews.take({ limit, among: (await store.due(99)).sessions })
    expect(taken.get('foreign')).toBe(null)
    return [...taken.keys()].filter((id) => id !== 'foreign').toSorted()
  }
  expect(await take(8)).toEqual(['big 10', 'big 11', 'big 12', 'big 13', 'big 14', 'x', 'y', 'z'])
  expect(await take(4)).toEqual(['big 15', 'big 16', 'big 17', 'big 18'])
})
