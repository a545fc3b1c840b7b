// A folder for data, with all that lies above it: for its owner only. What is put into it is up to the caller.
import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** One by one: where nothing can be made (`/proc`), Node's recursive mkdir asks the kernel for ever. */
export function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return
  makeFolder(dirname(folder))
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}
