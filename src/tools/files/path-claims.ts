// Path claims: which paths each of several writers in one folder may write. They are checked before any writer starts,
// and again at each write. Paths are compared as places: links are resolved, and names that a file system may treat as
// equal are equal.
import { isAbsolute } from 'node:path'
import type { PathClaim, PathClaims } from '../core/tool-context.ts'
import { comparablePath, containsPath, foldPath } from './path-guard.ts'

export type FolderWriter = {
  /** Its name in messages. */
  readonly owner: string
  /** It has a tool that writes. */
  readonly writes: boolean
  readonly ownership?: readonly string[]
}

/** The claims of a writer, or the reason why it cannot start. One for each writer, in order. */
export type ClaimResult = { readonly claims: PathClaims | null } | { readonly refused: string }

const PATHS_MAX = 100
const PATH_CHARS_MAX = 1_024

/** Decides the claims of writers that work at the same time in one folder. A single writer needs none. */
export async function decideClaims(root: string, writers: readonly FolderWriter[]): Promise<readonly ClaimResult[]> {
  const several = writers.filter(({ writes }) => writes).length > 1
  const wrong = writers.map(({ writes, ownership }) => (writes ? ownershipTrouble(ownership, several) : null))
  const sound = writers.map(({ writes, ownership = [] }, i) =>
    writes && wrong[i] === null ? ownership.map(tidyPath) : [],
  )
  const real = await Promise.all(sound.map((paths) => Promise.all(paths.map((path) => comparablePath(root, path)))))
  return writers.map(({ writes, ownership }, i): ClaimResult => {
    const refused = wrong[i] ?? findOutside(sound[i], real[i], root) ?? findOverlap(writers, sound, real, i)
    if (refused !== null) return { refused }
    if (!writes || ownership === undefined) return { claims: null }
    const others = writers.flatMap(({ owner }, j): PathClaim[] => (j === i ? [] : [{ owner, paths: sound[j] ?? [] }]))
    return { claims: { own: sound[i] ?? [], others: others.filter(({ paths }) => paths.length > 0) } }
  })
}

function ownershipTrouble(ownership: readonly string[] | undefined, several: boolean): string | null {
  if (ownership === undefined)
    return several
      ? 'Several agents would write at once: name the paths of each in "ownership", or use worktrees.'
      : null
  if (ownership.length === 0) return '"ownership" is empty: name at least one path.'
  if (ownership.length > PATHS_MAX) return `"ownership" has ${ownership.length} paths, at most ${PATHS_MAX}.`
  for (const path of ownership) {
    const why = whyNoPath(path)
    if (why !== null) return `"ownership" has ${JSON.stringify(path.slice(0, 64))}: ${why}.`
  }
  return null
}

function whyNoPath(path: string): string | null {
  if (path.trim() === '' || path.length > PATH_CHARS_MAX) return `a path has 1 to ${PATH_CHARS_MAX} characters`
  if (/[\p{Cc}\\]/u.test(path)) return 'a path is written with "/" and has no control characters'
  if (isAbsolute(path) || /^[A-Za-z]:/.test(path) || path.startsWith('~')) return 'a path starts from the workspace'
  if (path.split('/').includes('..')) return 'a path does not lead upwards'
  if (/[*?[\]{}]/.test(path)) return 'a pattern is no path; name the folder'
  return null
}

/** Removes empty and `.` segments: `./src//a/` becomes `src/a`. */
function tidyPath(path: string): string {
  return (
    path
      .split('/')
      .filter((name) => name !== '' && name !== '.')
      .join('/') || '.'
  )
}

function findOutside(
  paths: readonly string[] = [],
  real: readonly (string | null)[] = [],
  root: string,
): string | null {
  const at = real.findIndex((place) => place === null || !containsPath(foldPath(root), place))
  return at < 0 ? null : `"ownership" has ${JSON.stringify(paths[at])}, which leads out of the workspace.`
}

function findOverlap(
  writers: readonly FolderWriter[],
  sound: readonly (readonly string[])[],
  real: readonly (readonly (string | null)[])[],
  i: number,
): string | null {
  for (const [at, place] of (real[i] ?? []).entries())
    for (const [j, places] of real.entries())
      for (const [k, other] of places.entries())
        if (j !== i && place !== null && other !== null && (containsPath(place, other) || containsPath(other, place)))
          return `${sound[i]?.[at]} and ${sound[j]?.[k]} of ${writers[j]?.owner} overlap. Give each path to one agent.`
  return null
}
