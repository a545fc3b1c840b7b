// The tools `worktree_merge` and `worktree_discard`: merge or discard the work of a child in a worktree. A person is
// asked each time, and a worktree in use is left alone.
import type { Store } from '../../ports/store.ts'
import { nonEmptyCheck, methodsCheck, requiredCheck, optionsChecker } from '../../options.ts'
import type { ToolRoot } from '../core/tool-context.ts'
import { flagField, objectField, optionalField, textField } from '../core/argument-schema.ts'
import { defineTool, type Tool } from '../core/tool.ts'
import { worktreeFailure } from './run-git.ts'
import { discardWorktree, describeFiles, mergeWorktree, findWorktree } from './worktree.ts'

/** Options of `worktreeTools`: the repository, and the store that knows its children. */
export type WorktreeToolsOptions = {
  /** The folder that the worktrees belong to: that of the sessions that start children in them. */
  readonly root: string
  /** The store of these sessions: a worktree in which one of them works is neither merged nor discarded. */
  readonly store: Pick<Store, 'list'>
}
const checkOptions = optionsChecker<WorktreeToolsOptions>('worktreeTools', {
  root: requiredCheck(nonEmptyCheck),
  store: requiredCheck(methodsCheck('give the store of the harness', 'list')),
})

const ID = textField('The worktree: its branch or its path, as the report of the subagent has it.', { min: 1 })

/** Tools by which a parent looks at, merges and discards what its children left in worktrees. */
export function worktreeTools(options: WorktreeToolsOptions): readonly Tool[] {
  checkOptions(options)
  const { root, store } = options
  const merge = defineTool({
    name: 'worktree_merge',
    description:
      'Commits what a subagent left in its worktree, merges it into the branch of this folder and removes the worktree. A conflict changes nothing.',
    input: objectField({ id: ID }),
    effect: 'once',
    sequential: true,
    approval: 'ask',
    execute: ({ id }) => mergeUnusedWorktree(store, root, id),
  })
  const discard = defineTool({
    name: 'worktree_discard',
    description: 'Removes the worktree of a subagent, and its branch. One with changes only with force: they are lost.',
    input: objectField({ id: ID, force: optionalField(flagField('Lose the changes in it. Default false.')) }),
    effect: 'once',
    sequential: true,
    approval: 'ask',
    execute: ({ id, force }) => discardUnusedWorktree(store, root, id, force),
  })
  const rooted =
    (index: number) =>
    ({ folder = root, claims }: ToolRoot): Tool | null =>
      claims ? null : (worktreeTools({ root: folder, store })[index] ?? null)
  return [merge, discard].map((tool, i) => ({ ...tool, rooted: rooted(i) }))
}

/** Returns a sentence that says what was done. */
export async function mergeUnusedWorktree(store: Pick<Store, 'list'>, root: string, id: string): Promise<string> {
  await checkUnused(store, root, id)
  const { branch, into, files } = await mergeWorktree(root, id)
  return `Merged ${branch} into ${into}: ${files.length === 0 ? 'no file was changed' : describeFiles(files)}.`
}

export async function discardUnusedWorktree(
  store: Pick<Store, 'list'>,
  root: string,
  id: string,
  force = false,
): Promise<string> {
  await checkUnused(store, root, id)
  await discardWorktree(root, id, force)
  return `Removed the worktree ${id}.`
}

async function checkUnused(store: Pick<Store, 'list'>, root: string, id: string): Promise<void> {
  const { folder } = await findWorktree(root, id)
  const [working] = await store.list({ folder, status: 'running', limit: 1 })
  if (working)
    throw worktreeFailure(
      'WorktreeInUse',
      `Session ${working.session} works in the worktree ${id}. Wait for it, or stop it first.`,
    )
}
