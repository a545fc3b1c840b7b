// The path guard: finds out where a path really leads, and whether a tool may go there. The file tools reach the disk
// only through it. It is not a sandbox: it limits our own file tools. The sandbox limits commands and other programs.
import { existsSync, realpathSync, statSync } from 'node:fs'
import { lstat, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import type { Frozen, Json } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import {
  functionCheck,
  type Checks,
  countCheck,
  nonEmptyCheck,
  listCheck,
  requiredCheck,
  optionsCheck,
} from '../../options.ts'
import type { PathClaims, ToolContext, ToolRoot } from '../core/tool-context.ts'
import { ApprovalNeeded, ToolFailure } from '../core/tool-output.ts'
import type { Approval } from '../core/tool.ts'
import { harnessFolders } from './harness-folders.ts'
import { isGitFolder, OBEYED, OBEYED_BY_GIT, PROTECTED } from './protected-names.ts'
import { realPath } from '../policy/links.ts'

/** Names for `path` in the file tools that models were trained on. */
export const PATH_ALIASES = {
  file_path: 'path',
  filepath: 'path',
  filePath: 'path',
  file: 'path',
  filename: 'path',
  file_name: 'path',
  fileName: 'path',
} as const
export const FOLDER_ALIASES = { directory: 'path', dir: 'path', folder: 'path', dir_path: 'path' } as const

export type Access = 'read' | 'write'

/** Files as an editor has them. Paths are absolute and already checked. */
export type FileBuffers = {
  /**
   * The text of a file in the editor, saved or not. Null if the editor does not have it: then the file on disk counts.
   */
  readonly read: (path: string) => Promise<string | null>
  /** Writes a file through the editor. Absent: files are written on disk, but never under unsaved changes. */
  readonly write?: (path: string, text: string) => Promise<void>
}

export type PathGuardOptions = {
  /** The folder that relative paths start from. */
  readonly root: string
  /** Folders that may be read. Missing: the root and all of `write`. Empty: none. */
  readonly read?: readonly string[]
  /** Folders that may be written. Missing: the root. Empty: none. */
  readonly write?: readonly string[]
  /** More names or partial paths that are never written, at any depth, besides the built-in list. */
  readonly protect?: readonly string[]
  /** Files and folders that your program obeys, such as skills: a person is asked before each change of one. */
  readonly obeyed?: readonly string[]
  /** Files larger than this are not opened. */
  readonly fileBytesMax?: number
  /** Files as an editor has them: `read`, `write` and `edit` use its unsaved text, and change files through it. */
  readonly buffers?: FileBuffers
}

export const GUARD_OPTIONS: Checks<PathGuardOptions> = {
  root: requiredCheck(nonEmptyCheck),
  read: listCheck(nonEmptyCheck),
  write: listCheck(nonEmptyCheck),
  protect: listCheck(nonEmptyCheck),
  obeyed: listCheck(nonEmptyCheck),
  fileBytesMax: countCheck(1),
  buffers: optionsCheck<FileBuffers>({ read: requiredCheck(functionCheck), write: functionCheck }),
}

export type PathGuard = Frozen<{
  root: string
  read: readonly string[]
  write: readonly string[]
  protect: readonly string[]
  /** The folders of the harness itself. Absolute. */
  own: readonly string[]
  /** More files that the host obeys, beside the built-in names. Relative to the root or absolute. */
  obeyed: readonly string[]
  fileBytesMax: number
  /** Real paths in use in this process: parallel calls of one batch take turns instead of conflicting. */
  busy: Map<string, Promise<void>>
  /**
   * Changes by the sessions of this process: the hash of a file before the change, by session, path and hash after it.
   */
  changes: Map<string, string | null>
  /** Absent: all of `write`. */
  claims?: PathClaims
  /** Absent: files are what is on disk. */
  buffers?: FileBuffers
}>

/**
 * A real path below one of the roots, at the moment of the check. `segments` lead from `root` to it and hold no link.
 */
export type GuardedPath = Frozen<{ root: string; segments: readonly string[]; path: string; shown: string }>

const FILE_BYTES_MAX = 64 * 1024 * 1024

/** The settings that an approval of a file tool is bound to. */
export function placeOfGuard({ root, read, write, protect, claims }: PathGuard): Readonly<Record<string, Json>> {
  return { root, read, write, protect, ...(claims ? { claims: claims.own } : {}) }
}

/** Roots are resolved here, once: a root that is replaced by a link later leads outside and is refused. */
export function createPathGuard(options: PathGuardOptions): PathGuard {
  const root = realRoot(options.root)
  const at = (paths: readonly string[]) => paths.map((path) => realRoot(resolve(root, path)))
  const write = at(options.write ?? [root])
  const reachable = write.length === 0 || write.some((one) => containsPath(root, one) || containsPath(one, root))
  if (!reachable) {
    throw new Fault('invalid_config', `Relative paths start from ${root}, but nothing there may be written.`)
  }
  const git = write.find((one) => segmentsOf(one).some((name) => foldName(name) === '.git'))
  if (git !== undefined) throw new Fault('invalid_config', `${git} is inside .git, which tools never write.`)
  return {
    root,
    read: at(options.read ?? [root, ...write]),
    write,
    protect: ['.git', ...PROTECTED, ...(options.protect ?? [])].map(foldPath),
    own: harnessFolders()
      .all.map(realPathOrSame)
      .filter((place) => !write.some((one) => containsPath(place, one))),
    obeyed: options.obeyed ?? [],
    fileBytesMax: options.fileBytesMax ?? FILE_BYTES_MAX,
    busy: new Map(),
    changes: new Map(),
    ...(options.buffers ? { buffers: options.buffers } : {}),
  }
}

/** Returns the guard for another folder. Paths outside the old root may still be read, but not written. */
export function guardInFolder(from: PathGuard, { folder = from.root, claims }: ToolRoot): PathGuard {
  const root = realPathOrSame(folder)
  // An editor has the files of its own folder open. Tools in another folder use the disk.
  const { buffers, ...rest } = from
  const guarded: PathGuard = root === from.root && buffers ? from : rest
  // The worktree was removed: nothing is read or written there, and the folder is not made again.
  if (!existsSync(root)) return { ...guarded, root, read: [], write: [], busy: new Map() }
  const isInside = (path: string): boolean => containsPath(guarded.root, path)
  const moved = (path: string): string => (isInside(path) ? join(root, relative(guarded.root, path)) : root)
  const write = guarded.write.filter((path) => isInside(path) || containsPath(path, guarded.root)).map(moved)
  const inside = guarded.read.filter(isInside).map(moved)
  const read = [...inside, ...guarded.read.filter((path) => !isInside(path))]
  return { ...guarded, root, read, write, busy: new Map(), ...(claims ? { claims } : {}) }
}

function realPathOrSame(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    return path
  }
}

function realRoot(path: string): string {
  try {
    const real = realpathSync.native(resolve(path))
    if (statSync(real).isDirectory()) return real
  } catch {}
  throw new Fault('invalid_config', `The folder ${path} is not there. Create it, or name another one.`)
}

/**
 * Throws `Denied` unless the path, with every link resolved, is below a root that allows the access. The path need not
 * exist.
 */
export async function locatePath(guarded: PathGuard, path: string, access: Access): Promise<GuardedPath> {
  if (path === '' || path.includes('\0')) throw deniedFailure('A path must not be empty or hold a NUL character.')
  const wanted = resolve(guarded.root, path)
  const real = await resolveRealPath(wanted)
  const roots = access === 'read' ? guarded.read : guarded.write
  const root = roots.find((one) => containsPath(one, real))
  if (root === undefined || isKernelFile(wanted) || isKernelFile(real)) {
    const where = roots.length > 0 ? `only in ${roots.join(', ')}` : 'nowhere'
    throw deniedFailure(`"${path}" is out of bounds: this tool may ${access} ${where}.`)
  }
  if (access === 'write' && (await isProtected(guarded, wanted, real))) {
    throw deniedFailure(`"${path}" is protected and is never written by a tool. Ask the user to change it.`)
  }
  if (access === 'write' && guarded.claims) {
    const why = await whyUnclaimed(guarded.root, guarded.claims, real)
    if (why !== null) throw deniedFailure(`"${path}" is not written by this task: ${why}`)
  }
  return { root, segments: segmentsBelow(root, real), path: real, shown: displayPath(guarded, real) }
}

/**
 * As `locatePath`, for a call that runs: rules and people must also allow the very place that will be opened. Throws
 * `ApprovalNeeded` if a person must be asked first, whatever the verdict at admission was.
 */
export async function locateForCall(
  guarded: PathGuard,
  path: string,
  access: Access,
  context: ToolContext,
): Promise<GuardedPath> {
  const place = await locatePath(guarded, path, access)
  const said = context.permits?.(place.path) ?? 'allow'
  if (said === 'deny') throw deniedFailure(`"${place.shown}" is denied by policy.`)
  const asks = said === 'ask' || (access === 'write' && !context.approved && isObeyed(guarded, path))
  if (asks) throw new ApprovalNeeded(`"${place.shown}" is not changed or shown unless a person is asked.`)
  return place
}

/** May a list of results name or quote this path? The rules are asked about each path. */
export function isListable(path: string, { permits }: ToolContext): boolean {
  return (permits?.(path) ?? 'allow') === 'allow'
}

/** A last line that says how many entries were left out. Empty if none were. */
export function leftOutNote(count: number): readonly string[] {
  return count === 0 ? [] : [`(${count} left out: rules deny them, or a person must be asked about them by name)`]
}

/** A person is asked about each change of files that Terret or the host obeys, whatever rules allow. */
export function approvalOfPaths(guarded: PathGuard, paths: readonly string[]): Approval {
  return paths.some((path) => isObeyed(guarded, path)) ? 'always' : 'auto'
}

/** Checks the path's own name, the name of its link target, and the place that an obeyed name itself links to. */
function isObeyed({ root, obeyed }: PathGuard, path: string): boolean {
  const wanted = resolve(root, path)
  const real = realPath(root, wanted) ?? wanted
  const names = [wanted, real].map((one) => `/${foldPath(one)}/`)
  if (names.some((way) => OBEYED.some((name) => way.includes(`/${foldPath(name)}/`)))) return true
  return [...OBEYED, ...obeyed].some((name) => {
    const place = resolve(root, name)
    return (
      containsPath(foldPath(realPath(root, place) ?? place), foldPath(real)) ||
      containsPath(foldPath(place), foldPath(wanted))
    )
  })
}

/** Says why the claims forbid to write there; null if they allow it. `real` is a path with all links resolved. */
async function whyUnclaimed(root: string, { own, others }: PathClaims, real: string): Promise<string | null> {
  const holds = async (path: string): Promise<boolean> => {
    const place = await comparablePath(root, path)
    return place !== null && containsPath(place, foldPath(real))
  }
  for (const path of own) if (await holds(path)) return null
  for (const { owner, paths } of others)
    for (const path of paths) if (await holds(path)) return `${path} belongs to ${owner}.`
  return `it may write only ${own.join(', ')}.`
}

/**
 * Resolves a path and folds its spelling, so that two paths can be compared as places. Null if it cannot be resolved.
 */
export function comparablePath(root: string, path: string): Promise<string | null> {
  return resolveRealPath(join(root, path)).then(foldPath, () => null)
}

/** The path for people and models: relative to the root if it is inside. */
function displayPath(guarded: PathGuard, real: string): string {
  return containsPath(guarded.root, real) ? segmentsBelow(guarded.root, real).join('/') || '.' : real
}

/** Runs one at a time for each real path in this process. Between processes the content hash decides. */
export function runExclusive<T>(guarded: PathGuard, place: GuardedPath, work: () => Promise<T>): Promise<T> {
  const before = guarded.busy.get(place.path) ?? Promise.resolve()
  const mine = before.then(work)
  const done = mine.then(doNothing, doNothing).then(() => {
    if (guarded.busy.get(place.path) === done) guarded.busy.delete(place.path)
  })
  guarded.busy.set(place.path, done)
  return mine
}

export function deniedFailure(message: string): ToolFailure {
  return new ToolFailure('Denied', message, { error_type: 'PathValidationError' })
}

/** Compares segments, not characters: `/ws-evil` is not in `/ws`. */
export function containsPath(root: string, path: string): boolean {
  const inner = segmentsOf(path)
  return segmentsOf(root).every((segment, index) => segment === inner[index])
}

/** Resolves links for the part of the path that exists; the rest cannot be a link. */
async function resolveRealPath(wanted: string): Promise<string> {
  for (let existing = wanted; ; existing = dirname(existing)) {
    try {
      return join(await realpath(existing), relative(existing, wanted))
    } catch (error) {
      const missing = hasErrnoCode(error, 'ENOENT') || hasErrnoCode(error, 'ENOTDIR')
      // A broken link, a loop or a missing permission: a path that cannot be resolved is refused.
      if (!missing || (await isThere(existing)) || dirname(existing) === existing) {
        throw deniedFailure('The path cannot be resolved: a link on the way is broken, loops or may not be read.')
      }
    }
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    return !hasErrnoCode(error, 'ENOENT') && !hasErrnoCode(error, 'ENOTDIR')
  }
}

/** Files of the kernel: they block, have no size, or open another way to everything else. */
function isKernelFile(path: string): boolean {
  return isAbsolute(path) && ['proc', 'sys', 'dev'].includes(segmentsOf(path)[0] ?? '')
}

/** Checks the path as given, as resolved, and the targets of protected names that are links. */
async function isProtected(guarded: PathGuard, wanted: string, real: string): Promise<boolean> {
  const roots = guarded.write.filter((root) => containsPath(root, real))
  const asked = guarded.write.filter((root) => containsPath(root, wanted)).map((root) => segmentsBelow(root, wanted))
  const ways = [...roots.map((root) => segmentsBelow(root, real)), ...(asked.length > 0 ? asked : [segmentsOf(wanted)])]
  const names = ways.map((way) => `/${foldPath(way.join('/'))}/`)
  if (names.some((way) => guarded.protect.some((name) => way.includes(`/${name}/`)))) return true
  if (guarded.own.some((place) => containsPath(place, real))) return true
  if (roots.some((root) => isObeyedByGit(root, segmentsBelow(root, real)))) return true
  const linked = [...guarded.protect, join('.git', 'hooks'), join('.git', 'config')]
  const targets = await Promise.all(
    // Check the workspace root too, in case only a part of it may be written.
    [...new Set([guarded.root, ...roots])].flatMap((root) =>
      linked
        .map((name) => join(root, name))
        .filter(existsSync)
        .map((path) => realpath(path).catch(() => null)),
    ),
  )
  return targets.some((target) => target !== null && containsPath(target, real))
}

/** For a repository whose folder is not named `.git`. */
function isObeyedByGit(root: string, segments: readonly string[]): boolean {
  return segments.some((_, index) => {
    const way = `${segments.slice(index).map(foldName).join('/')}/`
    if (!OBEYED_BY_GIT.some((name) => way.startsWith(`${name}/`))) return false
    const folder = join(root, ...segments.slice(0, index))
    return isGitFolder((name) => existsSync(join(folder, name)))
  })
}

/** The form in which paths are compared. */
export function foldPath(path: string): string {
  return path.split('/').map(foldName).join('/')
}

/**
 * File systems may ignore case, trailing dots, invisible characters and stream names, so the comparison ignores them
 * too.
 */
function foldName(name: string): string {
  const visible = name.normalize('NFKC').replace(/\p{Default_Ignorable_Code_Point}/gu, '')
  return visible
    .toLowerCase()
    .replace(/:.*$/s, '')
    .replace(/[. ]+$/, '')
}

function segmentsBelow(root: string, path: string): readonly string[] {
  return segmentsOf(path).slice(segmentsOf(root).length)
}

function segmentsOf(path: string): readonly string[] {
  return path.split(sep).filter((segment) => segment !== '')
}

export function hasErrnoCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

function doNothing(): void {}
