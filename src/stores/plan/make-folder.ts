// Creates a folder for data with all its parents, accessible to the owner only. A power loss takes back none that it created.
import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { syncFolder } from './sync-path.ts'

/** One folder at a time: where none can be created (`/proc`), Node's recursive mkdir asks the kernel for ever. */
export function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return
  makeFolder(dirname(folder))
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
  syncFolder(dirname(folder))
}
