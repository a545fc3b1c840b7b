// The package as it is published: where its built files are, and that they are those of the present source.
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

export const repository = resolve(import.meta.dirname, '..', '..')
export const run = promisify(execFile)
export const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

/** What `import 'terret'` loads. Built anew only if the source is newer: others may be using it at this moment. */
export async function builtEntry(): Promise<string> {
  const { exports } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
    readonly exports: { readonly '.': { readonly default: string } }
  }
  const entry = join(repository, exports['.'].default)
  const built = existsSync(entry) ? statSync(entry).mtimeMs : 0
  const source = readdirSync(join(repository, 'src'), { recursive: true, encoding: 'utf8' })
  const newest = Math.max(...source.map((name) => statSync(join(repository, 'src', name)).mtimeMs))
  if (newest > built) await run(npm, ['run', '-s', 'build'], { cwd: repository })
  return entry
}
