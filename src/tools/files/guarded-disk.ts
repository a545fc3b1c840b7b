// Disk access within the guard: folders are opened one segment at a time, files are checked after opening, and replaced
// in one step. Paths are decided in path-guard.ts; this file refuses whatever changed since then.
import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { constants, existsSync } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readlink, realpath, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { FileState, Frozen } from '../../kernel/content.ts'
import { ApprovalNeeded, ToolFailure } from '../core/tool-output.ts'
import { checkSaved, type SeenFile, readInEditor, writeInEditor } from './editor-buffers.ts'
import {
  containsPath,
  deniedFailure,
  type PathGuard,
  hasErrnoCode,
  locatePath,
  type GuardedPath,
} from './path-guard.ts'
import type { ToolContext } from '../core/tool.ts'

/**
 * With /proc, a name is looked up in the folder that is open, wherever its path leads by now. Elsewhere Node has no
 * such lookup: there names are looked up by path and checked after opening, which leaves a race that only a sandbox
 * closes.
 */
const HANDLES = process.platform === 'linux' && existsSync('/proc/self/fd')
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
// Without O_NONBLOCK, opening a FIFO would wait for a writer for ever.
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY
const FRESH = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/**
 * An open folder. `at` gives the path of an entry directly in it; it is valid until the function that got it returns.
 */
export type OpenFolder = Frozen<{ root: string; path: string; handle: FileHandle; at: (name: string) => string }>

/** Opens the folder at a place, and closes it when `use` is done. */
export function withFolder<T>(place: GuardedPath, use: (folder: OpenFolder) => Promise<T>): Promise<T> {
  return walkFolders(place, place.segments, { create: false, use })
}

/** Opens the parent folder of a place and passes the name there. With `create`, missing folders on the way are made. */
async function withParent<T>(
  place: GuardedPath,
  create: boolean,
  use: (folder: OpenFolder, name: string) => Promise<T>,
): Promise<T> {
  const name = place.segments.at(-1)
  if (name === undefined) throw deniedFailure(`"${place.shown}" is a folder.`)
  return walkFolders(place, place.segments.slice(0, -1), { create, use: (folder) => use(folder, name) })
}

type WalkOptions<T> = { readonly create: boolean; readonly use: (folder: OpenFolder) => Promise<T> }

/** A guarded path holds no link. A link that is met on the way was put there since, and O_NOFOLLOW refuses it. */
async function walkFolders<T>(
  place: GuardedPath,
  segments: readonly string[],
  { create, use }: WalkOptions<T>,
): Promise<T> {
  let folder: OpenFolder | null = null
  try {
    folder = asOpenFolder(place.root, place.root, await open(place.root, FOLDER))
    for (const segment of segments) {
      const path = folder.at(segment)
      if (create) await mkdir(path).catch(ignoreExisting)
      const next = asOpenFolder(place.root, join(folder.path, segment), await open(path, FOLDER))
      await folder.handle.close()
      folder = next
    }
    await checkStillInside(folder)
    return await use(folder)
  } catch (error) {
    throw explainFailure(error, place)
  } finally {
    await folder?.handle.close()
  }
}

function asOpenFolder(root: string, path: string, handle: FileHandle): OpenFolder {
  return { root, path, handle, at: (name) => (HANDLES ? `/proc/self/fd/${handle.fd}/${name}` : join(path, name)) }
}

/** Checks where the open folder or file really is now. A folder that was moved out of the root is not used. */
async function checkStillInside(folder: OpenFolder, handle = folder.handle, path = folder.path): Promise<void> {
  const real = HANDLES ? await readlink(`/proc/self/fd/${handle.fd}`) : await realPathOfOpen(handle, path)
  if (!containsPath(folder.root, real)) throw deniedFailure(`"${path}" moved out of bounds while it was used.`)
}

async function realPathOfOpen(handle: FileHandle, path: string): Promise<string> {
  const [mine, theirs, real] = await Promise.all([handle.stat(), lstat(path), realpath(path)])
  return mine.ino === theirs.ino && mine.dev === theirs.dev ? real : ''
}

/** Opens a regular file for reading, for as long as `use` takes. */
export function withFile<T>(
  guarded: PathGuard,
  place: GuardedPath,
  use: (handle: FileHandle, size: number) => Promise<T>,
): Promise<T> {
  return withParent(place, false, (folder, name) => openFileIn(guarded, folder, name, use))
}

async function openFileIn<T>(
  guarded: PathGuard,
  folder: OpenFolder,
  name: string,
  use: (handle: FileHandle, size: number) => Promise<T>,
): Promise<T> {
  // Check the type first: merely opening a device can have an effect.
  const before = await lstat(folder.at(name))
  if (before.isDirectory()) throw deniedFailure(`"${name}" is a folder; list shows what is in it.`)
  if (!before.isFile()) throw deniedFailure(`"${name}" is not a regular file.`)
  const handle = await open(folder.at(name), FILE)
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) throw deniedFailure(`"${name}" is not a regular file.`)
    if (stat.size > guarded.fileBytesMax)
      throw deniedFailure(`"${name}" has ${stat.size} bytes; ${guarded.fileBytesMax} is the most.`)
    await checkStillInside(folder, handle, join(folder.path, name))
    return await use(handle, stat.size)
  } finally {
    await handle.close()
  }
}

/**
 * Reads the file at a place before it is written; null if there is none. It must have no other hard link, which could
 * be outside.
 */
export async function readBeforeWrite(guarded: PathGuard, place: GuardedPath): Promise<SeenFile | null> {
  return readInEditor(guarded, place, { onDisk: await readOnDisk(guarded, place, true), writing: true })
}

/** Reads a file. Throws `NotFound` if there is none. */
export async function readFileAt(guarded: PathGuard, place: GuardedPath): Promise<SeenFile> {
  const seen = await readInEditor(guarded, place, {
    onDisk: await readOnDisk(guarded, place, false),
    writing: false,
  })
  if (seen === null) throw notFound(place)
  return seen
}

async function readOnDisk(guarded: PathGuard, place: GuardedPath, writing: boolean): Promise<SeenFile | null> {
  try {
    return await withParent(place, false, (folder, name) => readFileIn(guarded, folder, name, writing))
  } catch (error) {
    if (error instanceof ToolFailure && error.kind === 'NotFound') return null
    throw error
  }
}

function notFound({ shown }: GuardedPath): ToolFailure {
  return new ToolFailure('NotFound', `There is no "${shown}".`)
}

function readFileIn(guarded: PathGuard, folder: OpenFolder, name: string, writing: boolean): Promise<SeenFile> {
  return openFileIn(guarded, folder, name, async (handle) => {
    const { nlink, mode } = await handle.stat()
    if (writing && nlink > 1)
      throw deniedFailure(`"${name}" has another hard link; what it names may be out of bounds.`)
    const bytes = await handle.readFile()
    return { bytes, hash: hash('sha256', bytes), mode: mode & 0o777 }
  })
}

export type Replacement = Frozen<{
  guarded: PathGuard
  place: GuardedPath
  seen: SeenFile | null
  bytes: Buffer
  /** The hash of `bytes`. */
  after: string
  context: ToolContext
}>

export const CHANGED_BY_EDITOR = ' The editor changed the text as it saved it. Read it before you change it again.'

const CHANGES_MAX = 1_000

/**
 * Records a change, so that later calls of the session do not take it for someone else's. The oldest records are
 * dropped first.
 */
function noteChange({ guarded, place, seen, after, context }: Replacement): void {
  const { changes } = guarded
  for (const oldest of changes.keys()) if (changes.size >= CHANGES_MAX) changes.delete(oldest)
  changes.set(changeKey(context, place, after), seen?.hash ?? null)
}

function changeKey({ session }: ToolContext, { path }: GuardedPath, after: string): string {
  return JSON.stringify([session, path, after])
}

/** The current state of the files at these paths, each once. Files that may not be written are left out. */
export async function fileStatesAt(guarded: PathGuard, paths: readonly string[]): Promise<readonly FileState[]> {
  const files = new Map<string, FileState>()
  for (const path of paths) {
    try {
      const place = await locatePath(guarded, path, 'write')
      if (!files.has(place.path))
        files.set(place.path, { path: place.path, hash: (await readBeforeWrite(guarded, place))?.hash ?? null })
    } catch (error) {
      if (!(error instanceof ToolFailure)) throw error
    }
  }
  return [...files.values()]
}

/**
 * Throws `ApprovalNeeded` unless the file is what a person was shown. Changes that the session itself made since are
 * allowed.
 */
export function checkApprovedFile(
  guarded: PathGuard,
  place: GuardedPath,
  seen: SeenFile | null,
  context: ToolContext,
): void {
  const { files } = context
  if (files === undefined) return
  const shown = files.find(({ path }) => path === context.redact(place.path))
  const earlier = new Set<string | null>()
  for (let now = seen?.hash ?? null; shown !== undefined && !earlier.has(now); ) {
    if (shown.hash === now) return
    earlier.add(now)
    const before = now === null ? undefined : guarded.changes.get(changeKey(context, place, now))
    if (before !== undefined) now = before
  }
  throw new ApprovalNeeded(`"${place.shown}" is not what it was when a person was asked, so nothing was changed.`)
}

/**
 * Replaces the bytes that were read, and no others: completely and on disk when it returns, or through the editor.
 * Returns the hash of the written text, which an editor may change as it saves it.
 */
export async function replaceSeenFile(replacement: Replacement): Promise<string> {
  const { guarded, place, seen, bytes, after, context } = replacement
  checkSaved(guarded, place, seen)
  if (!guarded.buffers?.write || !isUtf8(bytes)) {
    await replaceOnDisk(replacement)
    return after
  }
  if ((await readBeforeWrite(guarded, place))?.hash !== seen?.hash) throw conflictFailure()
  if (context.signal.aborted) throw new ToolFailure('Interrupted', 'Stopped before anything was changed.')
  // Make the folders here, within the guard: an editor would follow a link that was put there since.
  await withParent(place, true, (folder) => checkStillInside(folder))
  await writeInEditor(guarded, place, bytes.toString())
  const written = (await readBeforeWrite(guarded, place))?.hash ?? after
  noteChange({ ...replacement, after: written })
  return written
}

function replaceOnDisk(replacement: Replacement): Promise<void> {
  const { guarded, place, seen, bytes, context } = replacement
  return withParent(place, true, async (folder, name) => {
    // The name is the same for every try of this call, so that a leftover of a crash is found and removed.
    const temporary = folder.at(`.${hash('sha256', `${context.key}/${name}`).slice(0, 16)}.terret-tmp`)
    await unlink(temporary).catch(ignoreMissing)
    // The file never has wider permissions than the one it replaces, not even for a moment.
    const handle = await open(temporary, FRESH, seen?.mode)
    try {
      try {
        await handle.writeFile(bytes)
        if (seen) await handle.chmod(seen.mode)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await checkUnchanged(guarded, folder, name, seen)
      await checkStillInside(folder)
      if (context.signal.aborted) throw new ToolFailure('Interrupted', 'Stopped before anything was changed.')
      // A rename follows no link: a link that was put in place meanwhile is itself replaced.
      await rename(temporary, folder.at(name))
    } finally {
      await unlink(temporary).catch(ignoreMissing)
    }
    if (HANDLES) await folder.handle.sync()
    noteChange(replacement)
  })
}

/** Removes the file that was read, and no other. */
export function removeFile({ guarded, place, seen }: Pick<Replacement, 'guarded' | 'place' | 'seen'>): Promise<void> {
  return withParent(place, false, async (folder, name) => {
    await checkUnchanged(guarded, folder, name, seen)
    await checkStillInside(folder)
    await unlink(folder.at(name))
    if (HANDLES) await folder.handle.sync()
  })
}

/** The last check before the change. The moment between this and the rename remains a race. */
async function checkUnchanged(
  guarded: PathGuard,
  folder: OpenFolder,
  name: string,
  seen: SeenFile | null,
): Promise<void> {
  const now = await readFileIn(guarded, folder, name, true).catch((error: unknown) => {
    if (hasErrnoCode(error, 'ENOENT')) return null
    throw error
  })
  if (now?.hash !== seen?.hash) throw conflictFailure()
}

/**
 * Keeps the bytes beside the log, so that an undo can restore them. Bytes that are not text are kept in base64, with a
 * media type that says so.
 */
export function keepBytes(context: ToolContext, bytes: Buffer): string {
  const kept = isUtf8(bytes)
    ? context.keep(bytes.toString())
    : context.keep(bytes.toString('base64'), 'application/octet-stream;base64')
  return kept.hash
}

export function conflictFailure(): ToolFailure {
  const text = 'The file changed since it was seen, so nothing was written. Read it again and redo the change.'
  return new ToolFailure('Failed', text, { error_type: 'Conflict' })
}

function explainFailure(error: unknown, place: GuardedPath): unknown {
  const { shown } = place
  if (error instanceof ToolFailure) return error
  if (hasErrnoCode(error, 'ENOENT')) return notFound(place)
  if (hasErrnoCode(error, 'ENOTDIR') || hasErrnoCode(error, 'ELOOP'))
    return deniedFailure(`"${shown}" leads through something that is no folder.`)
  if (hasErrnoCode(error, 'EACCES') || hasErrnoCode(error, 'EPERM')) {
    return new ToolFailure('Denied', `The operating system does not allow this with "${shown}".`)
  }
  return error
}

function ignoreExisting(error: unknown): void {
  if (!hasErrnoCode(error, 'EEXIST')) throw error
}

function ignoreMissing(error: unknown): void {
  if (!hasErrnoCode(error, 'ENOENT')) throw error
}
