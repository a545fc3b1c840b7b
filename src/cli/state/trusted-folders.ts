// The folders that the user trusts, by real path. Nothing in any other folder is read as configuration or run.
import { EXIT, CliError } from '../exit.ts'
import { type Home, makeHome, replaceHomeFile } from './cli-home.ts'
import { readPlainFile } from './plain-file.ts'

type TrustedFolder = { readonly path: string; readonly at: string }

export function trustedFolders({ trust }: Home): readonly TrustedFolder[] {
  const text = readPlainFile(trust)
  if (text === null) return []
  try {
    const { version, folders } = JSON.parse(text) as { readonly version: unknown; readonly folders: unknown }
    if (version === 1 && Array.isArray(folders) && folders.every(isTrustedEntry)) return folders
  } catch {}
  throw new CliError(EXIT.config, `${trust} cannot be read. Repair it, or remove it to trust folders anew.`)
}

/** Only exactly this folder counts, because a folder below it may have another owner. */
export function isTrusted(home: Home, folder: string): boolean {
  return trustedFolders(home).some(({ path }) => path === folder)
}

export function trustFolder(home: Home, folder: string): void {
  const known = trustedFolders(home)
  if (known.some(({ path }) => path === folder)) return
  saveTrusted(home, [...known, { path: folder, at: new Date().toISOString() }])
}

export function distrustFolder(home: Home, folder: string): boolean {
  const known = trustedFolders(home)
  const left = known.filter(({ path }) => path !== folder)
  if (left.length < known.length) saveTrusted(home, left)
  return left.length < known.length
}

function saveTrusted(home: Home, folders: readonly TrustedFolder[]): void {
  makeHome(home)
  replaceHomeFile(home, home.trust, `${JSON.stringify({ version: 1, folders }, null, 2)}\n`)
}

function isTrustedEntry(value: unknown): value is TrustedFolder {
  return typeof value === 'object' && value !== null && 'path' in value && typeof value.path === 'string'
}
