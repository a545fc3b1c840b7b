// `terret letters`: dead letters of consumers on a store that another program wrote.
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { findHome, makeHome } from '../../src/cli/state/cli-home.ts'
import { deadLetters } from '../../src/consumers/index.ts'
import { Harness, scripted, sqlite } from '../../src/index.ts'
import { until } from '../until.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

it('B-CONSUME-26: letters lists dead letters, and retry and drop decide about one', async () => {
  makeHome(findHome(stage.env))
  const store = sqlite(join(stage.home, 'terret.db'))
  let works = false
  const run = (): void => {
    if (!works) throw new Error('no network')
  }
  const plugins = [{ name: 'p', consumers: [{ name: 'post', attempts: 1, run }] }]
  const harness = new Harness({ model: scripted(() => 'done'), store, plugins, onError: () => {} })
  onTestFinished(async () => {
    await harness.close()
    await store.close()
  })
  for (const id of ['a', 'b']) {
    await harness.open({ id })
    await harness.session(id).run('Go.')
  }
  await until(async () => expect((await deadLetters(harness)).length).toBe(2))
  works = true
  const shown = await stage.terret('letters')
  expect(shown.code).toBe(0)
  expect(shown.out).toMatch(/^settled:a:\d+ {2}post {2}1 tries, .*: no network$/m)
  const rows = (await stage.terret('letters', '--json')).out.trim().split('\n')
  const keys = rows.map((row) => (JSON.parse(row) as { readonly key: string }).key)
  const [first = '', second = ''] = keys
  const retried = await stage.terret('letters', 'retry', first, '--by', 'ann')
  expect(retried).toMatchObject({
    code: 0,
    out: expect.stringContaining('It is tried again, as ann decided.') as string,
  })
  const dropped = await stage.terret('letters', 'drop', second, '--by', 'bob')
  expect(dropped).toMatchObject({ code: 0, out: expect.stringContaining('It was dropped, as bob decided.') as string })
  await harness.work({ idleMs: 300 })
  expect(await deadLetters(harness)).toEqual([])
  expect((await stage.terret('letters', 'retry', first)).code).not.toBe(0)
  expect((await stage.terret('letters', 'burn', first)).err).toContain('Usage: terret letters')
  expect((await stage.terret('list', '--all')).out).not.toContain('consumer.')
})
