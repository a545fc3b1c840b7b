// `terret worktree`: lists, merges and discards the worktrees of subagents in this folder.
import type { CommandArgs } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { oneLine } from '../../view/clean.ts'
import { print, printJson } from '../present/print.ts'
import { withStore, type CommandContext, withStoreToRead } from '../state/command-context.ts'

export async function worktreeCommand(call: CommandArgs): Promise<number> {
  const [verb = 'list', id] = call.words
  if (verb === 'list' && id === undefined)
    return refuseToolFailure(withStoreToRead((place) => printWorktrees(call, place)))
  if ((verb !== 'merge' && verb !== 'discard') || id === undefined)
    throw new CliError(EXIT.usage, 'Usage: terret worktree [list | merge ID | discard ID [--force]]')
  return refuseToolFailure(withStore((place) => endWorktree(call, place, verb, id)))
}

async function printWorktrees(call: CommandArgs, { store, folder }: CommandContext): Promise<number> {
  const { changesOf, describeFiles, listWorktrees } = await import('../../tools/worktrees/worktree.ts')
  const rows = await Promise.all(
    (await listWorktrees(folder)).map(async (one) => {
      const [card] = await store.list({ folder: one.folder, limit: 1 })
      const { files } = await changesOf(folder, one)
      const { id, branch, path, parent } = one
      return { id, branch, path, parent, session: card?.session ?? null, status: card?.status ?? null, files }
    }),
  )
  for (const row of rows) {
    if (call.is('json')) printJson(row)
    else {
      const changed = row.files.length === 0 ? 'no changes' : `changed: ${describeFiles(row.files)}`
      print(oneLine(`${row.id}  ${row.status ?? 'no session'}  ${row.branch}  ${changed}`, 2_000))
    }
  }
  return EXIT.ok
}

async function endWorktree(
  call: CommandArgs,
  { store, folder }: CommandContext,
  verb: 'merge' | 'discard',
  id: string,
): Promise<number> {
  const { discardUnusedWorktree, mergeUnusedWorktree } = await import('../../tools/worktrees/worktree-tools.ts')
  const merges = verb === 'merge'
  const said = merges
    ? await mergeUnusedWorktree(store, folder, id)
    : await discardUnusedWorktree(store, folder, id, call.is('force'))
  if (call.is('json')) printJson({ id, said })
  else print(oneLine(said, 2_000))
  return EXIT.ok
}

/** Turns a failure of git, or of a worktree's state, into a one-line error with the same sentence. */
async function refuseToolFailure(ended: Promise<number>): Promise<number> {
  const { ToolFailure } = await import('../../tools/core/tool-output.ts')
  return ended.catch((error: unknown) => {
    if (!(error instanceof ToolFailure)) throw error
    const missing = error.metadata['error_type'] === 'WorktreeMissing'
    throw new CliError(missing ? EXIT.missing : EXIT.usage, oneLine(error.message, 2_000))
  })
}
