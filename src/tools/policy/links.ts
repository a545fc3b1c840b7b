// Where a path really leads, through symbolic links, before any rule sees it. The one place that resolves paths for rules. It only
// looks: rules are judged in policy.ts, and the file tools check once more what they open. A hard link has no target to resolve.
import { readlinkSync, realpathSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

const LINKS_MAX = 40
/** Matches no rule that allows, and every rule that asks or denies: see pattern.ts. */
const UNKNOWN = '..'

/**
 * The places that these paths lead to, where that is not what their words say: from the root if they are in it, else absolute.
 * A path that cannot be resolved leads to `..`.
 */
export function followLinks(paths: readonly string[], root: string): readonly string[] {
  const found = new Set<string>()
  for (const path of paths) for (const led of leadsOf(path, root)) found.add(led)
  return [...found]
}

function leadsOf(path: string, root: string): readonly string[] {
  // Tools that understand it put the home of some user there; no rule can know which one.
  if (path.startsWith('~')) return []
  const local = localPath(path)
  if (local === null) return [UNKNOWN]
  const said = fromRoot(root, resolve(root, local))
  // Terret's own tools take `link/..` for the folder that holds the link. Other programs go up from where the link leads.
  const ways = local.split('/').includes('..') ? [resolve(root, local), local] : [local]
  const leads = ways.map((way) => realPath(root, way)).map((one) => (one === null ? UNKNOWN : spelledFrom(root, one)))
  return leads.filter((led) => led !== said)
}

/** Absolute, with every link resolved; what is missing on the way is taken as it is written. Null if it cannot be found out. */
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

/** The path with its links resolved one by one, also where a link leads to what is not there yet. Null for a ring of links. */
function resolveLinkByLink(whole: string): string | null {
  const rest = whole.split(sep).toReversed()
  let place: string = sep
  for (let links = 0; rest.length > 0; ) {
    const name = rest.pop() ?? ''
    if (name === '' || name === '.') continue
    const next = name === '..' ? dirname(place) : join(place, name)
    const target = name === '..' ? 'none' : targetOf(next)
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

function targetOf(path: string): { readonly link: string } | 'none' | null {
  try {
    return { link: readlinkSync(path) }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : ''
    return NO_LINK.has(code) ? 'none' : null
  }
}

/** It is something else, or is not there. */
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

/** A real path as rules read it: from the root if it is in it, else absolute. */
export function spelledFrom(root: string, path: string): string {
  return fromRoot(realPath(root, '.') ?? root, path)
}

function fromRoot(root: string, path: string): string {
  const way = relative(root, path)
  if (way === '') return '.'
  return way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way) ? path : way
}

/** A pattern with the part before its first star resolved, for rules that name a link. Null if that is what it says already. */
export function followPattern(pattern: string, root: string): string | null {
  const segments = pattern.split('/')
  const star = segments.findIndex((segment) => segment.includes('*'))
  const fixed = segments.slice(0, star < 0 ? segments.length : star)
  const [led] = fixed.join('/') === '' ? [] : leadsOf(fixed.join('/'), root)
  return led === undefined || led === UNKNOWN ? null : [led, ...segments.slice(fixed.length)].join('/')
}
