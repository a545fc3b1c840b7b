// Saved scripts: a folder of files NAME.js. The text of a script is read when it is called, and stands in the arguments
// of the call from then on.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const FILE = /\.js$/

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

/** Null if no folder has it. */
export function readScript(folders: readonly string[], name: string): SavedScript | null {
  if (!isScriptName(name)) return null
  for (const folder of folders) {
    try {
      return { name, folder, text: readFileSync(join(folder, `${name}.js`), 'utf8') }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  return null
}

function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return []
  }
}
