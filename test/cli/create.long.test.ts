// `terret create` where it starts npm, and where the disk is full.
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { mountSmallDisk, noSmallDisk } from '../small-disk.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

describe('terret create', () => {
  it.each([
    [0, 0, ''],
    [1, 1, 'terret: shop was made, and npm could not install what it needs. Run `npm install` in it.\n'],
  ])('B-CREATE-7: --install runs npm in the new folder; npm ends with %d', async (ends, exit, said) => {
    const npm = stage.write('bin/npm', `#!/bin/sh\necho "$PWD $@" >>${stage.home}.log\necho noise\nexit ${ends}\n`)
    chmodSync(npm, 0o755)
    const env = { PATH: `${dirname(npm)}:${stage.env['PATH'] ?? ''}` }
    const { code, out, err } = await stage.start(['create', 'shop', '--install', '--json'], { env }).ended
    expect({ code, err }).toEqual({ code: exit, err: `noise\n${said}` })
    expect(readFileSync(`${stage.home}.log`, 'utf8')).toBe(`${join(stage.folder, 'shop')} install\n`)
    expect(out).not.toContain('noise')
    if (exit === 0) expect(JSON.parse(out)).toMatchObject({ next: ['cd shop', 'npm test', 'npm start'] })
  })

  it.skipIf(noSmallDisk)('B-CREATE-8: a disk that fills up leaves nothing behind, and a second try works', async () => {
    const disk = mountSmallDisk(stage.folder)
    disk.fill(8_192)
    const { code, err } = await stage.apart('create', 'shop')
    expect({ code, err }).toMatchObject({ code: 8, err: expect.stringContaining('shop was not made') as string })
    expect(existsSync(join(stage.folder, 'shop'))).toBe(false)
    disk.empty()
    expect((await stage.apart('create', 'shop')).code).toBe(0)
  })
})
