// What a command left at protected places. Mounts close only what exists, so whatever was missing is looked for again after the call.
// What nobody allowed is renamed, so that nothing obeys it. Renamed, and not removed: it may be somebody's work that was moved there.
import { constants, lstatSync, readdirSync, readlinkSync, realpathSync, renameSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { firstLink, isWithin } from './sandbox.ts'
import type { Found } from './surroundings.ts'

/** How it was when the command began. */
export type Before = {
  readonly workspace: string
  /** From the workspace. */
  readonly there: ReadonlySet<string>
  /** Not all of the workspace was looked at: what is found later may have been there all the time. */
  readonly partly: boolean
  /** How those look that were not closed, being too many. Absolute. */
  readonly told: ReadonlyMap<string, string>
  /** Where links on the way to protected places led. */
  readonly links: ReadonlyMap<string, string | null>
  /** When the walls were planned. They take longer to raise than clocks of file systems run behind. */
  readonly at: number
}

export type SetAside = { readonly path: string; readonly now: string }

/** Absolute: what is as the command left it, and what is not. */
export type Aftermath = { readonly changed: readonly string[]; readonly setAside: readonly SetAside[] }

export function aftermath(before: Before, { paths }: Found, allowed: boolean): Aftermath {
  const turned = [...before.links].filter(([path, led]) => leadsTo(path) !== led)
  const made = paths.filter((path) => isMade(before, path)).flatMap((path) => placeOf(before, path))
  const loose = [...new Set([...turned.map(([path]) => path), ...made])]
  const told = [...before.told].filter(([path, looked]) => glimpse(path) !== looked).map(([path]) => path)
  if (allowed) return { changed: [...loose, ...told], setAside: [] }
  const setAside = loose.flatMap(renamed)
  for (const [path, led] of turned) putBack(path, led)
  return {
    changed: [...loose.filter((path) => isThere(path) && leadsTo(path) !== before.links.get(path)), ...told],
    setAside,
  }
}

function isMade({ workspace, there, partly, at }: Before, path: string): boolean {
  if (there.has(path)) return false
  // A repository with very much in it is closed as a whole, and that may change from look to look.
  if ([...there].some((known) => isWithin(known, path) || isWithin(path, known))) return false
  if (!partly) return true
  const changedAt = lstatSync(join(workspace, path), { throwIfNoEntry: false })?.ctimeMs
  return changedAt !== undefined && changedAt >= at
}

/** What to rename: a link that is new, else the thing itself, if it is in the workspace. */
function placeOf({ workspace, links }: Before, path: string): readonly string[] {
  const link = firstLink(workspace, path)
  if (link !== null && !links.has(link)) return [link]
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
  if (!isThere(path)) return []
  let now = `${path}.unapproved`
  for (let count = 2; isThere(now); count++) now = `${path}.unapproved-${count}`
  try {
    renameSync(path, now)
    return [{ path, now }]
  } catch {
    // It stays, and is told as changed.
    return []
  }
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
