// The state of the code that a report is about.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'

/** The commit, with a digest of what was changed since, so that no two states of the code have the same name. */
export function commitHere(): string {
  const git = (...args: readonly string[]): string =>
    execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1e9 })
  try {
    const [head, changes] = [git('rev-parse', '--short=12', 'HEAD').trim(), git('diff', 'HEAD')]
    if (changes === '') return head
    return `${head}+${createHash('sha256').update(changes).digest('hex').slice(0, 8)}`
  } catch {
    return 'unknown'
  }
}
