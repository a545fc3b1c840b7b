// A backup that is killed, made twice at once, or made to a name that another file gets meanwhile.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { backUpFile } from '../../src/stores/sqlite/backup.ts'
import { create } from '../contract/fixture.ts'
import { makeFile, makeFolder, open } from './folder.ts'

async function storeWithOne(): Promise<string> {
  const file = makeFile()
  const store = open(file)
  await create(store, 's')
  await store.close()
  return file
}

async function startBackup(from: string, to: string): Promise<ChildProcess> {
  const path = fileURLToPath(new URL('../../.build/test/stores/child-backup.js', import.meta.url))
  const child = fork(path, [from, to])
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

const checkNothing = (): Promise<void> => Promise.resolve()

describe('a backup of a file', { timeout: 30_000 }, () => {
  it('B-BACKUP-10: until a backup is checked no file has its name, and after a kill the same command makes it', async () => {
    const from = await storeWithOne()
    const to = join(makeFolder(), 'backup.db')
    const child = await startBackup(from, to)
    expect(existsSync(to)).toBe(false)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(existsSync(to)).toBe(false)
    expect(readdirSync(dirname(to))).not.toEqual([])
    await backUpFile(from, to, checkNothing)
    expect(readdirSync(dirname(to))).toEqual(['backup.db'])
    expect((await open(to).read('s', 0, 10)).events.length).toBeGreaterThan(0)
  })

  it('B-BACKUP-11: of two backups to one name the second is refused, and the first is made whole', async () => {
    const from = await storeWithOne()
    const to = join(makeFolder(), 'backup.db')
    const child = await startBackup(from, to)
    const refused = await backUpFile(from, to, checkNothing).catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'store_busy' })
    expect(String(refused)).toContain('Another backup')
    child.send('go on')
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(readdirSync(dirname(to))).toEqual(['backup.db'])
    expect((await open(to).read('s', 0, 10)).events.length).toBeGreaterThan(0)
  })

  it.each(['file', 'link'])(
    'B-BACKUP-12: a %s that gets the name while a backup is made stays as it is',
    async (what) => {
      const from = await storeWithOne()
      const folder = makeFolder()
      const to = join(folder, 'backup.db')
      const put = () => (what === 'file' ? writeFileSync(to, 'mine') : symlinkSync(join(folder, 'none'), to))
      const refused = await backUpFile(from, to, () => Promise.resolve(put())).catch((error: unknown) => error)
      expect(refused).toMatchObject({ code: 'conflict' })
      expect(readdirSync(folder)).toEqual(['backup.db'])
      if (what === 'file') expect(readFileSync(to, 'utf8')).toBe('mine')
    },
  )
})
