// What lies around when a command starts, and changes from call to call: sockets of the host, and repositories within the
// workspace. Only looks; sandbox.ts closes what is found. Bounded, because it stands before every command.
import { readdirSync, readFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'

/** As the kernel writes it: somebody accepts connections; and sockets that need none. */
const LISTENS = '00010000'
const DATAGRAM = '0002'
const FOLDERS_MAX = 1_000
const DEPTH_MAX = 5
const SKIPPED = new Set(['node_modules', '.venv', 'venv', 'vendor', 'target', 'dist', 'build', '__pycache__', '.next'])

/** The sockets in the file system that somebody listens on now: a network namespace does not hide those. */
export function hostSockets(): readonly string[] {
  try {
    const lines = readFileSync('/proc/net/unix', 'utf8').split('\n').slice(1)
    const reached = lines
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , flags, type]) => {
        return flags === LISTENS || type === DATAGRAM
      })
    return [...new Set(reached.map((fields) => fields.slice(7).join(' ')).filter(isAbsolute))]
  } catch {
    return []
  }
}

/** Folders below the workspace that hold a `.git`, relative to it. The workspace itself is not among them. */
export function repositoriesIn(workspace: string): readonly string[] {
  const found: string[] = []
  let level: readonly string[] = ['']
  let looked = 0
  for (let depth = 0; depth < DEPTH_MAX && level.length > 0; depth++) {
    const below: string[] = []
    for (const folder of level) {
      looked += 1
      if (looked > FOLDERS_MAX) return found
      for (const entry of entriesOf(join(workspace, folder))) {
        const path = folder === '' ? entry.name : join(folder, entry.name)
        if (entry.name === '.git') {
          if (folder !== '') found.push(folder)
        } else if (entry.isDirectory() && !SKIPPED.has(entry.name)) below.push(path)
      }
    }
    level = below
  }
  return found
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
