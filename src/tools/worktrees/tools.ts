// `worktree_merge` and `worktree_discard`: what becomes of the work of a child in a worktree. A person is asked each time, and what a
// child still works in is left alone.
import type { Store } from '../../ports/store.ts'
import { filled, having, needed, optionsOf } from '../../options.ts'
import type { ToolRoot } from '../core/context.ts'
import { flag, object, optional, text } from '../core/schema.ts'
import { defineTool, type Tool } from '../core/tool.ts'
import { trouble } from './git.ts'
import { discardWorktree, listed, mergeWorktree, worktreeOf } from './worktree.ts'

export type WorktreeToolsOptions = {
  /** The folder that the worktrees belong to: that of the sessions that start children in them. */
  readonly root: string
  /** Where those sessions are: a worktree in which one works is neither merged nor discarded. */
  readonly store: Pick<Store, 'list'>
}
const checkOptions = optionsOf<WorktreeToolsOptions>('worktreeTools', {
  root: needed(filled),
  store: needed(having('give the store of the harness', 'list')),
})

const ID = text('The worktree: its branch or its path, as the report of the subagent has it.', { min: 1 })

export function worktreeTools(options: WorktreeToolsOptions): readonly Tool[] {
  checkOptions(options)
  const { root, store } = options
  const merge = defineTool({
    name: 'worktree_merge',
    description:
      'Commits what a subagent left in its worktree, merges it into the branch of this folder and removes the worktree. A conflict changes nothing.',
    input: object({ id: ID }),
    effect: 'once',
    sequential: true,
    approval: 'ask',
    execute: ({ id }) => mergedIn(store, root, id),
  })
  const discard = defineTool({
    name: 'worktree_discard',
    description: 'Removes the worktree of a subagent, and its branch. One with changes only with force: they are lost.',
    input: object({ id: ID, force: optional(flag('Lose the changes in it. Default false.')) }),
    effect: 'once',
    sequential: true,
    approval: 'ask',
    execute: ({ id, force }) => discardedIn(store, root, id, force),
  })
  const rooted =
    (index: number) =>
    ({ folder = root, claims }: ToolRoot): Tool | null =>
      claims ? null : (worktreeTools({ root: folder, store })[index] ?? null)
  return [merge, discard].map((tool, i) => ({ ...tool, rooted: rooted(i) }))
}

/** What was done, in a sentence. */
export async function mergedIn(store: Pick<Store, 'list'>, root: string, id: string): Promise<string> {
  await checkFree(store, root, id)
  const { branch, into, files } = await mergeWorktree(root, id)
  return `Merged ${branch} into ${into}: ${files.length === 0 ? 'no file was changed' : listed(files)}.`
}

export async function discardedIn(
  store: Pick<Store, 'list'>,
  root: string,
  id: string,
  force = false,
): Promise<string> {
  await checkFree(store, root, id)
  await discardWorktree(root, id, force)
  return `Removed the worktree ${id}.`
}

async function checkFree(store: Pick<Store, 'list'>, root: string, id: string): Promise<void> {
  const { folder } = await worktreeOf(root, id)
  const [working] = await store.list({ folder, status: 'running', limit: 1 })
  if (working)
    throw trouble(
      'WorktreeInUse',
      `Session ${working.session} works in the worktree ${id}. Wait for it, or stop it first.`,
    )
}
