// Finds the changes of a command at protected places. Mounts close only existing paths, so missing ones are searched
// again after the call. Files that no person allowed are renamed, so that no program obeys them. They are not removed,
// because they may be moved files of the user.
import { constants, lstatSync, readdirSync, readlinkSync, realpathSync, renameSync, symlinkSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { firstLink, isInFolder } from './sandbox.ts'
import { entryExists, isSkipped, type ProtectedScan } from './scan-protected.ts'

/** The state when the command began. */
export type ProtectedBefore = {
  readonly workspace: string
  readonly look: ProtectedScan
  /** Fingerprints of the protected paths that were not closed because there were too many. Absolute. */
  readonly told: ReadonlyMap<string, string>
  /** The targets of links on the way to protected places. */
  readonly links: ReadonlyMap<string, string | null>
}

export type SetAside = { readonly path: string; readonly now: string }

/**
 * Absolute paths: those left as the command changed them, those set aside, and folders that could neither be scanned
 * nor set aside.
 */
export type ProtectedChanges = {
  readonly changed: readonly string[]
  readonly setAside: readonly SetAside[]
  readonly unchecked: readonly string[]
}

export function protectedChanges(before: ProtectedBefore, after: ProtectedScan, allowed: boolean): ProtectedChanges {
  const { workspace, look } = before
  const turned = [...before.links].filter(([path, led]) => linkTarget(path) !== led)
  const made = [...after.paths]
    .filter((path) => !look.paths.has(path))
    .toSorted()
    .flatMap((path) => pathsToRename(before, path))
  const ordered = [...after.orders].filter(([path, lines]) =>
    lines.some((line) => !look.orders.get(path)?.includes(line)),
  )
  const told = [...before.told].filter(([path, looked]) => fileFingerprint(path) !== looked).map(([path]) => path)
  const unseen = [...after.unseen].filter(([path, why]) => look.unseen.get(path) !== why).map(([path]) => path)
  const absolute = (path: string): string => join(workspace, path)
  const links = turned.map(([path]) => path)
  const loose = [...new Set([...links, ...made, ...ordered.map(([path]) => absolute(path)), ...told])]
  if (allowed) {
    // If only a part of the workspace was scanned, it is unknown what is new.
    return { changed: look.partly ? told : loose, setAside: [], unchecked: look.partly ? [] : unseen.map(absolute) }
  }
  const fresh = new Set(unseen.map((path) => topmostNewFolder(look, path)).toSorted())
  const setAside = [...loose, ...[...fresh].filter((path) => path !== '').map(absolute)].flatMap(setAsidePath)
  for (const [path, led] of turned) restoreLink(path, led)
  const gone = new Set(setAside.map(({ path }) => path))
  const stays = (path: string): boolean => entryExists(path) && !gone.has(path)
  return {
    changed: loose.filter((path) => {
      // A path that existed before and is gone now cannot be renamed.
      const isLost = before.told.has(path) && !gone.has(path) && !entryExists(path)
      return isLost || (stays(path) && linkTarget(path) !== before.links.get(path))
    }),
    setAside,
    unchecked: [...fresh].map(absolute).filter(stays),
  }
}

/** The topmost new folder above the path: the command made all of it. */
function topmostNewFolder({ folders }: ProtectedScan, path: string): string {
  let top = path
  for (let above = dirname(path); above !== '.' && !folders.has(above) && !isSkipped(above); above = dirname(above)) {
    top = above
  }
  return top
}

/** Returns the path to rename: a new link on the way, else the file itself if it is in the workspace. */
function pathsToRename({ workspace, links, look }: ProtectedBefore, path: string): readonly string[] {
  const link = firstLink(workspace, path)
  const isKnown = (one: string): boolean => {
    const way = relative(workspace, one)
    const above = look.folders.get(dirname(way) === '.' ? '' : dirname(way))
    return links.has(one) || (above?.links.includes(way) ?? false) || (above?.folders.includes(way) ?? false)
  }
  if (link !== null && !isKnown(link)) return [link]
  try {
    const whole = join(workspace, path)
    const folder = realpathSync(dirname(whole))
    return isInFolder(workspace, folder) ? [join(folder, basename(whole))] : []
  } catch {
    return []
  }
}

function restoreLink(path: string, led: string | null): void {
  try {
    if (led !== null && !entryExists(path)) symlinkSync(led, path)
  } catch {
    // The folder of the link is gone, so nothing is obeyed there.
  }
}

function setAsidePath(path: string): readonly SetAside[] {
  const found: readonly (string | Buffer)[] = entryExists(path) ? [path] : findByBytes(path)
  return found.flatMap((from) => {
    let now = `${path}.unapproved`
    for (let count = 2; entryExists(now); count++) now = `${path}.unapproved-${count}`
    try {
      renameSync(from, now)
      return [{ path, now }]
    } catch {
      // The file stays and is reported as changed.
      return []
    }
  })
}

/** A name that is not valid UTF-8 is listed with U+FFFD. It is found again by its bytes. */
function findByBytes(path: string): readonly Buffer[] {
  const name = basename(path)
  if (!name.includes('\ufffd')) return []
  const above = Buffer.from(`${dirname(path)}/`)
  const names = readdirSync(dirname(path), { encoding: 'buffer' })
  return names.filter((bytes) => bytes.toString() === name).map((bytes) => Buffer.concat([above, bytes]))
}

/** A fingerprint to compare after the call. That of a folder includes its content. */
export function fileFingerprint(path: string): string {
  try {
    const { ino, mode, size, ctimeMs } = lstatSync(path)
    const inside = (mode & constants.S_IFMT) === constants.S_IFDIR ? readdirSync(path) : []
    return [`${ino} ${mode} ${size} ${ctimeMs}`, ...inside.map((name) => fileFingerprint(join(path, name)))].join()
  } catch {
    return 'missing'
  }
}

export function linkTarget(link: string): string | null {
  try {
    return readlinkSync(link)
  } catch {
    return null
  }
}
