// The disk as the guard allows it: folders opened one segment at a time, files checked after opening, replaced in one step.
// It decides nothing about paths: paths.ts does, and whatever changed since then is refused here.
import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import { constants, existsSync } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readlink, realpath, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { FileState, Frozen } from '../../kernel/content.ts'
import { ApprovalNeeded, ToolFailure } from '../core/output.ts'
import { checkSaved, type Seen, seenInEditor, writeInEditor } from './buffers.ts'
import { contains, denied, type Guard, isErrno, locate, type Place } from './paths.ts'
import type { ToolContext } from '../core/tool.ts'

/**
 * With /proc, a name is looked up in the very folder that is open, whatever its path leads to by now. Elsewhere Node has no
 * such thing: there names are looked up by path and checked after opening, which leaves a race that only a sandbox closes.
 */
const HANDLES = process.platform === 'linux' && existsSync('/proc/self/fd')
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
// Without O_NONBLOCK, opening a FIFO would wait for a writer for ever.
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY
const FRESH = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/** An open folder. `at` names something directly in it; it lives as long as the function it was given to. */
export type Folder = Frozen<{ root: string; path: string; handle: FileHandle; at: (name: string) => string }>

/** Opens the folder at a place, and closes it when `use` is done. */
export function inFolder<T>(place: Place, use: (folder: Folder) => Promise<T>): Promise<T> {
  return walk(place, place.segments, { create: false, use })
}

/** The folder a place is in, and its name there. With `create`, missing folders on the way are made. */
async function inParent<T>(
  place: Place,
  create: boolean,
  use: (folder: Folder, name: string) => Promise<T>,
): Promise<T> {
  const name = place.segments.at(-1)
  if (name === undefined) throw denied(`"${place.shown}" is a folder.`)
  return walk(place, place.segments.slice(0, -1), { create, use: (folder) => use(folder, name) })
}

type Walk<T> = { readonly create: boolean; readonly use: (folder: Folder) => Promise<T> }

/** A place holds no link, so a link that is met on the way was put there since, and O_NOFOLLOW refuses it. */
async function walk<T>(place: Place, segments: readonly string[], { create, use }: Walk<T>): Promise<T> {
  let folder: Folder | null = null
  try {
    folder = folderOf(place.root, place.root, await open(place.root, FOLDER))
    for (const segment of segments) {
      const path = folder.at(segment)
      if (create) await mkdir(path).catch(unlessThere)
      const next = folderOf(place.root, join(folder.path, segment), await open(path, FOLDER))
      await folder.handle.close()
      folder = next
    }
    await stillInside(folder)
    return await use(folder)
  } catch (error) {
    throw explainFailure(error, place)
  } finally {
    await folder?.handle.close()
  }
}

function folderOf(root: string, path: string, handle: FileHandle): Folder {
  return { root, path, handle, at: (name) => (HANDLES ? `/proc/self/fd/${handle.fd}/${name}` : join(path, name)) }
}

/** Where what is open really is by now. A folder that was moved out of the root is not used. */
async function stillInside(folder: Folder, handle = folder.handle, path = folder.path): Promise<void> {
  const real = HANDLES ? await readlink(`/proc/self/fd/${handle.fd}`) : await sameFile(handle, path)
  if (!contains(folder.root, real)) throw denied(`"${path}" moved out of bounds while it was used.`)
}

async function sameFile(handle: FileHandle, path: string): Promise<string> {
  const [mine, theirs, real] = await Promise.all([handle.stat(), lstat(path), realpath(path)])
  return mine.ino === theirs.ino && mine.dev === theirs.dev ? real : ''
}

/** Opens a regular file for reading, for as long as `use` takes. */
export function inFile<T>(
  guarded: Guard,
  place: Place,
  use: (handle: FileHandle, size: number) => Promise<T>,
): Promise<T> {
  return inParent(place, false, (folder, name) => openIn(guarded, folder, name, use))
}

async function openIn<T>(
  guarded: Guard,
  folder: Folder,
  name: string,
  use: (handle: FileHandle, size: number) => Promise<T>,
): Promise<T> {
  // Looked at first: merely opening a device can do something.
  const before = await lstat(folder.at(name))
  if (before.isDirectory()) throw denied(`"${name}" is a folder; list shows what is in it.`)
  if (!before.isFile()) throw denied(`"${name}" is not a regular file.`)
  const handle = await open(folder.at(name), FILE)
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) throw denied(`"${name}" is not a regular file.`)
    if (stat.size > guarded.fileBytesMax)
      throw denied(`"${name}" has ${stat.size} bytes; ${guarded.fileBytesMax} is the most.`)
    await stillInside(folder, handle, join(folder.path, name))
    return await use(handle, stat.size)
  } finally {
    await handle.close()
  }
}

/** The file at a place, or null if there is none. A file to be written must have no other name: it could be outside. */
export async function look(guarded: Guard, place: Place): Promise<Seen | null> {
  return seenInEditor(guarded, place, { onDisk: await seenOnDisk(guarded, place, true), writing: true })
}

/** The same for reading. Throws `NotFound` if there is no file. */
export async function see(guarded: Guard, place: Place): Promise<Seen> {
  const seen = await seenInEditor(guarded, place, {
    onDisk: await seenOnDisk(guarded, place, false),
    writing: false,
  })
  if (seen === null) throw missing(place)
  return seen
}

async function seenOnDisk(guarded: Guard, place: Place, writing: boolean): Promise<Seen | null> {
  try {
    return await inParent(place, false, (folder, name) => lookIn(guarded, folder, name, writing))
  } catch (error) {
    if (error instanceof ToolFailure && error.kind === 'NotFound') return null
    throw error
  }
}

function missing({ shown }: Place): ToolFailure {
  return new ToolFailure('NotFound', `There is no "${shown}".`)
}

function lookIn(guarded: Guard, folder: Folder, name: string, writing: boolean): Promise<Seen> {
  return openIn(guarded, folder, name, async (handle) => {
    const { nlink, mode } = await handle.stat()
    if (writing && nlink > 1) throw denied(`"${name}" has another hard link; what it names may be out of bounds.`)
    const bytes = await handle.readFile()
    return { bytes, hash: hash('sha256', bytes), mode: mode & 0o777 }
  })
}

export type Replacement = Frozen<{
  guarded: Guard
  place: Place
  seen: Seen | null
  bytes: Buffer
  /** Of `bytes`. */
  after: string
  context: ToolContext
}>

export const CHANGED_BY_EDITOR = ' The editor changed the text as it saved it. Read it before you change it again.'

const CHANGES_MAX = 1_000

/** So that later calls of the session are not taken for those of somebody else. The oldest are forgotten first. */
function noteChange({ guarded, place, seen, after, context }: Replacement): void {
  const { changes } = guarded
  for (const oldest of changes.keys()) if (changes.size >= CHANGES_MAX) changes.delete(oldest)
  changes.set(changeKey(context, place, after), seen?.hash ?? null)
}

function changeKey({ session }: ToolContext, { path }: Place, after: string): string {
  return JSON.stringify([session, path, after])
}

/** The files at these paths as they are, each once. What may not be written is left out. */
export async function filesAt(guarded: Guard, paths: readonly string[]): Promise<readonly FileState[]> {
  const files = new Map<string, FileState>()
  for (const path of paths) {
    try {
      const place = await locate(guarded, path, 'write')
      if (!files.has(place.path))
        files.set(place.path, { path: place.path, hash: (await look(guarded, place))?.hash ?? null })
    } catch (error) {
      if (!(error instanceof ToolFailure)) throw error
    }
  }
  return [...files.values()]
}

/** Throws `ApprovalNeeded` unless the file is what a person was shown, but for changes that the session itself made since. */
export function checkShown(guarded: Guard, place: Place, seen: Seen | null, context: ToolContext): void {
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
 * Puts new bytes in the place of those that were seen, and never over others: all or nothing and on disk when it returns, or through the
 * editor. Gives the hash of what stands there now: an editor may change a text as it saves it.
 */
export async function replace(replacement: Replacement): Promise<string> {
  const { guarded, place, seen, bytes, after, context } = replacement
  checkSaved(guarded, place, seen)
  if (!guarded.buffers?.write || !isUtf8(bytes)) {
    await replaceOnDisk(replacement)
    return after
  }
  if ((await look(guarded, place))?.hash !== seen?.hash) throw conflict()
  if (context.signal.aborted) throw new ToolFailure('Interrupted', 'Stopped before anything was changed.')
  // The folders are made here, inside the bounds: an editor would follow a link that was put there since.
  await inParent(place, true, (folder) => stillInside(folder))
  await writeInEditor(guarded, place, bytes.toString())
  const written = (await look(guarded, place))?.hash ?? after
  noteChange({ ...replacement, after: written })
  return written
}

function replaceOnDisk(replacement: Replacement): Promise<void> {
  const { guarded, place, seen, bytes, context } = replacement
  return inParent(place, true, async (folder, name) => {
    // The same for every try of this call: what a crash left behind is found and removed.
    const temporary = folder.at(`.${hash('sha256', `${context.key}/${name}`).slice(0, 16)}.terret-tmp`)
    await unlink(temporary).catch(unlessMissing)
    // Never more open than the file it replaces, not even for a moment.
    const handle = await open(temporary, FRESH, seen?.mode)
    try {
      try {
        await handle.writeFile(bytes)
        if (seen) await handle.chmod(seen.mode)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await unchanged(guarded, folder, name, seen)
      await stillInside(folder)
      if (context.signal.aborted) throw new ToolFailure('Interrupted', 'Stopped before anything was changed.')
      // A rename follows no link: what was put in the place meanwhile is replaced itself.
      await rename(temporary, folder.at(name))
    } finally {
      await unlink(temporary).catch(unlessMissing)
    }
    if (HANDLES) await folder.handle.sync()
    noteChange(replacement)
  })
}

/** Takes the very file away that was seen. */
export function remove({ guarded, place, seen }: Pick<Replacement, 'guarded' | 'place' | 'seen'>): Promise<void> {
  return inParent(place, false, async (folder, name) => {
    await unchanged(guarded, folder, name, seen)
    await stillInside(folder)
    await unlink(folder.at(name))
    if (HANDLES) await folder.handle.sync()
  })
}

/** The last look before the change. What remains is the moment between this and the rename. */
async function unchanged(guarded: Guard, folder: Folder, name: string, seen: Seen | null): Promise<void> {
  const now = await lookIn(guarded, folder, name, true).catch((error: unknown) => {
    if (isErrno(error, 'ENOENT')) return null
    throw error
  })
  if (now?.hash !== seen?.hash) throw conflict()
}

/** Beside the log, so that an undo can put them back. What is no text is kept in base64, and its media type says so. */
export function keepBytes(context: ToolContext, bytes: Buffer): string {
  const kept = isUtf8(bytes)
    ? context.keep(bytes.toString())
    : context.keep(bytes.toString('base64'), 'application/octet-stream;base64')
  return kept.hash
}

export function conflict(): ToolFailure {
  const text = 'The file changed since it was seen, so nothing was written. Read it again and redo the change.'
  return new ToolFailure('Failed', text, { error_type: 'Conflict' })
}

function explainFailure(error: unknown, place: Place): unknown {
  const { shown } = place
  if (error instanceof ToolFailure) return error
  if (isErrno(error, 'ENOENT')) return missing(place)
  if (isErrno(error, 'ENOTDIR') || isErrno(error, 'ELOOP'))
    return denied(`"${shown}" leads through something that is no folder.`)
  if (isErrno(error, 'EACCES') || isErrno(error, 'EPERM')) {
    return new ToolFailure('Denied', `The operating system does not allow this with "${shown}".`)
  }
  return error
}

function unlessThere(error: unknown): void {
  if (!isErrno(error, 'EEXIST')) throw error
}

function unlessMissing(error: unknown): void {
  if (!isErrno(error, 'ENOENT')) throw error
}
