// `terret store move` to a database and back, killed on its way: the source is whole each time, and the same move comes to its end.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { RowDigest } from '../../src/stores/move/row-digest.ts'
import type { MoveSource } from '../../src/stores/move/move-rows.ts'
import { postgresSource } from '../../src/stores/postgres/postgres-move.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { sqliteSource } from '../../src/stores/sqlite/sqlite-move.ts'
import { begin } from '../contract/fixture.ts'
import { noPostgres, PASSWORD } from '../postgres/server.ts'
import { database } from '../postgres/stage.ts'
import { until } from '../until.ts'
import { fill } from './filled.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

const SESSIONS = 100

type Seen = { readonly digest: string; readonly moved: boolean }
async function seen(opening: Promise<MoveSource>): Promise<Seen> {
  const source = await opening
  try {
    const digest = new RowDigest()
    for await (const piece of source.rows()) for (const row of piece) digest.add(row)
    return { digest: digest.end(), moved: (await source.movedTo()) !== null }
  } finally {
    await source.close()
  }
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

describe.skipIf(noPostgres)('without Postgres on this machine these are skipped', () => {
  it('B-PGMOVE-9: killed in the middle, to a database or from one, the source is whole; then the same move comes to its end', async () => {
    const file = join(stage.home, 'terret.db')
    await fill(file, SESSIONS)
    const { digest } = await seen(sqliteSource(file))
    const { server, name, url } = await database()
    /** Resolves when the move got so far; it is killed then. */
    const killedAt = async (args: readonly string[], isThere: () => Promise<boolean> | boolean): Promise<void> => {
      const { child, ended } = stage.start(['store', 'move', ...args])
      await until(async () => expect((await isThere()) || child.exitCode !== null).toBe(true))
      child.kill('SIGKILL')
      expect((await ended).code).toBeNull()
    }
    const asks = (text: string) => async (): Promise<boolean> =>
      (
        await server.query(
          `select 1 from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid() and ${text}`,
        )
      ).length > 0
    for (const [at, isThere] of [
      ['written', asks("query like 'insert into terret.events %'")],
      ['compared', asks("query like 'select seq, sum, body from%'")],
    ] as const) {
      await killedAt(['--to', url], isThere)
      expect([at, await seen(sqliteSource(file))]).toEqual([at, { digest, moved: false }])
      const store = postgres(url)
      // It has nothing, or it takes no writes: never a store with a part of it.
      const cards = await store.list({ limit: 1 })
      expect([at, cards.length]).toEqual([at, at === 'written' ? 0 : 1])
      if (cards.length > 0) await expect(begin(store, 'new')).rejects.toMatchObject({ code: 'store_replaced' })
      await store.close()
    }
    const there = await stage.apart('store', 'move', '--to', url, '--json')
    expect([there.code, JSON.parse(there.out)]).toEqual([0, expect.objectContaining({ digest, session: SESSIONS })])
    expect(`${there.out}${there.err}`).not.toContain(PASSWORD)
    const back = join(stage.folder, '..', 'back.db')
    const from = ['--store', url, '--to', back]
    await killedAt(from, () => sizeOf(back) + sizeOf(`${back}-wal`) > sizeOf(file) / 4)
    const opening = postgresSource({ url, name: 'the database' })
    expect(await seen(opening)).toEqual({ digest, moved: false })
    const done = await stage.apart('store', 'move', ...from, '--json')
    expect([done.code, JSON.parse(done.out)]).toEqual([0, expect.objectContaining({ digest, session: SESSIONS })])
    const old = { env: { TERRET_STORE: url } }
    expect((await stage.terretIn(old, 'store', 'check')).code).toBe(0)
    // As a command says it.
    const said = new RegExp(`^postgres://postgres@\\S+ was moved to ${back} on `, 'm')
    const read = await stage.terretIn(old, 'list', '--all')
    expect([read.code, read.err]).toEqual([0, expect.stringMatching(said)])
    const written = await stage.start(['run', '--model', 'offline:any', 'More.'], old).ended
    expect([written.code, written.out, written.err]).toEqual([8, '', expect.stringContaining(`was moved to ${back}`)])
  }, 300_000)

  it('B-PGMOVE-14: what of the new address is not shown is named', async () => {
    await fill(join(stage.home, 'terret.db'), 1)
    const { url } = await database()
    const { code, out } = await stage.apart('store', 'move', '--to', `${url}?sslmode=disable`)
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/TERRET_STORE=\S+ \(with its password and what you gave after the "\?"\)\n$/),
    ])
    expect(out).not.toContain(PASSWORD)
  }, 60_000)
})
