// `terret store move`, killed at many points of its way: the source is whole each time, and the same move again comes to its end.
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { RowDigest } from '../../src/stores/move/row-digest.ts'
import { sqliteSource, sqliteTarget } from '../../src/stores/sqlite/sqlite-move.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { begin } from '../contract/fixture.ts'
import { share } from '../runs.ts'
import { until } from '../until.ts'
import { fill } from './filled.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

const SESSIONS = 200

/** Of everything in it, as a source sees it; and whether it was moved. */
async function sourceOf(file: string): Promise<{ readonly digest: string; readonly moved: boolean }> {
  const source = await sqliteSource(file)
  try {
    const digest = new RowDigest()
    for await (const piece of source.rows()) for (const row of piece) digest.add(row)
    return { digest: digest.end(), moved: (await source.movedTo()) !== null }
  } finally {
    await source.close()
  }
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0
const written = (file: string): number => sizeOf(file) + sizeOf(`${file}-wal`)

/** All rows are there, and are being compared. */
async function isArriving(file: string): Promise<boolean> {
  if (!existsSync(file)) return false
  const target = await sqliteTarget(file)
  try {
    return (await target.state()).type === 'arriving'
  } finally {
    await target.close()
  }
}

it('B-MOVE-12: killed at any point, the source is whole and goes on; then the same move comes to its end', async () => {
  const from = join(stage.home, 'terret.db')
  await fill(from, SESSIONS)
  const { digest } = await sourceOf(from)
  const whole = written(from)
  const points: readonly [string, (to: string) => boolean | Promise<boolean>][] = [
    ...share([0.01, 0.2, 0.5, 0.8]).map((part): [string, (to: string) => boolean] => [
      `${part} of it written`,
      (to) => written(to) >= part * whole,
    ]),
    ['being compared', isArriving],
  ]
  let last = ''
  for (const [name, isThere] of points) {
    const to = join(stage.folder, '..', `${name.replaceAll(' ', '-')}.db`)
    const { child, ended } = stage.start(['store', 'move', '--to', to])
    await until(async () => expect((await isThere(to)) || child.exitCode !== null).toBe(true))
    child.kill('SIGKILL')
    expect([name, (await ended).code]).toEqual([name, null])
    expect([name, await sourceOf(from)]).toEqual([name, { digest, moved: false }])
    const store = sqlite(to)
    // It has nothing, or it takes no writes: never a store with a part of it.
    const cards = await store.list({ limit: 1 })
    if (cards.length > 0) await expect(begin(store, 'new')).rejects.toMatchObject({ code: 'store_replaced' })
    await store.close()
    last = to
  }
  const done = await stage.apart('store', 'move', '--to', last, '--json')
  expect([done.code, JSON.parse(done.out)]).toEqual([0, expect.objectContaining({ digest, session: SESSIONS })])
  expect(await sourceOf(from)).toEqual({ digest, moved: true })
}, 300_000)
