// Finds the programs that the harness may start by name: those on PATH that no file of the workspace can replace.
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path'
import { WORKTREES } from './harness-folders.ts'
import { containsPath } from './path-guard.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Returns a program on PATH that is not within `root`. The folders in `before` are searched first. */
export function findProgram(
  name: string,
  root: string,
  env: Environment,
  before: readonly string[] = [],
): string | null {
  const real = realPathOrResolved(root)
  const paths = [...before, ...pathFoldersOutside(real, env)].map((folder) => join(folder, name))
  return paths.find((path) => isExecutable(path) && !containsPath(real, realpathSync(path))) ?? null
}

/**
 * The folders of PATH that are not within `root`. Relative and empty entries are left out: they depend on the current
 * folder.
 */
export function pathFoldersOutside(root: string, env: Environment): readonly string[] {
  const folders = (env['PATH'] ?? '').split(delimiter).filter(isAbsolute)
  return folders.filter((folder) => existsSync(folder) && !containsPath(root, realpathSync(folder)))
}

/**
 * Returns the outermost repository around a workspace, or the workspace itself: programs that the harness runs outside
 * of the sandbox must not lie there. A worktree belongs to its parent's repository. The home folder does not count,
 * even if it is a repository: it holds programs of the user.
 */
export function repositoryAround(workspace: string, env: Environment): string {
  const folder = realPathOrResolved(workspace)
  const home = realPathOrResolved(env['HOME'] || homedir())
  const [start = folder] = folder.split(join('/', WORKTREES, '/'), 1)
  let root = start
  for (let place = start; place !== home && place !== dirname(place); place = dirname(place))
    if (existsSync(join(place, '.git'))) root = place
  return root
}

/** Resolves links if the path exists. */
function realPathOrResolved(path: string): string {
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
