// Worktrees of children: each has a folder and a branch of its own, made before the child starts and found again after
// a crash. A record beside the folder holds its owner and its first commit. Git itself is called in run-git.ts.
import { createHash } from 'node:crypto'
import { lstat, mkdir, readdir, readFile, realpath, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { isObject, parseJson } from '../../view/untrusted-json.ts'
import { WORKTREES } from '../files/harness-folders.ts'
import { hasErrnoCode } from '../files/path-guard.ts'
import {
  runGit,
  gitFailure,
  makeLinkedFolders,
  openRepository,
  type GitRepository,
  type GitSetting,
  gitOutput,
  worktreeFailure,
  worktreeAt,
} from './run-git.ts'

/** `head`: the commit that is checked out. `addNewWorktree`: the default branch of `origin`, as it was last fetched. */
export type BaseRef = 'head' | 'fresh'

export type Worktree = {
  /** The id of the session that works there. */
  readonly id: string
  readonly parent: string
  /** The commit it began with. */
  readonly base: string
  readonly branch: string
  readonly path: string
  /** The working folder of its tools: the same folder in the worktree as the parent's in the repository. */
  readonly folder: string
}

export type WorktreeRequest = {
  /** The parent's folder. */
  readonly folder: string
  readonly id: string
  readonly parent: string
  readonly base?: BaseRef
}

type WorktreeRecord = Omit<Worktree, 'path' | 'folder'> & { readonly ready: boolean }

/**
 * The repository, the folder of all its worktrees (`room`), and the parent's folder within the working tree (`inside`).
 */
type WorktreeContext = GitRepository & { readonly room: string; readonly inside: string }

const NAME_CHARS_MAX = 40
const HASH_CHARS = 10
const RECORD_BYTES_MAX = 16_384

/** Makes the worktree of a session, or finds it again. It does not contain the parent's uncommitted changes. */
export async function makeWorktree({ folder, id, parent, base = 'head' }: WorktreeRequest): Promise<Worktree> {
  const ground = await openWorktreeContext(folder)
  const name = worktreeName(id)
  const known = await readRecord(ground, name)
  if (known !== null && known.id !== id)
    throw worktreeFailure('WorktreeTaken', `Another session has the worktree ${name}.`)
  if (known?.ready && (await isFolder(join(ground.room, name)))) {
    await checkOutFiles(ground, join(ground.room, name))
    return toWorktree(ground, name, known)
  }
  const record = known ?? (await recordWorktree(ground, { id, parent, base, name }))
  if (known?.ready) await addWorktree(ground, name, ['--force', join(ground.room, name), record.branch])
  else {
    // An earlier try was killed while it made the worktree: no child has worked there yet.
    if (known !== null) await clearWorktree(ground, name, record)
    await addNewWorktree(ground, name, record)
  }
  await writeRecord(ground, name, { ...record, ready: true })
  return toWorktree(ground, name, record)
}

/**
 * Makes the worktree at `place` again if it was removed; does nothing if `place` is not a worktree. `id` is that of the
 * session that works there.
 */
export async function restoreWorktree({ folder, id, parent }: WorktreeRequest, place: string): Promise<void> {
  if (await isFolder(place)) return
  const { room } = await openWorktreeContext(folder)
  const [name = ''] = relative(room, place).split(sep)
  const own = [id, name.slice(0, name.lastIndexOf('-'))].find((one) => worktreeName(one) === name)
  if (own !== undefined) await makeWorktree({ folder, id: own, parent })
}

/** Lists the worktrees of a folder, with the ids of their sessions. */
export async function listWorktrees(folder: string): Promise<readonly Worktree[]> {
  const ground = await openWorktreeContext(folder)
  const entries = await readdir(ground.room).catch(() => [])
  const names = entries.flatMap((entry) => (entry.endsWith('.json') ? [entry.slice(0, -'.json'.length)] : [])).sort()
  const found = await Promise.all(
    names.map(async (name) => {
      const record = await readRecord(ground, name)
      const there = record?.ready && worktreeName(record.id) === name && (await isFolder(join(ground.room, name)))
      return record && there ? [toWorktree(ground, name, record)] : []
    }),
  )
  return found.flat()
}

/** Finds a worktree by its id, its branch or its path: a report has the last two. */
export async function findWorktree(folder: string, id: string): Promise<Worktree> {
  const found = (await listWorktrees(folder)).find((one) => [one.id, one.branch, one.path].includes(id))
  if (!found) throw worktreeFailure('WorktreeMissing', `There is no worktree of ${id} in ${folder}. List them first.`)
  return found
}

export type WorktreeChanges = {
  /** All files that differ from its first commit, relative to the top of the worktree. */
  readonly files: readonly string[]
  /** Repositories that were made inside it: git does not keep their content. */
  readonly nested: readonly string[]
}

/** `folder` is the parent's. */
export async function changesOf(folder: string, worktree: Worktree): Promise<WorktreeChanges> {
  return changesIn(await openWorktreeContext(folder), worktree)
}

async function changesIn(ground: WorktreeContext, { path, base }: Worktree): Promise<WorktreeChanges> {
  const at = await openWorktree(ground, path)
  const [status, log] = await Promise.all([
    gitOutput(at, ['status', '--porcelain=v1', '-z', '--untracked-files=all', '--no-renames', NOT_INSIDE]),
    gitOutput(at, [
      'diff',
      '--name-only',
      '-z',
      '--no-ext-diff',
      '--no-textconv',
      '--no-renames',
      NOT_INSIDE,
      base,
      'HEAD',
    ]),
  ])
  const open = status.split('\0').flatMap((line) => (line === '' ? [] : [line.slice(3)]))
  const files = new Set([...open, ...log.split('\0').filter((file) => file !== '')])
  const nested = open.filter((file) => file.endsWith('/'))
  return { files: [...files].sort(), nested }
}

/** Otherwise git would start in every nested repository and read its settings. */
const NOT_INSIDE = '--ignore-submodules=dirty'

export type Overlap = { readonly file: string; readonly with: readonly string[] }

/** The files of a worktree that other worktrees of the same parent also changed, with their sessions. */
export async function overlapsOf(folder: string, own: Worktree): Promise<readonly Overlap[]> {
  const ground = await openWorktreeContext(folder)
  const others = (await listWorktrees(folder)).filter(({ id, parent }) => id !== own.id && parent === own.parent)
  if (others.length === 0) return []
  const mine = new Set((await changesIn(ground, own)).files)
  const found = new Map<string, string[]>()
  for (const other of others)
    for (const file of (await changesIn(ground, other)).files)
      if (mine.has(file)) found.set(file, [...(found.get(file) ?? []), other.id])
  return [...found].map(([file, ids]) => ({ file, with: ids }))
}

/** Removes the worktree. One with changes is removed only with `force`. */
export async function discardWorktree(folder: string, id: string, force = false): Promise<void> {
  const ground = await openWorktreeContext(folder)
  const found = await findWorktree(folder, id)
  const { files } = await changesIn(ground, found)
  if (files.length > 0 && !force && !(await isMerged(ground, found))) {
    const message = `The worktree of ${id} has changes in ${describeFiles(files)}. Merge it, or discard it with force to lose them.`
    throw worktreeFailure('WorktreeDirty', message, { files: files.slice(0, FILES_MAX) })
  }
  await removeWorktree(ground, found)
}

const FILES_MAX = 1_000

export type MergeResult = { readonly branch: string; readonly into: string; readonly files: readonly string[] }

/**
 * Commits the content of the worktree, merges it into the branch of the parent's folder, and removes the worktree. A
 * conflict changes nothing.
 */
export async function mergeWorktree(folder: string, id: string): Promise<MergeResult> {
  const ground = await openWorktreeContext(folder)
  const found = await findWorktree(folder, id)
  const into = await runGit(ground, ['symbolic-ref', '--short', '-q', 'HEAD'])
  if (into.code !== 0)
    throw worktreeFailure(
      'WorktreeDetached',
      `${folder} has no branch checked out to merge into. Check one out and try again.`,
    )
  const { files, nested: fresh } = await changesIn(ground, found)
  const nested = [...fresh, ...(await knownNested(ground, found))]
  if (nested.length > 0)
    throw worktreeFailure(
      'WorktreeNested',
      `${describeFiles(nested)} in the worktree of ${id} is a repository of its own. Move it away first.`,
    )
  await commitChanges(ground, found)
  const args = ['merge', '--no-ff', '--no-edit', '-m', `Merge ${found.branch}`, found.branch]
  const ran = await runGit(ground, args, { settings: await commitIdentity(ground) })
  if (ran.code !== 0) throw await explainMergeFailure(ground, id, ran)
  await removeWorktree(ground, found)
  return { branch: found.branch, into: into.stdout.trim(), files }
}

async function explainMergeFailure(ground: WorktreeContext, id: string, ran: Parameters<typeof gitFailure>[1]) {
  const open = (await runGit(ground, ['diff', '--name-only', '-z', '--diff-filter=U', NOT_INSIDE])).stdout
    .split('\0')
    .filter(Boolean)
  if (open.length === 0) return gitFailure(['merge'], ran)
  await gitOutput(ground, ['merge', '--abort'])
  const message = `The worktree of ${id} changes the same lines as the parent in ${describeFiles(open)}. Nothing was merged, and both are as they were.`
  return worktreeFailure('WorktreeConflict', message, { files: open.slice(0, FILES_MAX) })
}

/** At the end of a parent, removes its worktrees without changes, except those in use. Returns those that stay. */
export async function sweepWorktrees(
  folder: string,
  parent: string,
  isUsed: (worktree: Worktree) => Promise<boolean> = async () => false,
): Promise<readonly Worktree[]> {
  const ground = await openWorktreeContext(folder)
  const left: Worktree[] = []
  for (const found of (await listWorktrees(folder)).filter((one) => one.parent === parent)) {
    const { files } = await changesIn(ground, found)
    const clean = files.length === 0 && (await isAtBase(ground, found)) && !(await hasInnerWorktrees(found))
    if (!clean || (await isUsed(found))) left.push(found)
    else await removeWorktree(ground, found)
  }
  return left
}

/** Whether the session that works here has worktrees for its own children. */
async function hasInnerWorktrees({ folder }: Worktree): Promise<boolean> {
  return (await readdir(join(folder, WORKTREES)).catch(() => [])).some((entry) => entry.endsWith('.json'))
}

/** A name that is valid as a folder and a branch, and different for all ids. */
export function worktreeName(id: string): string {
  const words = id.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '')
  return `${words.slice(-NAME_CHARS_MAX).replace(/^-+/, '') || 'x'}-${createHash('sha256').update(id).digest('hex').slice(0, HASH_CHARS)}`
}

async function openWorktreeContext(folder: string): Promise<WorktreeContext> {
  const real = await realpath(folder).catch(() => null)
  if (real === null) throw worktreeFailure('WorktreeNoRepository', `The folder ${folder} is not there.`)
  const at = await openRepository(real)
  if (typeof at === 'string')
    throw worktreeFailure('WorktreeNoRepository', `${folder} ${at}, so it has no worktrees. Use isolation "none".`)
  for (const part of ['.terret', WORKTREES]) await checkFolder(join(real, part))
  return { ...at, room: join(real, WORKTREES), inside: relative(at.top, real) }
}

async function checkFolder(path: string): Promise<void> {
  const seen = await lstat(path).catch((error: unknown) => (hasErrnoCode(error, 'ENOENT') ? null : 'unreadable'))
  if (seen === null || (typeof seen === 'object' && seen.isDirectory())) return
  throw worktreeFailure('WorktreePlace', `${path} must be a folder, and no link. Move it away to use worktrees.`)
}

/** Chooses the commit and writes the record: from here on the branch of that name is ours. */
async function recordWorktree(
  ground: WorktreeContext,
  { id, parent, base, name }: { id: string; parent: string; base: BaseRef; name: string },
): Promise<WorktreeRecord> {
  const commit = await baseCommit(ground, base)
  const branch = `terret/${name}`
  const modules = await runGit(ground, ['cat-file', '-e', `${commit}:.gitmodules`])
  if (modules.code === 0)
    throw worktreeFailure(
      'WorktreeSubmodules',
      'The repository has submodules, which worktrees do not have. Use isolation "none".',
    )
  const taken = await runGit(ground, ['show-ref', '--verify', '--quiet', `refs/heads/${branch}`])
  if (taken.code === 0 || (await runGit(ground, ['show-ref', '--verify', '--quiet', 'refs/heads/terret'])).code === 0)
    throw worktreeFailure(
      'WorktreeBranch',
      `A branch ${taken.code === 0 ? branch : 'terret'} is there already. Rename or delete it.`,
    )
  if (await isThere(join(ground.room, name)))
    throw worktreeFailure('WorktreePlace', `${join(ground.room, name)} is there already. Move it away.`)
  const record = { id, parent, base: commit, branch, ready: false }
  await writeRecord(ground, name, record)
  return record
}

async function baseCommit(ground: WorktreeContext, base: BaseRef): Promise<string> {
  const ref = base === 'head' ? 'HEAD' : 'refs/remotes/origin/HEAD'
  const found = await runGit(ground, ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`])
  const commit = found.stdout.trim()
  if (found.code === 0 && COMMIT.test(commit)) return commit
  if (base === 'head')
    throw worktreeFailure('WorktreeNoCommit', 'The repository has no commit yet. Commit once to use worktrees.')
  const message =
    'The repository does not know the default branch of origin. Fetch it (git remote set-head origin -a), or use base_ref "head".'
  throw worktreeFailure('WorktreeNoRemote', message)
}

const COMMIT = /^[0-9a-f]{40,64}$/

/** A failed try leaves nothing behind. */
async function addNewWorktree(ground: WorktreeContext, name: string, record: WorktreeRecord): Promise<void> {
  try {
    await addWorktree(ground, name, ['-b', record.branch, join(ground.room, name), record.base])
    const { folder } = toWorktree(ground, name, record)
    if (!(await isFolder(folder)))
      throw worktreeFailure(
        'WorktreeFolder',
        `${ground.inside} is not in the commit that the worktree begins with. Commit it first.`,
      )
  } catch (error) {
    await clearWorktree(ground, name, record)
    await rm(recordPath(ground, name), { force: true })
    throw error
  }
}

/** The worktree is locked until its files exist: if this process is killed before that, the next call finishes it. */
async function addWorktree(ground: WorktreeContext, name: string, args: readonly string[]): Promise<void> {
  await makeLinkedFolders(ground)
  const ran = await runGit(ground, ['worktree', 'add', '--no-checkout', '--lock', ...args])
  if (ran.code !== 0) throw gitFailure([`worktree add (${name})`], ran)
  const path = join(ground.room, name)
  try {
    await checkOutFiles(ground, path)
  } catch (error) {
    await runGit(ground, ['worktree', 'remove', '--force', '--force', path])
    throw error
  }
}

/** Writes the files of a new worktree, and the `.git` file that names its repository. */
async function checkOutFiles(ground: WorktreeContext, path: string): Promise<void> {
  const dir = await gitDirAt(ground.common, path)
  if (dir === null || (await readFile(join(dir, 'locked'), 'utf8').catch(() => '')).trim() !== LOCKED) return
  const at = await worktreeAt(ground, path, dir)
  await gitOutput(at, ['reset', '--hard', '--quiet', '--no-recurse-submodules'])
  await writeFile(join(path, '.git'), `gitdir: ${dir}\n`)
  await rm(join(dir, 'locked'))
}

/** Git's reason for `--lock`. A person who locks a worktree gives another reason, or none. */
const LOCKED = 'added with --lock'

async function clearWorktree(ground: WorktreeContext, name: string, { branch, base }: WorktreeRecord): Promise<void> {
  const path = join(ground.room, name)
  await runGit(ground, ['worktree', 'remove', '--force', '--force', path])
  await rm(path, { recursive: true, force: true })
  const dir = await gitDirAt(ground.common, path)
  if (dir !== null) await rm(dir, { recursive: true, force: true })
  // Only if the branch is still at its first commit.
  await runGit(ground, ['update-ref', '-d', `refs/heads/${branch}`, base])
}

async function removeWorktree(ground: WorktreeContext, { id, path, branch }: Worktree): Promise<void> {
  await gitOutput(ground, ['worktree', 'remove', '--force', '--force', path])
  await runGit(ground, ['branch', '-D', branch])
  // Git removes this folder with the last worktree, but not behind a link.
  await rmdir(join(ground.common, 'worktrees')).catch(() => {})
  await rm(recordPath(ground, worktreeName(id)), { force: true })
}

/** Commits the child's uncommitted changes as one commit of its branch. */
async function commitChanges(ground: WorktreeContext, { path, id }: Worktree): Promise<void> {
  const at = await openWorktree(ground, path)
  await gitOutput(at, ['add', '--all'])
  if ((await runGit(at, ['diff', '--cached', '--quiet', '--no-ext-diff', NOT_INSIDE])).code === 0) return
  await gitOutput(at, ['commit', '--quiet', '--no-verify', '-m', `Work of ${id}`], {
    settings: await commitIdentity(ground),
  })
}

/**
 * Repositories within the worktree that are already in its index. `git add` would start another git in each of them.
 */
async function knownNested(ground: WorktreeContext, { path }: Worktree): Promise<readonly string[]> {
  const entries = (await gitOutput(await openWorktree(ground, path), ['ls-files', '--stage', '-z'])).split('\0')
  const links = entries.flatMap((entry) => (entry.startsWith('160000 ') ? [entry.slice(entry.indexOf('\t') + 1)] : []))
  const there = await Promise.all(links.map((link) => isThere(join(path, link, '.git'))))
  return links.filter((_, i) => there[i])
}

/** The user's name, or our own if none is set. */
async function commitIdentity(at: GitRepository): Promise<readonly GitSetting[]> {
  const known = await runGit(at, ['var', 'GIT_COMMITTER_IDENT'], { settings: [['user.useConfigOnly', 'true']] })
  if (known.code === 0) return []
  return [
    ['user.name', 'Terret'],
    ['user.email', 'terret@localhost'],
  ]
}

async function isAtBase(ground: WorktreeContext, { branch, base }: Worktree): Promise<boolean> {
  return (await runGit(ground, ['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`])).stdout.trim() === base
}

/** Everything is already in the parent's branch: a merge was killed before it could clean up. */
async function isMerged(ground: WorktreeContext, { path, branch }: Worktree): Promise<boolean> {
  const at = await openWorktree(ground, path)
  const open = await gitOutput(at, ['status', '--porcelain', '-z', '--untracked-files=all', NOT_INSIDE])
  return open === '' && (await runGit(ground, ['merge-base', '--is-ancestor', branch, 'HEAD'])).code === 0
}

/** A worktree as git is called in it, found through the repository: the `.git` file in the worktree is not trusted. */
async function openWorktree(ground: WorktreeContext, path: string): Promise<GitRepository> {
  const dir = await gitDirAt(ground.common, path)
  if (dir === null) throw worktreeFailure('WorktreeMissing', `git does not know the worktree ${path} any more.`)
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

function toWorktree(
  { room, inside }: WorktreeContext,
  name: string,
  { ready: _ready, ...record }: WorktreeRecord,
): Worktree {
  const path = join(room, name)
  return { ...record, path, folder: join(path, inside) }
}

function recordPath({ room }: WorktreeContext, name: string): string {
  return join(room, `${name}.json`)
}

/** Null if there is none. An invalid record is refused: its content is never guessed. */
async function readRecord(ground: WorktreeContext, name: string): Promise<WorktreeRecord | null> {
  const path = recordPath(ground, name)
  const seen = await lstat(path).catch(() => null)
  if (seen === null) return null
  const text = seen.isFile() && seen.size <= RECORD_BYTES_MAX ? await readFile(path, 'utf8') : ''
  const { id, parent, base, ready } = asObject(parseJson(text))
  const sound = typeof id === 'string' && typeof parent === 'string' && typeof ready === 'boolean'
  if (sound && typeof base === 'string' && COMMIT.test(base))
    return { id, parent, base, branch: `terret/${name}`, ready }
  throw worktreeFailure('WorktreeRecord', `${path} is damaged. Look at the worktree beside it, then delete the file.`)
}

function asObject(value: unknown): { readonly [name: string]: unknown } {
  return isObject(value) ? value : {}
}

/** Writes a record in one step: it is whole or missing. The parent's repository ignores this folder. */
async function writeRecord(ground: WorktreeContext, name: string, record: WorktreeRecord): Promise<void> {
  await mkdir(ground.room, { recursive: true })
  await checkFolder(ground.room)
  const next = join(ground.room, `${name}.new`)
  await writeAtomically(join(ground.room, '.gitignore'), '*\n', next)
  await writeAtomically(recordPath(ground, name), `${JSON.stringify(record)}\n`, next)
}

async function writeAtomically(path: string, text: string, next: string): Promise<void> {
  try {
    await writeFile(next, text, { flush: true })
    await rename(next, path)
  } catch (error) {
    await rm(next, { force: true })
    const full = hasErrnoCode(error, 'ENOSPC') || hasErrnoCode(error, 'EDQUOT')
    if (full)
      throw worktreeFailure('DiskFull', 'The disk is full, so no worktree could be made. Make room and try again.')
    throw worktreeFailure('WorktreePlace', `${path} cannot be written. Check its rights.`)
  }
}

async function isFolder(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null))?.isDirectory() === true
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) !== null
}

const LISTED_MAX = 10

export function describeFiles(files: readonly string[]): string {
  const more = files.length - LISTED_MAX
  return `${files.slice(0, LISTED_MAX).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
