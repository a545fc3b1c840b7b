// The workspace of a command: the root of the git repository around the folder it is started in, so that one project
// is one workspace whatever subfolder a person stands in. It reads files only and runs no git, because every command asks.
import { lstatSync, readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { realFolder } from './cli-home.ts'
import { isInside } from './plain-file.ts'

/**
 * The root of the repository around the current folder, or the nearest folder up to it that has a `.terret`; without a
 * repository the current folder. Worktrees and submodules have roots of their own. A home folder or a disk that is a
 * repository is no project, and a repository of another user could be planted above a shared folder.
 */
export function workspaceFolder(): string {
  const start = realFolder(process.cwd())
  const home = homedir()
  let own: string | null = null
  for (let folder = start; folder !== home && folder !== dirname(folder); folder = dirname(folder)) {
    if (own === null && isFolder(join(folder, '.terret'))) own = folder
    if (isRepositoryRoot(folder)) return own ?? folder
  }
  return start
}

/** The current folder if it lies in this workspace, or else the workspace. */
export function startFolder(workspace: string): string {
  const start = realFolder(process.cwd())
  return isInside(workspace, start) ? start : workspace
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

/** Worktrees and submodules have a file `.git` that names their folder in the repository. */
function isRepositoryRoot(folder: string): boolean {
  try {
    const dot = join(folder, '.git')
    const found = lstatSync(dot)
    const isMine = found.uid === (process.getuid?.() ?? found.uid)
    if (!isMine) return false
    if (found.isDirectory()) return statSync(join(dot, 'HEAD')).isFile()
    return found.isFile() && found.size < GIT_FILE_BYTES_MAX && readFileSync(dot, 'utf8').startsWith('gitdir: ')
  } catch {
    return false
  }
}

const GIT_FILE_BYTES_MAX = 8_192
