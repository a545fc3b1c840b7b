// Which programs the harness may start by name: those on PATH that no file of the workspace can stand for.
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { WORKTREES } from './own-places.ts'
import { contains } from './paths.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** A program on PATH that is not within `root`. `before` are folders to look into first. */
export function findProgram(
  name: string,
  root: string,
  env: Environment,
  before: readonly string[] = [],
): string | null {
  const real = realOf(root)
  const paths = [...before, ...foldersOutside(real, env)].map((folder) => join(folder, name))
  return paths.find((path) => isExecutable(path) && !contains(real, realpathSync(path))) ?? null
}

/** The folders of PATH that are not within `root`. Relative ones are left out, and so is the empty one: both depend on where one is. */
export function foldersOutside(root: string, env: Environment): readonly string[] {
  const folders = (env['PATH'] ?? '').split(delimiter).filter(isAbsolute)
  return folders.filter((folder) => existsSync(folder) && !contains(root, realpathSync(folder)))
}

/**
 * The outermost repository that a workspace is in, or the workspace itself: what the harness runs outside of the sandbox must not lie
 * there. A worktree counts as a part of its parent's repository. The
 * home folder does not count: there are programs of the user in it, also where it is a repository.
 */
export function repositoryAround(workspace: string, env: Environment): string {
  const folder = realOf(workspace)
  const home = realOf(env['HOME'] || homedir())
  const [start = folder] = folder.split(join('/', WORKTREES, '/'), 1)
  let root = start
  for (let place = start; place !== home && place !== dirname(place); place = dirname(place))
    if (existsSync(join(place, '.git'))) root = place
  return root
}

/** Without links, as far as it is there. */
function realOf(path: string): string {
  return existsSync(path) ? realpathSync(path) : resolve(path)
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
