// Finds the protected paths within the workspace, before every command and after it. It only looks: sandbox.ts closes
// the found paths, and protected-changes.ts compares. A folder that has not changed since the last scan is not read
// again.
import { type Dirent, existsSync, lstatSync, opendirSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { readRegularFile, readGitlinks } from './git-index.ts'
import { isGitFolder, OBEYED, OBEYED_BY_GIT, PROTECTED, REBASE_ORDERS } from '../files/protected-names.ts'

/** All paths are relative to the workspace, with `/` between names; the workspace itself is ''. */
export type ProtectedScan = {
  /** Existing paths that are protected by their name, or because git obeys them. */
  readonly paths: ReadonlySet<string>
  /**
   * Files that commands may write, with the lines in them that git would run. New lines of this kind are not allowed.
   */
  readonly orders: ReadonlyMap<string, readonly string[]>
  readonly folders: ReadonlyMap<string, ScannedFolder>
  /** Folders that were not scanned, with the reason. */
  readonly unseen: ReadonlyMap<string, string>
  /** There are more folders than the limit allows to scan. */
  readonly partly: boolean
}

/** The content of a folder. While its stamp is the same, nothing in it was added, removed or renamed. */
type ScannedFolder = {
  readonly stamp: string
  /**
   * It changed long enough before the scan that a later change gets another time. Some file systems count in steps of
   * two seconds.
   */
  readonly settled: boolean
  readonly folders: readonly string[]
  readonly named: readonly string[]
  readonly links: readonly string[]
  /** The names of its index files, if git treats it as a repository. */
  readonly indexes: readonly string[] | null
}

type ScanBounds = { readonly now: number; readonly foldersMax: number }

/** The limit for a workspace before a command; the command may add as many again. */
export const FOLDERS_MAX = 50_000
const SUBFOLDERS_MAX = 200_000
const SETTLED_MS = 3_000
/** A folder of this size on disk is read piece by piece. */
const LISTED_BYTES_MAX = 16 * 1024 * 1024
/** Git's own folders in a repository: no working tree lies in them. */
const GITS_OWN = new Set(['objects', 'refs', 'logs', 'hooks', 'info', 'branches', 'lfs', 'rr-cache'])
/** Packages often contain such files. Files that are moved out of these folders are scanned. */
const SKIPPED = new Set(['node_modules', '.venv', 'venv', 'vendor'])

export const NOTHING_SEEN: ProtectedScan = {
  paths: new Set(),
  orders: new Map(),
  folders: new Map(),
  unseen: new Map(),
  partly: false,
}

/** Folders that existed before are scanned first, so the folders beyond the limit are new ones. */
export function scanProtected(
  workspace: string,
  before: ProtectedScan,
  { now, foldersMax }: ScanBounds,
): ProtectedScan {
  const paths = new Set<string>()
  const orders = new Map<string, readonly string[]>()
  const folders = new Map<string, ScannedFolder>()
  const unseen = new Map<string, string>()
  const queued = new Set<string>()
  const [known, fresh]: [string[], string[]] = [[], []]
  const add = (folder: string): void => {
    if (queued.has(folder)) return
    queued.add(folder)
    ;(before.folders.has(folder) ? known : fresh).push(folder)
  }
  let partly = false
  add('')
  for (let next = known.pop() ?? fresh.pop(); next !== undefined; next = known.pop() ?? fresh.pop()) {
    const folder: string = next
    partly ||= folders.size >= foldersMax
    const seen =
      folders.size >= foldersMax ? 'too many' : scanFolder(workspace, folder, before.folders.get(folder), now)
    if (seen === 'no folder') {
      paths.add(folder)
      for (const named of namedGitFolder(workspace, folder)) add(named)
    } else if (typeof seen === 'string') unseen.set(folder, seen)
    if (seen === null || typeof seen === 'string') continue
    folders.set(folder, seen)
    for (const path of seen.named) {
      paths.add(path)
      if (isGitName(basename(path))) for (const named of namedGitFolder(workspace, path)) add(named)
    }
    for (const inner of seen.folders) add(inner)
    for (const link of seen.links) {
      for (const led of linkedFolders(workspace, link)) add(led)
      for (const path of protectedBehindLink(workspace, link)) paths.add(path)
    }
    if (seen.indexes === null) continue
    const repository = scanRepository(workspace, folder, seen.indexes)
    for (const path of repository.obeyed) paths.add(path)
    for (const git of repository.modules) add(git)
    for (const [file, lines] of repository.orders) orders.set(file, lines)
  }
  return { paths, orders, folders, unseen, partly }
}

/** Compares the end of the path: the folders above it were checked before. Some file systems ignore case. */
export function isProtectedName(name: string, folder: string): boolean {
  // This runs for every file, and nearly always the name alone decides.
  if (!LAST_NAMES.has(name.toLowerCase())) return false
  const whole = `/${folder}/${name}`.toLowerCase()
  return ENDINGS.some((ending) => whole.endsWith(ending))
}

const ENDINGS = [...PROTECTED, ...OBEYED].map((path) => `/${path.toLowerCase()}`)
const LAST_NAMES: ReadonlySet<string> = new Set(ENDINGS.map((ending) => basename(ending)))

export function isSkipped(folder: string): boolean {
  return SKIPPED.has(basename(folder))
}

/**
 * A `.git` that is not a folder names another place, and is obeyed itself. Null if the folder does not exist. A text is
 * the reason why it was not scanned.
 */
function scanFolder(
  workspace: string,
  folder: string,
  before: ScannedFolder | undefined,
  now: number,
): ScannedFolder | string | null {
  const whole = join(workspace, folder)
  const isGit = isGitName(basename(folder))
  let [stamp, isOurs] = ['', true]
  try {
    const stat = isGit ? statSync(whole) : lstatSync(whole)
    const { dev, ino, mode, mtimeMs, ctimeMs, size } = stat
    if (!stat.isDirectory()) return isGit ? 'no folder' : null
    stamp = `${dev} ${ino} ${mode} ${mtimeMs} ${ctimeMs}`
    isOurs = stat.uid === process.getuid?.()
    if (before?.settled === true && before.stamp === stamp) return before
    const entries = size > LISTED_BYTES_MAX ? streamEntries(whole) : readdirSync(whole, { withFileTypes: true })
    const settled = now - Math.max(mtimeMs, ctimeMs) > SETTLED_MS
    return classifyEntries(entries, folder, { stamp, settled }) ?? `too many folders ${stamp}`
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    if (isGit && code === 'ENOENT') return existsSync(dirname(whole)) && entryExists(whole) ? 'no folder' : null
    // An unreadable folder of another user was not made by a command and cannot be changed by one.
    return isOurs ? `${code} ${stamp}` : null
  }
}

function classifyEntries(
  entries: Iterable<Dirent>,
  folder: string,
  seen: { readonly stamp: string; readonly settled: boolean },
): ScannedFolder | null {
  const [folders, named, links, names]: [string[], string[], string[], string[]] = [[], [], [], []]
  const isInGit = folder.split('/').some(isGitName)
  for (const entry of entries) {
    const { name } = entry
    const path = folder === '' ? name : `${folder}/${name}`
    if (GIT_NAMES.has(name) || isIndex(name)) names.push(name)
    if (isGitName(name)) (entry.isDirectory() || entry.isSymbolicLink() ? folders : named).push(path)
    else if (isProtectedName(name, folder)) named.push(path)
    else if (SKIPPED.has(name) && !isInGit) continue
    else if (entry.isSymbolicLink()) links.push(path)
    else if (entry.isDirectory()) folders.push(path)
    if (folders.length > SUBFOLDERS_MAX) return null
  }
  const isRepository =
    isGitName(basename(folder)) ||
    isGitFolder((name) => names.includes(name)) ||
    // A later git command may complete it to a repository.
    (OF_SUBMODULES.test(folder) && OBEYED_BY_GIT.some((name) => names.includes(name)))
  if (!isRepository) return { ...seen, folders, named, links, indexes: null }
  const places = isInGit ? folders.filter((path) => !GITS_OWN.has(basename(path))) : folders
  return { ...seen, folders: places, named, links, indexes: names.filter(isIndex) }
}

const GIT_NAMES: ReadonlySet<string> = new Set(['HEAD', 'objects', ...OBEYED_BY_GIT])
/** The folder in which a repository keeps those of its submodules. */
const OF_SUBMODULES = /(?:^|\/)\.git\/modules\//i

function isGitName(name: string): boolean {
  return name === '.git' || name.toLowerCase() === '.git'
}

function isIndex(name: string): boolean {
  return name === 'index' || name.startsWith('sharedindex.')
}

/** Reads piece by piece, for a folder whose list would fill the memory. */
function* streamEntries(folder: string): Iterable<Dirent> {
  const opened = opendirSync(folder, { bufferSize: 1_024 })
  try {
    for (let entry = opened.readSync(); entry !== null; entry = opened.readSync()) yield entry
  } finally {
    opened.closeSync()
  }
}

/** A link is another name of a folder, and may be the only one that is not skipped. */
function linkedFolders(workspace: string, link: string): readonly string[] {
  try {
    const real = realpathSync(join(workspace, link))
    return statSync(real).isDirectory() ? pathWithin(workspace, real) : []
  } catch {
    return []
  }
}

/** Returns the path relative to the workspace, or nothing if it is outside. */
function pathWithin(workspace: string, path: string): readonly string[] {
  const way = relative(workspace, path)
  return way === '' || way === '..' || way.startsWith('../') ? [] : [way]
}

/** Protected paths of several names, whose first names are this link. */
function protectedBehindLink(workspace: string, link: string): readonly string[] {
  const spelled = `/${link}`.toLowerCase()
  return RUNS.flatMap((names) =>
    names
      .map((_, at) => at)
      .filter((at) => at > 0 && spelled.endsWith(`/${names.slice(0, at).join('/').toLowerCase()}`))
      .map((at) => [link, ...names.slice(at)].join('/'))
      .filter((path) => existsSync(join(workspace, path))),
  )
}

const RUNS = PROTECTED.map((path) => path.split('/')).filter((names) => names.length > 1)

/** The real repository folder, as the `.git` file names it. It may lie in a skipped folder. */
function namedGitFolder(workspace: string, file: string): readonly string[] {
  const named = /^gitdir: (.+)$/m.exec(fileText(join(workspace, file)))?.[1]?.trim()
  return named === undefined ? [] : pathWithin(workspace, resolve(workspace, dirname(file), named))
}

type ScannedRepository = {
  readonly obeyed: readonly string[]
  /** The `.git` of its own files, of its submodules and of its worktrees. They may lie in skipped folders. */
  readonly modules: readonly string[]
  readonly orders: readonly (readonly [string, readonly string[]])[]
}

function scanRepository(workspace: string, folder: string, indexes: readonly string[]): ScannedRepository {
  const whole = join(workspace, folder)
  const config = fileText(join(whole, 'config'))
  const worktree = /^[ \t]*worktree[ \t]*=(.+)$/im.exec(config)?.[1]?.trim() || undefined
  const link = fileText(join(whole, 'gitdir')).trim()
  const root = resolve(whole, worktree ?? (link === '' ? '..' : dirname(link)))
  const within = (path: string): readonly string[] => pathWithin(workspace, path)
  const hashBytes = /^[ \t]*objectformat[ \t]*=\s*sha256/im.test(config) ? 32 : 20
  const orders: (readonly [string, readonly string[]])[] = []
  const links = indexes.flatMap((name) => {
    const bytes = readRegularFile(join(whole, name))
    if (bytes === null) orders.push([`${folder}/${name}`, ['too large to be read']])
    return bytes === null ? [] : readGitlinks(bytes, hashBytes)
  })
  const todo = rebaseCommands(join(whole, REBASE_ORDERS))
  if (todo.length > 0) orders.push([`${folder}/${REBASE_ORDERS}`, todo])
  const own = isGitName(basename(folder)) || (worktree ?? link) === '' ? [] : ['']
  const places = ['config', 'config.worktree'].flatMap((name) => includedPlaces(join(whole, name), [root, whole]))
  return {
    obeyed: [
      ...OBEYED_BY_GIT.map((name) => `${folder}/${name}`),
      // Leave out a place that contains the repository itself: all of it would be closed.
      ...places.filter((path) => !`${whole}/`.startsWith(`${path}/`)).flatMap(within),
    ].filter((path) => existsSync(join(workspace, path))),
    modules: [...own, ...links].flatMap((path) => within(resolve(root, path, '.git'))),
    orders,
  }
}

/**
 * Places from which git takes settings and programs, possibly in the workspace: the values of `include.path`,
 * `core.hooksPath` and `init.templateDir`, and those of the included files in turn, whatever the condition. `bases` are
 * the folders from which hooks are resolved.
 */
function includedPlaces(config: string, bases: readonly string[]): readonly string[] {
  const places = new Set<string>()
  const files = new Set([config])
  for (const file of files) {
    const text = fileText(file)
    for (const { index, 0: start, 1: key = '' } of text.matchAll(NAMED_PLACES)) {
      const path = configValueAt(text, index + start.length).replace(/^~(?=\/)/, homedir())
      const isInclude = key.toLowerCase() === 'path'
      const found = [...(isInclude ? [] : bases), dirname(file)].map((base) => resolve(base, path))
      for (const place of found) places.add(place)
      if (isInclude && files.size < INCLUDED_MAX) for (const place of found) files.add(place)
    }
  }
  return [...places]
}

const NAMED_PLACES = /\b(hookspath|path|templatedir)\s*=/gi
const INCLUDED_MAX = 100

/** Reads a value as git does: quoted in parts, with escapes, and over several lines that end with a backslash. */
function configValueAt(text: string, from: number): string {
  let value = ''
  let isQuoted = false
  for (let at = from; at < text.length && text[at] !== '\n'; at++) {
    const char = text[at] ?? ''
    if (char === '"') isQuoted = !isQuoted
    else if (char === '\\') {
      at++
      if (text[at] === '\r' && text[at + 1] === '\n') at++
      if (text[at] !== '\n') value += text[at] ?? ''
    } else if (!isQuoted && (char === '#' || char === ';')) break
    else value += char
  }
  return value.trim()
}

/** The commands that an unfinished rebase would run when the user continues it. */
function rebaseCommands(todo: string): readonly string[] {
  const bytes = readRegularFile(todo)
  if (bytes === null) return ['too large to be read']
  const lines = bytes.toString('utf8').split('\n')
  return lines.map((line) => line.trim()).filter((line) => /^(exec|x)(\s|$)/.test(line))
}

function fileText(file: string): string {
  return readRegularFile(file)?.toString('utf8') ?? ''
}

export function entryExists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}
