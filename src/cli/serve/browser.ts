// Opens a page in the user's browser. Not by its address on a command line, which every user of this machine can read while the program
// runs: the address has the token. A file that only its owner may read leads there, and is gone with the server.
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Home, replaceOwn } from '../state/home.ts'

const OPENERS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'open', win32: 'explorer' }

/** What takes the file away again; null if there is no program that opens pages. */
export function openPage(home: Home, address: string): Promise<(() => void) | null> {
  const file = join(home.folder, 'open.html')
  replaceOwn(home, file, `<!doctype html><meta http-equiv="refresh" content="0; url=${address}">\n`)
  const remove = (): void => rmSync(file, { force: true })
  return new Promise((resolve) => {
    const child = spawn(OPENERS[process.platform] ?? 'xdg-open', [file], { stdio: 'ignore', detached: true })
    child.once('spawn', () => {
      child.unref()
      resolve(remove)
    })
    child.once('error', () => {
      remove()
      resolve(null)
    })
  })
}
