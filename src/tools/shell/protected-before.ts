// What is protected within the workspace, looked for before every command and after it. Only looks: sandbox.ts closes what is
// found, and protected-after.ts compares. A folder that has not changed since the last look is not read again.
import { type Dirent, existsSync, lstatSync, opendirSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { bytesOf, gitlinksOf } from './git-index.ts'
import { isGitFolder, OBEYED, OBEYED_BY_GIT, PROTECTED, REBASE_ORDERS } from '../files/protected.ts'

/** All paths are from the workspace, with `/` between names; the workspace itself is ''. */
export type Look = {
  /** What is protected and there: by its name, or because git obeys it. */
  readonly paths: ReadonlySet<string>
  /** Files that commands may write, but not all that can stand in them: what git would run, line by line. */
  readonly orders: ReadonlyMap<string, readonly string[]>
  readonly folders: ReadonlyMap<string, Seen>
  /** Folders that were not looked into, and why. */
  readonly unseen: ReadonlyMap<string, string>
  /** There are more folders than are looked into. */
  readonly partly: boolean
}

/** What a folder holds. As long as its stamp is the same, nothing in it was added, removed or renamed. */
type Seen = {
  readonly stamp: string
  /** Changed long enough before it was read that a later change has another time. Some file systems count in two seconds. */
  readonly settled: boolean
  readonly folders: readonly string[]
  readonly named: readonly string[]
  readonly links: readonly string[]
  /** The names of its index files, if git takes it for a repository. */
  readonly indexes: readonly string[] | null
}

type Bounds = { readonly now: number; readonly foldersMax: number }

/** Of a workspace before a command, and as many more that a command may make. */
export const FOLDERS_MAX = 50_000
const SUBFOLDERS_MAX = 200_000
const SETTLED_MS = 3_000
/** A folder of this size, as the file system counts it, is read piece by piece. */
const LISTED_BYTES_MAX = 16 * 1024 * 1024
/** Folders of git itself in a repository: no working tree lies in them. */
const GITS_OWN = new Set(['objects', 'refs', 'logs', 'hooks', 'info', 'branches', 'lfs', 'rr-cache'])
/** Packages of others bring such files along. What is moved out of there is looked at. */
const SKIPPED = new Set(['node_modules', '.venv', 'venv', 'vendor'])

export const NOTHING_SEEN: Look = {
  paths: new Set(),
  orders: new Map(),
  folders: new Map(),
  unseen: new Map(),
  partly: false,
}

/** Folders that were there before come first: what is not looked into because of the bound is new. */
export function lookAround(workspace: string, before: Look, { now, foldersMax }: Bounds): Look {
  const paths = new Set<string>()
  const orders = new Map<string, readonly string[]>()
  const folders = new Map<string, Seen>()
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
    const seen = folders.size >= foldersMax ? 'too many' : see(workspace, folder, before.folders.get(folder), now)
    if (seen === 'no folder') {
      paths.add(folder)
      for (const named of namedBy(workspace, folder)) add(named)
    } else if (typeof seen === 'string') unseen.set(folder, seen)
    if (seen === null || typeof seen === 'string') continue
    folders.set(folder, seen)
    for (const path of seen.named) {
      paths.add(path)
      if (isGitName(basename(path))) for (const named of namedBy(workspace, path)) add(named)
    }
    for (const inner of seen.folders) add(inner)
    for (const link of seen.links) {
      for (const led of leadsWithin(workspace, link)) add(led)
      for (const path of protectedBehind(workspace, link)) paths.add(path)
    }
    if (seen.indexes === null) continue
    const repository = repositoryAt(workspace, folder, seen.indexes)
    for (const path of repository.obeyed) paths.add(path)
    for (const git of repository.modules) add(git)
    for (const [file, lines] of repository.orders) orders.set(file, lines)
  }
  return { paths, orders, folders, unseen, partly }
}

/** By how the path ends: what stands above it was looked at before. Some file systems do not tell cases apart. */
export function isProtectedName(name: string, folder: string): boolean {
  // This is asked of every file, and nearly always the name alone says no.
  if (!LAST_NAMES.has(name.toLowerCase())) return false
  const whole = `/${folder}/${name}`.toLowerCase()
  return ENDINGS.some((ending) => whole.endsWith(ending))
}

const ENDINGS = [...PROTECTED, ...OBEYED].map((path) => `/${path.toLowerCase()}`)
const LAST_NAMES: ReadonlySet<string> = new Set(ENDINGS.map((ending) => basename(ending)))

export function isSkipped(folder: string): boolean {
  return SKIPPED.has(basename(folder))
}

/** A `.git` that is no folder names another place, and is obeyed itself. Null for one that is not there. Else a text says why not. */
function see(workspace: string, folder: string, before: Seen | undefined, now: number): Seen | string | null {
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
    const entries = size > LISTED_BYTES_MAX ? entriesOf(whole) : readdirSync(whole, { withFileTypes: true })
    const settled = now - Math.max(mtimeMs, ctimeMs) > SETTLED_MS
    return read(entries, folder, { stamp, settled }) ?? `too many folders ${stamp}`
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    if (isGit && code === 'ENOENT') return existsSync(dirname(whole)) && isLink(whole) ? 'no folder' : null
    // What may not be listed and belongs to another user was not made by a command, and is not changed by one.
    return isOurs ? `${code} ${stamp}` : null
  }
}

function read(
  entries: Iterable<Dirent>,
  folder: string,
  seen: { readonly stamp: string; readonly settled: boolean },
): Seen | null {
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
    // A later git may make a repository of what is there of one.
    (OF_SUBMODULES.test(folder) && OBEYED_BY_GIT.some((name) => names.includes(name)))
  if (!isRepository) return { ...seen, folders, named, links, indexes: null }
  const places = isInGit ? folders.filter((path) => !GITS_OWN.has(basename(path))) : folders
  return { ...seen, folders: places, named, links, indexes: names.filter(isIndex) }
}

const GIT_NAMES: ReadonlySet<string> = new Set(['HEAD', 'objects', ...OBEYED_BY_GIT])
/** Where a repository keeps those of its submodules. */
const OF_SUBMODULES = /(?:^|\/)\.git\/modules\//i

function isGitName(name: string): boolean {
  return name === '.git' || name.toLowerCase() === '.git'
}

function isIndex(name: string): boolean {
  return name === 'index' || name.startsWith('sharedindex.')
}

/** Piece by piece, for a folder whose list would fill the memory. */
function* entriesOf(folder: string): Iterable<Dirent> {
  const opened = opendirSync(folder, { bufferSize: 1_024 })
  try {
    for (let entry = opened.readSync(); entry !== null; entry = opened.readSync()) yield entry
  } finally {
    opened.closeSync()
  }
}

/** A link is another name of a folder, and may be the only one that is not skipped. */
function leadsWithin(workspace: string, link: string): readonly string[] {
  try {
    const real = realpathSync(join(workspace, link))
    return statSync(real).isDirectory() ? wayTo(workspace, real) : []
  } catch {
    return []
  }
}

/** From the workspace, to what is in it. */
function wayTo(workspace: string, path: string): readonly string[] {
  const way = relative(workspace, path)
  return way === '' || way === '..' || way.startsWith('../') ? [] : [way]
}

/** What is protected by more than one name, and the link is one of the first of them. */
function protectedBehind(workspace: string, link: string): readonly string[] {
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

/** The folder that a `.git` file names, in which the repository really is. It may lie in a folder that is skipped. */
function namedBy(workspace: string, file: string): readonly string[] {
  const named = /^gitdir: (.+)$/m.exec(fileText(join(workspace, file)))?.[1]?.trim()
  return named === undefined ? [] : wayTo(workspace, resolve(workspace, dirname(file), named))
}

type Repository = {
  readonly obeyed: readonly string[]
  /** Where its own files, its submodules and its worktrees have their `.git`. They may lie in folders that are skipped. */
  readonly modules: readonly string[]
  readonly orders: readonly (readonly [string, readonly string[]])[]
}

function repositoryAt(workspace: string, folder: string, indexes: readonly string[]): Repository {
  const whole = join(workspace, folder)
  const config = fileText(join(whole, 'config'))
  const worktree = /^[ \t]*worktree[ \t]*=(.+)$/im.exec(config)?.[1]?.trim() || undefined
  const link = fileText(join(whole, 'gitdir')).trim()
  const root = resolve(whole, worktree ?? (link === '' ? '..' : dirname(link)))
  const within = (path: string): readonly string[] => wayTo(workspace, path)
  const hashBytes = /^[ \t]*objectformat[ \t]*=\s*sha256/im.test(config) ? 32 : 20
  const orders: (readonly [string, readonly string[]])[] = []
  const links = indexes.flatMap((name) => {
    const bytes = bytesOf(join(whole, name))
    if (bytes === null) orders.push([`${folder}/${name}`, ['too large to be read']])
    return bytes === null ? [] : gitlinksOf(bytes, hashBytes)
  })
  const todo = ordersIn(join(whole, REBASE_ORDERS))
  if (todo.length > 0) orders.push([`${folder}/${REBASE_ORDERS}`, todo])
  const own = isGitName(basename(folder)) || (worktree ?? link) === '' ? [] : ['']
  const places = ['config', 'config.worktree'].flatMap((name) => placesIn(join(whole, name), [root, whole]))
  return {
    obeyed: [
      ...OBEYED_BY_GIT.map((name) => `${folder}/${name}`),
      // Not a place that holds the repository itself: all of it would be closed.
      ...places.filter((path) => !`${whole}/`.startsWith(`${path}/`)).flatMap(within),
    ].filter((path) => existsSync(join(workspace, path))),
    modules: [...own, ...links].flatMap((path) => within(resolve(root, path, '.git'))),
    orders,
  }
}

/**
 * Settings and programs that git takes from elsewhere, and so perhaps from the workspace: what `include.path`, `core.hooksPath` and
 * `init.templateDir` name, and what the included files name in turn, whatever the condition. `bases` are where hooks may be found from.
 */
function placesIn(config: string, bases: readonly string[]): readonly string[] {
  const places = new Set<string>()
  const files = new Set([config])
  for (const file of files) {
    const text = fileText(file)
    for (const { index, 0: start, 1: key = '' } of text.matchAll(NAMED_PLACES)) {
      const path = valueAt(text, index + start.length).replace(/^~(?=\/)/, homedir())
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

/** A value as git reads it: quoted in parts, with escapes, and over several lines where they end with a backslash. */
function valueAt(text: string, from: number): string {
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

/** What a rebase that was begun would run when the user goes on with it. */
function ordersIn(todo: string): readonly string[] {
  const bytes = bytesOf(todo)
  if (bytes === null) return ['too large to be read']
  const lines = bytes.toString('utf8').split('\n')
  return lines.map((line) => line.trim()).filter((line) => /^(exec|x)(\s|$)/.test(line))
}

function fileText(file: string): string {
  return bytesOf(file)?.toString('utf8') ?? ''
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}
