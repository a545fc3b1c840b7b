// The package as npm packs it, unpacked into the node_modules of a fresh folder, with nothing else there.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { onTestFinished } from 'vitest'

export const root = resolve(import.meta.dirname, '..', '..')

/** The tarball, in `folder`. It has what `npm run build` wrote last. */
export function packInto(folder: string): string {
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder]
  const said = execFileSync('npm', args, { cwd: root, encoding: 'utf8' })
  return join(folder, said.trim().split('\n').at(-1) ?? '')
}

/** Gone after the test. `others` are packages of this repository. */
export function unpackAlone(others: readonly string[] = []): string {
  const folder = mkdtempSync(join(tmpdir(), 'terret-packed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'package.json'), '{ "name": "stranger", "private": true, "type": "module" }\n')
  const installed = join(folder, 'node_modules', 'terret')
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xzf', packInto(folder), '-C', installed, '--strip-components', '1'])
  for (const name of others) {
    mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  }
  return folder
}
