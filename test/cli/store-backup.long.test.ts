// `terret store backup FILE`, while another process drives sessions: the copy is whole, private, and a store of its own.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { defineTool, Harness, scripted } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { meddle } from '../stores/folder.ts'
import { z } from 'zod'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

/** Drives one run after the other until it is stopped. Each leaves a blob. */
async function busyStore(): Promise<{ readonly stop: () => Promise<void>; readonly runs: () => number }> {
  mkdirSync(stage.home, { recursive: true })
  const look = defineTool({
    name: 'look',
    description: 'looks',
    effect: 'read',
    input: z.object({}),
    execute: () => 'x'.repeat(100_000),
  })
  const model = scripted((request) =>
    request.messages.at(-1)?.role === 'tool' ? 'Seen.' : { calls: [{ tool: 'look', args: {} }] },
  )
  const store = sqlite(join(stage.home, 'terret.db'))
  const harness = new Harness({ model, tools: [look], store, secrets: {}, program: 'terret' })
  let [runs, over] = [0, false]
  const working = (async () => {
    for (; !over; runs++) await harness.run(`Look, for the ${runs}th time.`)
  })()
  while (runs < 5) await new Promise((resolve) => void setTimeout(resolve, 10))
  return {
    runs: () => runs,
    stop: async () => {
      over = true
      await working
      await harness.close()
      await store.close()
    },
  }
}

describe('terret store backup', { timeout: 120_000 }, () => {
  it('B-BACKUP-1: a backup taken while a worker writes has all that was written before it, and is restored by copying it back', async () => {
    const busy = await busyStore()
    const to = join(dirname(stage.home), 'backup.db')
    const before = busy.runs()
    const made = await stage.apart('store', 'backup', to)
    expect([made.code, made.err]).toEqual([0, ''])
    expect(made.out).toMatch(/sessions, .* events, [1-9][\d,]* blobs?, .*Nothing is wrong\.\n$/)
    const after = busy.runs()
    expect(after).toBeGreaterThan(before)
    await busy.stop()
    expect(statSync(to).mode & 0o777).toBe(0o600)
    expect(readdirSync(dirname(to)).filter((name) => name.startsWith('backup'))).toEqual(['backup.db'])
    // Another machine, or the same after its disk was lost.
    const restored = join(dirname(stage.home), 'restored')
    mkdirSync(restored, { mode: 0o700 })
    copyFileSync(to, join(restored, 'terret.db'))
    const where = { env: { TERRET_HOME: restored } }
    const checked = await stage.terretIn(where, 'store', 'check')
    expect([checked.code, checked.out]).toEqual([0, expect.stringContaining('Nothing is wrong.')])
    const counts = (file: string) =>
      meddle(file, (db) => db.prepare('SELECT (SELECT count(*) FROM sessions) AS sessions').get()) as {
        sessions: number
      }
    expect(counts(to).sessions).toBeGreaterThanOrEqual(before)
    expect(counts(to).sessions).toBeLessThanOrEqual(after + 1)
    const store = sqlite(join(restored, 'terret.db'))
    const model = scripted(['Written again.'])
    const harness = new Harness({ model, store, secrets: {} })
    expect(await harness.run('Go on.')).toMatchObject({ status: 'completed' })
    await harness.close()
    await store.close()
  })

  it('B-BACKUP-2: it replaces nothing, and leaves nothing where it cannot be made', async () => {
    const busy = await busyStore()
    await busy.stop()
    const to = join(dirname(stage.home), 'kept.txt')
    writeFileSync(to, 'mine')
    const refused = await stage.apart('store', 'backup', to)
    expect([refused.code, refused.err]).toEqual([9, expect.stringContaining('name a new file')])
    expect(readFileSync(to, 'utf8')).toBe('mine')
    const own = await stage.apart('store', 'backup', join(stage.home, 'terret.db'))
    expect(own.code).toBe(9)
    const nowhere = await stage.apart('store', 'backup', join(stage.home, 'none', 'x.db'))
    expect([nowhere.code, nowhere.err]).toEqual([8, expect.stringContaining('check that its folder is there')])
    expect((await stage.apart('store', 'backup')).code).toBe(2)
    const empty = { env: { TERRET_HOME: join(dirname(stage.home), 'no-store') } }
    const missing = await stage.terretIn(empty, 'store', 'backup', join(dirname(stage.home), 'y.db'))
    expect([missing.code, existsSync(join(dirname(stage.home), 'y.db'))]).toEqual([6, false])
    const far = { env: { TERRET_STORE: 'postgres://user@127.0.0.1:1/none' } }
    const database = await stage.terretIn(far, 'store', 'backup', join(dirname(stage.home), 'z.db'))
    expect([database.code, database.err]).toEqual([2, expect.stringContaining('pg_basebackup -c fast')])
  })

  it('B-BACKUP-3: a store with a damaged session is backed up, and the backup says what is wrong', async () => {
    const busy = await busyStore()
    await busy.stop()
    meddle(join(stage.home, 'terret.db'), (db) =>
      db.exec(`DROP TRIGGER events_keep; UPDATE events SET body = replace(body, 'Look', 'Loot') WHERE pos < 5`),
    )
    const to = join(dirname(stage.home), 'backup.db')
    const { code, err } = await stage.apart('store', 'backup', to)
    expect([code, existsSync(to)]).toEqual([1, true])
    expect(err).toContain('The backup was made, with what is wrong in the store.')
  })
})
