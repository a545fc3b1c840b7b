// Finds out where a path really leads through symbolic links, before any rule sees it. It is the one place that
// resolves paths for rules. It only looks: rules are judged in policy.ts, and the file tools check again what they
// open. A hard link has no target to resolve.
import { readlinkSync, realpathSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const LINKS_MAX = 40
/** A path that matches no allowing rule, and every rule that asks or denies: see pattern.ts. */
const UNKNOWN = '..'

/**
 * Returns the places that these paths lead to, if they differ from the paths as written: relative to the root if
 * inside, else absolute. A path that cannot be resolved leads to `..`.
 */
export function followLinks(paths: readonly string[], root: string): readonly string[] {
  const found = new Set<string>()
  for (const path of paths) for (const led of linkTargets(path, root)) found.add(led)
  return [...found]
}

function linkTargets(path: string, root: string): readonly string[] {
  // Some tools expand it to the home folder of a user; no rule can know which one.
  if (path.startsWith('~')) return []
  const local = localPath(path)
  if (local === null) return [UNKNOWN]
  const said = pathFromRoot(root, resolve(root, local))
  // Terret's own tools read `link/..` as the folder that holds the link. Other programs go up from the link's target.
  const ways = local.split('/').includes('..') ? [resolve(root, local), local] : [local]
  const leads = ways
    .map((way) => realPath(root, way))
    .map((one) => (one === null ? UNKNOWN : realPathFromRoot(root, one)))
  return leads.filter((led) => led !== said)
}

/** Returns the absolute path with every link resolved; missing parts stay as written. Null if it cannot be resolved. */
export function realPath(root: string, path: string): string | null {
  const local = localPath(path)
  if (local === null) return null
  const whole = isAbsolute(local) ? local : `${root}/${local}`
  try {
    return realpathSync.native(whole)
  } catch {
    return resolveLinkByLink(whole)
  }
}

/** Resolves links one by one, also where a link leads to a missing file. Null for a loop of links. */
function resolveLinkByLink(whole: string): string | null {
  const rest = whole.split(sep).toReversed()
  let place: string = sep
  for (let links = 0; rest.length > 0; ) {
    const name = rest.pop() ?? ''
    if (name === '' || name === '.') continue
    const next = name === '..' ? dirname(place) : join(place, name)
    const target = name === '..' ? 'none' : readLinkTarget(next)
    if (target === null || links > LINKS_MAX) return null
    if (target === 'none') place = next
    else {
      links += 1
      if (isAbsolute(target.link)) place = sep
      rest.push(...target.link.split(sep).toReversed())
    }
  }
  return place
}

function readLinkTarget(path: string): { readonly link: string } | 'none' | null {
  try {
    return { link: readlinkSync(path) }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : ''
    return NO_LINK.has(code) ? 'none' : null
  }
}

/** Error codes for a path that is not a link, or does not exist. */
const NO_LINK: ReadonlySet<unknown> = new Set(['EINVAL', 'ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'UNKNOWN'])

function localPath(path: string): string | null {
  if (path.includes('\0')) return null
  if (!/^file:/i.test(path)) return path
  try {
    return fileURLToPath(path)
  } catch {
    return null
  }
}

/** The real path in the form that rules read: relative to the root if inside, else absolute. */
export function realPathFromRoot(root: string, path: string): string {
  return pathFromRoot(realPath(root, '.') ?? root, path)
}

function pathFromRoot(root: string, path: string): string {
  const way = relative(root, path)
  if (way === '') return '.'
  return way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way) ? path : way
}

/** Resolves the part of a pattern before its first star, for rules that name a link. Null if nothing changes. */
export function followPattern(pattern: string, root: string): string | null {
  const segments = pattern.split('/')
  const star = segments.findIndex((segment) => segment.includes('*'))
  const fixed = segments.slice(0, star < 0 ? segments.length : star)
  const [led] = fixed.join('/') === '' ? [] : linkTargets(fixed.join('/'), root)
  return led === undefined || led === UNKNOWN ? null : [led, ...segments.slice(fixed.length)].join('/')
}
