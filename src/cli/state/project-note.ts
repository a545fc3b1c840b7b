// What a model is told about the place and the time when a run begins: the date, the system, the folder the person
// stands in and the state of git. It is a note in the log and never part of the instructions, so that the prefix of a
// session stays the same bytes for the provider's cache.
import { relative } from 'node:path'
import type { Hook } from '../../index.ts'
import { isChildId } from '../../view/ids.ts'
import { oneLine } from '../../view/clean.ts'
import { countNoun } from '../../view/shown-text.ts'
import { TODAY } from '../present/outcome.ts'
import { CLI_AGENT } from './folder-memory.ts'
import type { FolderSetup } from './folder-setup.ts'

/** A repository that is slower than this is left out of the note. */
const GIT_MS = 1_500
const NAME_CHARS_MAX = 120

/**
 * Asked at the start of each run of the folder's own agent or of `agent`. Other agents work by their task alone. A
 * session that was told the same last is not told again.
 */
export function projectNoteHook(
  { folder, start }: Pick<FolderSetup, 'folder' | 'start'>,
  agent: string = CLI_AGENT,
): Hook {
  let told = ''
  const git = shareRead(() => gitLines(folder))
  return {
    type: 'user_prompt_submit',
    run: async ({ session, agent: of }) => {
      if (isChildId(session) || (of !== CLI_AGENT && of !== agent)) return undefined
      const lines = [...placeLines(folder, start), ...(await git())]
      const context = lines.join('\n')
      if (told === `${session}\n${context}`) return undefined
      told = `${session}\n${context}`
      return { context }
    },
  }
}

/** One read at a time. All who ask while one is under way share the next, which begins after they asked. */
function shareRead<T>(read: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | null = null
  let next: Promise<T> | null = null
  const begin = (): Promise<T> => {
    next = null
    const reading = read().finally(() => {
      if (current === reading) current = null
    })
    current = reading
    return reading
  }
  return () => {
    if (current === null) return begin()
    next ??= current.then(begin, begin)
    return next
  }
}

function placeLines(folder: string, start: string): readonly string[] {
  const now = new Date()
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  const [year, month, day] = [now.getFullYear(), now.getMonth() + 1, now.getDate()]
  const date = [year, ...[month, day].map((part) => String(part).padStart(2, '0'))].join('-')
  const below = relative(folder, start)
  return [
    `${TODAY}${now.toLocaleDateString('en-GB', { weekday: 'long' })}, ${date} (${zone}). The system is ${process.platform} ${process.arch}.`,
    ...(below === '' ? [] : [`The person works in ${nameText(below)}/ of this workspace.`]),
  ]
}

/** A name that others chose must not end the note. */
function nameText(name: string): string {
  return oneLine(name, NAME_CHARS_MAX).replace(/[<>]/g, '?')
}

/** Empty without git, without a repository, and where it takes too long. Names of branches are text of others. */
async function gitLines(folder: string): Promise<readonly string[]> {
  const { readGitState } = await import('../../tools/worktrees/git-state.ts')
  const state = await readGitState(folder, GIT_MS)
  if (state === null) return []
  const { branch, ahead, behind, changed, untracked } = state
  const parts = [
    branch === null ? 'no branch is checked out' : `branch ${nameText(branch)}`,
    ...(ahead > 0 ? [`${countNoun(ahead, 'commit')} ahead of its upstream`] : []),
    ...(behind > 0 ? [`${countNoun(behind, 'commit')} behind it`] : []),
    changed === 0 ? 'no changed files' : countNoun(changed, 'changed file'),
    ...(untracked > 0 ? [countNoun(untracked, 'untracked file')] : []),
  ]
  return [`Git: ${parts.join(', ')}.`]
}
