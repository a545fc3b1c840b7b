// The state of the repository of a folder in a few numbers. It runs git as run-git.ts does, so that no setting of the
// repository can start a program.
import { openRepository, runGit } from './run-git.ts'

export type GitState = {
  /** Null: no branch is checked out. */
  readonly branch: string | null
  readonly ahead: number
  readonly behind: number
  readonly changed: number
  /** Folders without a tracked file count once. */
  readonly untracked: number
}

/** Null without git, without a repository, and if git takes longer than `timeoutMs`. */
export async function readGitState(folder: string, timeoutMs: number): Promise<GitState | null> {
  try {
    const at = await openRepository(folder, timeoutMs)
    if (typeof at === 'string') return null
    const { code, stdout } = await runGit(at, ['status', '--porcelain=v2', '--branch', '-z'], { timeoutMs })
    return code === 0 ? parseStatus(stdout) : null
  } catch {
    return null
  }
}

function parseStatus(text: string): GitState {
  const rows = text.split('\0')
  const head = rows.find((row) => row.startsWith('# branch.head '))?.slice('# branch.head '.length)
  const [, ahead = '0', behind = '0'] =
    /^# branch\.ab \+(\d+) -(\d+)$/.exec(rows.find((row) => row.startsWith('# branch.ab ')) ?? '') ?? []
  return {
    branch: head === undefined || head === '(detached)' ? null : head,
    ahead: Number(ahead),
    behind: Number(behind),
    // A renamed file is followed by a row with its old path, which begins with neither.
    changed: rows.filter((row) => /^[12u] [.\w]{2} /.test(row)).length,
    untracked: rows.filter((row) => row.startsWith('? ')).length,
  }
}
