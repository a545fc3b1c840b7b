// Path claims: which paths each of several writers in one folder may write. Checked before any of them starts, and again at each write.
// Paths are compared as places: links are resolved, and names that a file system may take for the same are the same.
import { isAbsolute } from 'node:path'
import type { Claim, Claims } from '../core/context.ts'
import { comparedAt, contains, spelled } from './paths.ts'

export type Writer = {
  /** Its name, in messages. */
  readonly owner: string
  /** It has a tool that writes. */
  readonly writes: boolean
  readonly ownership?: readonly string[]
}

/** Either what it may write, or why it cannot be started. One for each writer, in order. */
export type Claimed = { readonly claims: Claims | null } | { readonly refused: string }

const PATHS_MAX = 100
const PATH_CHARS_MAX = 1_024

/** For writers that work at the same time in one folder. A single one needs no claim. */
export async function claimsOf(root: string, writers: readonly Writer[]): Promise<readonly Claimed[]> {
  const several = writers.filter(({ writes }) => writes).length > 1
  const wrong = writers.map(({ writes, ownership }) => (writes ? troubleIn(ownership, several) : null))
  const sound = writers.map(({ writes, ownership = [] }, i) => (writes && wrong[i] === null ? ownership.map(tidy) : []))
  const real = await Promise.all(sound.map((paths) => Promise.all(paths.map((path) => comparedAt(root, path)))))
  return writers.map(({ writes, ownership }, i): Claimed => {
    const refused = wrong[i] ?? outside(sound[i], real[i], root) ?? shared(writers, sound, real, i)
    if (refused !== null) return { refused }
    if (!writes || ownership === undefined) return { claims: null }
    const others = writers.flatMap(({ owner }, j): Claim[] => (j === i ? [] : [{ owner, paths: sound[j] ?? [] }]))
    return { claims: { own: sound[i] ?? [], others: others.filter(({ paths }) => paths.length > 0) } }
  })
}

function troubleIn(ownership: readonly string[] | undefined, several: boolean): string | null {
  if (ownership === undefined)
    return several
      ? 'Several agents would write at once: name the paths of each in "ownership", or use worktrees.'
      : null
  if (ownership.length === 0) return '"ownership" is empty: name at least one path.'
  if (ownership.length > PATHS_MAX) return `"ownership" has ${ownership.length} paths, at most ${PATHS_MAX}.`
  for (const path of ownership) {
    const why = oddness(path)
    if (why !== null) return `"ownership" has ${JSON.stringify(path.slice(0, 64))}: ${why}.`
  }
  return null
}

function oddness(path: string): string | null {
  if (path.trim() === '' || path.length > PATH_CHARS_MAX) return `a path has 1 to ${PATH_CHARS_MAX} characters`
  if (/[\p{Cc}\\]/u.test(path)) return 'a path is written with "/" and has no control characters'
  if (isAbsolute(path) || /^[A-Za-z]:/.test(path) || path.startsWith('~')) return 'a path starts from the workspace'
  if (path.split('/').includes('..')) return 'a path does not lead upwards'
  if (/[*?[\]{}]/.test(path)) return 'a pattern is no path; name the folder'
  return null
}

/** Without what means nothing: `./src//a/` is `src/a`. */
function tidy(path: string): string {
  return (
    path
      .split('/')
      .filter((name) => name !== '' && name !== '.')
      .join('/') || '.'
  )
}

function outside(paths: readonly string[] = [], real: readonly (string | null)[] = [], root: string): string | null {
  const at = real.findIndex((place) => place === null || !contains(spelled(root), place))
  return at < 0 ? null : `"ownership" has ${JSON.stringify(paths[at])}, which leads out of the workspace.`
}

function shared(
  writers: readonly Writer[],
  sound: readonly (readonly string[])[],
  real: readonly (readonly (string | null)[])[],
  i: number,
): string | null {
  for (const [at, place] of (real[i] ?? []).entries())
    for (const [j, places] of real.entries())
      for (const [k, other] of places.entries())
        if (j !== i && place !== null && other !== null && (contains(place, other) || contains(other, place)))
          return `${sound[i]?.[at]} and ${sound[j]?.[k]} of ${writers[j]?.owner} overlap. Give each path to one agent.`
  return null
}
