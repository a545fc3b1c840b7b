// Worktrees of children: a folder and a branch of its own for each, made before the child starts and found again after a crash.
// A record beside the folder says whose it is and where it began. What git is told is git.ts.
import { createHash } from 'node:crypto'
import { lstat, mkdir, readdir, readFile, realpath, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { isObject, parsed } from '../../view/json.ts'
import { WORKTREES } from '../files/own-places.ts'
import { isErrno } from '../files/paths.ts'
import {
  git,
  gitFailed,
  makeLinkedFolders,
  openRepository,
  type Repository,
  type Setting,
  told,
  trouble,
  worktreeAt,
} from './git.ts'

/** `head`: the commit that is checked out. `fresh`: the default branch of `origin`, as it was last fetched. */
export type BaseRef = 'head' | 'fresh'

export type Worktree = {
  /** Its own, or that of the session that works there. */
  readonly id: string
  readonly parent: string
  /** The commit it began with. */
  readonly base: string
  readonly branch: string
  readonly path: string
  /** Where its tools work: the same folder in the worktree as the parent's in the repository. */
  readonly folder: string
}

export type Wanted = {
  /** The parent's folder. */
  readonly folder: string
  readonly id: string
  readonly parent: string
  readonly base?: BaseRef
}

type Record = Omit<Worktree, 'path' | 'folder'> & { readonly ready: boolean }

/** What is always in the way of a worktree, and where the others of this folder are. */
type Ground = Repository & { readonly room: string; readonly inside: string }

const NAME_CHARS_MAX = 40
const HASH_CHARS = 10
const RECORD_BYTES_MAX = 16_384

/** Makes the worktree of a session, or finds it again. Uncommitted changes of the parent are not in it. */
export async function makeWorktree({ folder, id, parent, base = 'head' }: Wanted): Promise<Worktree> {
  const ground = await groundOf(folder)
  const name = worktreeName(id)
  const known = await recordOf(ground, name)
  if (known !== null && known.id !== id) throw trouble('WorktreeTaken', `Another session has the worktree ${name}.`)
  if (known?.ready && (await isFolder(join(ground.room, name)))) {
    await checkOut(ground, join(ground.room, name))
    return placed(ground, name, known)
  }
  const record = known ?? (await recordWorktree(ground, { id, parent, base, name }))
  if (known?.ready) await added(ground, name, ['--force', join(ground.room, name), record.branch])
  else {
    // It was killed while it was made: no child has worked there yet.
    if (known !== null) await cleared(ground, name, record)
    await fresh(ground, name, record)
  }
  await written(ground, name, { ...record, ready: true })
  return placed(ground, name, record)
}

/** Makes the worktree at `place` again, if it was taken away; nothing if `place` is none. `id` is of the session that works there. */
export async function restoreWorktree({ folder, id, parent }: Wanted, place: string): Promise<void> {
  if (await isFolder(place)) return
  const { room } = await groundOf(folder)
  const [name = ''] = relative(room, place).split(sep)
  const own = [id, name.slice(0, name.lastIndexOf('-'))].find((one) => worktreeName(one) === name)
  if (own !== undefined) await makeWorktree({ folder, id: own, parent })
}

/** The worktrees of a folder, by the ids of their sessions. */
export async function worktreesOf(folder: string): Promise<readonly Worktree[]> {
  const ground = await groundOf(folder)
  const entries = await readdir(ground.room).catch(() => [])
  const names = entries.flatMap((entry) => (entry.endsWith('.json') ? [entry.slice(0, -'.json'.length)] : [])).sort()
  const found = await Promise.all(
    names.map(async (name) => {
      const record = await recordOf(ground, name)
      const there = record?.ready && worktreeName(record.id) === name && (await isFolder(join(ground.room, name)))
      return record && there ? [placed(ground, name, record)] : []
    }),
  )
  return found.flat()
}

/** By its id, its branch or its path: a report has the last two. */
export async function worktreeOf(folder: string, id: string): Promise<Worktree> {
  const found = (await worktreesOf(folder)).find((one) => [one.id, one.branch, one.path].includes(id))
  if (!found) throw trouble('WorktreeMissing', `There is no worktree of ${id} in ${folder}. List them first.`)
  return found
}

export type Changes = {
  /** All files that differ from the commit it began with, from the top of the worktree. */
  readonly files: readonly string[]
  /** Repositories that were made inside of it: git does not keep what is in them. */
  readonly nested: readonly string[]
}

/** `folder` is the parent's. */
export async function changesOf(folder: string, worktree: Worktree): Promise<Changes> {
  return changesIn(await groundOf(folder), worktree)
}

async function changesIn(ground: Ground, { path, base }: Worktree): Promise<Changes> {
  const at = await withinOf(ground, path)
  const [status, log] = await Promise.all([
    told(at, ['status', '--porcelain=v1', '-z', '--untracked-files=all', '--no-renames', NOT_INSIDE]),
    told(at, ['diff', '--name-only', '-z', '--no-ext-diff', '--no-textconv', '--no-renames', NOT_INSIDE, base, 'HEAD']),
  ])
  const open = status.split('\0').flatMap((line) => (line === '' ? [] : [line.slice(3)]))
  const files = new Set([...open, ...log.split('\0').filter((file) => file !== '')])
  const nested = open.filter((file) => file.endsWith('/'))
  return { files: [...files].sort(), nested }
}

/** Else git is started in every repository within this one, and reads the settings of those. */
const NOT_INSIDE = '--ignore-submodules=dirty'

export type Overlap = { readonly file: string; readonly with: readonly string[] }

/** The files of a worktree that other worktrees of the same parent have changed too, with the sessions that did. */
export async function overlapsOf(folder: string, own: Worktree): Promise<readonly Overlap[]> {
  const ground = await groundOf(folder)
  const others = (await worktreesOf(folder)).filter(({ id, parent }) => id !== own.id && parent === own.parent)
  if (others.length === 0) return []
  const mine = new Set((await changesIn(ground, own)).files)
  const found = new Map<string, string[]>()
  for (const other of others)
    for (const file of (await changesIn(ground, other)).files)
      if (mine.has(file)) found.set(file, [...(found.get(file) ?? []), other.id])
  return [...found].map(([file, ids]) => ({ file, with: ids }))
}

/** Takes the worktree away. One with changes only with `force`. */
export async function discardWorktree(folder: string, id: string, force = false): Promise<void> {
  const ground = await groundOf(folder)
  const found = await worktreeOf(folder, id)
  const { files } = await changesIn(ground, found)
  if (files.length > 0 && !force && !(await isMerged(ground, found))) {
    const message = `The worktree of ${id} has changes in ${listed(files)}. Merge it, or discard it with force to lose them.`
    throw trouble('WorktreeDirty', message, { files: files.slice(0, FILES_MAX) })
  }
  await removed(ground, found)
}

const FILES_MAX = 1_000

export type Merged = { readonly branch: string; readonly into: string; readonly files: readonly string[] }

/** Commits what the worktree holds, merges it into the branch of the parent's folder, and takes it away. A conflict changes nothing. */
export async function mergeWorktree(folder: string, id: string): Promise<Merged> {
  const ground = await groundOf(folder)
  const found = await worktreeOf(folder, id)
  const into = await git(ground, ['symbolic-ref', '--short', '-q', 'HEAD'])
  if (into.code !== 0)
    throw trouble('WorktreeDetached', `${folder} has no branch checked out to merge into. Check one out and try again.`)
  const { files, nested: fresh } = await changesIn(ground, found)
  const nested = [...fresh, ...(await knownNested(ground, found))]
  if (nested.length > 0)
    throw trouble(
      'WorktreeNested',
      `${listed(nested)} in the worktree of ${id} is a repository of its own. Move it away first.`,
    )
  await committed(ground, found)
  const args = ['merge', '--no-ff', '--no-edit', '-m', `Merge ${found.branch}`, found.branch]
  const ran = await git(ground, args, { settings: await identity(ground) })
  if (ran.code !== 0) throw await unmerged(ground, id, ran)
  await removed(ground, found)
  return { branch: found.branch, into: into.stdout.trim(), files }
}

async function unmerged(ground: Ground, id: string, ran: Parameters<typeof gitFailed>[1]) {
  const open = (await git(ground, ['diff', '--name-only', '-z', '--diff-filter=U', NOT_INSIDE])).stdout
    .split('\0')
    .filter(Boolean)
  if (open.length === 0) return gitFailed(['merge'], ran)
  await told(ground, ['merge', '--abort'])
  const message = `The worktree of ${id} changes the same lines as the parent in ${listed(open)}. Nothing was merged, and both are as they were.`
  return trouble('WorktreeConflict', message, { files: open.slice(0, FILES_MAX) })
}

/** At the end of a parent: its worktrees without changes are removed, but not those in use. Those that stay are returned. */
export async function sweepWorktrees(
  folder: string,
  parent: string,
  isUsed: (worktree: Worktree) => Promise<boolean> = async () => false,
): Promise<readonly Worktree[]> {
  const ground = await groundOf(folder)
  const left: Worktree[] = []
  for (const found of (await worktreesOf(folder)).filter((one) => one.parent === parent)) {
    const { files } = await changesIn(ground, found)
    const clean = files.length === 0 && (await isAtBase(ground, found)) && !(await hasInside(found))
    if (!clean || (await isUsed(found))) left.push(found)
    else await removed(ground, found)
  }
  return left
}

/** Worktrees of children of the one that works here. */
async function hasInside({ folder }: Worktree): Promise<boolean> {
  return (await readdir(join(folder, WORKTREES)).catch(() => [])).some((entry) => entry.endsWith('.json'))
}

/** Safe as a folder and as a branch, and apart from those of all other ids. */
export function worktreeName(id: string): string {
  const words = id.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '')
  return `${words.slice(-NAME_CHARS_MAX).replace(/^-+/, '') || 'x'}-${createHash('sha256').update(id).digest('hex').slice(0, HASH_CHARS)}`
}

async function groundOf(folder: string): Promise<Ground> {
  const real = await realpath(folder).catch(() => null)
  if (real === null) throw trouble('WorktreeNoRepository', `The folder ${folder} is not there.`)
  const at = await openRepository(real)
  if (typeof at === 'string')
    throw trouble('WorktreeNoRepository', `${folder} ${at}, so it has no worktrees. Use isolation "none".`)
  for (const part of ['.terret', WORKTREES]) await checkFolder(join(real, part))
  return { ...at, room: join(real, WORKTREES), inside: relative(at.top, real) }
}

async function checkFolder(path: string): Promise<void> {
  const seen = await lstat(path).catch((error: unknown) => (isErrno(error, 'ENOENT') ? null : 'unreadable'))
  if (seen === null || (typeof seen === 'object' && seen.isDirectory())) return
  throw trouble('WorktreePlace', `${path} must be a folder, and no link. Move it away to use worktrees.`)
}

/** Chooses the commit and writes the record: from here on the branch of that name is ours. */
async function recordWorktree(
  ground: Ground,
  { id, parent, base, name }: { id: string; parent: string; base: BaseRef; name: string },
): Promise<Record> {
  const commit = await commitOf(ground, base)
  const branch = `terret/${name}`
  const modules = await git(ground, ['cat-file', '-e', `${commit}:.gitmodules`])
  if (modules.code === 0)
    throw trouble(
      'WorktreeSubmodules',
      'The repository has submodules, which worktrees do not have. Use isolation "none".',
    )
  const taken = await git(ground, ['show-ref', '--verify', '--quiet', `refs/heads/${branch}`])
  if (taken.code === 0 || (await git(ground, ['show-ref', '--verify', '--quiet', 'refs/heads/terret'])).code === 0)
    throw trouble(
      'WorktreeBranch',
      `A branch ${taken.code === 0 ? branch : 'terret'} is there already. Rename or delete it.`,
    )
  if (await isThere(join(ground.room, name)))
    throw trouble('WorktreePlace', `${join(ground.room, name)} is there already. Move it away.`)
  const record = { id, parent, base: commit, branch, ready: false }
  await written(ground, name, record)
  return record
}

async function commitOf(ground: Ground, base: BaseRef): Promise<string> {
  const ref = base === 'head' ? 'HEAD' : 'refs/remotes/origin/HEAD'
  const found = await git(ground, ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`])
  const commit = found.stdout.trim()
  if (found.code === 0 && COMMIT.test(commit)) return commit
  if (base === 'head')
    throw trouble('WorktreeNoCommit', 'The repository has no commit yet. Commit once to use worktrees.')
  const message =
    'The repository does not know the default branch of origin. Fetch it (git remote set-head origin -a), or use base_ref "head".'
  throw trouble('WorktreeNoRemote', message)
}

const COMMIT = /^[0-9a-f]{40,64}$/

/** A failed try leaves nothing behind. */
async function fresh(ground: Ground, name: string, record: Record): Promise<void> {
  try {
    await added(ground, name, ['-b', record.branch, join(ground.room, name), record.base])
    const { folder } = placed(ground, name, record)
    if (!(await isFolder(folder)))
      throw trouble(
        'WorktreeFolder',
        `${ground.inside} is not in the commit that the worktree begins with. Commit it first.`,
      )
  } catch (error) {
    await cleared(ground, name, record)
    await rm(recordPath(ground, name), { force: true })
    throw error
  }
}

/** It is locked until its files are there: one that was killed before that is finished by the next. */
async function added(ground: Ground, name: string, args: readonly string[]): Promise<void> {
  await makeLinkedFolders(ground)
  const ran = await git(ground, ['worktree', 'add', '--no-checkout', '--lock', ...args])
  if (ran.code !== 0) throw gitFailed([`worktree add (${name})`], ran)
  const path = join(ground.room, name)
  try {
    await checkOut(ground, path)
  } catch (error) {
    await git(ground, ['worktree', 'remove', '--force', '--force', path])
    throw error
  }
}

/** Writes the files of a worktree that has none yet, and the `.git` that leads to its repository. */
async function checkOut(ground: Ground, path: string): Promise<void> {
  const dir = await gitDirAt(ground.common, path)
  if (dir === null || (await readFile(join(dir, 'locked'), 'utf8').catch(() => '')).trim() !== LOCKED) return
  const at = await worktreeAt(ground, path, dir)
  await told(at, ['reset', '--hard', '--quiet', '--no-recurse-submodules'])
  await writeFile(join(path, '.git'), `gitdir: ${dir}\n`)
  await rm(join(dir, 'locked'))
}

/** What git writes for `--lock`. A person who locks a worktree gives a reason of their own, or none. */
const LOCKED = 'added with --lock'

async function cleared(ground: Ground, name: string, { branch, base }: Record): Promise<void> {
  const path = join(ground.room, name)
  await git(ground, ['worktree', 'remove', '--force', '--force', path])
  await rm(path, { recursive: true, force: true })
  const dir = await gitDirAt(ground.common, path)
  if (dir !== null) await rm(dir, { recursive: true, force: true })
  // Only while it is where it began.
  await git(ground, ['update-ref', '-d', `refs/heads/${branch}`, base])
}

async function removed(ground: Ground, { id, path, branch }: Worktree): Promise<void> {
  await told(ground, ['worktree', 'remove', '--force', '--force', path])
  await git(ground, ['branch', '-D', branch])
  // Git removes it with the last worktree, but not behind a link.
  await rmdir(join(ground.common, 'worktrees')).catch(() => {})
  await rm(recordPath(ground, worktreeName(id)), { force: true })
}

/** What the child left uncommitted, as one commit of its branch. */
async function committed(ground: Ground, { path, id }: Worktree): Promise<void> {
  const at = await withinOf(ground, path)
  await told(at, ['add', '--all'])
  if ((await git(at, ['diff', '--cached', '--quiet', '--no-ext-diff', NOT_INSIDE])).code === 0) return
  await told(at, ['commit', '--quiet', '--no-verify', '-m', `Work of ${id}`], { settings: await identity(ground) })
}

/** Repositories within the worktree that its index has already. `git add` would start another git in each of them. */
async function knownNested(ground: Ground, { path }: Worktree): Promise<readonly string[]> {
  const entries = (await told(await withinOf(ground, path), ['ls-files', '--stage', '-z'])).split('\0')
  const links = entries.flatMap((entry) => (entry.startsWith('160000 ') ? [entry.slice(entry.indexOf('\t') + 1)] : []))
  const there = await Promise.all(links.map((link) => isThere(join(path, link, '.git'))))
  return links.filter((_, i) => there[i])
}

/** The user's name, or one of our own where none is set. */
async function identity(at: Repository): Promise<readonly Setting[]> {
  const known = await git(at, ['var', 'GIT_COMMITTER_IDENT'], { settings: [['user.useConfigOnly', 'true']] })
  if (known.code === 0) return []
  return [
    ['user.name', 'Terret'],
    ['user.email', 'terret@localhost'],
  ]
}

async function isAtBase(ground: Ground, { branch, base }: Worktree): Promise<boolean> {
  return (await git(ground, ['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`])).stdout.trim() === base
}

/** All of it is in the parent's branch already: a merge was killed before it could tidy up. */
async function isMerged(ground: Ground, { path, branch }: Worktree): Promise<boolean> {
  const at = await withinOf(ground, path)
  const open = await told(at, ['status', '--porcelain', '-z', '--untracked-files=all', NOT_INSIDE])
  return open === '' && (await git(ground, ['merge-base', '--is-ancestor', branch, 'HEAD'])).code === 0
}

/** A worktree as git is called in it, found from the repository: a `.git` in the worktree itself is not believed. */
async function withinOf(ground: Ground, path: string): Promise<Repository> {
  const dir = await gitDirAt(ground.common, path)
  if (dir === null) throw trouble('WorktreeMissing', `git does not know the worktree ${path} any more.`)
  return worktreeAt(ground, path, dir)
}

async function gitDirAt(common: string, path: string): Promise<string | null> {
  const room = join(common, 'worktrees')
  for (const entry of await readdir(room).catch(() => [])) {
    const link = await readFile(join(room, entry, 'gitdir'), 'utf8').catch(() => '')
    if (link.trim() === join(path, '.git')) return join(room, entry)
  }
  return null
}

function placed({ room, inside }: Ground, name: string, { ready: _ready, ...record }: Record): Worktree {
  const path = join(room, name)
  return { ...record, path, folder: join(path, inside) }
}

function recordPath({ room }: Ground, name: string): string {
  return join(room, `${name}.json`)
}

/** Null if there is none. What is no record is refused: it is never guessed what it stood for. */
async function recordOf(ground: Ground, name: string): Promise<Record | null> {
  const path = recordPath(ground, name)
  const seen = await lstat(path).catch(() => null)
  if (seen === null) return null
  const text = seen.isFile() && seen.size <= RECORD_BYTES_MAX ? await readFile(path, 'utf8') : ''
  const { id, parent, base, ready } = asObject(parsed(text))
  const sound = typeof id === 'string' && typeof parent === 'string' && typeof ready === 'boolean'
  if (sound && typeof base === 'string' && COMMIT.test(base))
    return { id, parent, base, branch: `terret/${name}`, ready }
  throw trouble('WorktreeRecord', `${path} is damaged. Look at the worktree beside it, then delete the file.`)
}

function asObject(value: unknown): { readonly [name: string]: unknown } {
  return isObject(value) ? value : {}
}

/** In one step: a record is whole or not there. The parent's repository ignores all that is here. */
async function written(ground: Ground, name: string, record: Record): Promise<void> {
  await mkdir(ground.room, { recursive: true })
  await checkFolder(ground.room)
  const next = join(ground.room, `${name}.new`)
  await put(join(ground.room, '.gitignore'), '*\n', next)
  await put(recordPath(ground, name), `${JSON.stringify(record)}\n`, next)
}

async function put(path: string, text: string, next: string): Promise<void> {
  try {
    await writeFile(next, text, { flush: true })
    await rename(next, path)
  } catch (error) {
    await rm(next, { force: true })
    const full = isErrno(error, 'ENOSPC') || isErrno(error, 'EDQUOT')
    if (full) throw trouble('DiskFull', 'The disk is full, so no worktree could be made. Make room and try again.')
    throw trouble('WorktreePlace', `${path} cannot be written. Check its rights.`)
  }
}

async function isFolder(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null))?.isDirectory() === true
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) !== null
}

const LISTED_MAX = 10

export function listed(files: readonly string[]): string {
  const more = files.length - LISTED_MAX
  return `${files.slice(0, LISTED_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
