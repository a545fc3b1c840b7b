// Checks that package-lock.json names every optional platform package, so that `npm ci` works on every system.
// It does not check versions or integrity: npm does that itself.
import { readFileSync } from 'node:fs'

interface LockedPackage {
  readonly optionalDependencies?: Readonly<Record<string, string>>
}
interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>
}

/** Names the optional dependencies that no `node_modules` folder at or above the package holds. */
function missingFrom(lock: Lock): readonly string[] {
  const missing: string[] = []
  for (const [path, locked] of Object.entries(lock.packages)) {
    for (const name of Object.keys(locked.optionalDependencies ?? {})) {
      if (!foldersAbove(path).some((folder) => `${folder}node_modules/${name}` in lock.packages)) missing.push(name)
    }
  }
  return missing
}

/** `node_modules/a/node_modules/b` is searched as npm does: inside b, then inside a, then at the root. */
function foldersAbove(path: string): readonly string[] {
  const folders = [path === '' ? '' : `${path}/`]
  for (let at = path.lastIndexOf('node_modules/'); at >= 0; at = path.lastIndexOf('node_modules/', at - 1)) {
    folders.push(path.slice(0, at))
    if (at === 0) break
  }
  return folders
}

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock
const missing = missingFrom(lock)
const total = Object.keys(lock.packages).length
if (total < 2) throw new Error('package-lock.json names no packages')
if (missing.length > 0) throw new Error(`package-lock.json lacks ${missing.length}: ${missing.join(', ')}`)
console.log(`package-lock.json is complete: ${total} packages`)
