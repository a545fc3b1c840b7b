// `install`: what the package puts on a disk. Packs it as built, installs the tarball in an empty folder with npm, and counts.
import { execFile } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import type { Case, Family } from './family.ts'

const repository = resolve(import.meta.dirname, '..', '..')
const run = promisify(execFile)
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

const installed: Case = async (parent) => {
  const folder = mkdtempSync(join(parent, 'install-'))
  const empty = join(folder, 'empty')
  mkdirSync(empty)
  await run(npm, ['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: repository })
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? ''
  await run(npm, ['init', '-y'], { cwd: empty })
  await run(npm, ['install', '--no-audit', '--no-fund', join(folder, tarball)], { cwd: empty })
  const modules = join(empty, 'node_modules')
  const all = bytesIn(modules)
  const own = bytesIn(join(modules, 'terret'))
  return { all: all / 1e6, others: (all - own) / 1e6, packages: packagesIn(modules) }
}

/** What the files hold, not the blocks they take. */
function bytesIn(path: string): number {
  const stat = lstatSync(path)
  if (!stat.isDirectory()) return stat.size
  return readdirSync(path).reduce((sum, name) => sum + bytesIn(join(path, name)), 0)
}

function packagesIn(modules: string): number {
  let count = 0
  for (const name of readdirSync(modules)) {
    if (name.startsWith('.')) continue
    if (name.startsWith('@')) count += packagesIn(join(modules, name))
    else {
      count += 1
      const nested = join(modules, name, 'node_modules')
      if (existsSync(nested)) count += packagesIn(nested)
    }
  }
  return count
}

export const install: Family = {
  repetitions: 1,
  mayFail: true,
  cases: { installed },
  figures: [
    {
      name: 'install',
      unit: 'MB',
      target: 60,
      value: (median) => median('installed.all'),
      floor: (median) => median('installed.others'),
      note: (median) => `${median('installed.packages')} packages; the floor is all but terret itself`,
    },
  ],
}
