// A real file system of a few megabytes, which a test can fill. It needs the right to mount one: a machine without it is a named skip.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

const mount = (folder: string): boolean =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder]).status === 0
const unmount = (folder: string): void => void spawnSync('umount', ['-l', folder])

export const noSmallDisk = !canMount()

function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'terret-disk-'))
  const can = process.platform === 'linux' && mount(folder)
  if (can) unmount(folder)
  rmSync(folder, { recursive: true })
  return can
}

export type SmallDisk = {
  /** So many bytes more fit. Default: none. */
  readonly fill: (leftBytes?: number) => void
  readonly empty: () => void
}

/** Mounted at this folder, which is made, until the end of the test. */
export function mountSmallDisk(folder: string): SmallDisk {
  mkdirSync(folder, { recursive: true })
  if (!mount(folder)) throw new Error(`nothing can be mounted at ${folder}`)
  onTestFinished(() => unmount(folder))
  const filler = join(folder, 'filler')
  return {
    fill: (leftBytes = 0) => {
      if (leftBytes > 0) rmSync(filler, { force: true })
      const { bavail, bsize } = statfsSync(folder)
      writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - leftBytes)), { flag: 'a' })
    },
    empty: () => rmSync(filler, { force: true }),
  }
}
