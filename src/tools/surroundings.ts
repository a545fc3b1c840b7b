// What lies around when a command starts, and changes from call to call: sockets of the host, and what is protected within the
// workspace. Only looks; sandbox.ts closes what is found. Bounded, because it stands before every command and after it.
import {
  closeSync,
  constants,
  type Dirent,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { gitlinksOf } from './surroundings-index.ts'
import { isGitFolder, OBEYED_BY_GIT, PROTECTED } from './protected.ts'

const FOLDERS_MAX = 1_000
const DEPTH_MAX = 5
/** Within one repository: its modules, those of its modules, and worktrees. */
const GIT_FOLDERS_MAX = 200
const FILE_BYTES_MAX = 128 * 1024 * 1024
/** In a repository: no other one is in there. */
const GITS_OWN = new Set(['objects', 'refs', 'logs', 'hooks', 'info', 'branches', 'lfs', 'rr-cache'])
const SKIPPED = new Set(['node_modules', '.venv', 'venv', 'vendor', 'target', 'dist', 'build', '__pycache__', '.next'])

/** Relative to the workspace. `partly`: there was more than may be looked at. */
export type Found = { readonly paths: readonly string[]; readonly partly: boolean }

/** What is protected and there: by its name, or because git obeys it. */
export function protectedIn(workspace: string): Found {
  const found = new Set<string>()
  let level: readonly string[] = ['']
  let looked = 0
  for (let depth = 0; depth < DEPTH_MAX && level.length > 0; depth++) {
    const below: string[] = []
    for (const folder of level) {
      looked += 1
      if (looked > FOLDERS_MAX) return { paths: [...found], partly: true }
      const entries = entriesOf(join(workspace, folder))
      const isRepository = isGitFolder((name) => entries.some((entry) => entry.name === name))
      if (isRepository) for (const path of obeyedIn(workspace, folder)) found.add(path)
      for (const entry of entries) {
        const { name } = entry
        if (name === '.git') for (const obeyed of obeyedIn(workspace, join(folder, name))) found.add(obeyed)
        else if (isProtectedName(name, folder)) found.add(join(folder, name))
        else if (!entry.isDirectory() || SKIPPED.has(name)) continue
        else if (!isRepository || !GITS_OWN.has(name)) below.push(join(folder, name))
      }
    }
    level = below
  }
  return { paths: [...found], partly: false }
}

/** By how the path ends: whatever stands above it was looked at before. Some file systems do not tell cases apart. */
export function isProtectedName(name: string, folder: string): boolean {
  // This is asked of every file, and nearly always the name alone says no.
  if (!LAST_NAMES.has(name.toLowerCase())) return false
  const whole = `/${folder}/${name}`.toLowerCase()
  return ENDINGS.some((ending) => whole.endsWith(ending))
}

const ENDINGS = PROTECTED.map((path) => `/${path.toLowerCase()}`)
const LAST_NAMES: ReadonlySet<string> = new Set(ENDINGS.map((ending) => basename(ending)))

/**
 * What git obeys in this repository, in those of its submodules, in theirs, and in its worktrees. A `.git` that only names another
 * place is obeyed itself. Where there is too much to look at, all that could be such a repository is closed.
 */
function obeyedIn(workspace: string, git: string): readonly string[] {
  const found: string[] = []
  const folders = new Set([git])
  // A set is read in the order of its additions, also of those made while it is read.
  for (const folder of folders) {
    if (folders.size > GIT_FOLDERS_MAX) return [...found, ...thereOf(workspace, git, ['modules', 'worktrees'])]
    if (!isFolder(join(workspace, folder))) {
      found.push(folder)
      continue
    }
    const entries = entriesOf(join(workspace, folder))
    const isRepository = basename(folder) === '.git' || isGitFolder((name) => entries.some((one) => one.name === name))
    if (isRepository) {
      found.push(...thereOf(workspace, folder, OBEYED_BY_GIT))
      for (const inner of thereOf(workspace, '', modulesOf(workspace, folder, entries))) folders.add(inner)
    }
    for (const entry of entries) {
      if (entry.isDirectory() && !(isRepository && GITS_OWN.has(entry.name))) folders.add(join(folder, entry.name))
    }
  }
  return found
}

function thereOf(workspace: string, folder: string, names: readonly string[]): readonly string[] {
  return names.map((name) => join(folder, name)).filter((path) => existsSync(join(workspace, path)))
}

/**
 * The `.git` of a repository's own files and of every path that its index calls a repository. They may lie deeper than anybody
 * looks, and git goes there.
 */
function modulesOf(workspace: string, folder: string, entries: readonly Dirent[]): readonly string[] {
  const whole = join(workspace, folder)
  const config = textOf(join(whole, 'config'))
  const named = /^\s*worktree\s*=\s*(.+?)\s*$/m.exec(config)?.[1]
  const link = textOf(join(whole, 'gitdir')).trim()
  const files = named ?? (link === '' ? '..' : dirname(link))
  const root = relative(workspace, resolve(whole, files))
  const indexes = entries.filter(({ name }) => name === 'index' || name.startsWith('sharedindex.'))
  const hashBytes = /^\s*objectformat\s*=\s*sha256/im.test(config) ? 32 : 20
  const links = indexes.flatMap(({ name }) => gitlinksOf(bytesOf(join(whole, name)), hashBytes))
  const own = basename(folder) === '.git' || (named ?? link) === '' ? [] : ['']
  return [...own, ...links].map((path) => join(root, path, '.git')).filter((path) => !path.startsWith('..'))
}

function textOf(file: string): string {
  return bytesOf(file).toString('utf8')
}

/** Nothing for what is no file: to open a pipe would wait for ever. */
function bytesOf(file: string): Buffer {
  let opened: number | null = null
  try {
    opened = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = fstatSync(opened)
    return stat.isFile() && stat.size <= FILE_BYTES_MAX ? readFileSync(opened) : Buffer.alloc(0)
  } catch {
    return Buffer.alloc(0)
  } finally {
    if (opened !== null) closeSync(opened)
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}
