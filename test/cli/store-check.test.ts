// `terret store check`, `backup` and `move` of a file that holds no store: they say so, and make none in it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
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
