// Opens a page in the user's browser. The address contains the token, and every user of this machine can read the
// command line of a running program. So the browser opens a private file that redirects to the address. The file is
// removed with the server.
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Home, replaceHomeFile } from '../state/cli-home.ts'

const OPENERS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'open', win32: 'explorer' }

/** Returns a function that removes the file; null if there is no program that opens pages. */
export function openPage(home: Home, address: string): Promise<(() => void) | null> {
  const file = join(home.folder, 'open.html')
  replaceHomeFile(home, file, `<!doctype html><meta http-equiv="refresh" content="0; url=${address}">\n`)
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
