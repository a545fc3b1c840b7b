// How a file is replaced on the disk, looked at while it happens.
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { readBeforeWrite, replaceSeenFile } from '../../src/tools/files/guarded-disk.ts'
import { createPathGuard, locatePath } from '../../src/tools/files/path-guard.ts'
import { toolContext } from './context.ts'

it('B-ATTACK-65: a file that only its owner may read is never readable by others while it is rewritten, not even for a moment', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-mode-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const umask = process.umask(0)
  onTestFinished(() => void process.umask(umask))
  writeFileSync(join(folder, 'secret'), 'before')
  chmodSync(join(folder, 'secret'), 0o600)
  const guarded = createPathGuard({ root: folder })
  const place = await locatePath(guarded, 'secret', 'write')
  const modes: number[] = []
  // Written in pieces: the modes of all files in the folder are read between them.
  async function* pieces(): AsyncGenerator<Buffer> {
    for (const piece of ['af', 'ter']) {
      await Promise.resolve()
      for (const name of readdirSync(folder)) modes.push(statSync(join(folder, name)).mode & 0o777)
      yield Buffer.from(piece)
    }
  }
  const bytes = pieces() as unknown as Buffer
  await replaceSeenFile({
    guarded,
    place,
    seen: await readBeforeWrite(guarded, place),
    bytes,
    after: '',
    context: toolContext(),
  })
  expect(readFileSync(join(folder, 'secret'), 'utf8')).toBe('after')
  expect(modes.length).toBeGreaterThan(2)
  expect(new Set(modes)).toEqual(new Set([0o600]))
})
