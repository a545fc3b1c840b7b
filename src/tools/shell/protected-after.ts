// What a command left at protected places. Mounts close only what exists, so whatever was missing is looked for again after the call.
// What was not allowed is renamed, so that nothing obeys it. Renamed, and not removed: it may be a file of the user that was moved.
import { constants, lstatSync, readdirSync, readlinkSync, realpathSync, renameSync, symlinkSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { firstLink, isWithin } from './sandbox.ts'
import { isSkipped, type Look } from './protected-before.ts'

/** How it was when the command began. */
export type Before = {
  readonly workspace: string
  readonly look: Look
  /** How those look that were not closed, being too many. Absolute. */
  readonly told: ReadonlyMap<string, string>
  /** Where links on the way to protected places led. */
  readonly links: ReadonlyMap<string, string | null>
}

export type SetAside = { readonly path: string; readonly now: string }

/** Absolute: what is as the command left it, what is not, and folders that could neither be looked into nor set aside. */
export type Aftermath = {
  readonly changed: readonly string[]
  readonly setAside: readonly SetAside[]
  readonly unchecked: readonly string[]
}

export function aftermath(before: Before, after: Look, allowed: boolean): Aftermath {
  const { workspace, look } = before
  const turned = [...before.links].filter(([path, led]) => leadsTo(path) !== led)
  const made = [...after.paths]
    .filter((path) => !look.paths.has(path))
    .toSorted()
    .flatMap((path) => placeOf(before, path))
  const ordered = [...after.orders].filter(([path, lines]) =>
    lines.some((line) => !look.orders.get(path)?.includes(line)),
  )
  const told = [...before.told].filter(([path, looked]) => glimpse(path) !== looked).map(([path]) => path)
  const unseen = [...after.unseen].filter(([path, why]) => look.unseen.get(path) !== why).map(([path]) => path)
  const absolute = (path: string): string => join(workspace, path)
  const links = turned.map(([path]) => path)
  const loose = [...new Set([...links, ...made, ...ordered.map(([path]) => absolute(path)), ...told])]
  if (allowed) {
    // In a workspace that was only looked at in part it is unknown what is new.
    return { changed: look.partly ? told : loose, setAside: [], unchecked: look.partly ? [] : unseen.map(absolute) }
  }
  const fresh = new Set(unseen.map((path) => newest(look, path)).toSorted())
  const setAside = [...loose, ...[...fresh].filter((path) => path !== '').map(absolute)].flatMap(renamed)
  for (const [path, led] of turned) putBack(path, led)
  const gone = new Set(setAside.map(({ path }) => path))
  const stays = (path: string): boolean => isThere(path) && !gone.has(path)
  return {
    changed: loose.filter((path) => {
      // What was there and is not any more cannot be renamed.
      const isLost = before.told.has(path) && !gone.has(path) && !isThere(path)
      return isLost || (stays(path) && leadsTo(path) !== before.links.get(path))
    }),
    setAside,
    unchecked: [...fresh].map(absolute).filter(stays),
  }
}

/** The topmost folder above it that was not there before: all of it is the command's. */
function newest({ folders }: Look, path: string): string {
  let top = path
  for (let above = dirname(path); above !== '.' && !folders.has(above) && !isSkipped(above); above = dirname(above)) {
    top = above
  }
  return top
}

/** What to rename: a link that is new, else the thing itself, if it is in the workspace. */
function placeOf({ workspace, links, look }: Before, path: string): readonly string[] {
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
    return isWithin(workspace, folder) ? [join(folder, basename(whole))] : []
  } catch {
    return []
  }
}

function putBack(path: string, led: string | null): void {
  try {
    if (led !== null && !isThere(path)) symlinkSync(led, path)
  } catch {
    // The folder it was in is gone, and then nothing is obeyed there.
  }
}

function renamed(path: string): readonly SetAside[] {
  const found: readonly (string | Buffer)[] = isThere(path) ? [path] : namedInBytes(path)
  return found.flatMap((from) => {
    let now = `${path}.unapproved`
    for (let count = 2; isThere(now); count++) now = `${path}.unapproved-${count}`
    try {
      renameSync(from, now)
      return [{ path, now }]
    } catch {
      // It stays, and is told as changed.
      return []
    }
  })
}

/** A name that is no text is listed with U+FFFD for what cannot be read. It is found again by its bytes. */
function namedInBytes(path: string): readonly Buffer[] {
  const name = basename(path)
  if (!name.includes('\ufffd')) return []
  const above = Buffer.from(`${dirname(path)}/`)
  const names = readdirSync(dirname(path), { encoding: 'buffer' })
  return names.filter((bytes) => bytes.toString() === name).map((bytes) => Buffer.concat([above, bytes]))
}

/** To be compared after the call. A folder looks like what is in it. */
export function glimpse(path: string): string {
  try {
    const { ino, mode, size, ctimeMs } = lstatSync(path)
    const inside = (mode & constants.S_IFMT) === constants.S_IFDIR ? readdirSync(path) : []
    return [`${ino} ${mode} ${size} ${ctimeMs}`, ...inside.map((name) => glimpse(join(path, name)))].join()
  } catch {
    return 'missing'
  }
}

export function leadsTo(link: string): string | null {
  try {
    return readlinkSync(link)
  } catch {
    return null
  }
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}
