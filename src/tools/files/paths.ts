// The guard: where a path really leads, and whether a tool may go there. The file tools reach the disk through it only.
// Not a sandbox: it binds our own file tools. Commands and other programs are bound by the sandbox.
import { existsSync, realpathSync, statSync } from 'node:fs'
import { lstat, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import type { Frozen, Json } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import { callable, type Checks, count, filled, listOf, needed, within } from '../../options.ts'
import type { Claims, ToolContext, ToolRoot } from '../core/context.ts'
import { ApprovalNeeded, ToolFailure } from '../core/output.ts'
import type { Approval } from '../core/tool.ts'
import { ownPlaces } from './own-places.ts'
import { isGitFolder, OBEYED, OBEYED_BY_GIT, PROTECTED } from './protected.ts'
import { realPath } from '../policy/links.ts'

/** What models trained on other file tools call `path`. */
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

/** Files as an editor has them. Paths are absolute, and were checked. */
export type FileBuffers = {
  /** The text of a file as the editor has it, saved or not. Null: it has none. Then the file on disk counts. */
  readonly read: (path: string) => Promise<string | null>
  /** Writes a file through the editor. Absent: it is written on disk, but never under changes that are not saved. */
  readonly write?: (path: string, text: string) => Promise<void>
}

export type GuardOptions = {
  /** What relative paths start from. */
  readonly root: string
  /** Folders that may be read. Missing: the root and all of `write`. Empty: none. */
  readonly read?: readonly string[]
  /** Folders that may be written. Missing: the root. Empty: none. */
  readonly write?: readonly string[]
  /** Names, and runs of names, that are never written, at any depth, added to those that always are. */
  readonly protect?: readonly string[]
  /** Files and folders that your program obeys, such as skills: a person is asked each time before one is changed. */
  readonly obeyed?: readonly string[]
  /** Files larger than this are not opened. */
  readonly fileBytesMax?: number
  /** Files as an editor has them: `read`, `write` and `edit` use what it has not saved, and change files through it. */
  readonly buffers?: FileBuffers
}

export const GUARD_OPTIONS: Checks<GuardOptions> = {
  root: needed(filled),
  read: listOf(filled),
  write: listOf(filled),
  protect: listOf(filled),
  obeyed: listOf(filled),
  fileBytesMax: count(1),
  buffers: within<FileBuffers>({ read: needed(callable), write: callable }),
}

export type Guard = Frozen<{
  root: string
  read: readonly string[]
  write: readonly string[]
  protect: readonly string[]
  /** What the harness itself keeps and obeys. Absolute. */
  own: readonly string[]
  /** What the host obeys, beside the names that always are. From the root or absolute. */
  obeyed: readonly string[]
  fileBytesMax: number
  /** Which real paths are being worked on in this process: parallel calls of one batch take turns instead of conflicting. */
  busy: Map<string, Promise<void>>
  /** What the sessions of this process changed: the hash of a file before a change, by session, path and hash after it. */
  changes: Map<string, string | null>
  /** Absent: all of `write`. */
  claims?: Claims
  /** Absent: files are what is on disk. */
  buffers?: FileBuffers
}>

/** A real path below one of the roots, at the moment of looking. `segments` lead from `root` to it and hold no link. */
export type Place = Frozen<{ root: string; segments: readonly string[]; path: string; shown: string }>

const FILE_BYTES_MAX = 64 * 1024 * 1024

/** What an approval of a file tool is bound to. */
export function placeOf({ root, read, write, protect, claims }: Guard): Readonly<Record<string, Json>> {
  return { root, read, write, protect, ...(claims ? { claims: claims.own } : {}) }
}

/** Roots are made real here, once: a root that is swapped for a link later leads outside and is refused. */
export function guard(options: GuardOptions): Guard {
  const root = rootOf(options.root)
  const at = (paths: readonly string[]) => paths.map((path) => rootOf(resolve(root, path)))
  const write = at(options.write ?? [root])
  const reachable = write.length === 0 || write.some((one) => contains(root, one) || contains(one, root))
  if (!reachable) {
    throw new Fault('invalid_config', `Relative paths start from ${root}, but nothing there may be written.`)
  }
  const git = write.find((one) => segmentsOf(one).some((name) => fold(name) === '.git'))
  if (git !== undefined) throw new Fault('invalid_config', `${git} is inside .git, which tools never write.`)
  return {
    root,
    read: at(options.read ?? [root, ...write]),
    write,
    protect: ['.git', ...PROTECTED, ...(options.protect ?? [])].map(spelled),
    own: ownPlaces()
      .all.map(realOr)
      .filter((place) => !write.some((one) => contains(place, one))),
    obeyed: options.obeyed ?? [],
    fileBytesMax: options.fileBytesMax ?? FILE_BYTES_MAX,
    busy: new Map(),
    changes: new Map(),
    ...(options.buffers ? { buffers: options.buffers } : {}),
  }
}

/** The same guard in another folder. What lay outside the old root may still be read, and is not written. */
export function guardIn(from: Guard, { folder = from.root, claims }: ToolRoot): Guard {
  const root = realOr(folder)
  // An editor has the files of its own folder open. What works in another one works on disk.
  const { buffers, ...rest } = from
  const guarded: Guard = root === from.root && buffers ? from : rest
  // A worktree that was removed: nothing is read or written there, and no folder is made in its place.
  if (!existsSync(root)) return { ...guarded, root, read: [], write: [], busy: new Map() }
  const isInside = (path: string): boolean => contains(guarded.root, path)
  const moved = (path: string): string => (isInside(path) ? join(root, relative(guarded.root, path)) : root)
  const write = guarded.write.filter((path) => isInside(path) || contains(path, guarded.root)).map(moved)
  const inside = guarded.read.filter(isInside).map(moved)
  const read = [...inside, ...guarded.read.filter((path) => !isInside(path))]
  return { ...guarded, root, read, write, busy: new Map(), ...(claims ? { claims } : {}) }
}

function realOr(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    return path
  }
}

function rootOf(path: string): string {
  try {
    const real = realpathSync.native(resolve(path))
    if (statSync(real).isDirectory()) return real
  } catch {}
  throw new Fault('invalid_config', `The folder ${path} is not there. Create it, or name another one.`)
}

/** Throws `Denied` unless the path, with every link resolved, is below a root that allows this. It need not exist. */
export async function locate(guarded: Guard, path: string, access: Access): Promise<Place> {
  if (path === '' || path.includes('\0')) throw denied('A path must not be empty or hold a NUL character.')
  const wanted = resolve(guarded.root, path)
  const real = await realOf(wanted)
  const roots = access === 'read' ? guarded.read : guarded.write
  const root = roots.find((one) => contains(one, real))
  if (root === undefined || isKernels(wanted) || isKernels(real)) {
    const where = roots.length > 0 ? `only in ${roots.join(', ')}` : 'nowhere'
    throw denied(`"${path}" is out of bounds: this tool may ${access} ${where}.`)
  }
  if (access === 'write' && (await isProtected(guarded, wanted, real))) {
    throw denied(`"${path}" is protected and is never written by a tool. Ask the user to change it.`)
  }
  if (access === 'write' && guarded.claims) {
    const why = await unclaimed(guarded.root, guarded.claims, real)
    if (why !== null) throw denied(`"${path}" is not written by this task: ${why}`)
  }
  return { root, segments: below(root, real), path: real, shown: shownAs(guarded, real) }
}

/**
 * For a call that runs: as `locate`, and rules and people allow the very place that will be opened. Throws `ApprovalNeeded` where a
 * person must be asked first, whatever was found when the call was judged.
 */
export async function locateFor(guarded: Guard, path: string, access: Access, context: ToolContext): Promise<Place> {
  const place = await locate(guarded, path, access)
  const said = context.permits?.(place.path) ?? 'allow'
  if (said === 'deny') throw denied(`"${place.shown}" is denied by policy.`)
  const asks = said === 'ask' || (access === 'write' && !context.approved && isObeyed(guarded, path))
  if (asks) throw new ApprovalNeeded(`"${place.shown}" is not changed or shown unless a person is asked.`)
  return place
}

/** May this be named or quoted in a list of what was found? Rules are asked about each of them. */
export function isShown(path: string, { permits }: ToolContext): boolean {
  return (permits?.(path) ?? 'allow') === 'allow'
}

/** For the end of a list: that it is not whole. Empty if it is. */
export function leftOut(count: number): readonly string[] {
  return count === 0 ? [] : [`(${count} left out: rules deny them, or a person must be asked about them by name)`]
}

/** A person is asked each time about a change of what Terret or the host obeys, whatever rules allow. */
export function approvalOfPaths(guarded: Guard, paths: readonly string[]): Approval {
  return paths.some((path) => isObeyed(guarded, path)) ? 'always' : 'auto'
}

/** By its name, by the name of what links lead to, and as the place that such a name itself links to. */
function isObeyed({ root, obeyed }: Guard, path: string): boolean {
  const wanted = resolve(root, path)
  const real = realPath(root, wanted) ?? wanted
  const names = [wanted, real].map((one) => `/${spelled(one)}/`)
  if (names.some((way) => OBEYED.some((name) => way.includes(`/${spelled(name)}/`)))) return true
  return [...OBEYED, ...obeyed].some((name) => {
    const place = resolve(root, name)
    return contains(spelled(realPath(root, place) ?? place), spelled(real)) || contains(spelled(place), spelled(wanted))
  })
}

/** Null if the claims allow to write there. `real` is a path with all links resolved. */
async function unclaimed(root: string, { own, others }: Claims, real: string): Promise<string | null> {
  const holds = async (path: string): Promise<boolean> => {
    const place = await comparedAt(root, path)
    return place !== null && contains(place, spelled(real))
  }
  for (const path of own) if (await holds(path)) return null
  for (const { owner, paths } of others)
    for (const path of paths) if (await holds(path)) return `${path} belongs to ${owner}.`
  return `it may write only ${own.join(', ')}.`
}

/** A path from the root, resolved and spelled so that two of them can be compared as places. Null if it cannot be resolved. */
export function comparedAt(root: string, path: string): Promise<string | null> {
  return realOf(join(root, path)).then(spelled, () => null)
}

/** The path as people and models see it: from the root, if it is there. */
function shownAs(guarded: Guard, real: string): string {
  return contains(guarded.root, real) ? below(guarded.root, real).join('/') || '.' : real
}

/** One at a time for each real path within this process. Between processes the content hash decides. */
export function exclusive<T>(guarded: Guard, place: Place, work: () => Promise<T>): Promise<T> {
  const before = guarded.busy.get(place.path) ?? Promise.resolve()
  const mine = before.then(work)
  const done = mine.then(nothing, nothing).then(() => {
    if (guarded.busy.get(place.path) === done) guarded.busy.delete(place.path)
  })
  guarded.busy.set(place.path, done)
  return mine
}

export function denied(message: string): ToolFailure {
  return new ToolFailure('Denied', message, { error_type: 'PathValidationError' })
}

/** By segments, never by prefix: `/ws-evil` is not in `/ws`. */
export function contains(root: string, path: string): boolean {
  const inner = segmentsOf(path)
  return segmentsOf(root).every((segment, index) => segment === inner[index])
}

/** Links are resolved for as much of the path as exists; what does not exist yet cannot be a link. */
async function realOf(wanted: string): Promise<string> {
  for (let existing = wanted; ; existing = dirname(existing)) {
    try {
      return join(await realpath(existing), relative(existing, wanted))
    } catch (error) {
      const missing = isErrno(error, 'ENOENT') || isErrno(error, 'ENOTDIR')
      // A link that leads nowhere, a loop, no permission: whatever cannot be resolved is refused.
      if (!missing || (await isThere(existing)) || dirname(existing) === existing) {
        throw denied('The path cannot be resolved: a link on the way is broken, loops or may not be read.')
      }
    }
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    return !isErrno(error, 'ENOENT') && !isErrno(error, 'ENOTDIR')
  }
}

/** Files of the kernel: they hang, have no size, or are another way to everything else. */
function isKernels(path: string): boolean {
  return isAbsolute(path) && ['proc', 'sys', 'dev'].includes(segmentsOf(path)[0] ?? '')
}

/** As asked, as resolved, and as the place a protected name itself links to. */
async function isProtected(guarded: Guard, wanted: string, real: string): Promise<boolean> {
  const roots = guarded.write.filter((root) => contains(root, real))
  const asked = guarded.write.filter((root) => contains(root, wanted)).map((root) => below(root, wanted))
  const ways = [...roots.map((root) => below(root, real)), ...(asked.length > 0 ? asked : [segmentsOf(wanted)])]
  const names = ways.map((way) => `/${spelled(way.join('/'))}/`)
  if (names.some((way) => guarded.protect.some((name) => way.includes(`/${name}/`)))) return true
  if (guarded.own.some((place) => contains(place, real))) return true
  if (roots.some((root) => isObeyedByGit(root, below(root, real)))) return true
  const linked = [...guarded.protect, join('.git', 'hooks'), join('.git', 'config')]
  const targets = await Promise.all(
    // Also those of the workspace, where a part of it alone may be written.
    [...new Set([guarded.root, ...roots])].flatMap((root) =>
      linked
        .map((name) => join(root, name))
        .filter(existsSync)
        .map((path) => realpath(path).catch(() => null)),
    ),
  )
  return targets.some((target) => target !== null && contains(target, real))
}

/** In a repository that has another name than `.git`. */
function isObeyedByGit(root: string, segments: readonly string[]): boolean {
  return segments.some((_, index) => {
    const way = `${segments.slice(index).map(fold).join('/')}/`
    if (!OBEYED_BY_GIT.some((name) => way.startsWith(`${name}/`))) return false
    const folder = join(root, ...segments.slice(0, index))
    return isGitFolder((name) => existsSync(join(folder, name)))
  })
}

/** A path as it is compared. */
export function spelled(path: string): string {
  return path.split('/').map(fold).join('/')
}

/** File systems may ignore case, trailing dots, invisible characters and stream names. Then so does the list. */
function fold(name: string): string {
  const visible = name.normalize('NFKC').replace(/\p{Default_Ignorable_Code_Point}/gu, '')
  return visible
    .toLowerCase()
    .replace(/:.*$/s, '')
    .replace(/[. ]+$/, '')
}

function below(root: string, path: string): readonly string[] {
  return segmentsOf(path).slice(segmentsOf(root).length)
}

function segmentsOf(path: string): readonly string[] {
  return path.split(sep).filter((segment) => segment !== '')
}

export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

function nothing(): void {}
