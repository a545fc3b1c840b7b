// Saved scripts: a folder of files NAME.js. The text of a script is read when it is called, and stands in the arguments
// of the call from then on. A stranger may have made the files of a folder: what is no plain file of it is refused.
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../kernel/failure.ts'
import { containsPath } from '../tools/files/path-guard.ts'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const FILE = /\.js$/
const BYTES_MAX = 256 * 1024

export type SavedScript = { readonly name: string; readonly folder: string; readonly text: string }

function isScriptName(name: string): boolean {
  return NAME.test(name)
}

/** The names in these folders. The first folder that has a name wins. */
export function listScripts(folders: readonly string[]): readonly { readonly name: string; readonly folder: string }[] {
  const found = new Map<string, { readonly name: string; readonly folder: string }>()
  for (const folder of folders)
    for (const file of filesIn(folder)) {
      const name = file.replace(FILE, '')
      if (FILE.test(file) && isScriptName(name) && !found.has(name)) found.set(name, { name, folder })
    }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Null if no folder has it. Throws for a file that is no script. */
export function readScript(folders: readonly string[], name: string): SavedScript | null {
  if (!isScriptName(name)) return null
  for (const folder of folders) {
    const text = readScriptFile(folder, join(folder, `${name}.js`))
    if (text !== null) return { name, folder, text }
  }
  return null
}

/** Null without this file. */
function readScriptFile(folder: string, path: string): string | null {
  const refuse = (why: string): Fault => new Fault('invalid_input', `${path} is no saved script: ${why}`)
  try {
    const real = realpathSync(path)
    if (!containsPath(realpathSync(folder), real))
      throw refuse('it leads out of its folder. Put the file itself there.')
    // Without O_NONBLOCK, opening a pipe would wait for a writer for ever.
    const file = openSync(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
    try {
      const found = fstatSync(file)
      if (!found.isFile()) throw refuse('it is no regular file.')
      if (found.size > BYTES_MAX) throw refuse(`it has ${found.size} bytes, and at most ${BYTES_MAX} are read.`)
      return readFileSync(file, 'utf8')
    } finally {
      closeSync(file)
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return []
  }
}
